"""Selectors select what they say, refuse what selects nothing, and mean the same in Dagster."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import chain

import dagster as dg
import pytest

from platform_assets.contracts import Catalogue, ContractError
from platform_assets.domains.retail import DOMAIN
from platform_assets.domains.retail.contracts import DAILY_SALES, SILVER_TRANSACTIONS
from platform_assets.errors import PlatformError
from platform_assets.orchestration.build import build_definitions
from platform_assets.planning.configuration import configuration
from platform_assets.planning.selection import is_selector, select
from platform_assets.settings import Settings, project_root

TAGGED = tuple(replace(each, tags=("finance",)) if each is DAILY_SALES else each for each in DOMAIN.tables)
CATALOGUE = Catalogue.of([replace(DOMAIN, tables=TAGGED)])
SALES, MONTH = "gold.daily_sales", "gold.sales_month_to_date"
ABOVE = {"raw.transactions", "raw.products", "silver.transactions", "silver.products"}


def selected(*words: str) -> set[str]:
    return set(select(CATALOGUE, words, lambda: ["silver.products"]))


@pytest.mark.parametrize(
    ("words", "tables"),
    [
        ((SALES,), {SALES}),
        ((f"{SALES}+",), {SALES, MONTH}),
        ((f"+{SALES}",), {SALES, *ABOVE}),
        ((f"+{SALES}+",), {SALES, MONTH, *ABOVE}),
        (("domain:retail",), {*CATALOGUE.names}),
        (("tag:finance",), {SALES}),
        (("tag:finance+",), {SALES, MONTH}),
        (("stale",), {"silver.products"}),
        (("stale+",), {"silver.products", SALES, MONTH}),
        ((MONTH, "raw.products"), {MONTH, "raw.products"}),
        ((), set()),
    ],
)
def test_a_selector_selects(words: tuple[str, ...], tables: set[str]) -> None:
    assert selected(*words) == tables


def test_what_is_below_is_the_inverse_of_what_is_above() -> None:
    for name in CATALOGUE.names:
        assert {other for other in CATALOGUE.names if name in selected(f"+{other}")} == selected(f"{name}+")
        assert not is_selector(name)


@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("gold.daily_sale", "There is no table 'gold.daily_sale'"),
        ("+gold.daily_sale+", "Did you mean gold.daily_sales?"),
        ("domain:retial", "'domain:retial' selects no table. Did you mean retail? There are retail."),
        ("tag:finanze", "'tag:finanze' selects no table. Did you mean finance?"),
        ("owner:bob", "There is no table 'owner:bob'"),
        ("++", "There is no table"),
    ],
)
def test_a_selector_that_selects_nothing_is_refused_by_name(word: str, says: str) -> None:
    with pytest.raises(PlatformError) as caught:
        selected(SALES, word)
    assert says in f"{caught.value.what} {caught.value.todo}"
    assert caught.value.is_misspelt


def test_nothing_stale_is_refused_too() -> None:
    with pytest.raises(PlatformError, match="selects nothing: no table is stale"):
        select(CATALOGUE, ["stale"], list)


def test_a_tag_makes_nothing_stale_and_is_one_word() -> None:
    tagged = replace(SILVER_TRANSACTIONS, tags=("finance",))
    assert configuration(CATALOGUE, tagged) == configuration(CATALOGUE, SILVER_TRANSACTIONS)
    with pytest.raises(ContractError, match="has the tag 'two words'"):
        replace(DAILY_SALES, tags=("two words",))


@pytest.mark.filterwarnings("ignore::dagster.BetaWarning")  # raised, it would be taken for another syntax
def test_the_docs_say_how_dagster_writes_each(settings: Settings) -> None:
    graph = build_definitions(settings).resolve_asset_graph()
    page = (project_root() / "docs" / "commands.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([^`]+)` \| `([^`]+)` \|$", page, re.MULTILINE)
    assert len(rows) == 4
    for ours, theirs in rows:
        keys = dg.AssetSelection.from_string(theirs).resolve(graph)
        in_dagster = set(chain.from_iterable(key.path for key in keys))
        # No table of the shipped domain has a tag.
        assert in_dagster == (set() if ours.startswith("tag:") else selected(ours)), ours
