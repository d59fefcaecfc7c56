"""What a transform finds of what modules do when they are imported does not depend on which tables are computed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from platform_assets.engine.platform import Platform, transform_of
from platform_assets.operations.opening import open_platform
from platform_assets.settings import load_settings
from platform_assets.spark.tables.staging import TransformError
from platform_assets.spark.tables.users_code import users_code

SILVER, GOLD = "silver.sales", "gold.totals"
FILES = {
    "plug_shop/__init__.py": """
from platform_assets.contracts import Column, Contract, Domain, Input, LandingFiles, same_day

_COLUMNS = (Column("k", "long", "", nullable=False), Column("at", "date", "", nullable=False))
DOMAIN = Domain(
    "shop",
    (
        Contract("raw.sales", "", "o", _COLUMNS, ("k",), source=LandingFiles("sales"), event_time="at"),
        Contract("silver.sales", "", "o", _COLUMNS, ("k",), inputs=(Input("raw.sales", same_day()),)),
        Contract("gold.totals", "", "o", _COLUMNS, ("k",), inputs=(Input("silver.sales", same_day()),)),
    ),
    "plug_shop.transforms",
)
""",
    "plug_shop/registry.py": "STEPS = []\n",
    "plug_shop/plugins.py": "from plug_shop.registry import STEPS\n\nSTEPS.append('plugin of silver')\n",
    "plug_shop/transforms/__init__.py": "",
    "plug_shop/transforms/silver.py": "import plug_shop.plugins\nfrom plug_shop.registry import STEPS\n\n\n"
    "def sales(sales):\n    return [*sales, *STEPS]\n",
    "plug_shop/transforms/gold.py": "from plug_shop.registry import STEPS\n\nSTEPS.append('gold')\n\n\n"
    "def totals(sales):\n    return [*sales, *STEPS]\n",
}


class Shop:
    """A domain whose modules are imported anew by each process that computes something."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def write(self, files: dict[str, str]) -> None:
        for name, content in files.items():
            (self._folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self._folder / name).write_text(content, encoding="utf-8")

    @contextmanager
    def process(self) -> Iterator[Platform]:
        forget()
        settings = load_settings(state=self._folder / "state", domains="plug_shop")
        with open_platform(settings) as platform:
            yield platform

    def computed(self, *tables: str) -> dict[str, object]:
        with self.process() as platform:
            return {table: transform_of(platform.catalogue, platform.catalogue[table])([]) for table in tables}


def imported() -> list[str]:
    return [name for name in sys.modules if name.startswith("plug_shop.")]


def forget() -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "plug_shop"]:
        del sys.modules[name]


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(str(tmp_path))
    shop = Shop(tmp_path)
    shop.write(FILES)
    yield shop
    forget()


def test_a_table_computed_alone_finds_what_it_finds_with_the_others(shop: Shop) -> None:
    both = shop.computed(SILVER, GOLD)
    assert shop.computed(GOLD, SILVER) == both == {table: ["plugin of silver", "gold"] for table in (SILVER, GOLD)}
    for table in (SILVER, GOLD):
        assert shop.computed(table) == {table: both[table]}


def test_what_another_tables_module_enters_is_in_the_code_version(shop: Shop) -> None:
    def versions() -> dict[str, str]:
        with shop.process() as platform:
            return dict(platform.code_versions)

    first = versions()
    shop.write({"plug_shop/plugins.py": FILES["plug_shop/plugins.py"].replace("plugin of silver", "another")})
    assert [versions()[table] != first[table] for table in (SILVER, GOLD)] == [True, True]
    shop.write(FILES)
    shop.write({"plug_shop/transforms/silver.py": FILES["plug_shop/transforms/silver.py"].replace("*sales, ", "")})
    assert [versions()[table] != first[table] for table in (SILVER, GOLD)] == [True, False]


def test_transforms_are_imported_only_where_something_is_computed(shop: Shop) -> None:
    with shop.process() as platform:
        assert set(platform.code_versions) == {SILVER, GOLD}
        assert imported() == []
        transform_of(platform.catalogue, platform.catalogue[GOLD])
        assert [name for name in imported() if name.startswith("plug_shop.transforms.")] == [
            "plug_shop.transforms.silver",
            "plug_shop.transforms.gold",
        ]


def test_a_mistake_in_another_tables_module_is_told_with_its_place(shop: Shop) -> None:
    shop.write({"plug_shop/transforms/silver.py": "\nRATE = 1 // 0\n"})
    with (
        shop.process() as platform,
        pytest.raises(TransformError, match=r"gold\.totals .*silver\.py, line 2\): ZeroDivisionError"),
        users_code(GOLD),
    ):
        transform_of(platform.catalogue, platform.catalogue[GOLD])
