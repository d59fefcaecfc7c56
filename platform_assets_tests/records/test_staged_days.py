"""Values that are written and read: what lies in a stage, what was refused, and digests, which add up."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from platform_assets.records.code_version import Attempt, Refused, TiedTo, Version
from platform_assets.records.differences import Digest
from platform_assets.records.history import Hold, StagedDays
from platform_assets.records.manifest import DayContent, TableChange

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


parts = st.integers(0, 2**62)


digests = st.builds(Digest, st.integers(0, 2**40), st.tuples(parts, parts, parts, parts))


@given(digests)
def test_a_digest_reads_back_as_it_was_written(digest):
    assert Digest.parse(str(digest)) == digest


@given(digests, digests, digests)
def test_the_order_in_which_parts_are_added_does_not_matter(a, b, c):
    assert (a + b) + c == c + (b + a)
    assert a + Digest() == a


DAY, OTHER = date(2017, 1, 1), date(2017, 1, 2)


AWKWARD = Attempt("f@g h", Version("by hand+engine1", "with 2017-01-02"))


def held(refused: Refused) -> Hold:
    return Hold("silver.sales", DAY, refused, "volume", "too few rows", "run", datetime(2017, 1, 3, tzinfo=UTC))


@pytest.mark.parametrize("refused", [AWKWARD, Attempt("f"), TiedTo(OTHER)])
def test_a_hold_in_a_document_of_a_stage_is_the_hold_it_was(refused: Refused) -> None:
    written = TypeAdapter(Hold).dump_json(held(refused))
    assert TypeAdapter(Hold).validate_json(written) == held(refused)


def test_what_a_rollback_refuses_is_in_its_manifest_part_by_part() -> None:
    change = TableChange(table="silver.sales", schema_string="{}", days={}, refuses={DAY: (AWKWARD,), OTHER: ()})
    assert change.model_dump(mode="json")["refuses"] == {
        "2017-01-01": [
            {"fingerprint": "f@g h", "made_by": {"code": "by hand+engine1", "configuration": "with 2017-01-02"}}
        ],
        "2017-01-02": [],
    }
    assert TableChange.model_validate_json(change.model_dump_json()) == change


def test_a_hold_refuses_an_input_by_whatever_code_and_a_tied_day_none() -> None:
    assert held(AWKWARD).refuses("f@g h")
    assert not held(AWKWARD).refuses("f")
    assert not held(TiedTo(OTHER)).refuses("")
