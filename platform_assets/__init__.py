"""A Dagster platform that corrects the past of daily-partitioned Delta tables safely.

`read` gives any released table, at one release across tables.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from platform_assets.lakehouse.read import Engine
    from platform_assets.settings import Settings


def read(
    table: str,
    *,
    days: Iterable[date] | None = None,
    release: int | None = None,
    engine: Engine = "arrow",
    settings: Settings | None = None,
) -> Any:
    """Read a table as readers see it.

    Args:
        table: `<layer>.<table>`.
        days: only these days; all by default.
        release: number of a release; the current one by default.
        engine: what to return: `arrow`, `polars` or `pandas` tables, a `duckdb` relation, or a `spark` frame of the
            active session.
        settings: where the lake is; read from the environment by default.

    Raises:
        PlatformError: the table, the release or the engine does not exist; the message names what there is.
    """
    from platform_assets.engine.catalogue import load_catalogue
    from platform_assets.lakehouse import read as reading
    from platform_assets.settings import load_settings

    settings = settings or load_settings()
    declared = load_catalogue(settings).names
    return reading.read(table, days=days, release=release, engine=engine, settings=settings, declared=declared)


__all__ = ["read"]
