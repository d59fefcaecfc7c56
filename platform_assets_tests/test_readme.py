"""The README's worked example is a table that works."""

from __future__ import annotations

import re
import sys
import types
from decimal import Decimal
from pathlib import Path

import pytest

from platform_assets import contracts
from platform_assets.contracts import Contract, Domain
from platform_assets.domains.retail.contracts import (
    RAW_PRODUCTS,
    RAW_TRANSACTIONS,
    SILVER_PRODUCTS,
    SILVER_TRANSACTIONS,
)
from platform_assets.domains.retail.transforms import gold, silver
from platform_assets.settings import project_root
from platform_assets_tests.support.world import MakeWorld, product, sale

FOUR = (RAW_TRANSACTIONS, RAW_PRODUCTS, SILVER_TRANSACTIONS, SILVER_PRODUCTS)
"""What the example's table is made from, without the other gold tables."""


def example(comment: str, page: str = "README.md") -> str:
    """Return the code block of a page that follows a comment."""
    text = (project_root() / page).read_text(encoding="utf-8")
    found = re.search(rf"<!-- {comment} -->\n```(?:python|sql)\n(.*?)```", text, re.DOTALL)
    assert found, comment
    return found[1]


@pytest.mark.parametrize("language", ["transform", "query"])
def test_a_table_is_one_contract_and_one_function_or_query(
    make_world: MakeWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, language: str
) -> None:
    """A refresh of the shipped domain with one more table."""
    names: dict[str, object] = {**vars(contracts)}
    exec(compile(example("example: contract"), "README contract", "exec"), names)
    package = tmp_path / "readme_transforms"
    package.mkdir()
    (package / "__init__.py").write_text("", encoding="utf-8")
    for module in (silver, gold):
        source = Path(str(module.__file__)).read_text(encoding="utf-8")
        extra = "\n\n" + example("example: transform") if module is gold and language == "transform" else ""
        (package / Path(str(module.__file__)).name).write_text(source + extra, encoding="utf-8")
    if language == "query":
        (package / "gold").mkdir()
        query = example("query: gold/brand_sales.sql", "docs/sql-tables.md")
        (package / "gold" / "brand_sales.sql").write_text(query, encoding="utf-8")
    for name in [name for name in sys.modules if name.partition(".")[0] == "readme_transforms"]:
        del sys.modules[name]
    monkeypatch.syspath_prepend(str(tmp_path))
    domain = types.ModuleType("readme_domain")
    added = names["BRAND_SALES"]
    assert isinstance(added, Contract)
    vars(domain)["DOMAIN"] = Domain("retail", (*FOUR, added), "readme_transforms")
    monkeypatch.setitem(sys.modules, "readme_domain", domain)

    world = make_world(days=1, domains="readme_domain")
    world.deliver_rows("products", "2017-01-01", "p.jsonl", [product(1, "2017-01-01", "MEAT", brand="Private")])
    world.deliver_rows("transactions", "2017-01-01", "t.jsonl", [sale(1, 1, "2017-01-01"), sale(1, 2, "2017-01-01")])
    world.refresh()
    assert {row["brand"]: row["net"] for row in world.rows("gold.brand_sales")} == {
        "Private": Decimal("2.50"),
        "UNKNOWN": Decimal("2.50"),
    }
