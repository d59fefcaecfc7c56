"""A domain of one's own, outside this package, as text: right as it is, and wrong where a test replaces some of it."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from platform_assets.planning.code.reach import reached_code
from platform_assets.planning.code.source import Module, parse_module
from platform_assets.records.code_version import code_version

CONTRACTS = """\
from platform_assets.contracts import (
    Amount, Column, Contract, Domain, Input, LandingFiles, Reconciliation, Rule, as_of, same_day, span,
)

K = Column("till", "long", "Which till.", nullable=False)
AT = Column("at", "timestamp", "When, UTC.", nullable=False)
PAID = Column("paid", "decimal(12,2)", "Dollars.")
RAW = Contract("raw.sales", "As delivered.", "me", (K, AT, PAID), ("till", "at"), source=LandingFiles("sales"),
               event_time="at")
SILVER = Contract("silver.sales", "Clean.", "me", (K, AT, PAID), ("till", "at"),
                  inputs=(Input("raw.sales", same_day()),), rules=(Rule("paid_known", "paid >= 0", "No refunds."),))
GOLD = Contract("gold.tills", "Per till.", "me", (K, Column("paid", "decimal(18,2)", "Dollars.")), ("till",),
                inputs=(Input("silver.sales", same_day()),),
                reconciles=(Reconciliation("silver.sales", ("till",), (Amount("paid", "sum(paid)", "sum(paid)"),)),))
WEEK = Contract("gold.week", "Per till and week.", "me", (K, Column("paid", "decimal(18,2)", "Dollars.")), ("till",),
                inputs=(Input("silver.sales", span(6)),))
TABLES = (RAW, SILVER, GOLD, WEEK)
DOMAIN = Domain("own", TABLES, "own_till.transforms")
"""
SILVER = "def sales(sales):\n    return sales\n"
GOLD = """\
from pyspark.sql import functions as F


def tills(sales):
    return sales.groupBy("event_date", "till").agg(F.sum("paid").cast("decimal(18,2)").alias("paid"))


def week(sales):
    return tills(sales.per_day())
"""
FILES = {
    "own_till/__init__.py": "from own_till.contracts import DOMAIN\n",
    "own_till/contracts.py": CONTRACTS,
    "own_till/transforms/__init__.py": "",
    "own_till/transforms/silver.py": SILVER,
    "own_till/transforms/gold.py": GOLD,
}
PACKAGE = "own_till"
WITHOUT_WEEK = ("(RAW, SILVER, GOLD, WEEK)", "(RAW, SILVER, GOLD)")
"""Of the contracts, for tests that ask nothing of that table: each takes its time."""


def write_domain(folder: Path, **changes: tuple[tuple[str, str], ...]) -> Path:
    """Write the domain, with some of the text of `contracts`, `silver` or `gold` replaced."""
    for name, text in FILES.items():
        for old, new in changes.get(Path(name).stem, ()):
            assert old in text, old
            text = text.replace(old, new)
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def deliver_sales(landing: Path, day: str, tills: int, name: str = "sales.jsonl") -> None:
    """Land a file of the domain's `sales` that arrives on its own day, with a line of each till."""
    file = landing / "sales" / day / name
    file.parent.mkdir(parents=True)
    rows = ({"till": n, "at": f"{day}T02:00:00Z", "paid": "1.25"} for n in range(tills))
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))


@contextmanager
def importable(folder: Path) -> Iterator[None]:
    """The domain can be imported within, and is forgotten after."""
    sys.path.insert(0, str(folder))
    bytecode, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        sys.dont_write_bytecode = bytecode
        forget()


def forget() -> None:
    """Have its modules imported anew, as by another process."""
    for name in [name for name in sys.modules if name.partition(".")[0] == PACKAGE]:
        del sys.modules[name]


Sources = Mapping[str, str]


def version_of(sources: Sources, packages: Collection[str], module: str, function: str) -> str:
    """The code version of a function.

    Args:
        sources: of all modules, by name.
        packages: which of these are some.
        module: that the function is taken from.
        function: its name.
    """

    def find(name: str) -> Module | None:
        return parse_module(name, sources[name], is_package=name in packages) if name in sources else None

    def below(name: str) -> list[str]:
        top = name.partition(".")[0]
        return [one for one in sources if one.partition(".")[0] == top]

    return code_version(reached_code(find, below, module, function).texts)


Compute = Callable[[Sources], object]


@contextmanager
def computing(
    folder: Path, monkeypatch: pytest.MonkeyPatch, packages: Collection[str], imported: Sequence[str]
) -> Iterator[Compute]:
    """Give what the function `t` gives of the last of some modules that are imported one after the other."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    folders = iter(range(9))

    def forget() -> None:
        for name in [one for one in sys.modules if one == "d" or one.startswith("d.")]:
            del sys.modules[name]

    def computed(of: Sources) -> object:
        forget()
        own = folder / str(next(folders))
        for name, text in of.items():
            file = own / (name.replace(".", "/") + ("/__init__.py" if name in packages else ".py"))
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        with monkeypatch.context() as here:
            here.syspath_prepend(str(own))
            return [importlib.import_module(name) for name in imported][-1].t(10)

    yield computed
    forget()
