"""Tables and columns that a plan names, held against those that there are."""

from __future__ import annotations

from platform_assets.contracts.amounts import amounts, why_no_sum
from platform_assets.contracts.errors import unknown_table
from platform_assets.engine.platform import Platform
from platform_assets.operations.backfill.files import PlanFieldError
from platform_assets.operations.backfill.plan_text import PlanFileError
from platform_assets.planning.backfill.plan_file import PlanFile


def refuse_unknown_tables(platform: Platform, file: PlanFile) -> None:
    """Refuse a plan that is about what the platform does not have.

    Raises:
        PlanFileError: a table that it names is not there.
        PlanFieldError: a column of a gate is not there, or cannot be summed.
    """
    for name in (*file.tables, *(gate.table for gate in file.gates)):
        if name not in platform.catalogue.names:
            error = unknown_table(name, platform.catalogue.names)
            raise PlanFileError(f"The plan {file.name}: {error.what}", error.todo) from error
    for number, gate in enumerate(file.gates):
        columns = platform.catalogue[gate.table].column_names
        if gate.column is not None and gate.column not in columns:
            raise PlanFieldError(
                f"{gate.table} has no column {gate.column!r}.",
                f"Name one of {', '.join(columns)}.",
                ("gates", number, "column"),
            )
        if gate.column is not None and (why := why_no_sum(platform.catalogue[gate.table].column(gate.column))):
            summed = ", ".join(amounts(platform.catalogue[gate.table]))
            raise PlanFieldError(
                f"{gate.table}.{gate.column} cannot be summed: {why}.",
                f"{f'Name one that can, as {summed}, or use' if summed else 'Use'} the metric rows or keys.",
                ("gates", number, "column"),
            )
