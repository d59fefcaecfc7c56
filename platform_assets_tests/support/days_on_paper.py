"""Days without rows, published as what is there would be computed: enough to ask what is stale, held, tied or kept."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from platform_assets.engine.day_contents import files_at
from platform_assets.engine.platform import Author, Platform
from platform_assets.engine.publishing import publish_changes
from platform_assets.engine.snapshot import LakeSnapshot, OpenStage
from platform_assets.engine.state.planner import plan_steps
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.releases import publication_of
from platform_assets.operations.backfill.explain import explain
from platform_assets.operations.opening import open_platform
from platform_assets.operations.plan_record import BackfillRecord, write_record
from platform_assets.operations.rollback import rollback
from platform_assets.operations.rollback_choice import chosen_publications
from platform_assets.operations.stages.store import write_stage
from platform_assets.planning.backfill.plan_file import PlanFile
from platform_assets.planning.fingerprints import fingerprints
from platform_assets.planning.reasons import Reasons
from platform_assets.planning.selection import AUTOMATIC, Request
from platform_assets.records.history import StagedDays
from platform_assets.records.manifest import DataFile, DayContent, TableChange, Warned, new_publication
from platform_assets.settings import Settings, load_settings
from platform_assets.spark.tables.schemas import raw_schema, spark_schema
from platform_assets_tests.support.places import on_disk


def publish(
    platform: Platform,
    table: str,
    days: Collection[date],
    number: int,
    told: date | None = None,
    *,
    filed: bool = False,
    warnings: tuple[Warned, ...] = (),
) -> str:
    """Publish days whose digest has a number in it, made from what is there.

    Args:
        platform: where.
        table: its name.
        days: of it.
        number: for the digest.
        told: of raw, the day to which a tombstone says that a record has gone.
        filed: each day gets a file that nobody reads; else the table's own log has nothing to say.
        warnings: what gates found of each day.
    """
    contract, snapshot, publication = platform.catalogue[table], LakeSnapshot.now(platform), new_publication()
    digests = {read.table: snapshot.digests(read.table) for read in contract.inputs}
    made_from = fingerprints(contract, days, digests, platform.calendar, {}) if digests else dict.fromkeys(days, "")
    live = files_at(platform.lake, table, snapshot.version(table))
    contents: dict[date, DayContent] = {}
    for day in days:
        base = tuple(file.path for file in live.get(day, ()))
        files = live.get(day, ())
        if told or filed:
            files = (*files, _file(platform.lake, table, publication, day, told))
        contents[day] = DayContent(
            files=files,
            base=base,
            digest=f"0-{number}-0-0-0",
            rows=0,
            bytes=0,
            fingerprint=made_from[day],
            warnings=warnings,
        )
    change = TableChange(
        table=table,
        schema_string=(raw_schema if contract.source else spark_schema)(contract).json(),
        days=contents,
        reads=snapshot.reads(digests),
        code_version=platform.code_versions.get(table, ""),
        configuration=platform.configurations[table].parts if digests else {},
    )
    publish_changes(platform, publication, "recompute", [change], Author("r", "a test"))
    return publication


def _file(lake: Lake, table: str, publication: str, day: date, told: date | None) -> DataFile:
    path = f"{publication}/event_date={day}/told.parquet"
    file = lake.table_path(table) / path
    on_disk(file.parent).mkdir(parents=True)
    pq.write_table(pa.table({"_kind": ["tombstone"], "_arrival": ["a"], "_order_day": [told]}), file)
    return DataFile(path=path, size=on_disk(file).stat().st_size, modified_ms=0, stats="{}")


RAW, SILVER, GOLD = "raw.readings", "silver.readings", "gold.sensor_week"
DAYS = [date(2017, 1, 1) + timedelta(days=n) for n in range(9)]
DAY = DAYS[7]
"""With a day on either side, whose week it is in, too."""
STAGED = "0-3-0-0-0"
"""The digest of a day in a stage."""


def settings_in(state: Path) -> Settings:
    """Of an installation that has its state in a folder."""
    return load_settings(
        state=state, domains="platform_assets_tests.support.domains.sensors",
        calendar_first=DAYS[0], calendar_last=DAYS[-1], today=DAYS[-1],
    )  # fmt: skip


@contextmanager
def opened(state: Path) -> Iterator[Platform]:
    """The platform as any command opens it."""
    with open_platform(settings_in(state)) as platform:
        yield platform


def publish_all(platform: Platform) -> None:
    """All days of all tables."""
    for table in (RAW, SILVER, GOLD):
        publish(platform, table, DAYS, 1)


def correct(platform: Platform) -> str:
    """Raw gets a correction of the day, and silver is computed from it; the publication of silver."""
    publish(platform, RAW, [DAY], 2)
    return publish(platform, SILVER, [DAY], 2, filed=True)


def put_back(platform: Platform, publication: str, days: Collection[date] | None = None) -> None:
    """Roll back what a publication made of its days, or of some of them; what others made of them since goes, too."""
    publications = chosen_publications(platform, publication)
    rollback(platform, publications, Author("undo", "it was wrong", "Zoë"), days=days, cascade=days is not None)


def digest(platform: Platform) -> str:
    """Of silver's day, as readers see it; empty where it is as if never computed."""
    found = platform.ledger.current_days(SILVER, among=[DAY]).get(DAY)
    return found.digest if found else ""


