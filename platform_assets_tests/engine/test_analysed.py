"""What the analyser found right is looked at once in an installation; what its verdict depends on, once more."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from platform_assets.engine.step.analysis import analysed, analysis_mistakes
from platform_assets.errors import PlatformError
from platform_assets.operations.opening import open_platform
from platform_assets.settings import load_settings
from platform_assets_tests.support.own_domain import PACKAGE, importable, write_domain

Texts = tuple[tuple[str, str], ...]
Looked = Callable[..., set[str]]
ALL = {"silver.sales", "gold.tills", "gold.week"}


@pytest.fixture
def looked(tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Looked:
    """The tables that are looked at before a session is given, with some of the domain's text replaced."""
    at: set[str] = set()

    def noted(catalogue: Any, tables: Any, session: Any) -> Any:
        at.update(tables)
        return analysis_mistakes(catalogue, tables, session)

    monkeypatch.setattr("platform_assets.engine.step.analysis.analysis_mistakes", noted)

    def before_work(*tables: str, **changes: Texts) -> set[str]:
        at.clear()
        settings = load_settings(domains=PACKAGE, state=tmp_path / "state")
        with importable(write_domain(tmp_path, **changes)), open_platform(settings) as platform:
            analysed(platform, tables or platform.catalogue.names, lambda: spark)()
        return set(at)

    return before_work


def test_what_was_found_right_is_not_looked_at_again(looked: Looked) -> None:
    assert looked("gold.tills") == {"gold.tills"}
    assert looked() == ALL - {"gold.tills"}
    assert looked() == set()


@pytest.mark.parametrize(
    ("changes", "again"),
    [
        ({"contracts": (("paid >= 0", "paid > 0"),)}, {"silver.sales", "gold.tills", "gold.week"}),
        (
            {"gold": (("def tills(sales):", "def tills(sales):\n    sales = sales.distinct()"),)},
            {"gold.tills", "gold.week"},
        ),
    ],
)
def test_another_contract_or_another_transform_is_looked_at(
    looked: Looked, changes: dict[str, Texts], again: set[str]
) -> None:
    looked()
    assert looked(**changes) == again
    assert looked(**changes) == set()


def test_what_is_wrong_is_refused_every_time(looked: Looked) -> None:
    for _ in range(2):
        with pytest.raises(PlatformError, match="payed"):
            looked(contracts=(("paid >= 0", "payed >= 0"),))


@pytest.mark.parametrize(
    ("amount", "says"),
    [
        ('"max(event_date)", "max(event_date)"', "max(event_date) is a date"),
        ('"sum(paid)", "max(cast(paid as string))"', "max(cast(paid as string)) is a string"),
    ],
)
def test_a_tolerance_of_an_amount_that_is_no_number_is_refused_by_name(looked: Looked, amount: str, says: str) -> None:
    declared = '"sum(paid)", "sum(paid)"),)'
    with pytest.raises(PlatformError) as refused:
        looked("gold.tills", contracts=((declared, f"{amount}),), tolerance='0.05'"),))
    assert says in refused.value.what
    assert "silver.sales" in refused.value.what


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b"\xff", b'{"gold.tills": 7}'])
def test_a_file_that_says_nothing_costs_a_look(looked: Looked, tmp_path: Path, content: bytes) -> None:
    looked()
    (tmp_path / "state" / "analysed.json").write_bytes(content)
    assert looked() == ALL
    assert looked() == set()


def test_a_code_version_set_by_hand_says_nothing_of_the_code(looked: Looked) -> None:
    by_hand = {"contracts": (('"own_till.transforms")', '"own_till.transforms", code_version="1")'),)}
    assert looked(**by_hand) == looked(**by_hand) == ALL
