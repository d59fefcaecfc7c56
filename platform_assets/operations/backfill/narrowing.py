"""A plan of some keys: whether its tables can be computed by them, and how much of their days that is. No JVM."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import date
from typing import TYPE_CHECKING

from platform_assets.contracts import Contract
from platform_assets.engine.platform import Platform
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.lakehouse.reading import rows_of_files
from platform_assets.operations.backfill.files import PlanFieldError
from platform_assets.operations.backfill.named_tables import refuse_unknown_tables
from platform_assets.operations.backfill.obstacles import unmatched
from platform_assets.planning.backfill.backfill import Narrowed, Obstacle
from platform_assets.planning.backfill.plan_file import PlanFile
from platform_assets.planning.key_scope import KeyScope, ScopeError, nearest, scope_of, value_of

if TYPE_CHECKING:
    import pyarrow.dataset as ds

_LOOKED_AT = 12
"""Days of a table whose keys are counted: a column of each is read."""


def scope_in(platform: Platform, file: PlanFile) -> KeyScope | None:
    """The keys of a plan, held against the contracts of its tables; None where it is about all of them.

    Raises:
        PlanFieldError: a table does not promise that its rows can be computed by a column, or a value is none of it.
    """
    if file.only is None:
        return None
    scopes = {_of_table(platform.catalogue[table], file) for table in file.tables}
    if len(scopes) > 1:
        raise PlanFieldError(
            "these tables have other types for the same column.", "Write a plan for each.", ("tables",)
        )
    return scopes.pop()


def narrowed(
    snapshot: LakeSnapshot, scope: KeyScope, tables: Sequence[str], days: Sequence[date]
) -> tuple[Narrowed, ...]:
    """Count the rows of some keys on days of tables.

    Args:
        snapshot: that is looked at.
        scope: the keys.
        tables: that have their columns.
        days: in the order in which they are worth a look; of the first dozen that a table has, rows are counted.
    """
    return tuple(_counted(snapshot, scope, table, days) for table in tables)


def unmatched_keys(platform: Platform, file: PlanFile) -> tuple[Obstacle, ...]:
    """What somebody should know of the keys of a plan before it is written: values that no row has.

    Args:
        platform: as it is now.
        file: the plan. Where it does not name its days itself, the newest are looked at.

    Raises:
        PlanFileError: it names tables that are not there.
        PlanFieldError: as for `scope_in`.
    """
    refuse_unknown_tables(platform, file)
    scope = scope_in(platform, file)
    if scope is None:
        return ()
    snapshot = LakeSnapshot.now(platform)
    named = file.days.named()
    found = (
        _counted(snapshot, scope, table, sorted(snapshot.files(table) if named is None else named, reverse=True))
        for table in file.tables
    )
    return tuple(unmatched(found))


def _of_table(contract: Contract, file: PlanFile) -> KeyScope:
    for column, texts in (file.only or {}).items():
        try:
            scope_of(contract, {column: texts})
        except ScopeError as error:
            raise PlanFieldError(error.what, error.todo, ("only", column)) from error
    return scope_of(contract, file.only or {})


def _counted(snapshot: LakeSnapshot, scope: KeyScope, table: str, days: Sequence[date]) -> Narrowed:
    import pyarrow as pa
    import pyarrow.dataset as ds

    files = snapshot.files(table)
    there = {day: files[day] for day in [day for day in days if files.get(day)][:_LOOKED_AT]}
    if not there:
        return Narrowed(table, 0, 0, 0)
    rows = rows_of_files(snapshot.platform.lake.table_path(table), there)
    contract, theirs = snapshot.platform.catalogue[table], ds.scalar(True)
    absent: dict[tuple[str, str], tuple[str, ...]] = {}
    for name, texts in scope.keys:
        values = pa.array([value_of(text, contract.column(name).type) for text in texts], rows.schema.field(name).type)
        theirs = theirs & ds.field(name).isin(values)
        absent |= {(name, text): near for text, near in _absent(rows, name, texts).items()}
    return Narrowed(table, len(there), rows.count_rows(filter=theirs), rows.count_rows(), absent)


def _absent(rows: ds.Dataset, column: str, asked: Collection[str]) -> dict[str, tuple[str, ...]]:
    """Values that no row has, each with the nearest that there are; where none is near, the first."""
    there: set[str] = set()
    for batch in rows.to_batches(columns=[column]):  # one at a time: days may be large, and values few
        there.update(str(value) for value in batch.column(0).unique().to_pylist() if value is not None)
    return {text: nearest(text, there) for text in asked if text not in there}
