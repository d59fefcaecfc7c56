"""A table's code version changes with whatever of the user's code its transform can reach, and with nothing else."""

from __future__ import annotations

import pytest

from platform_assets_tests.support.own_domain import Sources, version_of

GOLD = """
from pyspark.sql import functions as F

from shop import money
from shop.helpers import RATE as R, clean
from shop.transforms.steps import sums

LIMIT = 3
UNUSED = 4


def sales(lines):
    return sums(clean(lines)).where(F.col("n") > LIMIT * R).select(money.net())


def stores(sales):
    return sales.groupBy("store").count()
"""

SHOP = {
    "shop": "from shop.contracts import TABLES\nDOMAIN = TABLES\n",
    "shop.contracts": "TABLES = (1, 2)\n",
    "shop.transforms": "",
    "shop.transforms.gold": GOLD,
    "shop.transforms.steps": "from .common import FACTOR\n\n\ndef sums(rows):\n    return rows.sum(FACTOR)\n",
    "shop.transforms.common": "FACTOR = 2\nOTHER = 3\n",
    "shop.helpers": "from shop.money import CENTS\nRATE = 1\n\n\ndef clean(rows):\n    return rows.round(CENTS)\n"
    "\n\ndef spoil(rows):\n    return rows\n",
    "shop.money": "CENTS = 2\nVAT = 19\n\n\ndef net(rate=VAT):\n    return rate\n\n\ndef gross():\n    return 0\n",
}
PACKAGES = {"shop", "shop.transforms"}


def version(sources: Sources, function: str = "sales", module: str = "shop.transforms.gold") -> str:
    return version_of(sources, PACKAGES, module, function)


def edited(module: str, before: str, after: str, sources: Sources = SHOP) -> Sources:
    assert before in sources[module]
    return {**sources, module: sources[module].replace(before, after)}


def with_gold(source: str, **modules: str) -> dict[str, str]:
    """Another gold module, and more modules of the package `shop`."""
    more = {f"shop.{name.replace('__', '.')}": text for name, text in modules.items()}
    return {**SHOP, **more, "shop.transforms.gold": source}


@pytest.mark.parametrize(
    ("module", "before", "after"),
    [
        pytest.param("shop.transforms.gold", "sums(clean(lines))", "sums(lines)", id="the_transform"),
        pytest.param("shop.transforms.gold", "LIMIT = 3", "LIMIT = 4", id="a_constant_of_its_module"),
        pytest.param("shop.transforms.gold", "functions as F", "other as F", id="where_a_name_comes_from"),
        pytest.param("shop.helpers", "RATE = 1", "RATE = 7", id="an_imported_constant"),
        pytest.param("shop.helpers", "rows.round(CENTS)", "rows", id="an_imported_function"),
        pytest.param("shop.money", "CENTS = 2", "CENTS = 3", id="what_an_imported_function_uses"),
        pytest.param("shop.money", "    return rate", "    return -rate", id="a_function_of_an_imported_module"),
        pytest.param("shop.money", "VAT = 19", "VAT = 20", id="a_default"),
        pytest.param("shop.transforms.common", "FACTOR = 2", "FACTOR = 9", id="a_relative_import"),
    ],
)
def test_an_edit_of_what_a_transform_reaches_changes_its_version(module: str, before: str, after: str) -> None:
    assert version(edited(module, before, after)) != version(SHOP)


@pytest.mark.parametrize(
    ("module", "before", "after"),
    [
        pytest.param("shop.transforms.gold", "return sales.groupBy", "return sales.cube", id="another_transform"),
        pytest.param("shop.transforms.gold", "UNUSED = 4", "UNUSED = 5", id="a_constant_it_does_not_use"),
        pytest.param(
            "shop.transforms.gold", "def stores", "def more(a):\n    return a\n\n\ndef stores", id="a_new_one"
        ),
        pytest.param("shop.transforms.common", "OTHER = 3", "OTHER = 4", id="beside_an_imported_constant"),
        pytest.param("shop.helpers", "return rows\n", "return -rows\n", id="beside_an_imported_function"),
        pytest.param("shop.money", "return 0", "return 1", id="beside_a_function_of_an_imported_module"),
        pytest.param("shop.contracts", "(1, 2)", "(1, 2, 3)", id="the_contracts"),
        pytest.param("shop.contracts", "(1, 2)", "(1, 2)\nTABLES = (*TABLES, 3)", id="a_contract_at_their_end"),
    ],
)
def test_an_edit_of_what_a_transform_does_not_reach_leaves_its_version(module: str, before: str, after: str) -> None:
    assert version(edited(module, before, after)) == version(SHOP)


