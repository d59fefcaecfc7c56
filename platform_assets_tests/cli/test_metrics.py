"""What Prometheus reads of a platform: names and figures, as `status` has them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.operations.opening import open_platform
from platform_assets.planning.fingerprints import fingerprints
from platform_assets.records.code_version import Attempt
from platform_assets.records.history import Hold
from platform_assets.records.outbox import Announced, Message
from platform_assets_tests.support.cli.products import DAYS, RAW, SILVER, deliver

NOW = datetime(2017, 1, 9, tzinfo=UTC)


def samples(file: Path) -> dict[tuple[str, ...], float]:
    """Values by name and labels, which are in the order of their names."""
    families = list(text_string_to_metric_families(file.read_text(encoding="utf-8")))
    assert all(family.documentation.endswith(".") for family in families)
    return {
        (one.name.removeprefix("platform_assets_"), *one.labels.values()): one.value
        for family in families
        for one in family.samples
    }


def test_the_textfile_has_the_figures_of_status(run, products, tmp_path):
    deliver(products, DAYS[1], 5)
    with open_platform(products) as platform:
        digests = {RAW: LakeSnapshot.now(platform).digests(RAW)}
        mark = fingerprints(platform.catalogue[SILVER], [DAYS[1]], digests, platform.calendar, {})[DAYS[1]]
        refused = Attempt(mark)
        platform.ledger.hold([Hold(SILVER, DAYS[1], refused, "volume", "few rows", "a run", NOW)])
        waits = Message("k" * 32, "announcements", "title", "{}", NOW, NOW)
        failed = Message("f" * 32, "announcements", "title", "{}", NOW, NOW, problem="cannot be reached")
        for message in (waits, failed):
            platform.ledger.notes.mark_announced("webhook", Announced(), by=message)
    file = tmp_path / "platform.prom"
    said = run("status", "--metrics", str(file))
    assert (said.code, said.out.strip()) == (0, f"Wrote the metrics to {file}.")
    assert [each.name for each in tmp_path.glob("platform*")] == [file.name], "nothing is left of writing it"
    assert file.stat().st_mode & 0o777 == 0o644, "node_exporter is another user"
    found, status = samples(file), run("status", "--json").json
    assert found["releases_total",] == 3
    assert found["table_newest_day_timestamp_seconds", SILVER] == datetime(2017, 1, 3, tzinfo=UTC).timestamp()
    for table in status["tables"]:
        for name in ("days", "missing", "stale", "blocked"):
            metric = "table_partitions" if name == "days" else f"table_{name}_partitions"
            assert found[metric, table["table"]] == table[name]
        assert found["circuit_open", table["table"]] == 0
    assert found["held_partitions", "volume", SILVER] == 1
    assert found["unusable_files", "refused"] == len(status["refused_files"])
    assert found["outbox_messages", "waiting", "announcements"] == 1
    assert found["outbox_messages", "failing", "announcements"] == 1
    assert {name for name, *_ in found if name.endswith("_seconds")} >= {"release_timestamp_seconds"}


def test_a_textfile_that_cannot_be_written_is_an_error(run, products, tmp_path):
    assert "Metrics are of all tables" in run("status", SILVER, "--metrics", str(tmp_path / "a.prom")).error
    said = run("status", "--metrics", str(tmp_path / "nowhere" / "a.prom"))
    assert said.code == 3
    assert "cannot be written" in said.error
    assert "Name a file in a folder that this user may write." in said.error
