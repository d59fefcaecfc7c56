"""docs/contracts.md is what the code says, leaves nothing out, and its examples are declarations."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
from datetime import date
from decimal import Decimal

from platform_assets import contracts
from platform_assets.contracts.kinds import KINDS
from platform_assets.settings import project_root

PAGE = project_root() / "docs" / "contracts.md"
GIVEN_BY_FUNCTIONS = {"AllHistory", "AsOf", "MonthToDate", "Offsets", "Span"}
NOT_DECLARED = {"Aggregate", "Catalogue"}


def test_the_page_is_what_the_code_says() -> None:
    done = subprocess.run(
        [sys.executable, project_root() / ".ci" / "contracts", "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_every_class_of_a_declaration_and_every_window_is_on_the_page() -> None:
    text = PAGE.read_text(encoding="utf-8")
    classes = {name for name in contracts.__all__ if dataclasses.is_dataclass(getattr(contracts, name))}
    assert set(re.findall(r"^## (\w+)$", text, re.MULTILINE)) - {"Windows"} == (
        classes - GIVEN_BY_FUNCTIONS - NOT_DECLARED
    )
    functions = {name for name in contracts.__all__ if name.islower()}
    assert set(re.findall(r"^\| `(\w+)\(", text, re.MULTILINE)) == functions


def test_every_example_of_a_kind_of_rule_is_one() -> None:
    rows = re.findall(r"^\| `\w+\(.*\| `(\w+\(.*\))` \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    rules = [
        contracts.Rule("r", eval(row, {**vars(contracts), "Decimal": Decimal}), "", severity="warn") for row in rows
    ]
    assert [rule.kind.name for rule in rules] == [kind.__name__ for kind in KINDS]


def test_every_example_of_the_page_of_rules_is_one_and_no_kind_is_left_out() -> None:
    text = (project_root() / "docs" / "rules.md").read_text(encoding="utf-8")
    examples = re.findall(r"^\| [^|]+ \| `([^`]+)` \|", text.partition("## What becomes")[0], re.MULTILINE)
    kinds = [eval(example, vars(contracts).copy()) for example in examples]
    rules = [contracts.Rule("r", kind, "", severity="warn") for kind in kinds]
    assert {rule.kind.name for rule in rules} == {kind.__name__ for kind in KINDS} | {"condition"}
    exec(text.partition("```python\n")[2].partition("```")[0], names := vars(contracts).copy())
    assert [rule.severity for rule in names["RULES"]] == ["quarantine", "block", "warn", "warn"]


def test_every_example_is_a_declaration() -> None:
    names: dict[str, object] = {**vars(contracts), "date": date}
    names["ORDER_ID"] = contracts.Column("order_id", "long", "The order.", nullable=False)
    names["ORDERED_AT"] = contracts.Column("ordered_at", "timestamp", "When, UTC.", nullable=False)
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert len(blocks) > 10
    for block in sorted(blocks, key=lambda block: "ORDERS" in block):
        made = eval(block, names)
        assert dataclasses.is_dataclass(made)
        if isinstance(made, contracts.Contract):
            names["ORDERS"] = made
