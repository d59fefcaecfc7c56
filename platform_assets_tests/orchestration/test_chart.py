"""The charts that Dagster draws in place: small enough, and legible without colour."""

from __future__ import annotations

import re
from datetime import date, timedelta
from urllib.parse import unquote
from xml.etree import ElementTree

import pytest

from platform_assets.orchestration.assets.pictures import MOST_CHARACTERS, MOST_DAYS, Chart

FIRST = date(2017, 1, 1)
DAYS = [FIRST + timedelta(days=n) for n in range(60)]


def picture(markdown: str) -> ElementTree.Element:
    [svg] = re.findall(r"<data:image/svg\+xml,(.*)>\)$", markdown)
    return ElementTree.fromstring(unquote(svg))


@pytest.mark.parametrize("most", [1, 650, 12_345, 9_876_543_210])
def test_four_weeks_with_what_is_usual_fit_where_dagster_shows_them(most: int) -> None:
    values = {day: most * (0.5 + 0.5 * (n % 7) / 6) for n, day in enumerate(DAYS)}
    usual = dict.fromkeys(DAYS, (most * 0.4, most * 0.9))
    text = Chart("rows of gold.sales_month_to_date", "rows", values, DAYS[-1], usual).markdown()
    assert len(text) <= MOST_CHARACTERS
    area, line = [path.attrib["d"] for path in picture(text).iter("{http://www.w3.org/2000/svg}path")]
    assert area.count("V") >= MOST_DAYS - 3
    assert "NaN" not in line


def test_a_chart_says_what_it_shows_of_which_days_and_where_its_axes_end() -> None:
    text = Chart("rows of silver.sales", "rows", dict.fromkeys(DAYS, 500.0), DAYS[40]).markdown()
    assert text.startswith("**rows of silver.sales** by day, UTC; ring: 2017-02-10")
    assert "usual" not in text
    written = [part.text for part in picture(text).iter("{http://www.w3.org/2000/svg}text")]
    assert written == ["500 rows", "0; 14 Jan", "10 Feb"]


def test_the_line_is_broken_where_a_day_is_missing() -> None:
    values = dict.fromkeys([DAYS[0], DAYS[1], DAYS[3]], 5.0)
    [_, line] = picture(Chart("rows of t", "rows", values, DAYS[3]).markdown()).iter("{http://www.w3.org/2000/svg}path")
    # The axis, two days, one day, and the ring.
    assert line.attrib["d"].count("M") == 4
