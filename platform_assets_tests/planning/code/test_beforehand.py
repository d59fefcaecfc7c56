"""All modules of transforms are imported before anything is computed: what one changes counts for who uses it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from platform_assets.planning.code.reach import transform_modules
from platform_assets_tests.support.own_domain import Compute, Sources, computing, version_of

PACKAGES = ("d", "d.transforms", "d.more")
GOLD, SILVER = transform_modules("d.transforms")[::-1]
COMMON = {"d": "", "d.transforms": "", "d.registry": "STEPS = []\nRATE = 1\ndef net(): return 1\n"}
BY_STEPS = "from d.registry import STEPS\ndef t(x): return [x, *STEPS]\n"
BY_CALLS = "from d.registry import STEPS\ndef t(x): return [step() for step in STEPS]\n"
APPENDS = "from d.registry import STEPS\nSTEPS.append(@@)\n"


def sources(silver: str, gold: str = BY_STEPS, **others: str) -> Sources:
    return {**COMMON, SILVER: silver, GOLD: gold, **{f"d.{name.replace('__', '.')}": of for name, of in others.items()}}


def numbered(of: Sources, number: str) -> Sources:
    return {name: text.replace("@@", number) for name, text in of.items()}


def version(of: Sources, module: str = GOLD) -> str:
    return version_of(of, PACKAGES, module, "t")


@pytest.fixture
def compute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Compute]:
    """What the transform of gold gives in a process that imports all transforms before."""
    with computing(tmp_path, monkeypatch, PACKAGES, transform_modules("d.transforms")) as computed:
        yield computed


CHANGES = {
    "a_list": sources(APPENDS),
    "a_list_by_a_module_that_it_imports": sources("import d.plugins\n", plugins=APPENDS),
    "a_list_by_a_package_on_the_way": sources("import d.more.plugins\n", more=APPENDS, more__plugins=""),
    "a_list_by_what_a_function_imports": sources("def setup(): import d.plugins\nsetup()\n", plugins=APPENDS),
    "a_list_that_gets_longer": sources("from d.registry import STEPS\nSTEPS += [@@]\n"),
    "a_list_in_a_loop": sources("from d.registry import STEPS\nfor n in (1, @@):\n    STEPS.append(n)\n"),
    "a_list_of_all_that_a_module_has": sources(APPENDS, BY_STEPS.replace("STEPS\n", "*\n")),
    "a_list_by_a_name_that_is_computed": sources(
        APPENDS, "import d.registry\ndef t(x): return list(getattr(d.registry, 'STE' + 'PS'))\n"
    ),
    "a_list_that_is_read_on_import": sources(
        APPENDS, "from d.registry import STEPS\nN = sum(STEPS)\ndef t(x): return N\n"
    ),
    "what_an_entered_function_uses_that_is_changed_too": sources(
        "import d.plugins\nfrom d.rates import RATES\nRATES['net'] = @@\n",
        BY_CALLS,
        rates="RATES = {'net': 1}\n",
        plugins="from d.rates import RATES\nfrom d.registry import STEPS\n"
        "def rate(): return RATES['net']\nSTEPS.append(rate)\n",
    ),
    "a_function_that_a_decorator_enters": sources(
        "from d.base import step\n@step\ndef rate(): return @@\n",
        BY_CALLS,
        base="from d.registry import STEPS\ndef step(f):\n    STEPS.append(f)\n    return f\n",
    ),
    "a_name_of_another_module": sources(
        "import d.registry\nd.registry.RATE = @@\n", "from d import registry\ndef t(x): return registry.RATE\n"
    ),
    "an_attribute_of_a_class": sources(
        "from d.base import Base\nBase.rate = @@\n",
        "from d.base import Base\ndef t(x): return Base.rate\n",
        base="class Base:\n    rate = 1\n",
    ),
    "subclasses": sources(
        "from d.base import Base\nclass One(Base):\n    n = @@\n",
        "from d.base import Base\ndef t(x): return [one.n for one in Base.__subclasses__()]\n",
        base="class Base: pass\n",
    ),
    "an_import_by_name_in_a_value": sources(
        "from importlib import import_module\nP = [import_module(f'd.{n}') for n in ('xp',)]\n", xp=APPENDS
    ),
    "a_method_with_the_name_of_one_that_reads": sources(
        "from d.base import IDS\nX = [IDS.get(i) for i in range(@@)]\n",
        "from d.base import IDS\ndef t(x): return IDS.get('net')\n",
        base="class Ids:\n    def __init__(self): self.d = {}\n"
        "    def get(self, k): return self.d.setdefault(k, len(self.d))\nIDS = Ids()\n",
    ),
    "a_base_from_a_star_import": sources(
        "from d.middle import Base\nclass One(Base): n = @@\n",
        middle="from d.base import *\n",
        base="from d.registry import STEPS\nclass Base:\n    def __init_subclass__(cls): STEPS.append(cls.n)\n",
    ),
    "a_metaclass_that_keeps_the_first_object": sources(
        "from d.base import Conf\nC = Conf(@@)\n",
        "from d.base import Conf\ndef t(x): return x * Conf(1).n\n",
        base="class One(type):\n    it = {}\n    def __call__(cls, *a):\n"
        "        if cls not in cls.it: cls.it[cls] = super().__call__(*a)\n        return cls.it[cls]\n"
        "class Conf(metaclass=One):\n    def __init__(self, n): self.n = n\n",
    ),
    "numbers_by_the_order_of_making": sources(
        "from d.base import Rule\nR = [Rule() for _ in range(@@)]\n",
        "from d.base import Rule\ndef t(x): return Rule().n\n",
        base="from dataclasses import dataclass, field\nfrom itertools import count\n@dataclass\nclass Rule:\n"
        "    n: int = field(default_factory=count().__next__)\n",
    ),
    "a_list_that_all_objects_share": sources(
        "from d.base import Rule\nR = Rule(@@)\n",
        "from d.base import Rule\ndef t(x): return list(Rule.all)\n",
        base="class Rule:\n    all = []\n    def __init__(self, n): self.all += [n]\n",
    ),
    "a_package_that_imports_when_it_is_asked": sources(
        "from d.lazy import Net\n",
        lazy="from importlib import import_module\ndef __getattr__(n): return import_module('d.xp')\n",
        xp=APPENDS,
    ),
    "a_dict_that_is_given_to_a_function": sources(
        "from d.base import RATES, enter\nDONE = enter(RATES, @@)\n",
        "from d.base import RATES\ndef t(x): return x * RATES['net']\n",
        base="RATES = {'net': 1}\ndef enter(rates, value): rates['net'] = value\n",
    ),
    "a_method_that_is_passed_on": sources("from d.registry import STEPS\nX = list(map(STEPS.append, [@@]))\n"),
    "a_method_of_pythons_own_class": sources(
        "from d.base import RATES\nX = dict.update(RATES, net=@@)\n",
        "from d.base import RATES\ndef t(x): return x * RATES['net']\n",
        base="RATES = {'net': 1}\n",
    ),
    "an_annotation_that_calls": sources(
        "from d.base import col\nclass Row:\n    a: col(@@) = 1\n",
        base="from d.registry import STEPS\ndef col(n): STEPS.append(n)\n",
    ),
    "an_annotation_that_is_a_text": sources(
        "",
        "from typing import Literal, get_args, get_type_hints\nAllowed = Literal['a', '@@']\n"
        "def row(kind: 'Allowed'): return kind\ndef t(x): return get_args(get_type_hints(row)['kind'])\n",
    ),
    "pythons_own_state": sources(
        "import decimal\ndecimal.getcontext().prec = @@\n",
        "from decimal import Decimal\ndef t(x): return Decimal(1) / Decimal(3)\n",
    ),
    "pythons_own_state_in_a_loop_that_keeps_a_list": sources(
        "import os\nSEEN = []\nfor name in ('D_RATE',):\n    SEEN.append(name)\n    os.environ[name] = '@@'\n",
        "import os\ndef t(x): return os.environ['D_RATE']\n",
    ),
}


@pytest.mark.parametrize("case", CHANGES)
def test_what_another_tables_module_changes_on_import_counts_for_who_uses_it(case: str, compute: Compute) -> None:
    two, three = numbered(CHANGES[case], "2"), numbered(CHANGES[case], "3")
    assert compute(two) != compute(three)
    assert version(two) != version(three)


CHANGES_NOTHING = {
    "its_table": sources("def t(x): return x * @@\n"),
    "a_constant_of_its_own": sources("RATE = @@\ndef t(x): return x * RATE\n"),
    "an_import_that_may_fail": sources(
        "try:\n    import d.no\n    RATE = @@\nexcept ImportError:\n    RATE = @@ + 1\n"
    ),
    "subclasses_nobody_asks_for": sources(
        "from d.base import Base\nclass One(Base):\n    n = @@\n",
        "from d.base import Base\ndef t(x): return Base.n\n",
        base="class Base:\n    n = 0\n",
    ),
}


@pytest.mark.parametrize("case", CHANGES_NOTHING)
def test_the_rest_of_another_tables_module_does_not_count(case: str, compute: Compute) -> None:
    two, three = numbered(CHANGES_NOTHING[case], "2"), numbered(CHANGES_NOTHING[case], "3")
    assert compute(two) == compute(three)
    assert version(two) == version(three)


ADDS, DOUBLES = APPENDS.replace("@@", "1"), APPENDS.replace("@@", "2")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(
            sources("import d.a\nimport d.b\n", a=ADDS, b=DOUBLES),
            sources("import d.b\nimport d.a\n", a=ADDS, b=DOUBLES),
            id="of_one_module",
        ),
        pytest.param(
            sources("import d.a\n", f"import d.b\n{BY_STEPS}", a=ADDS, b=DOUBLES),
            sources("import d.b\n", f"import d.a\n{BY_STEPS}", a=ADDS, b=DOUBLES),
            id="of_two_modules",
        ),
        pytest.param(
            sources("import d.a\n", f"import d.a\nimport d.b\n{BY_STEPS}", a=ADDS, b=DOUBLES),
            sources("import d.b\n", f"import d.a\nimport d.b\n{BY_STEPS}", a=ADDS, b=DOUBLES),
            id="in_which_another_table_has_them_before",
        ),
    ],
)
def test_the_order_of_imports_over_all_transforms_counts(one: Sources, other: Sources, compute: Compute) -> None:
    assert compute(one) != compute(other)
    assert version(one) != version(other)


ORDINARY = """
from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import Enum
from functools import cache
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import Window
from pyspark.sql import functions as F
from pyspark.sql.types import *

