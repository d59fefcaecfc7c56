"""A call on import that changes what it is given counts for all who import the module, whatever it is given."""

from __future__ import annotations

import pytest

from platform_assets_tests.support.own_domain import Sources, version_of

GOLD = "d.transforms.gold"
RATES = "RATES = {'net': 1}\n"
CONFIG = "class Config:\n    rate = 1\n    def at(self): return self.rate\nCONFIG = Config()\n"


def version(module: str, number: str) -> str:
    """The version of a transform that uses only RATES and CONFIG of a module, which has a number in a place."""
    sources: Sources = {
        "d": "",
        "d.transforms": "",
        GOLD: "from d.a import CONFIG, RATES\ndef t(x): return x * RATES['net'] * CONFIG.rate\n",
        "d.a": "from pyspark.sql import functions as F\n" + RATES + CONFIG + module.replace("@@", number),
    }
    return version_of(sources, ("d", "d.transforms"), GOLD, "t")


CHANGES = {
    "an_item": "def f(rates, value): rates['net'] = value\nDONE = f(RATES, @@)\n",
    "an_attribute_by_name": "def f(config, value): setattr(config, 'rate', value)\nDONE = f(CONFIG, @@)\n",
    "a_method": "def f(rates, value): rates.update(net=value)\nDONE = f(RATES, @@)\n",
    "by_keyword": "def f(rates, value): rates['net'] = value\nDONE = f(value=@@, rates=RATES)\n",
    "in_a_list": "def f(several, value): several[0]['net'] = value\nDONE = f([RATES], @@)\n",
    "as_more_parameters": "def f(*several): several[0]['net'] = several[1]\nDONE = f(RATES, @@)\n",
    "given_on": "def g(rates, value): rates['net'] = value\ndef f(rates, value): g(rates, value)\n"
    "DONE = f(RATES, @@)\n",
    "under_another_name": "def f(rates, value):\n    mine = rates\n    mine['net'] = value\nDONE = f(RATES, @@)\n",
    "in_a_loop": "def f(several, value):\n    for n, one in enumerate(several): one.rate = value\n"
    "DONE = f([CONFIG], @@)\n",
    "given_on_in_a_circle": "def g(r, v): f(r, v)\ndef f(r, v):\n    if v: g(r, 0)\n    r['net'] = v\n"
    "DONE = f(RATES, @@)\n",
    "given_with_what_changes_it": "def g(rates): rates['net'] = 2\ndef call(f, n, rates): f(rates)\n"
    "DONE = call(g, @@, RATES)\n",
    "by_a_lambda": "f = lambda rates, value: rates.update(net=value)\nDONE = f(RATES, @@)\n",
    "by_a_part": "from functools import partial\ndef g(rates, value): rates['net'] = value\n"
    "f = partial(g, value=@@)\nDONE = (f(RATES), @@)\n",
    "by_a_decorator": "def f(rates):\n    def g(h):\n        rates['net'] = h(1)\n        return h\n    return g\n"
    "@f(RATES)\ndef h(x): return @@\n",
    "by_making_an_object": "class Rates:\n    def __init__(self, rates, value): rates['net'] = value\n"
    "DONE = Rates(RATES, @@)\n",
    "within_a_function_that_is_called": "def f(rates, value): rates['net'] = value\n"
    "def setup(value):\n    f(RATES, value)\n    return True\nDONE = setup(@@)\n",
    "within_a_function_that_imports_it": "def setup(value):\n    from d.a import RATES as R\n    R['net'] = value\n"
    "    return True\nDONE = setup(@@)\n",
    "of_a_class": "def f(kind, value): kind.rate = value\nDONE = f(Config, @@)\n",
}


@pytest.mark.parametrize("case", CHANGES)
def test_what_a_call_may_change_of_what_it_is_given_counts(case: str) -> None:
    assert version(CHANGES[case], "2") != version(CHANGES[case], "3")


ONLY_READS = {
    "an_item": "def f(rates, value): return rates['net'] * value\nNET = f(RATES, @@)\n",
    "a_method_that_reads": "def f(rates, value): return rates.get('net') * value\nNET = f(RATES, @@)\n",
    "given_on_to_who_reads": "def g(r, v): return r['net'] * v\ndef f(r, v): return g(r, v)\nNET = f(RATES, @@)\n",
    "a_column": "NET = F.col('net') * 2\ndef f(column, value): return column.cast('long') * value\n"
    "TWICE = f(NET, @@)\n",
    "of_its_own_object": "class Rates:\n    def __init__(self, rates): self.rates = rates\n"
    "    def set(self, n): self.n = n\n"
    "MINE = Rates([RATES, @@])\n",
}


@pytest.mark.parametrize("case", ONLY_READS)
def test_a_call_that_only_reads_what_it_is_given_counts_only_for_who_uses_it(case: str) -> None:
    assert version(ONLY_READS[case], "2") == version(ONLY_READS[case], "3")
