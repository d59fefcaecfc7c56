"""Selectors: the words by which a person names tables.

A selector is `gold.daily_sales`, `domain:retail`, `tag:finance` or `stale`. A `+` before it adds all tables that the
selected ones are made from, a `+` behind it all that are made from them. Several selectors select the union.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from platform_assets.contracts import Catalogue
from platform_assets.errors import PlatformError, did_you_mean

STALE = "stale"
_KINDS = ("domain", "tag")


class SelectorError(PlatformError):
    """A selector selects no table."""

    is_misspelt = True


def is_selector(word: str) -> bool:
    """Return whether a word can only be a selector: no table has such a name."""
    return word == STALE or word.startswith("+") or word.endswith("+") or word.partition(":")[0] in _KINDS


def select(catalogue: Catalogue, words: Iterable[str], stale: Callable[[], Collection[str]]) -> frozenset[str]:
    """Return the names of the tables that any of these selectors selects.

    Args:
        stale: returns the tables that have stale days; called only if a selector asks.

    Raises:
        UnknownTableError: a selector names a table that no domain declares.
        SelectorError: a selector selects nothing.
    """
    return frozenset(table for word in words for table in _selected(catalogue, word, stale))


def _selected(catalogue: Catalogue, word: str, stale: Callable[[], Collection[str]]) -> Collection[str]:
    body = word.removeprefix("+").removesuffix("+")
    chosen = _without_signs(catalogue, body, stale)
    if not chosen:
        raise _nothing(catalogue, word, body)
    above = catalogue.with_inputs(chosen) if word.startswith("+") else chosen
    below = catalogue.with_dependants(chosen) if word.endswith("+") else chosen
    return {*above, *below}


def _without_signs(catalogue: Catalogue, body: str, stale: Callable[[], Collection[str]]) -> Collection[str]:
    kind, colon, name = body.partition(":")
    if body == STALE:
        return stale()
    if colon and kind == "domain":
        return [contract.name for domain in catalogue.domains if domain.name == name for contract in domain.tables]
    if colon and kind == "tag":
        return [contract.name for contract in catalogue if name in contract.tags]
    return [catalogue[body].name]


def _nothing(catalogue: Catalogue, word: str, body: str) -> SelectorError:
    kind, _, name = body.partition(":")
    if body == STALE:
        return SelectorError(f"{word!r} selects nothing: no table is stale.", "Name tables, or wait for new files.")
    there = {
        "domain": [domain.name for domain in catalogue.domains],
        "tag": sorted({tag for contract in catalogue for tag in contract.tags}),
    }[kind]
    todo = f"There are {', '.join(there)}." if there else f"No table has a {kind}."
    return SelectorError(f"{word!r} selects no table.", f"{did_you_mean(name, there)}{todo}")
