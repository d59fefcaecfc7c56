"""`diff`: what differs between two releases, a stage or a backfill and the release, two tables, or two engines."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from platform_assets.cli.console import UsageError, opened_platform
from platform_assets.cli.options import Days, Limit, call_with
from platform_assets.contracts.table import LAYERS
from platform_assets.lakehouse.errors import UnknownReleaseError
from platform_assets.operations.pins import release_number
from platform_assets.operations.plan_record import backfill_names
from platform_assets.operations.stages.store import stage_names
from platform_assets.planning.selectors import is_selector
from platform_assets.report import Report

_ENGINES = ["spark", "sail"]
_BACKFILL, _STAGE = "backfill:", "stage:"
_WHAT = (
    "Releases, by number, pin or publication; a stage; a backfill, by name or file; spark sail; or two of gold.sales, "
    "gold.sales@RELEASE, gold.sales@stage:NAME, and folders or files. Then, but for these, tables."
)


def diff(
    what: Annotated[list[str], typer.Argument(metavar="A [B] [TABLE]", help=_WHAT)],
    days: Days = None,
    by: Annotated[
        str | None, typer.Option("--by", metavar="COLUMN,…", help="Tables: sums by these; event_date: of each day.")
    ] = None,
    tolerance: Annotated[str | None, typer.Option(help="Tables: what may differ, as `0.05, 0.1 %, 161 keys`.")] = None,
    drill: Annotated[bool, typer.Option("--drill", help="Tables: name the keys that differ.")] = False,
    html: Annotated[Path | None, typer.Option(help="Tables: also write a page to keep there.")] = None,
    sample: Annotated[
        int | None, typer.Option(min=1, max=1000, help="The file of a backfill: days to compute; 3 by default.")
    ] = None,
    examples: Annotated[
        int | None, typer.Option(min=0, max=1000, help="A backfill, engines: keys to show of each way to differ.")
    ] = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="A backfill: for a pull request.")] = False,
    limit: Limit = None,
) -> Report:
    """Show what differs from A to B, for releases, stages and backfills to the current release by default.

    Exit code 1 if the days of a backfill, engines, or tables by more than the tolerance differ.
    """
    from platform_assets.cli.commands.backfill import backfill_diff
    from platform_assets.cli.commands.release import releases_diff
    from platform_assets.cli.commands.stage import stage_diff
    from platform_assets.cli.commands.verify import engines_diff, sides_diff

    given: dict[str, Any] = {
        "days": days,
        "by": by,
        "tolerance": tolerance,
        "drill": drill,
        "html": html,
        "sample": sample,
    }
    given |= {"examples": examples, "markdown": markdown, "limit": limit}
    first, *others = what
    if what[:2] == _ENGINES:
        return call_with("diff spark sail", engines_diff, given | {"names": what[2:]})
    if _is_side(first):
        if len(others) != 1:
            raise UsageError("Two sides are compared.", "Name both, as `diff gold.daily_sales gold.daily_sales@12`.")
        return call_with("diff TABLE TABLE", sides_diff, given | {"left": first, "right": others[0]})
    kind = _kind_of(first)
    if kind == _BACKFILL:
        return call_with("diff BACKFILL", backfill_diff, given | {"plan": first.removeprefix(kind), "names": others})
    if kind == _STAGE:
        return call_with("diff STAGE", stage_diff, given | {"name": first.removeprefix(kind), "names": others})
    after = others[:1] if others and not (is_selector(others[0]) or _is_side(others[0])) else []
    given |= {"before": first, "after": next(iter(after), None), "names": others[len(after) :]}
    return call_with("diff RELEASE", releases_diff, given)


def _is_side(text: str) -> bool:
    if text.startswith((_STAGE, _BACKFILL)) or _is_file(text):
        return False
    layer, dot, _ = text.partition(".")
    return (bool(dot) and layer in LAYERS) or bool({"@", "/"} & set(text)) or Path(text).suffix in (".csv", ".parquet")


def _is_file(text: str) -> bool:
    return Path(text).suffix in (".yaml", ".yml")


def _kind_of(text: str) -> str:
    """Return whether a word names a backfill or a stage; empty if it names a release."""
    if _is_file(text):
        return _BACKFILL
    for kind in (_BACKFILL, _STAGE):
        if text.startswith(kind):
            return kind
    with opened_platform() as platform:
        try:
            release_number(platform.ledger, text)
        except UnknownReleaseError:
            if text in stage_names(platform.lake):
                return _STAGE
            if text in backfill_names(platform.lake):
                return _BACKFILL
            raise
    return ""
