"""Records of backfills: `<lake>/_plans/<name>.json`, replaced whole after every step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, date, datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from platform_assets.errors import PlatformError, did_you_mean
from platform_assets.lakehouse.layout import GIVEN_NAME, Lake
from platform_assets.lakehouse.storage.location import Location
from platform_assets.planning.backfill.backfill import Backfill
from platform_assets.planning.backfill.days import RolloutStep
from platform_assets.planning.backfill.plan_file import Happening, PlanFile
from platform_assets.records.code_version import Version

State = Literal["staging", "stopped", "paused", "publishing", "published", "rolled back", "cancelled"]
STAGE = "plan-"
"""Before the name of a plan: the stage that it fills."""
ROLLBACK_OF = "rollback-"
"""Prefix of a backfill's run that makes the run of its rollback."""
OVER: frozenset[State] = frozenset({"published", "rolled back", "cancelled"})
"""States of a backfill that cannot be gone on with."""


class RecordError(PlatformError):
    """There is no such backfill, or its record cannot be read."""


class Event(BaseModel):
    """An event of a backfill.

    Args:
        at: UTC.
        who: its author; empty for the platform itself.
        kind: event name for `notify` in a plan; empty for events that cannot be subscribed to.
    """

    model_config = ConfigDict(frozen=True)

    at: datetime
    what: str
    who: str = ""
    kind: Happening | Literal[""] = ""


class BackfillRecord(BaseModel):
    """Record of a backfill.

    Args:
        hash: hash of the applied plan.
        file: content of the plan file.
        place: path of the plan file in the last sitting; empty if unknown.
        looked_at: release when it was first explained; None in older records.
        done: number of days that are staged and have passed their gates.
        seconds: computing time of all sittings.
        bytes: bytes staged so far.
        starts: number of sittings that computed anything, so started Spark.
        pace: most days of the next job, after one failed; 0 otherwise.
        explained_between: expected seconds in four of five cases; None if unknown.
        explained_money: expected cost, in words; empty without a price.
        published_days: number of table-days that it published; None before publication.
        runs: runs that worked on it, oldest first: Dagster's ids, or processes.
        proved: whether the proof that its file asks for is done.
        different_days: number of days that differed in the last proof.
        settled: days whose settled figures move further than allowed, by table, each with its fingerprint.
        settled_at: when it last stopped for these; only a later approval accepts them.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    hash: str
    file: PlanFile
    place: str = ""
    steps: tuple[RolloutStep, ...]
    looked_at: int | None = None
    versions: Mapping[str, tuple[str, str]] = {}
    done: int = 0
    state: State = "staging"
    seconds: float = 0.0
    bytes: int = 0
    starts: int = 0
    pace: int = 0
    explained_seconds: float = 0.0
    explained_between: tuple[float, float] | None = None
    explained_rows: int = 0
    explained_bytes: int = 0
    explained_money: str = ""
    release: int | None = None
    publication: str = ""
    published_days: int | None = None
    runs: tuple[str, ...] = ()
    proved: bool = False
    different_days: int = 0
    settled: Mapping[str, Mapping[date, str]] = {}
    settled_at: datetime | None = None
    events: tuple[Event, ...] = ()

    @classmethod
    def new(cls, backfill: Backfill) -> BackfillRecord:
        """Return the record of a new backfill."""
        return cls(
            name=backfill.file.name,
            hash=backfill.hash,
            file=backfill.file,
            steps=backfill.steps,
            looked_at=backfill.release,
            versions={table: (version.code, version.configuration) for table, version in backfill.versions.items()},
            explained_seconds=backfill.price.seconds,
            explained_between=backfill.price.between,
            explained_rows=backfill.price.rows,
            explained_bytes=backfill.price.bytes,
            explained_money="" if backfill.price.money is None else str(backfill.price.money),
        )

    def with_event(
        self, what: str, who: str = "", kind: Happening | Literal[""] = "", **changes: object
    ) -> BackfillRecord:
        """Return the record with one more event and its changes."""
        event = Event(at=datetime.now(UTC), what=what, who=who, kind=kind)
        return self.model_copy(update={"events": (*self.events, event), **changes})

    def worked_on_by(self, run: str) -> BackfillRecord:
        """Return the record with one more run that works on it."""
        return self if run in self.runs else self.model_copy(update={"runs": (*self.runs, run)})

    @property
    def by_table(self) -> dict[str, frozenset[date]]:
        """Return its days by table."""
        days: dict[str, frozenset[date]] = {}
        for step in self.steps:
            days |= {table: days.get(table, frozenset()).union(some) for table, some in step.days.items()}
        return days

    @property
    def planned(self) -> frozenset[tuple[str, date]]:
        """Return its table-days."""
        return frozenset((table, day) for table, days in self.by_table.items() for day in days)

    @property
    def days(self) -> int:
        """Return the number of its table-days."""
        return len(self.planned)

    @property
    def left_alone(self) -> int:
        """Return how many of these it left unchanged because they were up to date; none before it is over."""
        return 0 if self.published_days is None else self.days - self.published_days

    @property
    def came_to(self) -> str:
        """Return its state, with the release that published it, for people."""
        shown = "" if self.release is None else f" in release {self.release}"
        return f"published{shown} and rolled back" if self.state == "rolled back" else f"{self.state}{shown}"

    @property
    def wants_proof(self) -> bool:
        """Return whether it was published, but its process died before the proof that its file asks for."""
        return self.state == "published" and self.file.afterwards.verify > 0 and not self.proved

    def versions_hold(self, now: Mapping[str, Version]) -> bool:
        """Return whether code and contracts are those of its explanation."""
        return all(
            table in now and (now[table].code, now[table].configuration) == version
            for table, version in self.versions.items()
        )

    @property
    def run(self) -> str:
        """Return the run named by its publication."""
        return f"{STAGE}{self.name}-{self.hash}"


def plan_of(run: str) -> str | None:
    """Return the plan of a backfill's run; None for any other run."""
    return run.removeprefix(STAGE).rpartition("-")[0] if run.startswith(STAGE) else None


