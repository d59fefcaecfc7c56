"""All that is wrong with a domain is told at once, with its place, before anything is done."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from platform_assets.contracts import Catalogue
from platform_assets.engine.catalogue import MistakesError, load_catalogue
from platform_assets.engine.step.analysis import analysis_mistakes
from platform_assets.engine.user_code import function_mistakes
from platform_assets.errors import PlatformError
from platform_assets.settings import load_settings
from platform_assets_tests.support.own_domain import PACKAGE, importable, write_domain
from platform_assets_tests.support.world import MakeWorld

Load = Callable[..., Catalogue]
Texts = tuple[tuple[str, str], ...]


@pytest.fixture
def load(tmp_path: Path) -> Iterator[Load]:
    """Loads the domain with some of its text replaced."""
    with ExitStack() as stack:

        def loaded(**changes: Texts) -> Catalogue:
            stack.enter_context(importable(write_domain(tmp_path, **changes)))
            return load_catalogue(load_settings(domains=PACKAGE, state=tmp_path / "state"))

        yield loaded


def test_every_mistake_of_all_contracts_is_told_with_its_line(load: Load) -> None:
    with pytest.raises(MistakesError) as caught:
        load(
            contracts=(
                ('"decimal(12,2)"', '"money"'),
                ('event_time="at"', 'event_time="when", ahead_days="many"'),
                ("span(6)", "span"),
                ('("till",), (Amount("paid", "sum(paid)", "sum(paid)"),)', '("till",), ()'),
            )
        )
    told = {(mistake.table, mistake.field): mistake for mistake in caught.value.mistakes}
    assert set(told) == {
        ("silver.sales", "paid"),
        ("raw.sales", "ahead_days"),
        (None, "amounts"),
        ("gold.week", "window"),
    }
    for mistake, line in zip(caught.value.mistakes, (7, 8, 14, 16), strict=True):
        assert mistake.place is not None
        assert mistake.place.startswith(str(Path("own_till", "contracts.py")), mistake.place.index("own_till"))
        assert int(mistake.place.rpartition(" ")[2]) in (line, line + 1)
        assert mistake.place in str(caught.value)
        assert mistake.todo
    assert "span(…)" in told["gold.week", "window"].todo


def test_an_input_that_names_no_table_is_told_with_the_one_that_was_meant(load: Load) -> None:
    with pytest.raises(PlatformError) as caught:
        load(contracts=(('Input("silver.sales", span(6))', 'Input("silver.sale", span(6))'),))
    assert "gold.week reads silver.sale, which no domain declares" in str(caught.value)
    assert "Did you mean silver.sales?" in str(caught.value)


def test_a_module_with_mistakes_is_as_wrong_when_it_is_loaded_again(load: Load) -> None:
    for _ in range(2):
        with pytest.raises(PlatformError, match="money"):
            load(contracts=(('"decimal(12,2)"', '"money"'),))
    assert load().names


def test_what_tables_say_of_each_other_is_told_at_once(load: Load) -> None:
    with pytest.raises(MistakesError) as caught:
        load(
            contracts=(
                ('"raw.sales", same_day()', '"raw.sale", same_day()'),
                ("TABLES = (RAW,", "TABLES = (RAW, RAW,"),
                ('inputs=(Input("silver.sales", span(6)),)', 'inputs=(Input("gold.week", span(6)),)'),
            )
        )
    assert [mistake.table for mistake in caught.value.mistakes] == ["raw.sales", "silver.sales", "gold.week"]
    assert "Did you mean raw.sales?" in caught.value.mistakes[1].todo
    assert {mistake.package for mistake in caught.value.mistakes} == {PACKAGE}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"silver": (("def sales(", "def sale("),)}, ["silver.sales needs a function sales(sales) in own_till"]),
        ({"gold": (("tills(sales)", "tills(sale)"),)}, ["where it is tills(sale)"]),
        ({"gold": (("def week(sales)", "def week(*sales)"),)}, ["where it is week(*sales)"]),
        ({"gold": (("def week", "class Week:\n    pass\n\n\nasync def week"),)}, ["week is an async function"]),
        (
            {"silver": (("return", "retrun"),)},
            ["transforms.silver", "invalid syntax in ", "silver.py, line 2"],
        ),
        (
            {"silver": (("(sales)", "()"),), "gold": (("def week", "def weak"),)},
            ["where it is sales()", "needs a function week(sales)"],
        ),
        ({"contracts": (("own_till.transforms", "own_till.transform"),)}, ["has no package 'own_till.transform'"]),
    ],
)
def test_a_function_that_is_not_what_its_contract_asks_for_is_told_without_running_it(
    load: Load, changes: dict[str, Texts], says: list[str]
) -> None:
    mistakes = list(function_mistakes(load(**changes)))
    told = "\n".join(mistake.what for mistake in mistakes)
    assert all(part in told for part in says), told
    assert all(mistake.package.startswith(PACKAGE) and mistake.todo for mistake in mistakes)


PYTHONS_PATTERN = (
    ('"till", "long"', '"till", "string"'),
    ("same_day, span,", "same_day, span, matches,"),
    ('"paid >= 0"', 'matches("till", "(?P<x>a)")'),
)


def test_nothing_is_wrong_with_what_is_right_or_can_only_be_told_by_running_it(load: Load) -> None:
    taken = ("def sales(sales):\n    return sales\n", "from own_till.transforms.gold import tills as sales\n")
    assert not list(function_mistakes(load(silver=(taken,))))


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({}, []),
        ({"contracts": (("paid >= 0", "payed >= 0"),)}, ["rule 'paid_known' of silver.sales", "`payed`"]),
        ({"contracts": (("paid >= 0", "paid >"),)}, ["rule 'paid_known'", "PARSE_SYNTAX_ERROR"]),
        ({"contracts": (("paid >= 0", "paid + 1"),)}, ["rule 'paid_known'", "DATATYPE_MISMATCH"]),
        ({"contracts": PYTHONS_PATTERN}, ["rule 'paid_known' of silver.sales has a pattern that Java does not know"]),
        (
            {"contracts": (('"sum(paid)", "sum(paid)"', '"sum(payed)", "paid"'),)},
            [
                "a `ours` that is no aggregate over gold.tills: sum(payed)",
                "`theirs` that is no aggregate over silver.sales",
            ],
        ),
        (
            {"gold": (('F.sum("paid")', 'F.sum("payed")'),)},
            ["gold.tills cannot be", "gold.week cannot be", "gold.py, line"],
        ),
        ({"gold": (("decimal(18,2)", "double"),)}, ["gold.tills does not return", "paid is double"]),
        ({"gold": (("return tills(sales.per_day())", "tills(sales.per_day())"),)}, ["gold.week returns None"]),
        ({"gold": (("sales.per_day()", "sales.by_day()"),)}, ["gold.week cannot be", "by_day"]),
        ({"silver": (("return sales", "return sales.no_column"),)}, ["silver.sales cannot be", "no_column"]),
        ({"silver": (("return sales", "return sales.limit(sales.count() + 1)"),)}, ["started 1 Spark jobs"]),
        ({"gold": (("from pyspark", "import no_library\nfrom pyspark"),)}, ["No module named 'no_library'"]),
        ({"gold": (("from pyspark", "open('/no/file')\nfrom pyspark"),)}, ["/no/file"]),
        ({"gold": (("\n\n\ndef tills", "\n\nraise SystemExit\n\n\ndef tills"),)}, ["SystemExit"]),
    ],
)
def test_sparks_analyser_finds_what_is_wrong_with_expressions_and_transforms(
    load: Load, spark: SparkSession, changes: dict[str, Texts], says: list[str]
) -> None:
    catalogue = load(**changes)
    told = "\n".join(mistake.what for mistake in analysis_mistakes(catalogue, catalogue.names, spark))
    assert all(part in told for part in says), told
    assert bool(told) == bool(says)


def test_nothing_is_loaded_while_a_table_is_wrong(load: Load, make_world: MakeWorld) -> None:
    """A refresh."""
    load(contracts=(("paid >= 0", "payed >= 0"),), gold=(("decimal(18,2)", "double"),))
    world = make_world(days=1, domains=PACKAGE)
    world.deliver_rows("sales", "2017-01-01", "a.jsonl", [{"till": 1, "at": "2017-01-01T10:00:00Z", "paid": "2.50"}])
    with pytest.raises(MistakesError, match=r"`payed`(?s:.*)paid is double"):
        world.refresh()
    assert not any(world.digests().values())
