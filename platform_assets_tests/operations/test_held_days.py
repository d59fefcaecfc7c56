"""Many held days about which there is the same to say are told as one. No Spark."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

from platform_assets.cli.console import console, print_parts
from platform_assets.cli.held_view import held_parts
from platform_assets.operations.lineage.held_days import HeldDay, together
from platform_assets.records.history import ROLL_BACK, ArrivalRecord, Hold
from platform_assets.records.refused import Attempt, TiedTo

TABLE = "silver.sales"
NOW = datetime(2017, 2, 1, tzinfo=UTC)


def arrival(name: str) -> ArrivalRecord:
    return ArrivalRecord(
        path=f"sales/2017-02-01/{name}", table="raw.sales", arrival_date=NOW.date(), size=1, sha256="0",
        modified_ns=0, publication="p",
    )  # fmt: skip


def held(number: int, *new: str, tied_to: int | None = None) -> HeldDay:
    day = date(2016, 12, 31) + timedelta(days=number)
    refused = Attempt("f") if tied_to is None else TiedTo(date(2016, 12, 31) + timedelta(days=tied_to))
    gate, reason = ("volume", "too few rows") if tied_to is None else ("conservation", "records moved")
    hold = Hold(TABLE, day, refused, gate, f"{TABLE} on {day}: {reason}", "a run", NOW)
    return HeldDay(hold, NOW, None, None, tuple(arrival(name) for name in new))


def numbers(days: list[HeldDay]) -> list[list[int]]:
    return [[day.hold.day.timetuple().tm_yday for day in group] for group in together(days)]


def test_many_days_with_the_same_to_say_are_one() -> None:
    days = [held(1, "a"), held(2, "a"), held(3, "b"), held(4, "a"), held(5, "b"), held(6)]
    assert numbers(days) == [[1, 2, 4], [3], [5], [6]]


def test_days_that_are_tied_to_another_are_one_whatever_is_new_on_them() -> None:
    days = [held(1, "a", tied_to=4), held(2, "b", tied_to=4), held(3, tied_to=4), held(4, "c"), held(5, tied_to=6)]
    assert numbers(days) == [[1, 2, 3], [4], [5]]


def test_what_is_printed_of_many_days_names_each_of_them_and_each_command_once() -> None:
    days = [held(n, "a") for n in (1, 2, 3, 5)] + [held(n, "b", tied_to=1) for n in (10, 11, 12)]
    with console.capture() as printed:
        print_parts(held_parts(days))
    said = " ".join(printed.get().split())
    assert f"held {TABLE}, 4 days: 2017-01-01..2017-01-03,2017-01-05; each for the like of 2017-01-01, since" in said
    assert f"held {TABLE}, 3 days: 2017-01-10..2017-01-12; each for the like of 2017-01-10, since" in said
    assert said.count("platform-assets withdraw") == 1
    assert "sales/2017-02-01/a" in said


def said_of(days: list[HeldDay], *, in_short: bool = False) -> str:
    with console.capture() as printed:
        print_parts(held_parts(days, in_short=in_short))
    return " ".join(printed.get().split())


def test_where_there_is_news_besides_a_few_lines_stand_for_all_held_days() -> None:
    days = [held(n, f"{n}") for n in range(1, 10)]
    assert said_of(days).count("too few rows") == 9
    said = said_of(days, in_short=True)
    assert said.count("too few rows") == 5
    assert "held 4 more days; `platform-assets stale` names them" in said


def test_nobody_is_told_to_compute_by_force_what_was_put_back_without_hearing_that_it_ends_the_rollback() -> None:
    refused, other = held(1), held(2)
    put_back = replace(other, hold=replace(other.hold, gate=ROLL_BACK))
    assert "--force" not in said_of([refused])
    assert "tried again" not in said_of([put_back])
    assert "2017-01-02 --force` would end the rollback at once." in said_of([put_back])
    assert "tried again" in said_of([refused, put_back])


def test_whoever_sees_a_day_held_that_may_be_right_is_told_how_it_is_accepted() -> None:
    accept = "Right, only unusual? `platform-assets accept"
    assert f"{accept} {TABLE} --days 2017-01-01 --reason … --by …` publishes it." in said_of([held(1)])
    assert f"{accept} TABLE --days DAY" in said_of([held(1), held(2)])
    assert "accept" not in said_of([held(1, tied_to=2)]), "what conservation found cannot be true"
