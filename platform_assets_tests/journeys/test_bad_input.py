"""What arrives broken is named and set aside, everything else carries on, and a repaired file heals what it broke."""

from __future__ import annotations

import csv
import errno
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from platform_assets.cli.app import main
from platform_assets.engine.refresh import RefreshResult
from platform_assets.errors import PlatformError
from platform_assets.spark.tables.failures import DiskFullError
from platform_assets_tests.support.history import DAILY
from platform_assets_tests.support.world import World, empty_world, product, sale

DAYS = ("2017-01-01", "2017-01-02", "2017-01-03")
COLUMNS = list(sale(1, 1, DAYS[0]))
ODD_NAME = "a[1] *+%20{b}?\\☃.csv"
MISNAMED = "a:[b].csv"


def csv_of(*rows: dict[str, Any], columns: list[str] = COLUMNS) -> str:
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return buffer.getvalue()


def parquet_of(*rows: dict[str, Any]) -> bytes:
    def typed(name: str, value: Any) -> Any:
        if name.endswith("disc") or name == "sales_value":
            return Decimal(value)
        return datetime.fromisoformat(value) if name in ("transaction_timestamp", "updated_at") else value

    buffer = io.BytesIO()
    pq.write_table(
        pa.Table.from_pylist([{name: typed(name, value) for name, value in row.items()} for row in rows]), buffer
    )
    return buffer.getvalue()


def nanoseconds() -> bytes:
    buffer = io.BytesIO()
    table = pq.read_table(io.BytesIO(parquet_of(sale(32, 1, DAYS[0]))))
    at = pa.array([[moment] for moment in table.column("updated_at").to_pylist()], pa.list_(pa.timestamp("ns", "UTC")))
    pq.write_table(table.append_column("written", at), buffer)
    return buffer.getvalue()


def spoiled(content: bytes) -> bytes:
    """A page that cannot be unpacked, below a sound footer."""
    return content[:8] + b"\xff" * 200 + content[208:]


GOOD: dict[str, tuple[str, str | bytes]] = {
    "good.csv": (DAYS[0], csv_of(sale(1, 1, DAYS[0]), sale(1, 2, DAYS[0]))),
    "good.jsonl": (DAYS[0], json.dumps(sale(2, 1, DAYS[0])) + "\n"),
    "good.parquet": (DAYS[0], parquet_of(sale(3, 1, DAYS[0]), sale(3, 2, DAYS[0]))),
    "again.parquet": (DAYS[0], parquet_of(sale(3, 1, DAYS[0]))),
    "extra.csv": (DAYS[0], csv_of(sale(4, 1, DAYS[0], till="left"), columns=[*COLUMNS, "till"])),
    ODD_NAME: (DAYS[0], csv_of(sale(5, 1, DAYS[0]))),
    "header only.csv": (DAYS[1], csv_of()),
    "late.csv": (DAYS[2], csv_of(sale(6, 1, DAYS[2]), sale(7, 1, DAYS[0]))),
}
"""Files that are taken whole, by name: arrival date and content."""

MIXED: dict[str, tuple[str, str | bytes, int, int]] = {
    "mixed.csv": (
        DAYS[0],
        csv_of(
            sale(20, 1, DAYS[0]),
            sale(20, 2, DAYS[0], quantity="two"),
            sale(20, 3, DAYS[0], sales_value="1.999"),
            sale(20, 4, "2016-12-31"),
            sale(20, 5, DAYS[0], quantity=-1),
        )
        + "20,6\n"
        + csv_of(sale(20, 7, DAYS[0], voided="tr\nue")).partition("\n")[2][:-4],
        3,
        4,
    ),
    "mixed.jsonl": (
        DAYS[0],
        "\n".join([json.dumps(sale(21, 1, DAYS[0])), '{"basket_id": 21,', json.dumps(sale(21, 2, "2099-01-01")), "[]"]),
        1,
        2,
    ),
    "mixed.parquet": (
        DAYS[0],
        parquet_of(sale(22, 1, DAYS[0]), sale(22, 2, DAYS[0]) | {"basket_id": None}, sale(22, 3, DAYS[0], store_id=0)),
        2,
        1,
    ),
}
"""Files with broken rows: arrival date, content, rows taken, rows refused.

One row of the first lies before the calendar; one of the second lies so far ahead that it waits for its day.
"""