def backfill_names(lake: Lake) -> tuple[str, ...]:
    """Return the names of all backfills ever begun, sorted."""
    return _names_in(lake.plans_path.names())


def _names_in(files: Iterable[str]) -> tuple[str, ...]:
    parts = (file.rpartition(".") for file in files)
    return tuple(sorted(stem for stem, _, ending in parts if ending == "json" and GIVEN_NAME.fullmatch(stem)))


def find_record(lake: Lake, name: str) -> BackfillRecord | None:
    """Return the record of a backfill; None if it was never begun."""
    file = _file(lake, name)
    cause: Exception | None = None
    try:
        content = file.read()
        record = None if content is None else BackfillRecord.model_validate_json(content)
        if record is None or record.name == name:
            return record
        why = f"it belongs to {record.name}"
    except (OSError, ValidationError) as error:
        why, cause = why_unreadable(error), error
    raise RecordError(
        f"The record of the plan {name} cannot be read: {file}: {why}.",
        "Restore a copy of it, or read it with the version of the platform that wrote it; backups of the lake have "
        f"none. Else drop what was staged with `platform-assets undo stage:plan-{name}`, remove that file, and apply "
        "the plan again.",
    ) from cause


def why_unreadable(error: OSError | ValidationError) -> str:
    """Say in a few words why a document cannot be read."""
    if isinstance(error, OSError):
        return str(error.strerror or error)
    first = error.errors()[0]
    return f"{'.'.join(map(str, first['loc'])) or 'the document'}: {first['msg']}"


def read_record(lake: Lake, name: str) -> BackfillRecord:
    """Return the record of a backfill that was begun."""
    record = find_record(lake, name)
    if record is None:
        names = backfill_names(lake)
        known = f"There are {', '.join(names)}." if names else "None was begun yet."
        raise RecordError(
            f"No plan {name!r} was ever applied.",
            f"{did_you_mean(name, names)}{known} `backfill apply FILE` begins one.",
        )
    return record


def all_records(lake: Lake) -> tuple[tuple[BackfillRecord, ...], dict[str, RecordError]]:
    """Return the records of all backfills by name, and the errors of unreadable records by name."""
    records: list[BackfillRecord] = []
    damaged: dict[str, RecordError] = {}
    for name in backfill_names(lake):
        try:
            records.append(read_record(lake, name))
        except RecordError as error:
            damaged[name] = error
    return tuple(records), damaged