LOG = logging.getLogger(__name__)
HERE = Path(__file__).resolve().parent
RATE = Decimal("0.19").quantize(Decimal("0.01"))
SINCE = date(2017, 1, 1)
FIELDS = ["a", "b"]
SCHEMA = StructType([StructField(name.strip(), StringType()) for name in FIELDS])
WEEK = Window.partitionBy("a")
LAST = WEEK.orderBy("b").rowsBetween(-6, 0)
WORD = re.compile("a+")

class Kind(Enum):
    A = "a"

class Key(NamedTuple):
    a: str

@dataclass(frozen=True)
class Band:
    low: int
    def has(self, x): return x > self.low

BANDS = (Band(1), Band(2))
ONE = Key("a")

@cache
def table(): return {}

@F.udf
def word(x): return x

def t(x): return x * @@
"""


def test_what_modules_of_transforms_usually_have_acts_not() -> None:
    assert version(numbered(sources(ORDINARY), "2")) == version(numbered(sources(ORDINARY), "3"))


def test_a_module_that_does_anything_when_it_is_imported_counts_whole_for_all_tables() -> None:
    silver = "import logging\nLOG = logging.getLogger('d')\nLOG.setLevel(20)\ndef t(x): return x * @@\n"
    assert version(numbered(sources(silver), "2")) != version(numbered(sources(silver), "3"))
    without = silver.replace("LOG.setLevel(20)\n", "")
    assert version(numbered(sources(without), "2")) == version(numbered(sources(without), "3"))


def test_what_comes_last_counts_for_what_comes_first() -> None:
    gold = "import d.plugins\ndef t(x): return x\n"
    two, three = (numbered(sources(BY_STEPS, gold, plugins=APPENDS), n) for n in "23")
    assert version(two, SILVER) != version(three, SILVER)


def test_a_function_that_is_not_there_by_name_is_changed_like_any_other() -> None:
    gold = "from d.registry import STEPS\nfor name in ('t', 'u'):\n    globals()[name] = lambda x: [x, *STEPS]\n"
    two, three = (numbered(sources(APPENDS, gold), n) for n in "23")
    assert version(two) != version(three)
