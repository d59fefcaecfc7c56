"""What became of backfills: `<lake>/_plans/<name>.json`, replaced whole after every step of one."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from platform_assets.errors import PlatformError, did_you_mean
from platform_assets.lakehouse.layout import GIVEN_NAME, Lake
from platform_assets.lakehouse.storage.location import Location
from platform_assets.planning.backfill.backfill import Backfill
from platform_assets.planning.backfill.plan_file import PlanFile
from platform_assets.records.code_version import Version

State = Literal[
    "staging", "stopped", "paused", "publishing", "published", "failed afterwards", "rolled back", "cancelled"
]
STAGE = "plan-"
"""Before the name of a plan: the stage that it fills."""
OVER: frozenset[State] = frozenset({"published", "rolled back", "cancelled"})
"""States of a backfill that cannot be gone on with."""


class RecordError(PlatformError):
    """There is no such backfill, or what is written of it cannot be read."""


class Event(BaseModel):
    """One thing that happened.

    Args:
        at: UTC.
        what: as a sentence.
        who: did it; empty for the platform itself.
    """

    model_config = ConfigDict(frozen=True)

    at: datetime
    what: str
    who: str = ""


class RecordedStep(BaseModel):
    """One step of the rollout, as it was explained."""

    model_config = ConfigDict(frozen=True)

    share: int
    days: Mapping[str, tuple[date, ...]]


class BackfillRecord(BaseModel):
    """What became of a backfill so far.

    Args:
        name: of the plan.
        hash: of what is applied.
        file: the plan file.
        steps: of the rollout.
        versions: of code and configuration of the tables that are computed, by table.
        done: how many of them are staged and have passed their gates.
        state: where it stands.
        seconds: of computing, all sittings together.
        bytes: staged so far.
        explained_seconds: that were to be expected.
        release: that shows it; None before.
        publication: that made it visible; empty before.
        events: what happened, oldest first.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    hash: str
    file: PlanFile
    steps: tuple[RecordedStep, ...]
    versions: Mapping[str, tuple[str, str]] = {}
    done: int = 0
    state: State = "staging"
    seconds: float = 0.0
    bytes: int = 0
    explained_seconds: float = 0.0
    release: int | None = None
    publication: str = ""
    events: tuple[Event, ...] = ()

    @classmethod
    def new(cls, backfill: Backfill) -> BackfillRecord:
        """Of a backfill that begins."""
        return cls(
            name=backfill.file.name,
            hash=backfill.hash,
            file=backfill.file,
            steps=tuple(RecordedStep(share=step.share, days=step.days) for step in backfill.steps),
            versions={table: (version.code, version.configuration) for table, version in backfill.versions.items()},
            explained_seconds=backfill.price.seconds,
        )

    def told(self, what: str, who: str = "", **changes: object) -> BackfillRecord:
        """The same with one more event, and with what it changed."""
        event = Event(at=datetime.now(UTC), what=what, who=who)
        return self.model_copy(update={"events": (*self.events, event), **changes})

    @property
    def days(self) -> int:
        """How many days of tables it is about."""
        return sum(len(days) for step in self.steps for days in step.days.values())

    def versions_hold(self, now: Mapping[str, Version]) -> bool:
        """Whether the code and the contracts are those that it was explained with.

        Args:
            now: by what every table is computed now.
        """
        return all(
            table in now and (now[table].code, now[table].configuration) == version
            for table, version in self.versions.items()
        )

    @property
    def run(self) -> str:
        """The run that its publication names."""
        return f"{STAGE}{self.name}-{self.hash}"


def plan_of(run: str) -> str | None:
    """The plan whose backfill was a run; None for a run of anything else."""
    return run.removeprefix(STAGE).rpartition("-")[0] if run.startswith(STAGE) else None


def backfill_names(lake: Lake) -> tuple[str, ...]:
    """The names of all backfills that were ever begun, sorted."""
    files = (name.rpartition(".") for name in lake.plans_path.names())
    return tuple(sorted(stem for stem, _, ending in files if ending == "json" and GIVEN_NAME.fullmatch(stem)))


def find_record(lake: Lake, name: str) -> BackfillRecord | None:
    """What became of a backfill; None if it was never begun.

    Raises:
        RecordError: what is written of it cannot be read.
    """
    content = _file(lake, name).read()
    if content is None:
        return None
    try:
        return BackfillRecord.model_validate_json(content)
    except ValidationError as error:
        first = error.errors()[0]
        raise RecordError(
            f"The record of the plan {name} is damaged: {_file(lake, name)}, "
            f"{'.'.join(map(str, first['loc'])) or 'the document'}: {first['msg']}.",
            f"Take it from a backup. What was staged can be dropped with `platform-assets stage drop plan-{name}`.",
        ) from error


def read_record(lake: Lake, name: str) -> BackfillRecord:
    """As `find_record`.

    Raises:
        RecordError: it was never begun, or what is written of it cannot be read.
    """
    record = find_record(lake, name)
    if record is None:
        names = backfill_names(lake)
        known = f"There are {', '.join(names)}." if names else "None was begun yet."
        raise RecordError(
            f"No plan {name!r} was ever applied.", f"{did_you_mean(name, names)}{known} `plan apply FILE` begins one."
        )
    return record


def write_record(lake: Lake, record: BackfillRecord) -> None:
    """Keep what became of a backfill, whole or not at all."""
    _file(lake, record.name).replace(record.model_dump_json().encode())


def refuse_stage_of_a_plan(lake: Lake, stage: str) -> None:
    """What a plan staged, the plan publishes: behind its gates, and with its approvals.

    Raises:
        RecordError: the stage is one of a plan that is not over.
    """
    name = stage.removeprefix(STAGE)
    record = find_record(lake, name) if name != stage else None
    if record and record.state not in OVER:
        raise RecordError(
            f"The stage {stage} is filled by the plan {name}.",
            f"`platform-assets plan apply FILE` publishes it behind its gates; `plan cancel {name}` drops it.",
        )


def is_paused(lake: Lake, name: str) -> bool:
    """Whether somebody wants a backfill to stand still."""
    return _pause(lake, name).exists()


def pause(lake: Lake, name: str, why: str) -> None:
    """Have a backfill stand still after the batch of days at which it works."""
    _pause(lake, name).replace(why.encode())


def unpause(lake: Lake, name: str) -> None:
    """Let a backfill be gone on with."""
    if is_paused(lake, name):
        _pause(lake, name).remove()


def _file(lake: Lake, name: str) -> Location:
    return lake.plans_path / f"{_checked(name)}.json"


def _pause(lake: Lake, name: str) -> Location:
    return lake.plans_path / f"{_checked(name)}.pause"


def _checked(name: str) -> str:
    if not GIVEN_NAME.fullmatch(name):
        raise RecordError(
            f"{name!r} cannot name a plan.",
            "Use up to 63 letters, digits, dots, hyphens and underscores, a letter first.",
        )
    return name