REFUSED: dict[str, tuple[str | bytes, str]] = {
    "footer.parquet": (parquet_of(sale(30, 1, DAYS[0]))[:-9], "is not a Parquet file: "),
    "page.parquet": (spoiled(parquet_of(sale(31, 1, DAYS[0]))), "is corrupt: "),
    "nanoseconds.parquet": (
        nanoseconds(),
        "has written.list.element in nanoseconds, which Spark does not read; write microseconds",
    ),
    "narrow.csv": (csv_of(sale(33, 1, DAYS[0]), columns=COLUMNS[:-1]), "lacks the column voided; "),
    "twice.csv": (csv_of(sale(34, 1, DAYS[0])).replace("store_id", "WEEK", 1), "has the column WEEK, week more than"),
    "array.json": (json.dumps([sale(35, 1, DAYS[0])]), "is a JSON array; deliver one object per line"),
    "latin.csv": (csv_of(sale(36, 1, DAYS[0])).encode() + b"\xe9\n", "is not UTF-8 text: line 3 has the byte 0xe9"),
    "swapped.csv": (
        csv_of(sale(37, 1, DAYS[0])) + csv_of(sale(37, 2, DAYS[0]), columns=COLUMNS[::-1]),
        "has another header in row 3, header included",
    ),
    MISNAMED: (csv_of(sale(38, 1, DAYS[0])), "has a colon and one of {}[]*?\\ in its path"),
    "wide.csv": (csv_of() + "," * 30_000 + "\n", "has 30,001 fields in row 2"),
    "nothing.csv": (b"", "is empty: not even a header line"),
}
"""Files that are refused whole: content and reason."""


