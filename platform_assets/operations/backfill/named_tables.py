"""Tables, columns and code that a plan names, held against those that there are."""

from __future__ import annotations

from platform_assets.contracts.amounts import amounts
from platform_assets.contracts.columns import why_no_sum
from platform_assets.contracts.errors import unknown_table
from platform_assets.engine.platform import Platform
from platform_assets.operations.backfill.files import PlanFieldError
from platform_assets.planning.backfill.plan_file import PlanFile


def refuse_unknown_tables(platform: Platform, file: PlanFile) -> None:
    """Refuse a plan that is about what the platform does not have.

    Raises:
        PlanFieldError: a table that it names, or the column of a gate, is not there, or cannot be summed.
    """
    named: list[tuple[str, tuple[int | str, ...]]] = [(name, ("tables", at)) for at, name in enumerate(file.tables)]
    named += [(gate.table, ("gates", at, "table")) for at, gate in enumerate(file.gates)]
    named += [(name, ("code", name)) for name in file.code or {}]
    for name, field in named:
        if name not in platform.catalogue.names:
            error = unknown_table(name, platform.catalogue.names)
            raise PlanFieldError(error.what, error.todo, field) from error
    for number, gate in enumerate(file.gates):
        columns = platform.catalogue[gate.table].column_names
        if gate.column is not None and gate.column not in columns:
            raise PlanFieldError(
                f"{gate.table} has no column {gate.column!r}.",
                f"Name one of {', '.join(columns)}.",
                ("gates", number, "column"),
            )
        if (
            gate.metric == "sum"
            and gate.column
            and (why := why_no_sum(platform.catalogue[gate.table].column(gate.column)))
        ):
            summed = ", ".join(amounts(platform.catalogue[gate.table]))
            raise PlanFieldError(
                f"{gate.table}.{gate.column} cannot be summed: {why}.",
                f"{f'Name one that can, as {summed}, or use' if summed else 'Use'} another metric, as rows or nulls.",
                ("gates", number, "column"),
            )


def refuse_other_code(platform: Platform, file: PlanFile) -> None:
    """Refuse a plan that is about other code than the one that is here, before anything is computed by it.

    Raises:
        PlanFieldError: a table that it names under `code` is computed by another version.
    """
    for table, said in (file.code or {}).items():
        here = platform.version(table).code
        if here != said:
            raise PlanFieldError(
                f"{table} is computed by the code {here} here, and not by {said}.",
                "Check out the code that the plan is about; or write the version that is here, and have that reviewed.",
                ("code", table),
            )
