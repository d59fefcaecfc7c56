"""What lies in a stage, as a value."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from platform_assets.records.history import Hold
from platform_assets.records.manifest import DayContent, TableChange
from platform_assets.records.refused import Attempt
from platform_assets.records.staged_days import StagedDays

FIRST = date(2017, 1, 1)
TABLES = ("silver.a", "gold.b", "quarantine.a")

table_days = st.tuples(st.sampled_from(TABLES), st.integers(0, 5).map(lambda n: FIRST + timedelta(days=n)))
steps = st.lists(
    st.tuples(st.sampled_from(["good", "held", "over", "forget"]), st.sets(table_days, max_size=4)), max_size=8
)


def change(table: str, days: dict[date, int]) -> TableChange:
    contents = {
        day: DayContent(files=(), base=(), digest=f"{n}-0-0-0-0", rows=n, bytes=0, fingerprint=f"{n}")
        for day, n in days.items()
    }
    return TableChange(table=table, schema_string="{}", days=contents, seconds=1.0)


def hold(table: str, day: date, n: int) -> Hold:
    return Hold(table, day, Attempt(f"{n}"), "volume", "too few rows", "r", datetime(2017, 1, 1, tzinfo=UTC))


@given(steps)
def test_it_holds_what_came_last_of_every_day_and_nothing_of_days_taken_out(
    done: list[tuple[str, set[tuple[str, date]]]],
) -> None:
    """Against plain dictionaries."""
    staged = StagedDays()
    good: dict[tuple[str, date], int] = {}
    held: dict[tuple[str, date], Hold] = {}
    over: set[Hold] = set()
    for n, (what, days) in enumerate(done):
        by_table = {table: {day: n for name, day in days if name == table} for table in TABLES}
        match what:
            case "good":
                staged = staged.with_days([change(table, these) for table, these in by_table.items() if these])
                good |= dict.fromkeys(days, n)
            case "held":
                staged = staged.with_days([], [hold(*each, n) for each in days])
                held |= {each: hold(*each, n) for each in days}
            case "over":
                staged = staged.with_days([], [], [hold(*each, n) for each in days])
                over |= {hold(*each, n) for each in days}
            case _:
                for table, day in days:
                    staged = staged.without([table], [day])
                    good.pop((table, day), None)
                    held.pop((table, day), None)
                    over = {each for each in over if (each.table, each.day) != (table, day)}
        assert {(t, d): c.rows for t in TABLES for d, c in staged.of(t).items()} == good
        assert {(h.table, h.day): h for h in staged.holds} == held
        assert set(staged.over) == over
        assert staged.days == {t: tuple(sorted(d for name, d in good if name == t)) for t in {t for t, _ in good}}
    assert StagedDays.model_validate_json(staged.model_dump_json()) == staged
    assert staged.without(TABLES).days == {}