def taken(platform: Platform, table: str = SILVER, request: Request = AUTOMATIC) -> dict[date, Reasons]:
    """The days of a table that a refresh would compute, by default the next of a schedule."""
    plan = plan_steps(platform, request)
    return {day: why for step in plan.steps if step.table == table for day, why in step.reasons.items()}


def plan(**fields: Any) -> PlanFile:
    """A plan of a person for one day of silver, unless told otherwise."""
    said = {
        "name": "mend",
        "reason": "a wrong rule",
        "owner": "ada",
        "tables": [SILVER],
        "days": {"list": [str(DAY)]},
        "downstream": False,
        "rollout": [100],
        "afterwards": {"verify": 0},
    }
    return PlanFile.model_validate(said | fields)


def stage(platform: Platform, name: str, reasons: Mapping[str, Mapping[date, Reasons]], digest: str = STAGED) -> None:
    """Days that were staged, each with why it was, and all with the same content."""
    now = LakeSnapshot.now(platform)
    moment, publication = datetime.now(UTC), publication_of(platform.lake, now.number) or ""
    trial = OpenStage(
        name=name,
        release=now.number,
        publication=publication,
        opened_at=moment,
        changed_at=moment,
        who="ada",
        why="a plan",
        staged=StagedDays(tables={table: _change(now, table, days, digest) for table, days in reasons.items()}),
        reasons=reasons,
    )
    write_stage(platform.lake, trial)


def begun(platform: Platform, file: PlanFile, *tables: str, digest: str = STAGED, as_hash: str | None = None) -> None:
    """A plan that has staged all of its days, or those of some tables, and was interrupted then."""
    backfill = explain(platform, file)
    write_record(platform.lake, BackfillRecord.new(backfill).model_copy(update={"hash": as_hash or backfill.hash}))
    steps = [step for step in backfill.plan.steps if step.table in tables or not tables]
    stage(platform, f"plan-{file.name}", {step.table: dict.fromkeys(step.days, ()) for step in steps}, digest)


def _change(now: LakeSnapshot, table: str, days: Iterable[date], digest: str) -> TableChange:
    """Days as a step leaves them in a stage."""
    platform, before = now.platform, now.days(table)
    live = files_at(platform.lake, table, now.version(table))

    def content(day: date) -> DayContent:
        base = tuple(file.path for file in live.get(day, ()))
        made_from = before[day].fingerprint
        return DayContent(files=(), base=base, digest=digest, rows=0, bytes=0, fingerprint=made_from)

    contract = platform.catalogue[table]
    return TableChange(
        table=table,
        schema_string=spark_schema(contract).json(),
        days={day: content(day) for day in days},
        reads=now.reads(read.table for read in contract.inputs),
        code_version=platform.code_versions[table],
        configuration=platform.configurations[table].parts,
    )
