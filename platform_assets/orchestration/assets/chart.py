"""A chart of days small enough that Dagster draws it where it stands.

Dagster's pages show Markdown of up to 1,000 characters in place, and hide what is longer behind a link. A picture of
points would never fit, so the chart is a few strokes of SVG within the Markdown. Nothing in it depends on colour: what
is usual is an area, what was is a line, the day in question a ring; grey and blue show on white and on black.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta

MOST_CHARACTERS = 999
MOST_DAYS = 28
_WIDTH, _TOP, _BOTTOM, _HEIGHT = 532, 20, 99, 116


@dataclass(frozen=True)
class Chart:
    """One series by day.

    Args:
        title: what is shown, and of what.
        unit: of the values.
        values: by day.
        marked: the day that the chart is about, the last one it shows.
        usual: smallest and greatest usual value, of days for which one can say.
    """

    title: str
    unit: str
    values: Mapping[date, float]
    marked: date
    usual: Mapping[date, tuple[float, float]] = field(default_factory=dict)

    def markdown(self) -> str:
        """The four weeks up to the day; fewer days where that many do not fit."""
        usual = "; grey area: usual" if self.usual else ""
        says = f"**{self.title}** by day, UTC; ring: {self.marked}{usual}\n\n"
        for days in range(MOST_DAYS, 1, -1):
            text = f"{says}![chart](<data:image/svg+xml,{_escaped(self._svg(days))}>)"
            if len(text) <= MOST_CHARACTERS:
                return text
        return says + _short(self.values[self.marked])

    def _svg(self, count: int) -> str:
        first = self.marked - timedelta(days=count - 1)
        shown = {day: value for day, value in sorted(self.values.items()) if first <= day <= self.marked}
        usual = {day: edges for day, edges in sorted(self.usual.items()) if first <= day <= self.marked}
        top = max([*shown.values(), *(high for _, high in usual.values())], default=0.0) or 1.0
        bottom = min(0.0, *shown.values())
        step = _WIDTH // count

        def x(day: date) -> int:
            return (day - first).days * step + step // 2

        def y(value: float) -> int:
            return round(_BOTTOM - (value - bottom) / (top - bottom) * (_BOTTOM - _TOP))

        area = "".join(f"M{x(day)} {y(low)}V{y(high)}" for day, (low, high) in usual.items())
        line = "".join(  # broken where a day is missing
            f"{' ' if day - timedelta(days=1) in shown else 'M'}{x(day)} {y(value)}" for day, value in shown.items()
        )
        ring = f"M{x(self.marked) - 5} {y(self.values[self.marked])}a5 5 0 1 0 10 0 5 5 0 1 0-10 0"
        return (
            f"<svg xmlns='http://www.w3.org/2000/svg' width='{_WIDTH}' height='{_HEIGHT}' fill='gray' font-size='11'>"
            f"<text y='11'>{_short(top)} {self.unit}</text>"
            f"<path d='{area}' stroke='gray' stroke-width='{step}' opacity='.3'/>"
            f"<path d='M0 {_BOTTOM}H{_WIDTH}{line}{ring}' fill='none' stroke='#38f'/>"
            f"<text y='{_HEIGHT - 2}'>{_short(bottom)}; {first:%-d %b}</text>"
            f"<text x='{_WIDTH}' y='{_HEIGHT - 2}' text-anchor='end'>{self.marked:%-d %b}</text></svg>"
        )


def _short(value: float) -> str:
    """Four digits at most, with k, M or G."""
    for factor, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= factor:
            return f"{value / (1e3 if letter == 'k' else factor):,.4g}{letter}"
    return f"{value:,.4g}"


def _escaped(svg: str) -> str:
    """What neither Markdown nor an address may hold as it is."""
    return svg.replace("<", "%3C").replace(">", "%3E").replace("#", "%23")