def records_since(lake: Lake, moment: datetime) -> tuple[BackfillRecord, ...]:
    """Return records changed since a moment; `status backfills` names damaged ones."""
    files = lake.plans_path.files() if lake.plans_path.exists() else {}
    records: list[BackfillRecord] = []
    for name in _names_in(file for file, found in files.items() if found.written >= moment):
        with suppress(RecordError):
            records.append(read_record(lake, name))
    return tuple(records)


def write_record(lake: Lake, record: BackfillRecord) -> None:
    """Write a record atomically."""
    _file(lake, record.name).replace(record.model_dump_json().encode())


def _file(lake: Lake, name: str) -> Location:
    if not GIVEN_NAME.fullmatch(name):
        raise RecordError(
            f"{name!r} cannot name a plan.",
            "Use up to 63 letters, digits, dots, hyphens and underscores, a letter first.",
        )
    return lake.plans_path / f"{name}.json"


def is_paused(lake: Lake, name: str) -> bool:
    """Return whether a person paused a backfill."""
    return _pause(lake, name).exists()


def pause(lake: Lake, name: str, why: str) -> None:
    """Pause a backfill after its current batch of days."""
    _refuse_over(lake, name)
    _pause(lake, name).replace(why.encode())


def unpause(lake: Lake, name: str) -> None:
    """Let a paused backfill continue."""
    _refuse_over(lake, name)
    forget_pause(lake, name)


def forget_pause(lake: Lake, name: str) -> None:
    """Remove the pause of a backfill that is over or begins."""
    if is_paused(lake, name):
        _pause(lake, name).remove()


def _refuse_over(lake: Lake, name: str) -> None:
    record = read_record(lake, name)
    if record.state in OVER:
        raise RecordError(
            f"The plan {name} is {record.state}: there is nothing of it to pause or to go on with.",
            "`platform-assets backfill apply FILE` begins it anew."
            if record.state == "cancelled"
            else f"`platform-assets status backfills {name}` shows what became of it.",
        )


def _pause(lake: Lake, name: str) -> Location:
    return lake.plans_path / f"{name}.pause"


def is_stage_of_a_plan(lake: Lake, stage: str) -> bool:
    """Return whether an unfinished plan fills a stage. The stage's name alone does not prove that."""
    name = stage.removeprefix(STAGE)
    record = find_record(lake, name) if name != stage and GIVEN_NAME.fullmatch(name) else None
    return record is not None and record.state not in OVER


def ends_of(lake: Lake, stage: str) -> str:
    """Return the command that ends an obstructing stage; for a plan's stage, the one that ends the plan."""
    if is_stage_of_a_plan(lake, stage):
        return (
            "End its plan first: `platform-assets backfill apply FILE`, or `undo "
            f"backfill:{stage.removeprefix(STAGE)} --reason …`."
        )
    return f"Publish it or drop it first: `platform-assets publish {stage} --reason …`, or `undo stage:{stage}`."


def dropped_by(lake: Lake, stage: str) -> str:
    """Return the command that drops a stage; for a plan's stage, the one that cancels the plan."""
    if _is_surely_of_a_plan(lake, stage):
        return f"`platform-assets undo backfill:{stage.removeprefix(STAGE)} --reason …`"
    return f"`platform-assets undo stage:{stage}`"


def filled_by(lake: Lake, stage: str) -> str:
    """Return the command that computes days into a stage."""
    if _is_surely_of_a_plan(lake, stage):
        return "`platform-assets backfill apply FILE`"
    return f"`platform-assets refresh --stage {stage}`"


def _is_surely_of_a_plan(lake: Lake, stage: str) -> bool:
    """Return whether a stage certainly belongs to a plan; False if the record cannot be read."""
    try:
        return is_stage_of_a_plan(lake, stage)
    except RecordError:
        return False


def refuse_stage_of_a_plan(lake: Lake, stage: str) -> None:
    """Refuse to publish a plan's stage, which the plan publishes behind its gates."""
    if is_stage_of_a_plan(lake, stage):
        name = stage.removeprefix(STAGE)
        raise RecordError(
            f"The stage {stage} is filled by the plan {name}.",
            "`platform-assets backfill apply FILE` publishes it behind its gates; "
            f"`undo backfill:{name} --reason …` drops it.",
        )
