"""Names of columns, as others gave them: which are one name to Spark, and as many of them as a person reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from itertools import islice

LONGEST_NAME = 1000
"""Characters of a column's name that is looked at."""

_SHOWN = 10
_SHOWN_OF_EACH = 60


def folded(name: str) -> str:
    """What names have in common that are one name to Spark.

    Java compares them letter by letter, first as capital letters: to it a Turkish i without a dot is an `i`, to Python
    none. Where Python takes more for the same, as `ß` and `ss`, they are the same here too.
    """
    return "".join(map(_small, name)).casefold()


def _small(letter: str) -> str:
    capital = letter.upper()
    # Java knows no letter that becomes two, and of the one capital letter whose small one is two, it takes the first.
    return (capital if len(capital) == 1 else letter).lower()[0]


def repeated_names(names: Sequence[str]) -> list[str]:
    """The names that are another's too, sorted."""
    times = Counter(map(folded, names))
    return sorted({name for name in names if times[folded(name)] > 1})


def listed(names: Collection[str]) -> str:
    """The first few of some names, and how many more there are: a file may have any number, of any length."""
    shown = [name if len(name) <= _SHOWN_OF_EACH else f"{name[:_SHOWN_OF_EACH]}…" for name in islice(names, _SHOWN)]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more:,} more" if more else "")
