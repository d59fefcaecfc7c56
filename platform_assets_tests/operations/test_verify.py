"""Published days can be made again from what they were made from; one that cannot, or comes out otherwise, is named."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import date
from decimal import Decimal
from io import BytesIO
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from platform_assets.contracts import Contract, Rule
from platform_assets.engine.platform import Platform
from platform_assets.lakehouse.delta.log import live_files
from platform_assets.lakehouse.errors import LockTimeoutError
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.releases import current_release
from platform_assets.lakehouse.staging_folders import private_folder
from platform_assets.operations.verify import Verified, verify
from platform_assets.planning.selection import Draw, Selection
from platform_assets.progress import OnProgress, Progress, no_progress
from platform_assets_tests.support.cli.commands import Run, run, state
from platform_assets_tests.support.domains import sensors
from platform_assets_tests.support.history import no_session
from platform_assets_tests.support.places import on_disk
from platform_assets_tests.support.prepared import Lakes, Prepared
from platform_assets_tests.support.world import World

__all__ = ["run", "state"]
"""Fixtures of the command line."""

DAYS = 6
DOMAIN = sensors.__name__
RAW, SILVER, GOLD, LETTERS = "raw.readings", "silver.readings", "gold.sensor_week", "quarantine.readings"


def day(number: int) -> date:
    return date(2017, 1, number)


def six_days(lakes: Lakes) -> World:
    """Six days of two sensors; on the second day a row is quarantined, on the fourth nothing was delivered."""
    world = lakes.new(days=DAYS, domains=DOMAIN)
    for number in range(1, DAYS + 1):
        rows = [
            {"sensor": sensor, "measured_at": f"{day(number)}T01:00:00Z", "celsius": f"{number}.00"}
            for sensor in ("north", "south")
        ]
        if number == 2:
            rows.append({"sensor": "east", "measured_at": f"{day(2)}T01:00:00Z", "celsius": "-400.00"})
        world.deliver_rows("readings", str(day(number)), "r.jsonl", [] if number == 4 else rows)
    world.refresh()
    return world


@pytest.fixture
def world(prepared: Prepared) -> World:
    return prepared(six_days)


def verified(
    world: World,
    *tables: str,
    days: frozenset[date] | None = None,
    draw: Draw | None = None,
    session: Callable[[], SparkSession] | None = None,
    prepare: Callable[[Platform], None] = lambda platform: None,
    progress: OnProgress = no_progress,
) -> Mapping[str, Mapping[int, Verified]]:
    with world.open() as platform, private_folder(platform.lake) as folder:
        prepare(platform)
        only = Selection(frozenset(tables), days)
        found = verify(platform, session or (lambda: world.spark), only, folder, progress, draw)
    return {table.table: {one.day.day: one for one in table.days} for table in found}


def verdicts(found: Mapping[int, Verified], verdict: str) -> list[int]:
    return [number for number, one in found.items() if one.verdict == verdict]


def file_of(world: World, table: str, number: int) -> Path:
    path = Lake.at(world.settings.lake).table_path(table)
    [file] = live_files(path, current_release(Lake.at(world.settings.lake)).versions[table])[day(number)]
    return on_disk(path / file.path)


def _written(rows: pa.Table, padding: int) -> bytes:
    """A Parquet file as Spark writes it, made longer by some bytes nobody reads."""
    sink = BytesIO()
    as_spark_does = {"compression": "zstd", "store_decimal_as_integer": True, "use_deprecated_int96_timestamps": True}
    with pq.ParquetWriter(sink, rows.schema, store_schema=False, **as_spark_does) as writer:
        writer.write_table(rows)
        writer.add_key_value_metadata({"padding": "x" * padding})
    return sink.getvalue()


def tamper(file: Path, column: str, value: Decimal) -> None:
    """Write another value into every row of a Parquet file and leave it as long as it was."""
    size = file.stat().st_size
    rows = pq.ParquetFile(file).read()
    at = rows.schema.get_field_index(column)
    other = pa.array([value] * len(rows), rows.schema.field(column).type)
    rows = rows.set_column(at, rows.schema.field(column), other)
    for padding in range(size - len(_written(rows, 0)) - 16, size):
        content = _written(rows, padding)
        if len(content) == size:
            file.write_bytes(content)
            return
    raise AssertionError(f"{file} cannot be written anew with {size} bytes")


def test_every_untouched_day_comes_out_as_it_was_published(world: World) -> None:
    """Every day of every derived table is made again."""
    before = current_release(Lake.at(world.settings.lake))
    told: list[Progress] = []
    found = verified(world, progress=told.append)
    numbers = list(range(1, DAYS + 1))
    assert verdicts(found[SILVER], "equal") == numbers
    assert verdicts(found[GOLD], "equal") == numbers
    assert verdicts(found[LETTERS], "equal") == [2]
    assert found[SILVER][2].expected.rows == 2
    assert verdicts(found[RAW], "not verifiable") == numbers
    assert "what was delivered" in found[RAW][1].reason
    rows = sum(one.expected.rows for one in found[GOLD].values())
    assert told[-1] == Progress("verifying", GOLD, DAYS, DAYS, rows=rows, finished=True)
    assert current_release(Lake.at(world.settings.lake)) == before
    assert not (world.settings.lake_folder / "_private").exists()


@pytest.mark.proof
def test_days_are_made_again_from_the_versions_they_were_made_from(world: World) -> None:
    """A refresh, and every day of every derived table made again."""
    late = [{"sensor": "north", "measured_at": f"{day(3)}T05:00:00Z", "celsius": "70.00"}]
    world.deliver_rows("readings", str(day(6)), "late.jsonl", late)
    world.refresh()
    with world.open() as platform:
        records = platform.ledger.current_days(GOLD).values()
    assert len({tuple(record.reads.items()) for record in records}) == 2
    found = verified(world)
    assert {one.verdict for table in (SILVER, GOLD) for one in found[table].values()} == {"equal"}


@pytest.mark.proof
def test_rows_that_somebody_changed_in_place_are_found_and_what_was_made_of_them_too(world: World) -> None:
    """Days are made again after each change."""
    tamper(file_of(world, GOLD, 5), "warmest", Decimal("99.00"))
    found = verified(world, GOLD)[GOLD]
    assert verdicts(found, "different") == [5]
    assert found[5].reason == "its files hold other rows than were published"
    assert found[5].examples == ("sensor north: differs in warmest", "sensor south: differs in warmest")
    assert found[5].actual is not None
    assert found[5].actual != found[5].expected

    tamper(file_of(world, SILVER, 2), "celsius", Decimal("-9.00"))
    found_all = verified(world)
    assert verdicts(found_all[SILVER], "different") == [2]
    assert verdicts(found_all[GOLD], "different") == [2, 3, 4, 5, 6]
    again = found_all[GOLD][3]
    assert again.reason == "computed again, it has other rows than were published"
    assert again.examples == ("sensor north: differs in coldest", "sensor south: differs in coldest")


def test_files_that_are_gone_or_have_another_length_are_named_without_spark(world: World) -> None:
    longer, gone = file_of(world, SILVER, 6), file_of(world, SILVER, 1)
    longer.write_bytes(longer.read_bytes() + b"PAR1")
    gone.unlink()
    found = verified(world, GOLD, SILVER, days=frozenset([day(6)]), session=no_session)
    assert found[SILVER][6].verdict == "different"
    assert longer.name in found[SILVER][6].reason
    assert "bytes" in found[SILVER][6].reason
    assert found[GOLD][6].verdict == "not verifiable"
    assert "its inputs no longer exist" in found[GOLD][6].reason
    assert gone.name in found[GOLD][6].reason
    assert "is gone" in verified(world, SILVER, days=frozenset([day(1)]), session=no_session)[SILVER][1].reason


def test_what_other_code_made_cannot_be_verified_and_says_which(world: World) -> None:
    def other_code(platform: Platform) -> None:
        platform.code_versions[GOLD] = "today's code"

    found = verified(world, GOLD, prepare=other_code, session=no_session)[GOLD]
    assert verdicts(found, "not verifiable") == list(range(1, DAYS + 1))
    assert "made by other code (" in found[1].reason
    assert "today's is today's code" in found[1].reason


def test_what_was_made_under_another_contract_cannot_be_verified_and_says_which(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def with_another_rule(contract: Contract) -> Contract:
        return replace(contract, rules=(Rule("warm", "celsius > 0", "Nothing freezes."),))

    tables = tuple(with_another_rule(one) if one.name == SILVER else one for one in sensors.DOMAIN.tables)
    monkeypatch.setattr(sensors, "DOMAIN", replace(sensors.DOMAIN, tables=tables))
    found = verified(world, SILVER, session=no_session)[SILVER]
    assert verdicts(found, "not verifiable") == list(range(1, DAYS + 1))
    assert found[1].reason.startswith("made under another contract: ")
    assert "warm" in found[1].reason


def test_a_sample_is_the_newest_day_and_some_others(world: World) -> None:
    found = verified(world, SILVER, draw=Draw(2, seed=1))[SILVER]
    assert len(found) == 3
    assert DAYS in found


@pytest.mark.proof
def test_nothing_private_is_left_by_who_was_stopped_or_killed(world: World) -> None:
    lake = Lake.at(world.settings.lake)
    left = lake.private_path / "rows" / "part.parquet"
    on_disk(left.parent).mkdir(parents=True)
    on_disk(left).write_text("of a killed process")

    def stopped(now: Progress) -> None:
        assert not left.exists()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        verified(world, GOLD, progress=stopped)
    assert not lake.private_path.exists()
    with private_folder(lake), pytest.raises(LockTimeoutError, match="'private'"), private_folder(lake):
        pass


@pytest.mark.proof
def test_the_command_says_what_differs_and_ends_accordingly(
    run: Run, state: Path, lakes: Lakes, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"DOMAINS": DOMAIN, "CALENDAR_LAST": day(DAYS), "TODAY": day(DAYS)}.items():
        monkeypatch.setenv(f"PLATFORM_{name}", str(value))
    world = lakes.copy(state, six_days)
    said = run("admin", "verify", "--sample", "1", "--seed", "7")
    assert said.code == 0
    assert "Drawn by --seed 7." in said.out
    tamper(file_of(world, GOLD, 5), "warmest", Decimal("99.00"))
    said = run("admin", "verify", GOLD, "--days", "2017-01-04..2017-01-05")
    assert said.code == 1
    assert f"different {GOLD} 2017-01-05: its files hold other rows than were published" in said.out
    assert "sensor north: differs in warmest" in said.out
    said = run("admin", "verify", GOLD, "--days", "2017-01-05", "--json")
    assert said.code == 1
    [table] = said.json["tables"]
    assert (table["table"], table["equal"], table["different"], table["not_verifiable"]) == (GOLD, 0, 1, 0)
    assert json.loads(said.out)["seed"] is None
