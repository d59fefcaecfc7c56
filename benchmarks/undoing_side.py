"""One side of `benchmarks.undoing`: days staged without Spark, and what publishing and rolling them back takes.

Settings come from `PLATFORM_…` variables. Files that are staged are those of the days as they are, under other names:
neither publishing nor rolling back reads a row.

    python benchmarks/undoing_side.py prepare 2017-01-01 2017-12-31
    python benchmarks/undoing_side.py measure
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, date, datetime
from importlib import import_module
from pathlib import Path
from typing import NoReturn

from platform_assets.engine.day_contents import Files, computed_with
from platform_assets.engine.platform import Author, Platform
from platform_assets.engine.publishing import publish_changes
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.engine.state.planner import states_around
from platform_assets.engine.step.open_stage import OpenStage
from platform_assets.lakehouse.delta.schema import schema_at
from platform_assets.lakehouse.releases import newest_release, publication_of
from platform_assets.operations.opening import open_platform
from platform_assets.operations.rollback.rollback import rollback
from platform_assets.operations.rollback.selection import chosen_publications
from platform_assets.operations.stages.stages import publish_stage
from platform_assets.operations.stages.store import write_stage
from platform_assets.planning.day_states import Blocked, Stale, unblocked
from platform_assets.planning.windows import day_range
from platform_assets.records.digest import Digest
from platform_assets.records.history import DayRecord
from platform_assets.records.manifest import DataFile, DayContent, TableChange, new_publication
from platform_assets.records.row_kinds import RECORD
from platform_assets.settings import load_settings

RAW = "raw.transactions"
TABLES = ("silver.transactions", "gold.daily_sales", "gold.sales_month_to_date")
ASIDE = "quarantine.transactions"
STAGE = "benchmark"
_AUTHOR = Author("benchmark", "a benchmark")
_MOVED = Digest(0, (1, 1, 1, 1))
"""What another content adds to a digest."""


def prepare(platform: Platform, first: date, last: date) -> None:
    """Corrections of the days in raw, and the days of three tables staged that follow from them."""
    days = {*day_range(first, last)}
    publish_changes(
        platform, (publication := new_publication()), "ingest", [_raw(platform, publication, days)], _AUTHOR
    )
    now, publication = datetime.now(UTC), new_publication()
    snapshot = LakeSnapshot.now(platform)
    stage = OpenStage(
        name=STAGE,
        release=snapshot.number,
        publication=publication_of(platform.lake, snapshot.number) or "",
        opened_at=now,
        changed_at=now,
        who=_AUTHOR.who,
        why=_AUTHOR.why,
        folders={publication: (*TABLES, ASIDE)},
    )
    for table in TABLES:
        over = LakeSnapshot(platform, snapshot.release, stage.staged)
        changes = [_computed(over, publication, table, days)]
        if table == TABLES[0]:
            changes.append(_aside(over, publication, changes[0]))
        stage = stage.model_copy(
            update={
                "staged": stage.staged.with_days(changes),
                "reasons": {**stage.reasons, table: dict.fromkeys(changes[0].days, ("correction",))},
            }
        )
    write_stage(platform.lake, stage)


def measure(platform: Platform) -> dict[str, tuple[float, float]]:
    """Processor seconds and seconds of publishing and of rolling back."""
    took: dict[str, tuple[float, float]] = {}

    @contextmanager
    def timed(name: str) -> Iterator[None]:
        os.sync()
        started, used = time.monotonic(), time.process_time()
        yield
        took[name] = (time.process_time() - used, time.monotonic() - started)

    with timed("publish"):
        publish_stage(platform, _no_spark, _AUTHOR, STAGE)
    with timed("rollback"):
        publication = publication_of(platform.lake, newest_release(platform.lake))
        rollback(platform, chosen_publications(platform, publication), _AUTHOR)
    return took


def _no_spark() -> NoReturn:
    raise SystemExit("days were to be computed again")


def _raw(platform: Platform, publication: str, days: Collection[date]) -> TableChange:
    snapshot = LakeSnapshot.now(platform)
    live, before = snapshot.files(RAW), snapshot.days(RAW)
    contents: dict[date, DayContent] = {}
    for day in sorted(days & live.keys()):
        more = [_without_moves(_copied(platform, RAW, publication, day, 0, live[day][0]))]
        contents[day] = _content(before[day], live[day], (*live[day], *more), Digest.parse(before[day].digest) + _MOVED)
    return _change(snapshot, RAW, contents, {})


def _without_moves(file: DataFile) -> DataFile:
    """As the file of corrections that stay on their day: its statistics say so, and nobody reads it."""
    said = json.loads(file.stats)
    said["minValues"]["_kind"] = said["maxValues"]["_kind"] = RECORD
    return file.model_copy(update={"stats": json.dumps(said)})


def _computed(snapshot: LakeSnapshot, publication: str, table: str, days: Collection[date]) -> TableChange:
    contract, platform = snapshot.platform.catalogue[table], snapshot.platform
    live, before = snapshot.files(table), snapshot.days(table)
    _, states = states_around(snapshot, contract, days & before.keys())
    made_from = {
        day: found.fingerprint for day, state in states.items() if isinstance(found := unblocked(state), Stale)
    }
    if wrong := [day for day, state in states.items() if isinstance(state, Blocked)]:
        raise SystemExit(f"{table} {wrong[0]} cannot be computed")
    contents = {
        day: _content(
            before[day],
            live.get(day, ()),
            _all_copied(platform, table, publication, day, live),
            Digest.parse(before[day].digest) + _MOVED,
            fingerprint=fingerprint,
        )
        for day, fingerprint in made_from.items()
    }
    return _change(snapshot, table, contents, snapshot.reads([read.table for read in contract.inputs]))


def _aside(snapshot: LakeSnapshot, publication: str, leader: TableChange) -> TableChange:
    live, before = snapshot.files(ASIDE), snapshot.days(ASIDE)
    contents = {
        day: _content(
            before[day],
            live.get(day, ()),
            _all_copied(snapshot.platform, ASIDE, publication, day, live),
            Digest.parse(before[day].digest) + _MOVED,
            fingerprint=leader.days[day].fingerprint,
        )
        for day in sorted(leader.days.keys() & before.keys())
    }
    change = _change(snapshot, ASIDE, contents, leader.reads)
    return change.model_copy(update={"code_version": leader.code_version, "configuration": leader.configuration})


def _all_copied(platform: Platform, table: str, publication: str, day: date, live: Files) -> tuple[DataFile, ...]:
    return tuple(_copied(platform, table, publication, day, *of) for of in enumerate(live.get(day, ())))


def _copied(platform: Platform, table: str, publication: str, day: date, number: int, file: DataFile) -> DataFile:
    folder = platform.lake.table_path(table)
    path = f"{publication}/event_date={day}/part-{number:05d}-benchmark.snappy.parquet"
    target = Path(str(folder / path))
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(str(folder / file.path), target)
    return file.model_copy(update={"path": path})


def _content(
    before: DayRecord, live: Collection[DataFile], files: Collection[DataFile], digest: Digest, *, fingerprint: str = ""
) -> DayContent:
    return DayContent(
        files=tuple(files),
        base=tuple(file.path for file in live),
        digest=str(digest),
        fingerprint=fingerprint,
        rows=before.rows,
        bytes=sum(file.size for file in files),
        figures=before.figures,
        warnings=before.warnings,
    )


def _change(
    snapshot: LakeSnapshot, table: str, contents: Mapping[date, DayContent], reads: Mapping[str, int]
) -> TableChange:
    platform = snapshot.platform
    with_code = table in platform.code_versions
    return TableChange(
        table=table,
        schema_string=schema_at(platform.lake.table_path(table), snapshot.release.versions[table]),
        days=dict(contents),
        reads=dict(reads),
        code_version=platform.code_versions[table] if with_code else "",
        seconds=1.0,
        configuration=platform.configurations[table].parts if with_code else {},
        software=computed_with({"spark": "4.2.0", "delta": "4.4.0"}),
    )


def _warm() -> None:
    """Import what a process that computes has long imported."""
    for name in ("deltalake", "pandas", "pyarrow.json", "pyarrow.parquet"):
        import_module(name)


def main() -> None:
    """Prepare the days, or measure what becomes of them."""
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("prepare", "measure"))
    parser.add_argument("first", type=date.fromisoformat, nargs="?")
    parser.add_argument("last", type=date.fromisoformat, nargs="?")
    asked = parser.parse_args()
    with open_platform(load_settings()) as platform:
        if asked.what == "prepare":
            prepare(platform, asked.first, asked.last)
        else:
            _warm()
            print(json.dumps(measure(platform)))


if __name__ == "__main__":
    main()
