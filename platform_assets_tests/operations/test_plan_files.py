"""Plan files: every mistake with its line and field, and what is written can be read."""

from __future__ import annotations

import re
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from platform_assets.domains.retail.contracts import DAILY_SALES
from platform_assets.operations.backfill.files import (
    PlanFileError,
    new_plan,
    parse_plan,
    plan_schema,
    read_plan,
    written,
)
from platform_assets.planning.backfill.plan_file import PlanFile
from platform_assets.planning.selection import scope_of
from platform_assets.settings import project_root
from platform_assets.words import visible

GOOD = """\
name: discount-q1
reason: The discount was taken twice.
owner: ada
tables: [silver.transactions, gold.daily_sales]
days:
  range: 2017-01-01..2017-03-31
  without: [2017-02-14]
rollout: [10, 100]
gates:
  - table: gold.daily_sales
    metric: sum
    column: net
    tolerance_percent: 0.5
"""
BARE = ("name: a", "reason: a", "owner: ada", "tables: [gold.tills]", "days: {stale: true}")
ODD = [
    *"!&*?-:|>%@`#'\"[]{},~\t\n\0=",
    "<<: ",
    "!!set ",
    "!!omap ",
    "!!int ",
    "!!binary ",
    "&a ",
    "*a",
    "- ",
    "? ",
    "\n  ",
]


def test_a_plan_is_read_as_it_was_written() -> None:
    file = parse_plan(GOOD, "plan.yaml")
    days = file.days.named_days()
    assert days is not None
    assert len(days) == 31 + 27 + 31
    assert parse_plan(written(file), "again") == file


@pytest.mark.parametrize(
    "key", ["330", "007", "0x10", "0o17", "1e3", "1.50", "1_000", "+7", ".inf", "true", "No", "2017-01-01", "2017-1-1"]
)
@pytest.mark.parametrize("quotes", ["", "'", '"'])
def test_keys_are_texts_as_they_are_written(key: str, quotes: str) -> None:
    """What 007 is, the contract knows: a number, or a text that begins with noughts."""
    key_in_file = f"{quotes}{key}{quotes}"
    said = f"downstream: false\nonly:\n  store_id: [{key_in_file}]\n  from:\n    - {key_in_file}  # the first\n"
    file = parse_plan(GOOD + said, "plan.yaml")
    assert file.only == {"store_id": (key,), "from": (key,)}
    assert parse_plan(written(file), "again") == file


def test_a_number_is_one_key_of_a_number_column_however_it_is_written() -> None:
    said = "downstream: false\nonly: {store_id: [007, '7', 7.0]}\n"
    assert scope_of(DAILY_SALES, parse_plan(GOOD + said, "plan.yaml").only or {}).texts == {"store_id": ("7",)}


def is_readable(text: str) -> bool:
    return bool(text.strip()) and visible(text, breaks=True) == text


_KEYS = st.text(st.characters() | st.sampled_from("'\":,#&*~-|> "), min_size=1, max_size=200).filter(is_readable)


@given(st.lists(_KEYS, min_size=1))
def test_any_keys_come_back_from_a_plan_as_they_were(keys: list[str]) -> None:
    said = {"name": "a", "reason": "r", "owner": "b", "tables": ["gold.a"], "days": {"list": ["2017-01-01"]}}
    file = PlanFile.model_validate(said | {"downstream": False, "only": {"store": keys}})
    again = parse_plan(written(file), "again")
    assert again == file
    assert again.only == {"store": tuple(keys)}