def test_a_parameter_named_like_another_table_is_not_its_transform() -> None:
    changed = edited("shop.transforms.gold", "sums(clean(lines))", "sums(lines)")
    assert version(changed, "stores") == version(SHOP, "stores")


def test_comments_docstrings_formatting_and_the_order_of_definitions_do_not_count() -> None:
    dressed = GOLD.replace(
        "def sales(lines):\n", 'def sales(\n    lines,\n):\n    """All of them."""\n    # Newest first\n'
    ).replace(
        "from shop.helpers import RATE as R, clean",
        "from shop.helpers import RATE as R\nfrom shop.helpers import clean",
    )
    first, _, second = dressed.partition("LIMIT = 3\nUNUSED = 4\n")
    moved = f'"""Gold."""\n{first}UNUSED = 4\n{second}\n\nLIMIT = 3\n'
    assert version(with_gold(moved)) == version(SHOP)


def test_two_aliases_that_change_places_count() -> None:
    one = "from shop.money import CENTS as a, VAT as b\n\n\ndef sales(rows):\n    return rows.add(a).mul(b)\n"
    other = one.replace("CENTS as a, VAT as b", "CENTS as b, VAT as a")
    assert version(with_gold(one)) != version(with_gold(other))


WAYS = {
    "dotted": "import shop.more\n\n\ndef sales(rows):\n    return shop.more.f(rows)\n",
    "as": "import shop.more as m\n\n\ndef sales(rows):\n    return m.f(rows)\n",
    "from a package": "from shop import more\n\n\ndef sales(rows):\n    return more.f(rows)\n",
    "relative": "from .. import more\n\n\ndef sales(rows):\n    return more.f(rows)\n",
    "star": "from shop.more import *\n\n\ndef sales(rows):\n    return f(rows)\n",
    "within a function": "def sales(rows):\n    from shop.more import f\n    return f(rows)\n",
    "dotted within one": "def sales(rows):\n    import shop.more\n    return shop.more.f(rows)\n",
    "the transform itself": "from shop.more import f as sales\n",
    "through another": "from shop.api import f\n\n\ndef sales(rows):\n    return f(rows)\n",
    "through a module": "import shop.api\n\n\ndef sales(rows):\n    return shop.api.f(rows)\n",
    "default": "from shop.more import f\n\n\ndef sales(rows, way=f):\n    return way(rows)\n",
    "decorator": "from shop.more import f\n\n\n@f\ndef sales(rows):\n    return rows\n",
    "assigned": "from shop.more import f\n\nsales = f\n",
    "class": "from shop.more import f\n\n\nclass Rows:\n    def way(self):\n        return f(self)\n\n\n"
    "def sales(rows):\n    return Rows().way()\n",
    "getattr": "from shop import more\n\n\ndef sales(rows, name):\n    return getattr(more, name)(rows)\n",
    "eval": "from shop import more\n\n\ndef sales(rows):\n    return eval('more.f(rows)')\n",
    "eval of builtins": (
        "import builtins\nfrom shop import more\n\n\ndef sales(rows):\n    return builtins.eval('more.f(rows)')\n"
    ),
    "eval by another name": (
        "from builtins import eval as value_of\nfrom shop import more\n\n\ndef sales(rows):\n"
        "    return value_of('more.f(rows)')\n"
    ),
    "globals": "from shop.more import f\n\n\ndef sales(rows):\n    return globals()['f'](rows)\n",
    "computed": "from importlib import import_module\n\n\ndef sales(rows):\n    return import_module('shop.more').f\n",
    "try": "try:\n    from shop.more import f\nexcept ImportError:\n    pass\n\n\ndef sales(rows):\n    return f\n",
    "comprehension": "from shop.more import f\n\n\ndef sales(rows):\n    return [f(one) for one in rows]\n",
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_another_module_is_followed(way: str) -> None:
    def sources(factor: int) -> Sources:
        more = f"def f(rows):\n    return rows * {factor}\n"
        return with_gold(WAYS[way], more=more, api="from shop.more import f\n")

    assert version(sources(2)) != version(sources(3))


def test_what_an_imported_module_does_counts_though_nobody_uses_it() -> None:
    source = "import shop.more\n\n\ndef sales(rows):\n    return rows\n"
    one, other = (with_gold(source, more=f"print({n})\nSTEPS = 1\n") for n in "12")
    assert version(one) != version(other)


def test_what_a_package_does_on_the_way_counts() -> None:
    doing = {**SHOP, "shop.transforms": "import decimal\n\ndecimal.getcontext().prec = 9\n"}
    assert version(edited("shop.transforms", "= 9", "= 8", doing)) != version(doing)


def test_what_only_a_type_checker_or_a_program_sees_does_not_count() -> None:
    source = (
        "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    from shop.more import T\n\n\n"
        "def sales(rows: T) -> T:\n    return rows\n\n\nif __name__ == '__main__':\n    print(1)\n"
    )
    other = source.replace("print(1)", "print(2)")
    assert version(with_gold(source, more="print(1)\n")) == version(with_gold(other, more="print(2)\n"))


STEPS = """
{register}


{step}
def doubled(rows):
    return rows * 2


def sales(rows):
    for one in STEPS:
        rows = one(rows)
    return rows


def stores(sales):
    return sales
"""


@pytest.mark.parametrize(
    ("register", "step"),
    [
        ("STEPS = []\ndef step(f):\n    STEPS.append(f)\n    return f", "@step"),
        ("from shop.registry import STEPS, step", "@step"),
        ("class All(list):\n    def step(self, f):\n        self.append(f)\nSTEPS = All()", "@STEPS.step"),
    ],
)
def test_a_step_that_a_decorator_enters_in_a_list_counts_for_who_uses_the_list(register: str, step: str) -> None:
    registry = "STEPS = []\n\n\ndef step(f):\n    STEPS.append(f)\n    return f\n"
    source = STEPS.format(register=register, step=step)
    before, after = (with_gold(source.replace("* 2", n), registry=registry) for n in ("* 2", "* 3"))
    assert version(before) != version(after)


ALL_STEPS = "def sales(x):\n    for s in STEPS: x = s(x)\n    return x\n"
IN_A_LIST = {
    "shop.transforms.gold": f"from shop.reg import STEPS\nimport shop.impl\n{ALL_STEPS}",
    "shop.reg": "STEPS = []\ndef register(f):\n    STEPS.append(f)\n    return f\n",
}
ALL_KNOWN = "import shop.impl\ndef sales(x):\n    for s in Base.known: x = s().run(x)\n    return x\n"
BASE = "class Base:\n    known = []\n    {}\n    def run(self, x): return x\n"
ONE = "from shop.base import Base\nclass One(Base):\n    def run(self, x): return x + @@\n"

CHANGED_ON_IMPORT = {
    "singledispatch_elsewhere": {
        "shop.transforms.gold": "import shop.impl\nfrom shop.conv import conv\ndef sales(x): return conv(x)\n",
        "shop.conv": "from functools import singledispatch\n@singledispatch\ndef conv(x): return 0\n",
        "shop.impl": "from shop.conv import conv\n@conv.register\ndef _(x: int): return @@\n",
    },
    "init_subclass": {
        "shop.transforms.gold": f"from shop.base import Base\n{ALL_KNOWN}",
        "shop.base": BASE.format("def __init_subclass__(cls): Base.known.append(cls)"),
        "shop.impl": ONE,
    },
    "a_call_in_a_class": {
        **IN_A_LIST,
        "shop.impl": "from shop.reg import STEPS\nclass One:\n    @staticmethod\n    def f(x): return x + @@\n"
        "    STEPS.append(f)\n",
    },
    "a_decorated_method": {
        **IN_A_LIST,
        "shop.impl": "from shop.reg import register\nclass One:\n    @register\n    def f(x): return x + @@\n",
    },
    "a_call_in_a_default": {
        **IN_A_LIST,
        "shop.impl": "from shop.reg import STEPS\ndef one(x): return x + @@\ndef two(x=STEPS.append(one)): return x\n",
    },
    "an_attribute_of_a_class": {
        "shop.transforms.gold": "from shop.base import Base\nimport shop.impl\ndef sales(x): return x * Base.rate\n",
        "shop.base": "class Base:\n    rate = 1\n",
        "shop.impl": "from shop.base import Base\nOK = setattr(Base, 'rate', @@)\n",
    },
    "only_under_its_own_name": {
        "shop.transforms.gold": "RATE = 0\nif __name__ == 'shop.transforms.gold':\n    RATE = @@\n"
        "def sales(x): return x * RATE\n",
    },
    "an_operator_of_the_users_own": {
        "shop.transforms.gold": "from shop.reg import STEPS\nimport shop.impl\n"
        + ALL_STEPS.replace("STEPS:", "STEPS.all:"),
        "shop.reg": "class Steps:\n    def __init__(self): self.all = []\n"
        "    def __rshift__(self, f): self.all.append(f)\n"
        "STEPS = Steps()\n",
        "shop.impl": "from shop.reg import STEPS\ndef one(x): return x + @@\nDONE = STEPS >> one\n",
    },
    "a_property_of_the_users_own": {
        "shop.transforms.gold": "import shop.impl\nfrom shop.reg import COUNT\ndef sales(x): return x * COUNT.n\n",
        "shop.reg": "class Count:\n    n = 0\n    @property\n    def next(self):\n        self.n += 1\n"
        "        return self.n\n"
        "COUNT = Count()\n",
        "shop.impl": "from shop.reg import COUNT\nNUMBERS = [COUNT.next for _ in range(@@)]\n",
    },
    "a_module_of_a_package_by_a_computed_name": {
        "shop.transforms.gold": "import shop, shop.impl\ndef sales(x): return getattr(shop, 'imp' + 'l').RATE * x\n",
        "shop.impl": "RATE = @@\n",
    },
}


@pytest.mark.parametrize("way", CHANGED_ON_IMPORT)
def test_what_importing_a_module_changes_counts_for_who_reads_it(way: str) -> None:
    def sources(number: str) -> Sources:
        return {**SHOP, **{name: text.replace("@@", number) for name, text in CHANGED_ON_IMPORT[way].items()}}

    assert version(sources("2")) != version(sources("3"))


BY_SILVER = [way for way, of in CHANGED_ON_IMPORT.items() if "import shop.impl\n" in of["shop.transforms.gold"]]


@pytest.mark.parametrize("way", BY_SILVER)
def test_what_importing_a_module_changes_counts_though_only_other_transforms_import_it(way: str) -> None:
    def sources(number: str, gold: str) -> Sources:
        by_silver = {
            **CHANGED_ON_IMPORT[way],
            "shop.transforms.gold": gold,
            "shop.transforms.silver": "import shop.impl\n",
        }
        return {**SHOP, **{name: text.replace("@@", number) for name, text in by_silver.items()}}

    reads = CHANGED_ON_IMPORT[way]["shop.transforms.gold"].replace("import shop.impl\n", "")
    assert version(sources("2", reads)) != version(sources("3", reads))


FOR_ITSELF = {
    "a_class_with_an_own_base": "class Base:\n    rate = 0\n    def run(self): self.rate += 1\n"
    "class One(Base):\n    def run(self): return @@\n",
    "a_constant_of_other_peoples_calls": "PRICE = F.sum(F.col('a').cast('long')).alias('@@')\n"
    "LONG: object = [T.LongType(), T.DecimalType(@@, 2)]\n",
    "a_class_with_properties": "class One:\n    @property\n    def net(self): return @@\n    @net.setter\n"
    "    def net(self, value): self.value = value\n",
    "a_dataclass": "from dataclasses import dataclass, field\n@dataclass\nclass Cart:\n"
    "    lines: list = field(default_factory=list)\n    def add(self, line): self.lines.append(line)\n"
    "CART = Cart(@@)\n",
}


@pytest.mark.parametrize("way", FOR_ITSELF)
def test_what_importing_a_module_makes_for_itself_counts_only_for_who_uses_it(way: str) -> None:
    source = "from pyspark.sql import functions as F, types as T\n" + FOR_ITSELF[way] + "def sales(rows): return rows\n"
    assert version(with_gold(source.replace("@@", "2"))) == version(with_gold(source.replace("@@", "3")))


@pytest.mark.parametrize("way", FOR_ITSELF)
def test_what_importing_other_transforms_makes_for_itself_does_not_count(way: str) -> None:
    silver = "from pyspark.sql import functions as F, types as T\n" + FOR_ITSELF[way]
    two, three = ({**SHOP, "shop.transforms.silver": silver.replace("@@", n)} for n in "23")
    assert version(two) == version(three)


def test_a_package_around_a_module_that_is_passed_on_is_not_passed_on_with_it() -> None:
    source = "from shop import more\n\n\ndef sales(rows, name):\n    return getattr(more, name)(rows)\n"
    sources = with_gold(source, more="import shop.money\n\n\ndef f(rows):\n    return shop.money.net(rows)\n")
    assert version(edited("shop.helpers", "rows.round(CENTS)", "rows", sources)) == version(sources)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("def sales(rows):\n    f = 1\n    return rows * f\n", "def f():\n    return 2\n"),
        ("def sales(rows):\n    def f(x):\n        return x\n    return f(rows)\n", "def f():\n    return 2\n"),
        ("def sales(rows):\n    try:\n        return rows\n    except ValueError as f:\n        raise f\n", "f = 2\n"),
    ],
)
def test_names_of_a_functions_own_are_not_those_around_it(before: str, after: str) -> None:
    assert version(with_gold(before)) == version(with_gold(f"{before}\n\n{after}"))


