"""What a user's package raises while it is imported is told with its place, whatever it is."""

from __future__ import annotations

import sys

import pytest

from platform_assets.contracts import ContractError
from platform_assets.engine.catalogue import load_catalogue
from platform_assets.settings import load_settings

K = 'Column("k", "long", "", nullable=False)'
IMPORTS = "from platform_assets.contracts import Column, Contract\n"


@pytest.fixture
def load(tmp_path, monkeypatch):
    """Loads a domain of its own whose module `contracts` holds some text."""

    def loaded(text: str, package: str = "own_tills"):
        (tmp_path / "own_tills").mkdir()
        (tmp_path / "own_tills" / "__init__.py").write_text("from own_tills.contracts import DOMAIN\n")
        (tmp_path / "own_tills" / "contracts.py").write_text(text)
        monkeypatch.syspath_prepend(str(tmp_path))
        monkeypatch.setattr(sys, "dont_write_bytecode", True)
        try:
            return load_catalogue(load_settings(domains=(package,), state=tmp_path / "state"))
        finally:
            for name in [name for name in sys.modules if name.startswith("own_tills")]:
                del sys.modules[name]

    return loaded


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        (IMPORTS + f'X = Contract("raw.a", "", "", ({K},), ("k",), ahed_days=10)\n', 2, "TypeError"),
        (IMPORTS + f'X = Contract("raw.a", "", "", ({K},), ("k",), ahed_days=10)\n', 2, "'ahed_days'"),
        ("\n\nX = (1,\n", 3, "SyntaxError"),
        ("def f():\nreturn 1\n", 2, "IndentationError"),
        ("import no_such_library\n", 1, "No module named 'no_such_library'"),
        ("from platform_assets.contracts import Kolumn\n", 1, "ImportError"),
        ("\nX = unknown\n", 2, "NameError"),
        ("\nX = {}['key']\n", 2, "KeyError"),
        ("\nX = 1 / 0\n", 2, "ZeroDivisionError"),
        ("import sys\nX = sys.nothing\n", 2, "AttributeError"),
        ("import sys\nsys.exit(0)\n", 2, "SystemExit"),
        ("import json\nX = json.loads('{')\n", 2, "JSONDecodeError"),
        (IMPORTS + 'X = Column("k", "money", "")\n', 2, "the unknown type 'money'"),
        (IMPORTS + f'X = Contract("raw.a", "", "", ({K},), "k")\n', 2, "The contract of raw.a has key='k'"),
    ],
)
def test_any_error_names_the_package_the_file_and_the_line(load, text, line, says):
    with pytest.raises(ContractError) as caught:
        load(text)
    assert f"own_tills/contracts.py, line {line}" in caught.value.what
    assert says in caught.value.what
    assert caught.value.__cause__ is not None
    assert caught.value.todo


@pytest.mark.parametrize("domain", ["X = 1", "DOMAIN = None", "DOMAIN = (1,)"])
def test_a_package_without_a_domain_is_named(load, domain):
    with pytest.raises(ContractError, match="'own_tills"):
        load(f"{domain}\n")


@pytest.mark.parametrize("package", ["no.such.domain", "own_tills.nothing", "", ".own_tills", "own tills"])
def test_a_name_that_no_package_has_is_told_as_such(load, package):
    with pytest.raises(ContractError, match="PLATFORM_DOMAINS"):
        load("DOMAIN = 1\n" if package != "own_tills.nothing" else "DOMAIN = None\n", package)