class Journey:
    """Deliveries of one day after the other, and what the command line says of them."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.results: list[RefreshResult] = []
        self.digests: list[Any] = []
        self.statuses: list[tuple[int, Any]] = []

    def refresh(self) -> None:
        self.results.append(self.world.refresh())
        self.digests.append(self.world.digests())
        self.statuses.append(self._status())

    def _status(self) -> tuple[int, Any]:
        out = io.StringIO()
        settings = self.world.settings
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PLATFORM_STATE", str(settings.state))
            patch.setenv("PLATFORM_DOMAINS", DAILY)
            for name in ("calendar_first", "calendar_last", "today"):
                patch.setenv(f"PLATFORM_{name.upper()}", str(getattr(settings, name)))
            patch.setattr(sys, "argv", ["platform-assets", "status", "--json"])
            patch.setattr(sys, "stdout", out)
            with pytest.raises(SystemExit) as ended:
                main()
        return int(str(ended.value.code)), json.loads(out.getvalue())


@pytest.fixture(scope="module")
def journey(tmp_path_factory, spark):
    world = empty_world(tmp_path_factory.mktemp("bad"), spark, days=3, domains=DAILY)
    landed = world.settings.landing_folder / "transactions"
    deliver: Callable[..., Path] = world.deliver
    deliver("products", DAYS[0], "p.jsonl", json.dumps(product(1, DAYS[0], "GROCERY")) + "\n")
    for name, (arrival, content) in GOOD.items():
        deliver("transactions", arrival, name, content)
    for name, (arrival, content, _, _) in MIXED.items():
        deliver("transactions", arrival, name, content)
    for name, (wrong, _) in REFUSED.items():
        deliver("transactions", DAYS[0], name, wrong)
    deliver("transactions", DAYS[0], "notes.txt", "hello")
    deliver("transactions", "January", "a.csv", csv_of())
    deliver("transactions", DAYS[0], "_writing.csv", "half")
    (landed / DAYS[0] / "link.csv").symlink_to(deliver("elsewhere", DAYS[0], "a.csv", csv_of(sale(99, 1, DAYS[0]))))
    found = Journey(world)
    found.refresh()
    found.refresh()
    for n, name in enumerate(name for name in REFUSED if name != MISNAMED):
        mended = {
            "csv": csv_of(sale(40, n, DAYS[0])),
            "json": json.dumps(sale(40, n, DAYS[0])),
            "parquet": parquet_of(sale(40, n, DAYS[0])),
        }
        file = deliver("transactions", DAYS[0], name, mended[name.rpartition(".")[2]])
        os.utime(file, (1, 1 + n))
    deliver("transactions", DAYS[0], "good.csv", csv_of(sale(1, 1, DAYS[0], sales_value="9.99")))
    found.refresh()
    return found


def arrivals_of(result: RefreshResult) -> dict[str, Any]:
    [ingest] = [ingest for ingest in result.ingests if ingest.table == "raw.transactions"]
    return {arrival.path.partition("/")[2].partition("/")[2]: arrival for arrival in ingest.arrivals}


@pytest.mark.proof
def test_every_file_is_taken_or_refused_by_itself(journey):
    """The first of the module: it waits for the refresh that all its tests look at."""
    found = arrivals_of(journey.results[0])
    assert set(found) == {*GOOD, *MIXED, *REFUSED}
    for name in GOOD:
        assert (found[name].reason, found[name].refused) == (None, 0), name
    for name, (_, _, good, bad) in MIXED.items():
        assert (found[name].reason, found[name].taken, found[name].refused) == (None, good, bad), name
    for name, (_, reason) in REFUSED.items():
        assert (found[name].reason or "").startswith(reason), name
        assert (found[name].taken, found[name].refused) == (0, 0)


def test_landed_rows_are_raw_rows_refused_rows_and_rows_that_wait(journey):
    taken = [a for result in journey.results for a in arrivals_of(result).values() if a.reason is None]
    raw = journey.world.rows("raw.transactions")
    letters = journey.world.rows("refused.transactions")
    assert len(raw) == sum(arrival.taken for arrival in taken)
    assert len(letters) == sum(arrival.refused for arrival in taken)
    waiting = journey.world.rows("late.transactions")
    assert [(str(row["event_date"]), row["basket_id"]) for row in waiting] == [("2099-01-01", 21)]
    assert sum(arrival.landed for arrival in taken) == len(raw) + len(letters) + len(waiting)


def test_a_row_before_the_calendar_is_in_raw_and_nowhere_else(journey):
    _, status = journey.statuses[-1]
    raw = {table["table"]: table for table in status["tables"]}["raw.transactions"]
    assert raw["days_outside"] == ["2016-12-31"]
    assert (raw["days"], raw["newest"], raw["missing"]) == (3, DAYS[2], 0)
    assert (status["rows_ahead"], status["late_rows"]) == (1, 0)
    assert journey.world.rows("raw.transactions", "2016-12-31") != []


def test_raw_is_silver_superseded_voided_and_quarantined_every_day(journey):
    with journey.world.open() as platform:
        silver = platform.ledger.current_days("silver.transactions")
        raw = platform.ledger.current_days("raw.transactions")
    assert set(silver) == set(map(date.fromisoformat, DAYS))
    for day, found in silver.items():
        figures = found.figures
        assert raw[day].rows == figures["raw"]
        assert figures["raw"] == found.rows + figures["superseded"] + figures["voided"] + figures["quarantined"]
    assert silver[date(2017, 1, 1)].figures["quarantined"] == 2
    assert silver[date(2017, 1, 1)].figures["superseded"] == 1


def test_good_rows_are_read_in_gold_whatever_lay_beside_them(journey):
    baskets = {row["basket_id"] for row in journey.world.rows("silver.transactions")}
    assert baskets == {1, 2, 3, 4, 5, 6, 7, 20, 21, 22, 40}
    lines = sum(row["lines"] for row in journey.world.rows("gold.daily_sales"))
    assert lines == len(journey.world.rows("silver.transactions"))


def test_refused_rows_keep_their_reason_origin_and_payload(journey):
    letters = journey.world.rows("refused.transactions")
    found = {(row["_arrival"].rpartition("/")[2], row["_reason"]) for row in letters}
    assert found == {
        ("mixed.csv", "quantity: not int: two"),
        ("mixed.csv", "sales_value: not decimal(12,2): 1.999"),
        ("mixed.csv", "broken line: not 13 fields"),
        ("mixed.csv", "broken line: field 13 opens a quote that nothing closes; quote as RFC 4180 says"),
        ("mixed.jsonl", "broken line: not one JSON object"),
        ("mixed.parquet", "basket_id: no value"),
    }
    payloads = {row["_reason"]: row["_payload"] for row in letters}
    assert json.loads(payloads["quantity: not int: two"])["quantity"] == "two"
    assert json.loads(payloads["sales_value: not decimal(12,2): 1.999"])["sales_value"] == "1.999"
    assert payloads["broken line: not 13 fields"] == "20,6"
    assert json.loads(payloads["basket_id: no value"])["product_id"] == 2


def test_quarantined_rows_keep_their_reason_origin_and_payload(journey):
    found = {
        (row["_arrival"], row["_reason"], json.loads(row["_payload"])["basket_id"])
        for row in journey.world.rows("quarantine.transactions")
    }
    assert found == {
        (f"transactions/{DAYS[0]}/mixed.csv", "quantity_in_range", 20),
        (f"transactions/{DAYS[0]}/mixed.parquet", "store_known", 22),
    }


def test_what_no_contract_declares_is_kept_with_its_row(journey):
    rescued = {row["basket_id"]: row["_rescued"] for row in journey.world.rows("raw.transactions") if row["_rescued"]}
    assert rescued == {4: '{"till":"left"}'}


def test_a_day_with_no_rows_is_loaded_and_empty(journey):
    assert journey.world.rows("silver.transactions", DAYS[1]) == []
    _, status = journey.statuses[-1]
    assert {table["table"]: table["missing"] for table in status["tables"]}["silver.transactions"] == 0


def test_status_names_what_was_refused_and_what_was_not_taken(journey):
    code, status = journey.statuses[0]
    assert code == 1
    assert {found["path"].rpartition("/")[2] for found in status["refused_files"]} == set(REFUSED)
    not_taken = {found["path"]: found["what"] for found in status["landing"]}
    assert set(not_taken) == {
        f"transactions/{DAYS[0]}/notes.txt",
        f"transactions/{DAYS[0]}/link.csv",
        "transactions/January",
    }


def test_a_second_refresh_changes_nothing(journey):
    again = journey.results[1]
    assert not again.steps
    assert not any(ingest.arrivals or ingest.published for ingest in again.ingests)
    assert journey.digests[1] == journey.digests[0]


def test_repaired_files_are_taken_and_nothing_else(journey):
    found = arrivals_of(journey.results[2])
    assert set(found) == set(REFUSED) - {MISNAMED}
    assert all((arrival.reason, arrival.taken) == (None, 1) for arrival in found.values())
    _, status = journey.statuses[2]
    assert [found["path"].rpartition("/")[2] for found in status["refused_files"]] == [MISNAMED]


def test_a_file_replaced_after_it_was_taken_is_named_with_both_versions_and_not_taken(journey):
    code, status = journey.statuses[2]
    assert code == 1
    [replaced] = [found for found in status["landing"] if found["path"].endswith("/good.csv")]
    assert replaced["what"].startswith("was replaced: ")
    assert "9.99" not in {str(row["sales_value"]) for row in journey.world.rows("raw.transactions")}


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 16 MB of its own."""
    mounted = tmp_path / "disk"
    mounted.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", mounted], check=True)
    yield mounted
    subprocess.run(["umount", "--lazy", mounted], check=True)


