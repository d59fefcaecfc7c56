"""Mistakes in a rule or a transform are told by table, line and name; which code is the user's, and what it finds."""

from __future__ import annotations

import py_compile
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from platform_assets.contracts import (
    Catalogue,
    Column,
    Contract,
    ContractError,
    Domain,
    Input,
    LandingFiles,
    Rule,
    same_day,
)
from platform_assets.domains.retail import DOMAIN as RETAIL
from platform_assets.domains.retail.contracts import RAW_TRANSACTIONS, SILVER_TRANSACTIONS
from platform_assets.domains.retail.transforms import silver
from platform_assets.engine.platform import Platform, code_versions, transform_of
from platform_assets.engine.user_code import UserCode
from platform_assets.operations.opening import open_platform
from platform_assets.settings import load_settings
from platform_assets.spark.tables.failures import TransformError, users_code
from platform_assets_tests.support.domains import tills
from platform_assets_tests.support.history import TILLS
from platform_assets_tests.support.world import MakeWorld, World, sale


@pytest.fixture
def world(make_world: MakeWorld) -> World:
    """One line, taken."""
    world = make_world(days=1, domains=TILLS)
    world.deliver_rows("transactions", "2017-01-01", "one.jsonl", [sale(1, 1, "2017-01-01")])
    return world


