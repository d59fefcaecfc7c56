"""Which code is the user's own, and that all of it that a transform reaches counts in the table's version."""

from __future__ import annotations

import py_compile
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from platform_assets.contracts import Catalogue, Column, Contract, ContractError, Domain, Input, LandingFiles, same_day
from platform_assets.domains.retail import DOMAIN as RETAIL
from platform_assets.engine.platform import code_versions
from platform_assets.engine.user_code import UserCode

_COLUMNS = (Column("k", "long", "", nullable=False), Column("at", "date", "", nullable=False))
SHOP = Domain(
    "shop",
    (
        Contract("raw.sales", "", "o", _COLUMNS, ("k",), source=LandingFiles("sales"), event_time="at"),
        Contract("silver.sales", "", "o", _COLUMNS, ("k",), inputs=(Input("raw.sales", same_day()),)),
    ),
    "own_shop.transforms",
)
FILES = {
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
    first = write(FILES)
    assert write({}) == first
    assert write({file: FILES[file].replace(before, after)}) != first
    assert not [name for name in sys.modules if name.startswith("own_")]


def test_an_installed_package_does_not_count_but_the_domains_own_does_wherever_it_lies(write: Write) -> None:
    first = write(FILES, "site-packages")
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
    unpacked = write(FILES, "unpacked")
    archive = shutil.make_archive(str(tmp_path / "shop"), "zip", tmp_path / "unpacked")
    monkeypatch.setattr(sys, "path", [archive, *(path for path in sys.path if not path.endswith("unpacked"))])
    assert version() == unpacked


def test_a_module_without_source_is_named_and_a_version_set_by_hand_needs_none(write: Write, tmp_path: Path) -> None:
    write(FILES)
    helpers = tmp_path / "own_shop" / "helpers.py"
    py_compile.compile(str(helpers), cfile=str(helpers.with_suffix(".pyc")))
    helpers.unlink()
    with pytest.raises(ContractError, match=r"source of own_shop\.helpers, which(?s:.*)Set `code_version` by hand"):
        version()
    assert version(replace(SHOP, code_version="7")) == "7+engine1"


def test_a_module_that_is_not_python_is_named(write: Write) -> None:
    with pytest.raises(ContractError, match=r"source of own_shop\.helpers, which .* line 1"):
        write({**FILES, "own_shop/helpers.py": "RATE = = 1\n"})


def test_transforms_that_are_not_there_are_named(write: Write) -> None:
    write(FILES)
    with pytest.raises(ContractError, match=r"domain 'shop' has no package 'own_shop\.other'"):
        version(replace(SHOP, transforms="own_shop.other"))
    with pytest.raises(ContractError, match=r"no module own_shop\.transforms\.common\.silver, by which silver\.sales"):
        version(replace(SHOP, transforms="own_shop.transforms.common"))
