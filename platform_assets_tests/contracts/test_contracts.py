"""A contract, a rule or an exposure that contradicts itself is refused with the table, the field and the remedy."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from typing import Any, cast

import pytest

from platform_assets.contracts import (
    Catalogue,
    Column,
    Contract,
    ContractError,
    Csv,
    Domain,
    Exposure,
    Input,
    LandingFiles,
    Rule,
    UnknownTableError,
    as_of,
    compare,
    exists,
    in_range,
    length,
    matches,
    not_null,
    offsets,
    one_of,
    same_day,
    span,
    unique,
)
from platform_assets.contracts.rules import RowTolerance
from platform_assets.domains.retail import DOMAIN
from platform_assets.domains.retail.contracts import (
    DAILY_SALES,
    RAW_PRODUCTS,
    RAW_TRANSACTIONS,
    SILVER_PRODUCTS,
    SILVER_TRANSACTIONS,
)
from platform_assets.planning.outbox import message_of
from platform_assets.settings import project_root
from platform_assets_tests.support.domains import sensors
from platform_assets_tests.support.domains.told import DOMAIN as TOLD
from platform_assets_tests.support.ledger_records import nth, publication_record

K = Column("k", "long", "Key.", nullable=False)


def with_absent(contract: Contract, name: str) -> tuple[Column, ...]:
    """Its columns, one of which files may lack."""
    return tuple(replace(c, may_be_absent=True, nullable=True) if c.name == name else c for c in contract.columns)


@pytest.mark.parametrize(
    ("contract", "changes", "says"),
    [
        (DAILY_SALES, {"name": "daily_sales"}, "not <layer>.<table>"),
        (DAILY_SALES, {"name": "gold.Daily-Sales"}, "not <layer>.<table>"),
        (RAW_TRANSACTIONS, {"key": ()}, "has no key"),
        (DAILY_SALES, {"key": ("event_date",)}, "the day is part of each key already"),
        (DAILY_SALES, {"key": ("nothing",)}, "does not declare"),
        (DAILY_SALES, {"inputs": ()}, "reads nothing"),
        (DAILY_SALES, {"columns": (*DAILY_SALES.columns, K, K)}, "twice"),
        (DAILY_SALES, {"inputs": (Input("raw.transactions", same_day()),)}, "reads raw"),
        (DAILY_SALES, {"inputs": (Input("gold.other", as_of()),)}, "as of a day"),
        (
            DAILY_SALES,
            {"inputs": (Input("silver.a", span(2, 1)), Input("silver.b", as_of()))},
            "of silver.a that lie",
        ),
        (DAILY_SALES, {"inputs": (Input("silver.a", offsets(-7, 1)), Input("silver.b", as_of()))}, "of silver.a that"),
        (SILVER_TRANSACTIONS, {"inputs": (Input("raw.transactions", span(3)),)}, "same day"),
        (SILVER_TRANSACTIONS, {"key": ("household_id",)}, "allows nulls"),
        (RAW_TRANSACTIONS, {"source": None}, "no source"),
        (RAW_TRANSACTIONS, {"event_time": "week"}, "'week'"),
        (RAW_TRANSACTIONS, {"voided": "gone"}, "'gone'"),
        (
            RAW_TRANSACTIONS,
            {"updated_at": ("updated_at", "sales_value")},
            "needs 'sales_value' as a column of type timestamp",
        ),
        (RAW_TRANSACTIONS, {"restatement_window_days": -1}, "restatement_window_days=-1"),
        (RAW_TRANSACTIONS, {"day_zone": "Europe/Berlim"}, "day_zone='Europe/Berlim' for the days of 'transaction_"),
        (RAW_PRODUCTS, {"day_zone": "Europe/Berlin"}, "day_zone='Europe/Berlin' for the days of 'effective"),
        (SILVER_TRANSACTIONS, {"day_zone": "Europe/Berlin"}, "has `day_zone`, which only raw tables have"),
        (RAW_TRANSACTIONS, {"deep_restatement_days": 90}, "restates 90 days deep"),
        (RAW_TRANSACTIONS, {"ahead_days": -1}, "ahead_days=-1"),
        (RAW_TRANSACTIONS, {"delivered_after_days": -1}, "delivered_after_days=-1"),
        (RAW_TRANSACTIONS, {"rules": (Rule("r", "true", ""),)}, "inputs or rules"),
        (RAW_TRANSACTIONS, {"columns": with_absent(RAW_TRANSACTIONS, "voided")}, "lets files lack 'voided'"),
        (RAW_TRANSACTIONS, {"columns": with_absent(RAW_TRANSACTIONS, "updated_at")}, "lets files lack 'updated_at'"),
    ],
)
def test_a_contradiction_is_named(contract, changes, says):
    with pytest.raises(ContractError, match=says) as caught:
        replace(contract, **changes)
    assert caught.value.todo


@pytest.mark.parametrize(
    ("changes", "says", "todo"),
    [
        ({"moves_within_days": -1}, "moves_within_days=-1", "greater than or equal to 0"),
        ({"moves_within_days": "7"}, "moves_within_days='7'", "a valid integer"),
        ({"moves_within_days": True}, "moves_within_days=True", "a valid integer"),
        ({"moves_within_days": 10**9}, "moves_within_days=1000000000", "less than or equal to 36500"),
        ({"ahead_days": 1.0}, "ahead_days=1.0", "a valid integer"),
        ({"deep_restatement_days": "365"}, "deep_restatement_days='365'", "a valid integer"),
        ({"delivers": "on_change"}, "delivers='on_change'", "'daily' or 'on change'"),
        ({"key": "order_id"}, "key='order_id'", "key=('order_id',)"),
        ({"key": ["line_id", "day"]}, "key=['line_id', 'day']", "key=('line_id', 'day',)"),
        ({"key": ("line_id", 1)}, "key[1]=1", "a valid string"),
        ({"columns": K}, "columns=Column(", "it must be a tuple"),
        ({"columns": (K, "at")}, "columns[1]='at'", "an instance of Column"),
        ({"inputs": (same_day(),)}, "inputs[0]=Span(", "an instance of Input"),
        ({"source": "tills"}, "source='tills'", "an instance of LandingFiles"),
        ({"event_time": K}, "event_time=Column(", "a valid string"),
        ({"closed_days": frozenset({"2017-12-25"})}, "closed_days[0]='2017-12-25'", "a valid date"),
        ({"closed_days": (date(2017, 12, 25),)}, "closed_days=(datetime.date(", "a valid frozenset"),
        ({"checks": None}, "checks=None", "an instance of Checks"),
        ({"freshness": 3}, "freshness=3", "an instance of Freshness"),
        ({"code_version": 3}, "code_version=3", "a valid string"),
        ({"description": None}, "description=None", "a valid string"),
    ],
)
def test_a_field_of_another_type_or_out_of_its_range_is_named_with_what_is_allowed(changes, says, todo):
    with pytest.raises(ContractError) as caught:
        replace(RAW_TRANSACTIONS, **changes)
    assert caught.value.what.startswith(f"The contract of raw.transactions has {says}")
    assert next(iter(changes)) in caught.value.todo
    assert todo in caught.value.todo


@pytest.mark.parametrize(
    ("declare", "says"),
    [
        (lambda: Column("k", "long", "Key.", nullable="no"), "column 'k' has nullable='no'"),  # type: ignore[arg-type]
        (lambda: Column("k", "long", "Key.", made_from="silver.a.k"), "made_from='silver.a.k'"),  # type: ignore[arg-type]
        (lambda: Column("k", "long", "Key.", nullable=False, may_be_absent=True), "'k' may be absent, and allows no"),
        *((lambda name=name: Column(name, "long", ""), "is not an identifier") for name in ("Upper", "x; drop table")),
        *((lambda type_=type_: Column("k", type_, ""), "unknown type") for type_ in ("money", "")),
        (lambda: Column("k", "decimal(39,2)", ""), "a decimal that does not exist"),
        (lambda: Column("k", "decimal(2,3)", ""), "a decimal that does not exist"),
        (lambda: Column("k", "decimal(0,0)", ""), "a decimal that does not exist"),
        (lambda: Input("silver.a", same_day), "input 'silver.a' has window=<function"),  # type: ignore[arg-type]
        (lambda: Input("a", same_day()), "not <layer>.<table>"),
        (lambda: Rule("Two words", "true", ""), "rule 'Two words'"),
        (lambda: Rule("r", " ", ""), "rule 'r'"),
        (lambda: Rule("r", None, ""), "expression=None"),  # type: ignore[arg-type]
        (lambda: LandingFiles(None), "folder=None"),  # type: ignore[arg-type]
        (lambda: LandingFiles(""), "not a folder below the landing root"),
        (lambda: LandingFiles("/srv/tills"), "not a folder below the landing root"),
        (lambda: LandingFiles("a/../../b"), "not a folder below the landing root"),
        (lambda: LandingFiles("tills", complete=True), "complete=True"),  # type: ignore[arg-type]
        (lambda: span(-1), "before=-1"),
        (lambda: span("7"), "before='7'"),  # type: ignore[arg-type]
        (lambda: span(7, True), "after=True"),
        (lambda: Domain("d", K, "nowhere"), "domain 'd' has tables="),  # type: ignore[arg-type]
        (lambda: Domain("d", (), None), "transforms=None"),  # type: ignore[arg-type]
    ],
)
def test_what_a_contract_holds_is_looked_at_as_closely(declare, says):
    with pytest.raises(ContractError, match=re.escape(says)) as caught:
        declare()
    assert caught.value.todo


def test_an_unknown_table_names_the_known_ones():
    with pytest.raises(UnknownTableError, match=r"gold\.daily_sales"):
        Catalogue.of([DOMAIN])["gold.weekly_sales"]


def test_tables_that_read_each_other_are_refused():
    a = Contract("gold.a", "", "", (K,), ("k",), inputs=(Input("gold.b", same_day()),))
    b = Contract("gold.b", "", "", (K,), ("k",), inputs=(Input("gold.a", same_day()),))
    with pytest.raises(ContractError, match=r"gold\.[ab] is made from itself: it reads gold\.[ab], which reads gold"):
        Catalogue.of([Domain("loop", (a, b), "nowhere")])


def test_two_domains_cannot_declare_one_table():
    with pytest.raises(ContractError, match="declared twice"):
        Catalogue.of([DOMAIN, DOMAIN])


def test_an_undeclared_input_is_named():
    a = Contract("gold.a", "", "", (K,), ("k",), inputs=(Input("silver.lost", same_day()),))
    with pytest.raises(ContractError, match=r"silver\.lost"):
        Catalogue.of([Domain("d", (a,), "nowhere")])


@pytest.mark.parametrize(
    ("declare", "says", "todo"),
    [
        (lambda: Csv(delimiter=";;"), "has delimiter=';;', which is not one character", "`delimiter`"),
        (lambda: Csv(quote="\n"), "has quote='\\n'", "`quote`"),
        (lambda: Csv(delimiter='"'), "one character for two of `delimiter`, `quote` and `escape`", ""),
        (lambda: Csv(encoding="klingon"), "unknown encoding 'klingon'", "cp1252"),
        (lambda: Csv(encoding="zlib"), "unknown encoding 'zlib'", "cp1252"),
        (lambda: Csv(decimal=cast(Any, ";")), "decimal=';'", "'.' or ','"),
        (lambda: Csv(thousands=","[:0]), "thousands=''", "`thousands`"),
        (lambda: Csv(decimal=",", thousands=","), "thousands=',' beside decimal=','", "`thousands`"),
        (lambda: Csv(columns=("a", "a")), "names a column twice", "once"),
        (lambda: Csv(columns=("a", "b"), widths=(3,)), "1 widths for 2 columns", "each of `columns`"),
        (lambda: Csv(skip_first=-1), "skip_first=-1", "greater than or equal to 0"),
        (lambda: Csv(endings=(".parquet",)), "the ending '.parquet'", ".txt"),
        (
            lambda: Column("a", "date", "A.", pattern="%Q"),
            "has the pattern '%Q', which has %Q, and known are",
            "strptime",
        ),
        (lambda: Column("a", "date", "A.", pattern="%d.%m"), "lacks the year", "strptime"),
        (lambda: Column("a", "date", "A.", pattern="%d.%m.%Y %H:%M"), "has a time, which a date has none of", ""),
        (lambda: Column("a", "timestamp", "A.", pattern="%d.%m.%Y %H.%S"), "seconds without minutes", ""),
        (lambda: Column("a", "timestamp", "A.", pattern="%Y%m%d %I"), "one of %I and %p", ""),
        (lambda: Column("a", "timestamp", "A.", pattern="%Y%m%d", epoch="s"), "a number since 1970 has none of", ""),
        (lambda: Column("a", "long", "A.", pattern="%Y%m%d"), "a long has none of", ""),
        (lambda: Column("a", "long", "A.", source_name="A", path=("A",)), "source_name='A' and path=('A',)", ""),
        (lambda: Column("a", "long", "A.", path=(0, "b")), "has the path (0, 'b')", "Begin with a name"),
        (lambda: of_files(Csv(columns=("Id", "day"))), "the column 'id', which Csv(columns=...)", "source_name"),
        (lambda: of_files(None, source_name="day"), "reads two columns from 'day'", "`source_name` or `path`"),
        (lambda: of_files(None, path=("a", 0)), "reads two columns from 'a.0'", "`source_name` or `path`"),
    ],
)
def test_a_declaration_of_files_that_cannot_be_meant_is_refused_with_what_to_do(declare, says, todo):
    with pytest.raises(ContractError) as caught:
        declare()
    assert says in caught.value.what
    assert todo in caught.value.todo
    assert caught.value.field


def of_files(csv: Csv | None, **of_id: Any) -> Contract:
    return Contract(
        name="raw.files",
        description="Files.",
        owner="tests@example.com",
        columns=(
            Column("id", "long", "Number.", nullable=False, **of_id),
            Column("day", "date", "When.", nullable=False, path=("a", 0) if "path" in of_id else ()),
        ),
        key=("id",),
        source=LandingFiles("files", csv=csv),
        event_time="day",
    )


@pytest.mark.parametrize("marker", ["", ".", "a/b", "../x", "day.csv", ".csv", ".PARQUET", "a b", "x" * 65])
def test_a_marker_that_is_no_file_beside_the_others_or_would_be_a_delivery_is_refused(marker):
    with pytest.raises(ContractError, match="completion marker") as caught:
        LandingFiles("sales", complete=marker)
    assert "_SUCCESS" in caught.value.todo


@pytest.mark.parametrize(("marker", "marks_files"), [("_SUCCESS", False), ("done.txt", False), (".done", True)])
def test_a_source_marks_what_is_complete_by_folder_or_by_file(marker, marks_files):
    assert LandingFiles("sales", complete=marker).marks_files == marks_files


READS = ("gold.sensor_week",)


@pytest.mark.parametrize(
    ("name", "variable", "reads", "says"),
    [
        ("", "A_URL", READS, "has no usable name"),
        ("announcements", "A_URL", READS, "taken by the platform itself"),
        ("a\nb", "A_URL", READS, "a name of one line"),
        ("a", "https://hooks.example.com/s3cret", READS, "no name of an environment variable"),
        ("a", "", READS, "no name of an environment variable"),
        ("a", "A_URL", (), "reads nothing"),
        ("a", "A_URL", "gold.sensor_week", "reads='gold.sensor_week'"),
    ],
)
def test_a_mistake_in_an_exposure_is_told(name: str, variable: str, reads: tuple[str, ...], says: str) -> None:
    with pytest.raises(ContractError) as caught:
        Exposure(name, variable, reads)
    assert says in str(caught.value)
    assert "s3cret" not in str(caught.value), "what stands in the place of the variable may be the address itself"


@pytest.mark.parametrize(
    "page", ["javascript:alert(1)", "https://ada:s3cret@boards.example.com/", "boards", "https://"]
)
def test_a_page_that_nobody_should_follow_is_refused_and_not_shown(page: str) -> None:
    with pytest.raises(ContractError, match="no address of the web") as caught:
        Exposure("a", "A_URL", READS, page=page)
    assert "s3cret" not in str(caught.value)
    with pytest.raises(ContractError, match="no owner of one line"):
        Exposure("a", "A_URL", READS, owner="a\nb")


def test_a_table_that_nobody_declares_is_told_with_the_one_that_was_meant() -> None:
    wrong = replace(sensors.DOMAIN, exposures=(Exposure("a", "A_URL", ("gold.sensor_weak",)),))
    with pytest.raises(ContractError) as caught:
        Catalogue.of([wrong])
    assert "The exposure 'a' reads gold.sensor_weak, which no domain declares." in caught.value.what
    assert "Did you mean gold.sensor_week?" in caught.value.todo


def test_two_exposures_of_one_name_are_told() -> None:
    twice = replace(TOLD, exposures=(*TOLD.exposures, Exposure("week dashboard", "OTHER_URL", READS)))
    with pytest.raises(ContractError, match="Two exposures have the name 'week dashboard'"):
        Catalogue.of([twice])
    assert [each.name for each in Catalogue.of([TOLD]).exposures] == ["week dashboard", "reading cache"]


def on_the_page(fence: str) -> str:
    """The first block of a language on the page about the outbox."""
    page = (project_root() / "docs" / "outbox.md").read_text(encoding="utf-8")
    found = re.search(rf"^```{fence}\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    assert found
    return found[1]


def test_the_declaration_and_the_message_on_the_page_are_real() -> None:
    names = {"Domain": Domain, "Exposure": Exposure, "TABLES": sensors.DOMAIN.tables}
    exec(compile(on_the_page("python"), "outbox.md", "exec"), names)
    [exposure] = cast("Domain", names["DOMAIN"]).exposures
    shown = json.loads(on_the_page("json"))
    assert (shown["exposure"], shown["tables"][0]["table"]) == (exposure.name, exposure.reads[0])
    sent = message_of(publication_record(41), exposure.name, {exposure.reads[0]: [nth(1)]})
    assert sent is not None
    assert list(json.loads(sent.body)) == list(shown)
    assert list(json.loads(sent.body)["tables"][0]) == list(shown["tables"][0])


PRODUCTS = Input("silver.products", as_of())


LOOKED_INTO = (Input("raw.transactions", same_day()), PRODUCTS)


def rule(expression: Any, severity: Any = "block", **more: Any) -> Rule:
    return Rule("r", expression, "A rule.", severity=severity, **more)


@pytest.mark.parametrize(
    ("wrong", "why", "todo"),
    [
        (lambda: rule(in_range("n")), "neither `least` nor `most`", "arguments of in_range"),
        (lambda: rule(in_range("n", 3, 2)), "no value through: 3 is more than 2", "in_range"),
        (lambda: rule(in_range("n", float("nan"))), "which is no number", "in_range"),
        (lambda: rule(one_of("n")), "names no value", "one_of"),
        (lambda: rule(one_of("n", b"x")), "compares with b'x'", "one_of"),  # type: ignore[arg-type]
        (lambda: rule(matches("n", "(")), "no regular expression", "matches"),
        (lambda: rule(matches("n", b"a")), "which is no text", "matches"),  # type: ignore[arg-type]
        (lambda: rule(not_null(None)), "looks at None, which is no name", "as texts"),  # type: ignore[arg-type]
        (lambda: rule(exists("a", table=None)), "looks at None", "as texts"),  # type: ignore[arg-type]
        (lambda: rule(length("n", None)), "write whole numbers", "length"),  # type: ignore[arg-type]
        (lambda: rule(length("n", 3, 2)), "no length through: 3 to 2", "length"),
        (lambda: rule(compare("a", "=>", "b")), "compares by '=>'", "compare"),  # type: ignore[arg-type]
        (lambda: rule(unique()), "names no column", "unique"),
        (lambda: rule(exists("a", "b", table="silver.t", theirs=("a",))), "other numbers of columns", "exists"),
        (lambda: rule(not_null("n"), tolerance="101 %"), "impossible tolerance: '101 %'", "`3 rows, 0.5 %`"),
        (lambda: rule(not_null("n"), tolerance="-1 rows"), "impossible tolerance", "rows"),
        (lambda: rule(not_null("n"), tolerance="2 rows, 3 rows"), "impossible tolerance", "rows"),
        (lambda: rule(not_null("n"), "ignore"), "severity='ignore'", "'quarantine', 'block' or 'warn'"),
        (lambda: rule(unique("n"), "quarantine"), "which looks at other rows", "severity='block'"),
        (lambda: rule(unique("n", within="window")), "which of them came first", "severity='warn'"),
        (lambda: rule(not_null("n"), breach="void"), "breach='void' and severity='block'", "Leave out one"),
    ],
)
def test_a_rule_that_no_row_could_keep_or_break(wrong: Callable[[], Rule], why: str, todo: str) -> None:
    with pytest.raises(ContractError) as refused:
        wrong()
    assert "rule 'r'" in refused.value.what
    assert why in refused.value.what
    assert todo in refused.value.todo


@pytest.mark.parametrize(
    ("contract", "changes", "why", "todo"),
    [
        (SILVER_TRANSACTIONS, {"rules": (rule("true"), rule("true"))}, "the name of another one", "Rename"),
        (DAILY_SALES, {"rules": (rule("true", "quarantine"),)}, "stands for many rows", "severity='block'"),
        (DAILY_SALES, {"rules": (rule(unique("lines", within="window"), "warn"),)}, "only silver", "within the day"),
        (
            SILVER_TRANSACTIONS,
            {"rules": (rule(exists("product_id", table="silver.products")),)},
            "does not read as of the day",
            "Input('silver.products', as_of())",
        ),
        (SILVER_TRANSACTIONS, {"rules": (), "inputs": LOOKED_INTO}, "exactly one raw table", "exists"),
        (DAILY_SALES, {"rules": (rule(not_null("depratment")),)}, "'depratment'", "Did you mean department?"),
        (SILVER_TRANSACTIONS, {"rules": (rule(not_null("net_amount"), "quarantine"),)}, "raw.transactions", "Name one"),
        (DAILY_SALES, {"rules": (rule(in_range("lines", "1")),)}, "lines (long) with '1'", "one type"),
        (DAILY_SALES, {"rules": (rule(in_range("net", 0.5)),)}, "with 0.5", "one type"),
        (DAILY_SALES, {"rules": (rule(compare("lines", "<", "department")),)}, "do not compare", "one type"),
        (DAILY_SALES, {"rules": (rule(length("lines", 1)),)}, "is no text", "one type"),
        (
            DAILY_SALES,
            {"rules": (rule(exists("department", table="silver.products", theirs=("product_id",))),)},
            "which do not compare",
            "same type",
        ),
        (
            DAILY_SALES,
            {"rules": (rule(exists("department", table="silver.products", theirs=("dept",))),)},
            "'dept', which silver.products does not declare",
            "Name one",
        ),
    ],
)
def test_a_rule_that_does_not_go_with_its_table(
    contract: Contract, changes: dict[str, Any], why: str, todo: str
) -> None:
    tables = (RAW_TRANSACTIONS, RAW_PRODUCTS, SILVER_PRODUCTS, SILVER_TRANSACTIONS, DAILY_SALES)
    others = tuple(one for one in tables if one is not contract)
    with pytest.raises(ContractError) as refused:
        Catalogue.of([Domain("own", (*others, replace(contract, **changes)), "own.transforms")])
    assert contract.name in refused.value.what
    assert why in refused.value.what
    assert todo in refused.value.todo
    assert refused.value.table == contract.name


@pytest.mark.parametrize(
    ("text", "allowed", "refused"),
    [
        ("", (0, 100), (1, 100)),
        ("3 rows", (3, 3), (4, 1_000_000)),
        ("0.5 %", (1, 200), (1, 199)),
        ("3 rows, 0.5 %", (3, 3), (4, 799)),
        ("1 row,50%", (2, 4), (3, 4)),
        ("100 %", (7, 7), (8, 7)),
        ("0 rows", (0, 0), (1, 1)),
    ],
)
def test_a_tolerance_allows_as_many_rows_as_it_says(
    text: str, allowed: tuple[int, int], refused: tuple[int, int]
) -> None:
    tolerance = RowTolerance.parse(text)
    assert tolerance is not None
    assert tolerance.allows(*allowed)
    assert not tolerance.allows(*refused)
