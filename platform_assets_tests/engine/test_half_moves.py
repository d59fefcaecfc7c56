"""Of two days between which a record has moved, none goes back, forward or beside others' work without the other one.

No rows are computed: what raw tells of moves, and what days say of what they were made from, is all that is asked.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from datetime import date, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from platform_assets.compute.schemas import raw_schema, spark_schema
from platform_assets.engine.basis import Basis
from platform_assets.engine.changes import files_at
from platform_assets.engine.half_moves import moved_meanwhile
from platform_assets.engine.platform import Platform, open_platform
from platform_assets.engine.publishing import publish_changes
from platform_assets.engine.rollback import rollback
from platform_assets.engine.undoable import RollbackError, chosen_publications
from platform_assets.lakehouse.manifest import DataFile, DayContent, TableChange, new_publication
from platform_assets.planning.fingerprints import fingerprints
from platform_assets.settings import load_settings
from platform_assets_tests.support.history import TILLS, person

RAW, SILVER = "raw.transactions", "silver.transactions"
DAYS = [date(2017, 1, 1) + timedelta(days=n) for n in range(8)]
LEFT, CAME = DAYS[1], DAYS[4]
Files = Mapping[date, tuple[DataFile, ...]]


@pytest.fixture
def platform(tmp_path: Path) -> Iterator[Platform]:
    """Eight days, computed from raw without rows."""
    settings = load_settings(
        state=tmp_path / "state", domains=TILLS, calendar_first=DAYS[0], calendar_last=DAYS[-1], today=DAYS[-1]
    )
    with open_platform(settings) as opened:
        publish(opened, RAW, DAYS, 1)
        publish(opened, SILVER, DAYS, 1)
        yield opened


def publish(platform: Platform, table: str, days: Collection[date], number: int, told: date | None = None) -> str:
    """Publish days whose digest has a number in it, made from what is there; of raw, perhaps with a tombstone."""
    contract, basis, publication = platform.catalogue[table], Basis.now(platform), new_publication()
    digests = {read.table: basis.digests(read.table) for read in contract.inputs}
    made_from = fingerprints(contract, days, digests, platform.calendar, {}) if digests else dict.fromkeys(days, "")
    live = files_at(platform.lake, table, basis.version(table))
    contents: dict[date, DayContent] = {}
    for day in days:
        base = tuple(file.path for file in live.get(day, ()))
        files = (*live.get(day, ()), *((tombstone(platform, publication, day, told),) if told else ()))
        contents[day] = DayContent(
            files=files, base=base, digest=f"0-{number}-0-0-0", rows=0, bytes=0, fingerprint=made_from[day]
        )
    change = TableChange(
        table=table,
        schema_string=(raw_schema if contract.source else spark_schema)(contract).json(),
        days=contents,
        reads=basis.reads(digests),
        code_version=platform.code_versions.get(table, ""),
        configuration=platform.configurations[table].parts if digests else {},
    )
    publish_changes(platform, publication, "recompute", [change], person())
    return publication


def tombstone(platform: Platform, publication: str, day: date, told: date) -> DataFile:
    """A file that says that a record of the day has gone to another one."""
    path = f"{publication}/event_date={day}/told.parquet"
    file = platform.lake.table_path(RAW) / path
    file.parent.mkdir(parents=True)
    pq.write_table(pa.table({"_kind": ["tombstone"], "_arrival": ["a"], "_order_day": [told]}), file)
    return DataFile(path=path, size=file.stat().st_size, modified_ms=0, stats="{}")


def a_record_moves(platform: Platform) -> None:
    """From one of the two days to the other; raw has told of it, silver does not know yet."""
    publish(platform, RAW, [LEFT], 2, told=CAME)
    publish(platform, RAW, [CAME], 2)


def undo(platform: Platform, publication: str, days: Collection[date] | None = None) -> str:
    """Roll back; the name of the publication that did."""
    rollback(platform, chosen_publications(platform, publication), person(), days=days)
    indexed = platform.ledger.indexed()
    return max(indexed, key=lambda name: indexed[name])


def digests(platform: Platform) -> dict[date, str]:
    return {day: found.digest for day, found in platform.ledger.current_days(SILVER).items() if day in (LEFT, CAME)}


def test_days_come_forward_as_they_went_back_both_or_none(platform: Platform) -> None:
    before = digests(platform)
    a_record_moves(platform)
    moved = publish(platform, SILVER, [LEFT, CAME], 2)
    after = digests(platform)
    for alone in (LEFT, CAME):
        with pytest.raises(RollbackError, match="moved between"):
            undo(platform, moved, [alone])
    back = undo(platform, moved)
    assert digests(platform) == before
    for alone in (LEFT, CAME):
        with pytest.raises(RollbackError, match="moved between"):
            undo(platform, back, [alone])
    assert digests(platform) == before
    undo(platform, back)
    assert digests(platform) == after


def test_a_day_that_was_as_if_never_computed_comes_back_only_beside_one_that_knows_of_the_same_moves(
    platform: Platform,
) -> None:
    publish(platform, SILVER, DAYS[:1], 3)  # so that the days' first publication is not the newest
    first = platform.ledger.current_days(SILVER)[CAME].publication
    a_record_moves(platform)
    moved = publish(platform, SILVER, [LEFT, CAME], 2)
    rollback(platform, chosen_publications(platform, first), person(), days=[CAME], cascade=True)
    gone = platform.ledger.history(SILVER, CAME)[0].publication
    assert set(digests(platform)) == {LEFT} or not digests(platform)[CAME]
    knows = undo(platform, gone)  # the other day knows of the move as well
    undo(platform, knows)
    gone = platform.ledger.history(SILVER, CAME)[0].publication
    undo(platform, moved, [LEFT])  # nothing is shown twice, since the other day is not shown
    with pytest.raises(RollbackError, match=f"moved between {CAME} and {LEFT}"):
        undo(platform, gone)


def test_an_older_version_that_came_late_ties_no_day_to_one_that_would_come_out_the_same(platform: Platform) -> None:
    publish(platform, SILVER, DAYS[:1], 3)
    first = platform.ledger.current_days(SILVER)[LEFT].publication
    publish(platform, RAW, [LEFT], 2, told=CAME)
    publish(platform, SILVER, [LEFT], 2)
    rollback(platform, chosen_publications(platform, first), person(), days=[LEFT], cascade=True)
    undo(platform, platform.ledger.history(SILVER, LEFT)[0].publication)
    assert digests(platform)[LEFT] == "0-2-0-0-0"


def test_what_others_published_of_a_move_is_seen_from_either_side(platform: Platform) -> None:
    basis = Basis.now(platform)
    a_record_moves(platform)
    contract = platform.catalogue[SILVER]
    assert moved_meanwhile(platform, contract, [LEFT], basis, Basis.now(platform)) == set(), "of that day nothing yet"
    publish(platform, SILVER, [DAYS[6]], 2)
    assert moved_meanwhile(platform, contract, [LEFT, CAME], basis, Basis.now(platform)) == set(), "nothing moved there"
    publish(platform, SILVER, [CAME], 2)
    assert moved_meanwhile(platform, contract, [LEFT], basis, Basis.now(platform)) == {(LEFT, CAME)}
    older = Basis(platform, Basis.now(platform).release)
    publish(platform, SILVER, [LEFT], 2)
    assert moved_meanwhile(platform, contract, [CAME], older, Basis.now(platform)) == set(), "both know of it"
    assert moved_meanwhile(platform, contract, [CAME], basis, Basis.now(platform)) == {(LEFT, CAME)}