@given(st.text(min_size=1).filter(is_readable), st.sampled_from(["recompute", "stale", "fill_gaps"]), st.booleans())
def test_whatever_is_said_can_be_written_and_read(reason: str, policy: str, downstream: bool) -> None:
    said = {"name": "a", "reason": reason, "owner": "b", "tables": ["gold.a"], "days": {"stale": True}}
    file = PlanFile.model_validate(said | {"policy": policy, "downstream": downstream})
    assert parse_plan(written(file), "again") == file


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("name: discount-q1", "name: ../x", "line 1, name"),
        ("name: discount-q1", "name: " + "x" * 59, "line 1, name"),
        ("gold.daily_sales]", "raw.products]", "line 4, tables.1: 'raw.products' is no table that is computed"),
        ("2017-01-01..2017-03-31", "2017-03-31..2017-01-01", "line 6, days.range: it ends before it starts"),
        ("2017-01-01..2017-03-31", "2017-02-31..2017-03-31", "line 6, days.range"),
        ("  range: 2017-01-01..2017-03-31", "  stale: true\n  list: [2017-01-01]", "line 5, days: give exactly one of"),
        ("rollout: [10, 100]", "rollout: [50, 10]", "line 8, rollout: the shares have to grow"),
        ("rollout: [10, 100]", "rollot: [10, 100]", "line 8, rollot: there is no such field. Did you mean rollout?"),
        ("    column: net\n", "", "line 10, gates.0: the metric sum needs a column"),
        ("    column: net\n", "    colum: net\n", "line 12, gates.0.colum"),
        ("0.5", "lots", "line 13, gates.0.tolerance_percent"),
        ("owner: ada\n", "", "owner: Field required"),
        ("owner: ada", "owner: ' '", "line 3, owner: it is blank, or has invisible characters"),
        ("rollout: [10, 100]", "budget: {money: 5}", "line 8, budget: a budget of money needs price_per_core_hour"),
        ("owner: ada", "only: {store_id: [330]}", "line 3, only: rows of some keys are computed of the named tables"),
        (
            "owner: ada",
            "downstream: false\npolicy: stale\nonly: {store_id: [330]}",
            "line 5, only: rows of some keys are computed of all named days",
        ),
        ("owner: ada", "downstream: false\nonly: {store_id: [330, ~]}", "line 4, only.store_id.1: Input should be"),
        ("owner: ada", "downstream: false\nonly: {store_id: [330, [1]]}", "line 4, only.store_id.1: Input should be"),
        ("owner: ada", "downstream: false\nonly: {store_id: []}", "line 4, only.store_id: Tuple should have at least"),
        ("owner: ada", "downstream: false\nonly: {'1=1': [1]}", "line 4, only.1=1"),
        ("owner: ada", "downstream: false\nonly:", "line 4, only: it is left blank, which would compute all rows"),
        ("owner: ada", "downstream: false\nonly: ~", "line 4, only: it is left blank"),
        ("owner: ada", "only: {store_id: [!!int '007']}", "line 3: !!int gives a value a type"),
        ("owner: ada", "only: {store_id: [!!str 007]}", "line 3: !!str gives a value a type"),
        ("owner: ada", "only: !!set {store_id}", "line 3: !!set gives a value a type"),
        ("owner: ada", "owner: [", "line"),
        ("owner: ada", "owner: ada\nowner: bob", "line 4: found duplicate key"),
        ("2017-01-01..2017-03-31", "0001-01-01..9999-12-31", "line 6, days.range: it has 3,652,059 days"),
        ("reason: The", "x: &x {reason: y}\n<<: *x\nreasn: The", "line 3: *x repeats what stands elsewhere"),
        ("rollout: [10, 100]", "budget: {bytes: " + "9" * 400 + "}", "line 8, budget.bytes: Input should be less"),
        ("rollout: [10, 100]", "budget: {minutes: '1e999999'}", "line 8, budget.minutes: Input should be less"),
        ("rollout: [10, 100]", "budget: {minutes: '1,5'}", "'1,5' is no number: write digits, as 1.5"),
        ("rollout: [10, 100]", "budget: {minutes: '1_5'}", "'1_5' is no number: write digits, as 1.5"),
        ("rollout: [10, 100]", "budget: {minutes: -1}", "line 8, budget.minutes: Input should be greater than 0"),
        ("rollout: [10, 100]", "budget: {minutes: .nan}", "line 8, budget.minutes: Input should be a finite number"),
        ("rollout: [10, 100]", "budget: {minutes: .inf}", "line 8, budget.minutes: Input should be a finite number"),
        (
            "2017-01-01..2017-03-31",
            "January",
            "'January' is not written as it has to be, such as 2017-01-01..2017-03-31.",
        ),
        (
            "rollout: [10, 100]",
            "service: {until: 2017-6-1}",
            'not written as it has to be, such as "2017-06-01 06:00".',
        ),
        ("rollout: [10, 100]", "service: {until: '2017-06-31 06:00'}", "line 8, service.until: day is out of range"),
        ("rollout: [10, 100]", "service: {hours: 9-5}", "'9-5' is not written as it has to be"),
        (
            "tables: [silver.transactions, gold.daily_sales]",
            "downstream: false\ntables: [silver.transactions]",
            "line 11, gates.0.table: gold.daily_sales is not among the tables",
        ),
        ("rollout: [10, 100]", "downstream: false\ncode: {gold.a: v}", "line 9, code.gold.a: it is not among"),
        (
            "rollout: [10, 100]",
            "code:",
            "line 8, code: it is left blank, which would compute with the code",
        ),
        (
            "days:\n  range: 2017-01-01..2017-03-31",
            "policy: stale\ndays:\n  touched_by: {publication: a}",
            "line 5, policy: days that were touched are recomputed, and stale says otherwise",
        ),
        ("0.5", "'0,5'", "line 13, gates.0.tolerance_percent: '0,5' is no number"),
        (
            "rollout: [10, 100]",
            "service: {hours: '20:00-20:00'}",
            "line 8, service.hours: it ends when it begins: leave service out to compute at any time",
        ),
    ],
)
def test_a_mistake_names_its_line_and_field(old: str, new: str, says: str) -> None:
    assert old in GOOD
    with pytest.raises(PlanFileError) as caught:
        parse_plan(GOOD.replace(old, new), "plan.yaml")
    assert says in str(caught.value)
    assert "plan.yaml" in str(caught.value)