def chain_of(error: BaseException | None) -> Iterator[BaseException]:
    """An error and those during which it came up."""
    while error is not None:
        yield error
        error = error.__context__


def fill(disk: Path, leave: int) -> Path:
    """A file that takes all room but some bytes."""
    ballast = disk / "ballast"
    room = os.statvfs(disk)
    with ballast.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, room.f_bavail * room.f_frsize - leave)
    return ballast


if os.geteuid() == 0:  # not skipped but left out: only root can mount a disk that is small enough to fill

    @pytest.mark.proof
    def test_a_full_disk_is_named_and_once_there_is_room_the_same_command_completes(small_disk, tmp_path, spark):
        """As many refreshes as it takes to get through; where they fail differs with the tables, so it has them all."""
        world = empty_world(small_disk, spark, days=1, landing=tmp_path / "landing")
        # What does not compress: the stage needs more room than anything written before it.
        notes = [Random(n).randbytes(8_000).hex() for n in range(50)]
        values = ["1.005" if n % 7 == 0 else "1.00" for n in range(50)]
        lines = [sale(n, 1, DAYS[0], sales_value=values[n], note=notes[n]) for n in range(50)]
        world.deliver_rows("transactions", DAYS[0], "a.jsonl", lines)
        published: dict[str, Any] = world.digests()
        failures: list[Exception] = []
        for leave in range(40_000, 2_000_000, 150_000):
            ballast = fill(small_disk, leave)
            try:
                world.refresh()
            except (PlatformError, OSError) as error:
                failures.append(error)
            finally:
                ballast.unlink()
            now = world.digests()
            assert all(now[table].items() >= days.items() for table, days in published.items())
            published = now
            if len(failures) < leave // 150_000 + 1:
                break
        assert len(failures) >= 2
        assert any(isinstance(link, DiskFullError) for failure in failures for link in chain_of(failure))
        for failure in failures:
            assert isinstance(failure, PlatformError) or getattr(failure, "errno", 0) == errno.ENOSPC
        world.refresh()
        assert len(world.rows("raw.transactions")) == len(world.rows("silver.transactions")) == 42
        assert len(world.rows("refused.transactions")) == 8
        assert sum(row["lines"] for row in world.rows("gold.daily_sales")) == 42
        assert not world.refresh().steps
