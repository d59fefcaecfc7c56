"""Plots for pages of plans: SVG to stand within a page, legible without colour."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from html import escape
from io import StringIO

from platform_assets.planning.backfill.verdicts import Number

_BEFORE, _AFTER = "#8a5a00", "#0b57d0"
_MANY = 100
"""Days from which on marks would hide each other."""
_PROLOGUE = re.compile(r"^.*?(?=<svg)", re.DOTALL)
_BESIDES = re.compile(r"\s*<metadata>.*?</metadata>|\s*<defs>\s*<style.*?</style>\s*</defs>", re.DOTALL)
"""What Matplotlib says of itself, and a style for the whole page that the picture stands in."""


def before_and_after(title: str, values: Mapping[date, tuple[Number | None, Number]]) -> str:
    """Two lines by day: before is dashed with open circles, after is whole with filled squares.

    Args:
        title: what is shown, and of what; also the picture's name for whoever does not see it.
        values: before and after, by day; None before where there was nothing.
    """
    from matplotlib import rc_context
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, date2num
    from matplotlib.figure import Figure

    days = sorted(values)
    at = date2num(days)
    before = [float("nan") if values[day][0] is None else float(values[day][0] or 0) for day in days]
    after = [float(values[day][1]) for day in days]
    size, width = (5.0, 1.6) if len(days) <= _MANY else (0.0, 1.2)
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": title, "font.family": "sans-serif", "font.size": 9}):
        figure = Figure(figsize=(7.2, 2.3), layout="constrained")
        axes = figure.subplots()
        axes.plot(at, before, "o--", color=_BEFORE, mfc="white", ms=size, lw=width, label="before")
        axes.plot(at, after, "s-", color=_AFTER, ms=size, lw=width, label="after")
        axes.set_title(title, loc="left", fontsize=10)
        axes.set_ylim(bottom=min(0.0, *axes.get_ylim()))
        locator = AutoDateLocator()
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))
        axes.yaxis.set_major_formatter("{x:,.10g}")
        axes.grid(axis="y", alpha=0.3)
        axes.legend(loc="best", fontsize=8, framealpha=0.9)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
        out = StringIO()
        figure.savefig(out, format="svg", metadata={"Date": None})
    svg = _BESIDES.sub("", _PROLOGUE.sub("", out.getvalue()))
    return svg.replace("<svg ", f'<svg role="img" aria-label="{escape(title)}, before and after" ', 1)