@pytest.mark.parametrize(
    "source",
    [
        "def sales(rows):\n    a = [f for f in rows]\n    return f(a)\n",
        "def sales(rows):\n    f_ = 1\n    def inner():\n        return f(f_)\n    return inner()\n",
        "def sales(rows):\n    f = 1\n    def inner():\n        global f\n        return f(1)\n    return inner()\n",
        "def sales(rows):\n    class Own:\n        f = f\n    return Own.f(rows)\n",
        "def sales(rows):\n    return rows[f:1] if rows else f'{f(1)}'\n",
    ],
)
def test_names_around_a_function_are_found_where_it_has_some_of_its_own(source: str) -> None:
    one, other = (f"{source}\n\ndef f(x):\n    return {n}\n" for n in "12")
    assert version(with_gold(one)) != version(with_gold(other))


def test_a_function_that_is_not_there_by_name_is_all_of_its_module() -> None:
    source = "for name in ('sales', 'stores'):\n    globals()[name] = lambda rows: rows * RATE\n\nRATE = 1\n"
    assert version(with_gold(source)) != version(with_gold(source.replace("RATE = 1", "RATE = 2")))


def test_modules_that_import_each_other_come_to_an_end() -> None:
    sources = with_gold(
        "from shop.a import f\n\n\ndef sales(rows):\n    return f(rows)\n",
        a="from shop.b import g\nfrom shop.b import h as f\n",
        b="from shop.a import f as h\nimport shop.a\n\n\ndef g():\n    return shop.a.g\n",
    )
    assert version(sources) == version(dict(sources))


def test_the_version_of_fixed_code_is_the_same_on_every_version_of_python() -> None:
    source = (
        "def sales(rows, *more, way: int = 1_000, **rest):\n"
        "    text = f'a{rows!r:>{way}}' 'b' f'{way}' \"\"\n"
        "    with rows as r, more: pass\n"
        "    match rows:\n        case {'a': 1, **rest}: return None\n"
        "    return u'\\u00e9', b'\\xff', 1e3, -0x1F, ..., [x async for x in rows], {**rest}, text\n"
    )
    assert version(with_gold(source)) == "1af22ce60221102e"
