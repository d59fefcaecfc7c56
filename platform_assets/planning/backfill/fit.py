"""Costs fitted to what was taken: none is negative, one strange observation bends nothing, and few say little."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_SWEEPS = 20
_LEAST_OFF = 0.05
"""A smaller miss counts as this one, or an observation that is met by chance would weigh without bound."""
_LEAST_S = 0.1
_FIRM = 0.1
"""By how much of what it took observations have to be met better for a cost to leave what is assumed of it."""
ROUNDS = 12


@dataclass(frozen=True)
class Observed:
    """Something that took its time.

    Args:
        parts: how often it had each of the costs: a start, so many jobs, so many days of a table.
        seconds: that it took in all.
        weight: beside others.
    """

    parts: Mapping[str, float]
    seconds: float
    weight: float = 1.0


def said(parts: Mapping[str, float], costs: Mapping[str, float]) -> float:
    """Seconds of so many of each cost."""
    return sum(times * costs[name] for name, times in parts.items())


def fitted(
    observed: Sequence[Observed],
    assumed: Mapping[str, float],
    begin: Mapping[str, float] | None = None,
    rounds: int = ROUNDS,
) -> dict[str, float]:
    """The costs by which observations miss least, each by its share of what is said of it.

    The sum of the misses is smallest, not that of their squares, so that a machine that was busy once does not count
    more than one that was not. It is found by squares whose weights are set anew in each round, and these by turning
    to one cost after the other, as often as it takes to be near.

    Args:
        observed: in any order.
        assumed: seconds of each cost where nothing was observed; above zero.
        begin: costs near the ones wanted.
        rounds: fewer will do from near.

    Returns:
        Each of the costs that are assumed; none is negative.
    """
    costs = dict(begin or assumed)
    for _ in range(rounds):
        products = {name: defaultdict[str, float](float) for name in costs}
        totals = dict.fromkeys(costs, 0.0)
        for one in observed:
            says = max(said(one.parts, costs), _LEAST_S)
            weight = one.weight / (says * max(abs(one.seconds - says), _LEAST_OFF * says))
            for name, times in one.parts.items():
                totals[name] += weight * times * one.seconds
                row = products[name]
                for other, also in one.parts.items():
                    row[other] += weight * times * also
        for name, seconds in assumed.items():
            firm = _FIRM / seconds**2
            products[name][name] += firm
            totals[name] += firm * seconds
        for _ in range(_SWEEPS):
            for name, row in products.items():
                others = sum(product * costs[other] for other, product in row.items()) - row[name] * costs[name]
                costs[name] = max((totals[name] - others) / row[name], 0.0)
    return costs
