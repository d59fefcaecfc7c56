"""The order of code that does something when it is imported counts where it gives something else, and nowhere else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from platform_assets_tests.support.own_domain import Compute, Sources, computing, version_of

PACKAGES = ("d", "d.transforms")
GOLD = "d.transforms.gold"

ALL_STEPS = "from d.steps import STEPS\ndef t(x):\n    for step in STEPS: x = step(x)\n    return x\n"
STEPS = "STEPS = []\ndef add(x): return x + 1\ndef double(x): return x * 2\n"
ADDS = "from d.steps import STEPS, add\nSTEPS.append(add)\n"
DOUBLES = "from d.steps import STEPS, double\nSTEPS.append(double)\n"
TIMES_RATE = "def t(x): return x * RATE\n"
TIMES_NET = "from d.a import NET\ndef t(x): return x * NET\n"


def whole(sources: Sources) -> Sources:
    return {"d": "", "d.transforms": "", **sources}


def version(sources: Sources) -> str:
    return version_of(whole(sources), PACKAGES, GOLD, "t")


def swapped(module: str, one: str, other: str, **others: str) -> tuple[Sources, Sources]:
    """Sources with two texts where a module says `<1>` and `<2>`, and with their places changed."""
    both = (module.replace("<1>", a).replace("<2>", b) for a, b in ((one, other), (other, one)))
    more = {f"d.{name}": text for name, text in others.items()}
    first, second = ({GOLD: text, **more} for text in both)
    return first, second


def in_a(
    one: str, other: str, before: str = "", after: str = "", gold: str = TIMES_NET, **others: str
) -> tuple[Sources, Sources]:
    """Sources with two statements in the module `d.a`, and with their places changed."""
    more = {GOLD: gold, **{f"d.{name}": text for name, text in others.items()}}
    return {**more, "d.a": f"{before}{one}{other}{after}"}, {**more, "d.a": f"{before}{other}{one}{after}"}


GIVES_ANOTHER_RESULT = {
    "two_effects": (
        {GOLD: ALL_STEPS, "d.steps": f"{STEPS}STEPS.append(add)\nSTEPS.append(double)\n"},
        {GOLD: ALL_STEPS, "d.steps": f"{STEPS}STEPS.append(double)\nSTEPS.append(add)\n"},
    ),
    "what_is_next_of_a_counter": in_a(
        "NET = next(numbers)\n", "GROSS = next(numbers)\n", "from itertools import count\nnumbers = count(1)\n"
    ),
    "two_imports": swapped(f"<1><2>{ALL_STEPS}", "import d.a\n", "import d.b\n", steps=STEPS, a=ADDS, b=DOUBLES),
    "two_names_of_one_import": swapped(
        f"from d import <1>, <2>\n{ALL_STEPS}", "a", "b", steps=STEPS, a=ADDS, b=DOUBLES
    ),
    "an_import_and_an_effect": swapped(
        f"from d.steps import STEPS, add\n<1><2>{ALL_STEPS}",
        "STEPS.append(add)\n",
        "import d.b\n",
        steps=STEPS,
        b=DOUBLES,
    ),
    "two_star_imports": swapped(
        f"<1><2>{TIMES_RATE}", "from d.a import *\n", "from d.b import *\n", a="RATE = 1\n", b="RATE = 2\n"
    ),
    "two_imports_of_one_name": swapped(
        f"<1><2>{TIMES_RATE}", "from d.a import RATE\n", "from d.b import RATE\n", a="RATE = 1\n", b="RATE = 2\n"
    ),
    "a_constant_and_what_uses_it": in_a("NET = RATE * 3\n", "RATE = 2\n", "RATE = 1\n"),
    "two_functions_of_one_name": in_a(
        "def net(): return 1\n", "def net(): return 2\n", gold="from d.a import net\ndef t(x): return x * net()\n"
    ),
    "a_constant_and_a_function_that_is_passed_on": in_a(
        "NET = max([1, 2], key=by)\n", "RATE = -1\n", "RATE = 1\ndef by(x): return x * RATE\n"
    ),
    "two_subclasses": swapped(
        "from d.base import Base\n<1><2>def t(x):\n    for one in Base.__subclasses__(): x = one().run(x)\n"
        "    return x\n",
        "class Add(Base):\n    def run(self, x): return x + 1\n",
        "class Double(Base):\n    def run(self, x): return x * 2\n",
        base="class Base:\n    pass\n",
    ),
}


@pytest.fixture
def compute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Compute]:
    """What the transform gives."""
    with computing(tmp_path, monkeypatch, PACKAGES, [GOLD]) as computed:
        yield computed


@pytest.mark.parametrize("case", GIVES_ANOTHER_RESULT)
def test_an_order_that_gives_another_result_changes_the_version(case: str, compute: Compute) -> None:
    before, after = GIVES_ANOTHER_RESULT[case]
    assert compute(whole(before)) != compute(whole(after))
    assert version(before) != version(after)


GIVES_THE_SAME = {
    "two_functions": in_a(
        "def one(x): return x\n", "def NET(x=ONE): return one(x)\n", "ONE = 1\n", gold="from d.a import NET as t\n"
    ),
    "two_constants": in_a("RATE = 3\n", "NET = 2\n", after="GROSS = RATE * NET\n"),
    "two_modules_of_a_package_imported_whole": swapped(
        f"<1><2>{TIMES_NET}", "import d.b\n", "import d.a\n", a="NET = 1\n", b="GROSS = 2\n"
    ),
    "two_names_of_one_import": swapped(
        "from d.a import <1>, <2>\ndef t(x): return x * ONE * TWO\n", "ONE", "TWO", a="ONE = 1\nTWO = 2\n"
    ),
}


@pytest.mark.parametrize("case", GIVES_THE_SAME)
def test_an_order_that_gives_the_same_leaves_the_version(case: str, compute: Compute) -> None:
    before, after = GIVES_THE_SAME[case]
    assert compute(whole(before)) == compute(whole(after))
    assert version(before) == version(after)
