"""Protected days in plans: nothing computes them anew but their own data, and a plan file that says why."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import date

from platform_assets.contracts import Catalogue
from platform_assets.contracts.protected import why_protected
from platform_assets.errors import PlatformError
from platform_assets.planning.reasons import Reasons
from platform_assets.planning.windows import which
from platform_assets.words import counted

_NOT_DATA = {"code", "configuration"}


class ProtectedDaysError(PlatformError):
    """Protected days were to be computed without a plan that says why."""


def protected_in(
    catalogue: Catalogue, planned: Mapping[str, Collection[date]], known: Mapping[str, Collection[date]]
) -> dict[str, dict[date, str]]:
    """The days of a plan that are protected and have content, each with the reason of that, by table.

    Args:
        catalogue: all tables.
        planned: the days to compute, by table.
        known: days that have content, by table.
    """
    protected = {table: _protected(catalogue, table, days, known) for table, days in planned.items()}
    return {table: days for table, days in protected.items() if days}


def protected_without_data(
    catalogue: Catalogue, reasons: Mapping[str, Mapping[date, Reasons]], known: Mapping[str, Collection[date]]
) -> dict[str, dict[date, str]]:
    """As `protected_in`, of days for which no data of theirs asks; so also of those that nobody knows a reason for.

    Args:
        catalogue: all tables.
        reasons: why days are computed, by table.
        known: days that have content, by table.
    """
    without_data = {
        table: [day for day, why in of_table.items() if "asked for" in why or _NOT_DATA.issuperset(why)]
        for table, of_table in reasons.items()
    }
    return protected_in(catalogue, without_data, known)


def refuse_protected(
    catalogue: Catalogue, reasons: Mapping[str, Mapping[date, Reasons]], known: Mapping[str, Collection[date]]
) -> None:
    """Refuse to compute protected days that have content, and for which no data of theirs asks.

    Args:
        catalogue: all tables.
        reasons: why days are to be computed, by table.
        known: days that have content, by table.

    Raises:
        ProtectedDaysError: naming the first table.
    """
    for table, days in protected_without_data(catalogue, reasons, known).items():
        raise ProtectedDaysError(
            f"{counted(len(days), 'day')} of {table} ({which(list(days))}) cannot be computed so: they are protected, "
            f"because {next(iter(days.values()))}.",
            "Leave them out, or write a plan with `override_protected`: `platform-assets plan new`.",
        )


def _protected(
    catalogue: Catalogue, table: str, days: Collection[date], known: Mapping[str, Collection[date]]
) -> dict[date, str]:
    periods, there = catalogue.protecting(table), known.get(table, ())
    return (
        {day: why for day in sorted(days) if day in there and (why := why_protected(periods, day))} if periods else {}
    )