def test_all_mistakes_are_told_at_once_in_the_order_of_the_file() -> None:
    with pytest.raises(PlanFileError) as caught:
        parse_plan(GOOD.replace("ada", "''").replace("[10, 100]", "[5]").replace("0.5", "-1"), "plan.yaml")
    assert [line.split(", ")[1] for line in caught.value.lines] == ["line 3", "line 8", "line 13"]


def bomb(levels: int) -> bytes:
    """A few lines that come to ten to the power of their number texts."""
    names = [f"n{number}" for number in range(levels)]
    lines = [f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]" for before, name in pairwise(names)]
    return "\n".join([f"{names[0]}: &{names[0]} text", *lines]).encode()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"- 1\n",
        b"text",
        b"\xff\xfe",
        b"a: " + b"[" * 3000,
        b"x" * (1 << 21),
        bomb(12),
        b"&a {a: *a}",
        b"%YAML 1.0\n---\na: b",
        b'a: "\\UFFFFFFFF"',
        b"? {a: [b]}\n: c",
        b"a: 2017-02-30",
        b"a: !!set b",
        b"a: \0",
    ],
)
def test_what_is_no_plan_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "plan.yaml"
    file.write_bytes(content)
    with pytest.raises(PlanFileError, match=r"plan\.yaml"):
        read_plan(file)
    for path, says in (("none.yaml", "cannot be read"), ("", "cannot be read"), ("a\0b", "cannot be read")):
        with pytest.raises(PlanFileError, match=says):
            read_plan(tmp_path / path)
    with pytest.raises(PlanFileError, match="more than 1,048,576 bytes"):
        read_plan(Path("/dev/zero"))


@given(st.lists(st.tuples(st.integers(0, len(GOOD)), st.sampled_from(ODD)), min_size=1, max_size=4))
def test_whatever_stands_in_a_file_it_is_a_plan_or_refused(odd: list[tuple[int, str]]) -> None:
    text = GOOD
    for at, piece in odd:
        text = text[:at] + piece + text[at:]
    with suppress(PlanFileError):
        parse_plan(text, "plan.yaml")


def test_a_new_plan_takes_the_place_of_nothing(tmp_path: Path) -> None:
    file = parse_plan(GOOD, "plan.yaml")
    new_plan(file, tmp_path / "plan.yaml")
    assert read_plan(tmp_path / "plan.yaml") == file
    for taken in ("plan.yaml", "plan.schema.json"):
        with pytest.raises(PlanFileError, match="Choose another name"):
            new_plan(file, tmp_path / taken)


def test_a_new_plan_explains_every_field_also_those_within_another() -> None:
    lines = written(parse_plan("\n".join(BARE), "plan.yaml")).splitlines()
    for name in ("tolerance_percent", "minutes", "until", "above_days", "roll_back_on_failure", "touched_by"):
        assert any(line.startswith(f"#   {name}: ") and line.endswith(".") for line in lines), name
    assert not any("None" in line for line in lines)


def test_the_schema_describes_every_field() -> None:
    schema = plan_schema()
    parts = [schema, *schema["$defs"].values()]
    lacking = [name for part in parts for name, field in part["properties"].items() if "description" not in field]
    assert [name for name in lacking if name not in ("budget", "service", "approvals", "afterwards")] == []


@pytest.mark.parametrize("guide", ["backfills.md", "wrong-quarter.md"])
def test_what_the_docs_write_into_plans_is_a_plan(guide: str) -> None:
    text = (project_root() / "docs" / guide).read_text(encoding="utf-8")
    blocks = re.findall(r"^```yaml\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    assert blocks
    for block in blocks:
        said = {line.partition(":")[0] for line in block.splitlines()}
        rest = [line for line in BARE if line.partition(":")[0] not in said]
        assert parse_plan("\n".join([*rest, block]), guide).name
