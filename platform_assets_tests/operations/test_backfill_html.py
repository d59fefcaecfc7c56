"""The page that is kept of a plan, on paper: what it shows of days, and that none of it needs colour or a script."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal

from platform_assets.operations.backfill.report import DayChange, TableReport, measures_of, record_parts
from platform_assets.operations.plan_record import BackfillRecord
from platform_assets.planning.backfill.pace import Figures, judged
from platform_assets.planning.backfill.plan_file import Gate, PlanFile
from platform_assets.report import page as page_of

FIRST = date(2016, 12, 30)
TABLE = "gold.tills"
FILE = PlanFile.model_validate(
    {
        "name": "tills",
        "reason": "taken twice",
        "owner": "ada",
        "tables": [TABLE],
        "days": {"list": [str(FIRST)]},
        "gates": [{"table": TABLE, "metric": "sum", "column": "paid", "tolerance_percent": 20}],
    }
)


def day(number: int, rows: tuple[int | None, int], paid: tuple[str, str], *, equal: bool = False) -> DayChange:
    its_day = FIRST + timedelta(number)
    before = "" if rows[0] is None else "1-1-1-1-1"
    sums = {"paid": (Decimal(paid[0]), Decimal(paid[1]))}
    figures = Figures(TABLE, its_day, (rows[0] or 0, rows[1]), (rows[0] or 0, rows[1]), sums)
    return DayChange(TABLE, its_day, rows, (rows[0], rows[1]), (before, before if equal else "2-2-2-2-2"), figures)


DAYS = (
    day(0, (10, 10), ("5.00", "5.00"), equal=True),
    day(1, (10, 11), ("5.00", "5.00")),
    day(2, (10, 10), ("1000.00", "1004.00")),
    day(3, (10, 10), ("1000.00", "1000.50")),
    day(4, (10, 10), ("100.00", "103.00")),
    day(5, (10, 10), ("10.00", "14.00")),
    day(6, (None, 3), ("0", "7.00")),
)


def page(days: tuple[DayChange, ...] = DAYS) -> str:
    record = BackfillRecord(
        name="tills", hash="0123456789abcdef", file=FILE, steps=({"share": 100, "days": {TABLE: [FIRST]}},), done=1
    )
    gates = {100: judged(FILE.gates, [one.figures for one in days if one.figures])}
    made_by = (TABLE, "c0de", "c0f", "in no repository", "silver.sales staged with it, 4")
    tables = (TableReport(TABLE, days, "paid"),)
    return page_of("tills", record_parts(record, tables, gates=gates, made_by=(made_by,), cores=2))


def test_every_day_says_in_signs_how_far_it_is_from_what_it_was() -> None:
    html = page()
    for shade, sign, says in (
        (0, "=", "2016-12-30: came out unchanged"),
        (1, "≠", "2016-12-31: other content, the sum of paid as before"),
        (2, "0.4", "2017-01-01: the sum of paid 0.40 % apart"),
        (2, "&lt;.1", "2017-01-02: the sum of paid 0.05 % apart"),
        (3, "3.0", "2017-01-03: the sum of paid 3.00 % apart"),
        (4, "40", "2017-01-04: the sum of paid 40.00 % apart"),
        (4, "new", "2017-01-05: never computed before"),
    ):
        assert f'<td class="s{shade}" title="{says}">{sign}</td>' in html, says
    assert html.index('scope="row">2016-12') < html.index('scope="row">2017-01')
    assert "staged with it, 4" in html
    assert "in no repository" in html
    assert "<strong>passed</strong>" in html


def test_days_are_measured_by_what_a_gate_sums_and_not_by_columns_of_other_gates() -> None:
    nulls, spread, paid, rows = (
        Gate(table=TABLE, metric=metric, column=column, tolerance_percent=Decimal(1))
        for metric, column in (("nulls", "store"), ("distribution", "store"), ("sum", "paid"), ("rows", None))
    )
    assert measures_of([nulls, spread]).get(TABLE, "") == "", "of a text there is no sum that would be as before"
    assert measures_of([nulls, paid, rows]) == {TABLE: "paid"}
    assert measures_of([nulls, rows, paid]) == {TABLE: ""}
