"""Days of which only rows of some keys were computed: what is carried over, and what the whole of such a day is."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import date

from pyspark.sql import DataFrame, SparkSession

from platform_assets.contracts import DAY, Contract
from platform_assets.engine.day_contents import TOGETHER
from platform_assets.engine.platform import Platform
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.engine.state.readiness import Readiness
from platform_assets.planning.key_scope import KeyScope, ScopeError, mixed
from platform_assets.planning.windows import ranges
from platform_assets.records.digest import Digest
from platform_assets.records.manifest import DayContent, Scope, TableChange
from platform_assets.records.staged_days import StagedDays
from platform_assets.spark.tables.reading import out_of_scope, read_days
from platform_assets.spark.tables.schemas import spark_schema


def carried_rows(
    spark: SparkSession, contract: Contract, scope: KeyScope, days: Collection[date], snapshot: LakeSnapshot
) -> DataFrame:
    """The rows of some days as they are, without those of the keys."""
    path = snapshot.platform.lake.table_path(contract.name)
    rows = read_days(spark, path, snapshot.files(contract.name), spark_schema(contract), ranges(days))
    return rows.where(out_of_scope(contract, scope))


def refuse_strangers(contract: Contract, scope: KeyScope, made: DataFrame) -> None:
    """Refuse computed rows of other keys, which would lie beside those that are carried over.

    Raises:
        ScopeError: there are any.
    """
    stranger = made.where(out_of_scope(contract, scope)).select(DAY, *scope.columns).first()
    if stranger is not None:
        keys = ", ".join(f"{name}={stranger[name]}" for name in scope.columns)
        raise _not_separable(contract, scope, stranger[DAY], f"came out with a row of {keys}")


def with_scope(
    platform: Platform,
    contract: Contract,
    scope: KeyScope,
    contents: Mapping[date, DayContent],
    state: Readiness,
    computed: Mapping[date, Digest],
) -> dict[date, DayContent]:
    """What is on record of staged days as a whole: all that they are made from and by, only where the rest is so, too.

    Of which keys rows were computed, every staged day says, so that nobody computes all of one that came out as it was.

    Args:
        contents: as if all of each day had been computed.
        state: of the days, and what they have been.

    Raises:
        ScopeError: a day came out otherwise though its code and its input are those that had made all of it.
    """

    def of_whole(day: date, content: DayContent) -> DayContent:
        before, now = state.before[day], state.made_from[day]
        figures = content.figures | {TOGETHER: 0}  # that many days come out right together, whole ones have to show
        code = mixed(before.code_version, platform.code_versions[contract.name])
        rows = computed[day].rows
        told = Scope(keys=scope.texts, rows=rows, made_from=now, code_version=code, reads=before.reads)
        if (before.fingerprint, before.made_by) == (now, platform.version(contract.name)):
            if before.digest != content.digest:
                what = "came out with other content than when the same code made it whole of the same"
                raise _not_separable(contract, scope, day, what)
            return content.model_copy(update={"figures": figures, "scope": told})
        return content.model_copy(
            update={"figures": figures, "fingerprint": mixed(before.fingerprint, now), "scope": told}
        )

    return {day: of_whole(day, content) for day, content in contents.items()}


def as_published(change: TableChange) -> TableChange:
    """Staged days as they are published: of one that is just what all of it would be, nothing is said of keys."""

    def of_day(content: DayContent) -> DayContent:
        told = content.scope
        is_whole = told and (told.made_from, told.code_version) == (content.fingerprint, change.code_version)
        return content.model_copy(update={"scope": None}) if is_whole else content

    return change.model_copy(update={"days": {day: of_day(content) for day, content in change.days.items()}})


def refuse_scoped(staged: StagedDays, again: Mapping[str, Collection[date]]) -> None:
    """Refuse to compute staged days again whose rest was carried over: somebody looked at just that.

    Raises:
        ScopeError: naming the first.
    """
    for table, days in again.items():
        for day in sorted(days):
            content = staged.of(table).get(day)
            if content is not None and content.scope is not None:
                raise ScopeError(
                    f"{table} of {day}, of which only some keys were computed, or what it reads, is another one now.",
                    "Drop the stage and compute these keys again.",
                )


def _not_separable(contract: Contract, scope: KeyScope, day: date, what: str) -> ScopeError:
    return ScopeError(
        f"{contract.name} of {day}, computed for {scope} alone, {what}; nothing was staged with it.",
        f"Its contract promises in `separable_by` what is not so: leave {' and '.join(scope.columns)} out of it.",
    )
