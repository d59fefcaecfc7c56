"""Metadata as Dagster shows it: text of others is visible, and no Markdown.

Nothing else here makes metadata of text, so that whoever adds some cannot forget it.
"""

from __future__ import annotations

from collections.abc import Iterable

import dagster as dg

from platform_assets.visible import as_code, visible


def plain(shown: str) -> dg.MetadataValue:
    """A line of plain text."""
    return dg.MetadataValue.text(visible(shown))


def listed(items: Iterable[str], more: Iterable[str] = ()) -> dg.MetadataValue:
    """A list of what others wrote, perhaps in part, each as it is written.

    Args:
        items: a line each.
        more: lines of the platform's own below them.
    """
    return markdown("\n".join(f"- {line}" for line in (*map(as_code, items), *more)))


def markdown(written: str) -> dg.MetadataValue:
    """Markdown of the platform's own, in which what others wrote was made code by `as_code`."""
    return dg.MetadataValue.md(visible(written, breaks=True))


def table_row(row: dict[str, str | int | float | bool | None]) -> dg.TableRecord:
    """A row of a table."""
    return dg.TableRecord({name: visible(value) if isinstance(value, str) else value for name, value in row.items()})
