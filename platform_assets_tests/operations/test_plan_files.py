"""Plan files: every mistake with its line and field, and what is written can be read."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from platform_assets.operations.backfill.files import PlanFileError, parse_plan, plan_schema, read_plan, written
from platform_assets.planning.backfill.plan_file import PlanFile
from platform_assets.visible import visible

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


def test_a_plan_is_read_as_it_was_written() -> None:
    file = parse_plan(GOOD, "plan.yaml")
    days = file.days.named()
    assert days is not None
    assert len(days) == 31 + 27 + 31
    assert parse_plan(written(file), "again") == file


def is_readable(text: str) -> bool:
    return bool(text.strip()) and visible(text, breaks=True) == text


@given(st.text(min_size=1).filter(is_readable), st.sampled_from(["recompute", "stale", "fill_gaps"]), st.booleans())
def test_whatever_is_said_can_be_written_and_read(reason: str, policy: str, downstream: bool) -> None:
    said = {"name": "a", "reason": reason, "owner": "b", "tables": ["gold.a"], "days": {"stale": True}}
    file = PlanFile.model_validate(said | {"policy": policy, "downstream": downstream})
    assert parse_plan(written(file), "again") == file


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("name: discount-q1", "name: ../x", "line 1, name"),
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
        ("owner: ada", "owner: ' '", "line 3, owner: it is blank, or has characters that nobody can see"),
        ("rollout: [10, 100]", "budget: {money: 5}", "line 8, budget: a budget of money needs price_per_core_hour"),
        ("owner: ada", "owner: [", "line"),
        ("owner: ada", "owner: ada\nowner: bob", "line 4: found duplicate key"),
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


@pytest.mark.parametrize("content", [b"", b"- 1\n", b"text", b"\xff\xfe", b"a: " + b"[" * 3000, b"x" * (1 << 21)])
def test_what_is_no_plan_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "plan.yaml"
    file.write_bytes(content)
    with pytest.raises(PlanFileError, match=r"plan\.yaml"):
        read_plan(file)
    with pytest.raises(PlanFileError, match="cannot be read"):
        read_plan(tmp_path / "none.yaml")


def test_the_schema_describes_every_field() -> None:
    schema = plan_schema()
    parts = [schema, *schema["$defs"].values()]
    lacking = [name for part in parts for name, field in part["properties"].items() if "description" not in field]
    assert [name for name in lacking if name not in ("budget", "service", "approvals", "afterwards")] == []