def test_a_rule_over_a_column_that_is_not_there(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = replace(SILVER_TRANSACTIONS, rules=(Rule("sold", "quantty > 0", "Something is sold."),))
    monkeypatch.setattr(tills, "DOMAIN", replace(tills.DOMAIN, tables=(RAW_TRANSACTIONS, wrong)))
    with pytest.raises(TransformError, match=r"silver.transactions .*`quantty`.*`quantity`"):
        world.refresh()


def misspelt(transactions: DataFrame) -> DataFrame:
    """A column that is not there."""
    return transactions.select(F.col("quantty"))


def broken(transactions: DataFrame) -> DataFrame:
    """An error of its own."""
    return transactions.limit(len(transactions.columns) // 0)


def lost(transactions: DataFrame) -> DataFrame:
    """A file of its own that is not there."""
    return transactions.limit(len(Path("/nowhere/rates.csv").read_text()))


@pytest.mark.parametrize(
    ("transform", "told"), [(misspelt, "`quantty`"), (broken, "ZeroDivisionError"), (lost, "FileNotFoundError")]
)
def test_a_transform_that_fails(
    world: World, monkeypatch: pytest.MonkeyPatch, transform: Callable[..., DataFrame], told: str
) -> None:
    monkeypatch.setattr(silver, "transactions", transform)
    line = transform.__code__.co_firstlineno + 2
    with pytest.raises(TransformError, match=rf"silver.transactions .*test_users_code.py, line {line}.*{told}"):
        world.refresh()
    assert not world.digests()["silver.transactions"]


FAILS = {
    "quantity / 0 > 1": "Division by zero",
    "cast(concat('x', quantity) AS int) > 0": "CAST_INVALID_INPUT",
    "cast(quantity * 1000000000 AS int) * 1000000000 > 0": "ARITHMETIC_OVERFLOW",
    "raise_error('words of my own') IS NULL": "words of my own",
}


@pytest.mark.parametrize("expression", [pytest.param(each, marks=pytest.mark.proof) for each in FAILS])
def test_an_expression_that_fails_on_a_value(world: World, monkeypatch: pytest.MonkeyPatch, expression: str) -> None:
    as_it_is = silver.transactions
    monkeypatch.setattr(silver, "transactions", lambda transactions: as_it_is(transactions.where(expression)))
    with pytest.raises(
        TransformError, match=f"silver.transactions fails on a value of 2017-01-01: .*{FAILS[expression]}"
    ) as told:
        world.refresh()
    assert "ansi" not in told.value.what, "which is not free to choose"
    assert "SQLSTATE" not in told.value.what
    assert not world.digests()["silver.transactions"]


@pytest.mark.proof
def test_a_function_in_python_that_fails_on_a_value(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    fails = F.udf(lambda quantity: quantity // 0, "int")
    as_it_is = silver.transactions
    monkeypatch.setattr(
        silver, "transactions", lambda transactions: as_it_is(transactions.where(fails("quantity") > 0))
    )
    with pytest.raises(TransformError, match=r"of 2017-01-01: ZeroDivisionError: integer division or modulo by zero"):
        world.refresh()


def test_a_rule_that_fails_on_a_value(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = replace(SILVER_TRANSACTIONS, rules=(Rule("sold", "1 / (quantity - quantity) > 0", "Something is sold."),))
    monkeypatch.setattr(tills, "DOMAIN", replace(tills.DOMAIN, tables=(RAW_TRANSACTIONS, wrong)))
    with pytest.raises(TransformError, match=r"silver.transactions fails on a value of 2017-01-01: .*Division by zero"):
        world.refresh()


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


_COLUMNS = (Column("k", "long", "", nullable=False), Column("at", "date", "", nullable=False))


SHOP = Domain(
    "shop",
    (
        Contract("raw.sales", "", "o", _COLUMNS, ("k",), source=LandingFiles("sales"), event_time="at"),
        Contract("silver.sales", "", "o", _COLUMNS, ("k",), inputs=(Input("raw.sales", same_day()),)),
    ),
    "own_shop.transforms",
)


OWN_FILES = {
    "own_shop/__init__.py": "raise AssertionError('imported')\n",
    "own_shop/helpers.py": "RATE = 1\n",
    "own_shop/transforms/__init__.py": "",
    "own_shop/transforms/common/__init__.py": "FACTOR = 1\n",
    "own_shop/transforms/silver.py": "from own_helpers.net import NET\nfrom own_shop.helpers import RATE\n"
    "from own_shop.transforms.common import FACTOR\n\n\ndef sales(sales):\n    return sales.add(RATE * FACTOR * NET)\n",
    "own_helpers/net.py": "import pandas\n\nNET = 1\n",
}


Write = Callable[..., str]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Writes files of packages that Python finds, and gives the code version of `silver.sales` with them."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def written(files: dict[str, str], folder: str = ".") -> str:
        for name, content in files.items():
            file = tmp_path / folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content, encoding="utf-8")
        if str(tmp_path / folder) not in sys.path:
            monkeypatch.syspath_prepend(str(tmp_path / folder))
        return version()

    return written


def version(domain: Domain = SHOP) -> str:
    return code_versions(Catalogue.of([domain]))["silver.sales"]


@pytest.mark.parametrize(
    ("file", "before", "after"),
    [
        ("own_shop/helpers.py", "1", "7"),
        ("own_shop/transforms/common/__init__.py", "1", "9"),
        ("own_helpers/net.py", "NET = 1", "NET = 2"),
    ],
)
def test_a_helper_anywhere_in_the_users_code_counts_and_none_of_it_is_imported(
    write: Write, file: str, before: str, after: str
) -> None:
    first = write(OWN_FILES)
    assert write({}) == first
    assert write({file: OWN_FILES[file].replace(before, after)}) != first
    assert not [name for name in sys.modules if name.startswith("own_")]


def test_an_installed_package_does_not_count_but_the_domains_own_does_wherever_it_lies(write: Write) -> None:
    first = write(OWN_FILES, "site-packages")
    assert write({"own_helpers/net.py": "NET = 2\n"}, "site-packages") == first
    assert write({"own_shop/helpers.py": "RATE = 2\n"}, "site-packages") != first


def test_what_belongs_to_python_to_spark_and_to_the_engine_is_nobodys_own() -> None:
    code = UserCode(RETAIL)
    for name in ("json", "sys", "decimal", "pydantic", "pyspark.sql", "platform_assets.spark.windows", "", "no.such"):
        assert code.find(name) is None
    for name in ("platform_assets.domains", "platform_assets.domains.retail.transforms.gold"):
        assert code.find(name) is not None
    assert "platform_assets.domains.retail.sample.files" in set(code.below(RETAIL.transforms))
    assert not [name for name in code.below(RETAIL.transforms) if not name.startswith("platform_assets.domains")]


def test_packages_in_an_archive_have_their_source_with_them(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unpacked = write(OWN_FILES, "unpacked")
    archive = shutil.make_archive(str(tmp_path / "shop"), "zip", tmp_path / "unpacked")
    monkeypatch.setattr(sys, "path", [archive, *(path for path in sys.path if not path.endswith("unpacked"))])
    assert version() == unpacked


def test_a_module_without_source_is_named_and_a_version_set_by_hand_needs_none(write: Write, tmp_path: Path) -> None:
    write(OWN_FILES)
    helpers = tmp_path / "own_shop" / "helpers.py"
    py_compile.compile(str(helpers), cfile=str(helpers.with_suffix(".pyc")))
    helpers.unlink()
    with pytest.raises(ContractError, match=r"source of own_shop\.helpers, which(?s:.*)Set `code_version` by hand"):
        version()
    assert version(replace(SHOP, code_version="7")) == "7+engine1"


def test_a_module_that_is_not_python_is_named(write: Write) -> None:
    with pytest.raises(ContractError, match=r"source of own_shop\.helpers, which .* line 1"):
        write({**OWN_FILES, "own_shop/helpers.py": "RATE = = 1\n"})


def test_transforms_that_are_not_there_are_named(write: Write) -> None:
    write(OWN_FILES)
    with pytest.raises(ContractError, match=r"domain 'shop' has no package 'own_shop\.other'"):
        version(replace(SHOP, transforms="own_shop.other"))
    with pytest.raises(ContractError, match=r"no module own_shop\.transforms\.common\.silver, by which silver\.sales"):
        version(replace(SHOP, transforms="own_shop.transforms.common"))


def test_a_moment_without_a_time_zone_is_one_in_utc_where_transforms_are_imported(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    midnight = datetime(2017, 1, 1)  # noqa: DTZ001 - as users write it
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        assert midnight.timestamp() == 1_483_196_400
        with world.open() as platform:
            transform_of(platform.catalogue, platform.catalogue["silver.transactions"])
        assert midnight.timestamp() == 1_483_228_800
    finally:
        monkeypatch.undo()
        time.tzset()
