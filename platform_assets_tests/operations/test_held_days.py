"""Many held days about which there is the same to say are told as one. No Spark."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

from platform_assets.cli.console import console
from platform_assets.cli.held_view import print_held
from platform_assets.operations.lineage.held_days import HeldDay, together
from platform_assets.records.history import ArrivalRecord, Hold
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
        print_held(days)
    said = " ".join(printed.get().split())
    assert f"held {TABLE}, 4 days: 2017-01-01..2017-01-03,2017-01-05; each for the like of 2017-01-01, since" in said
    assert f"held {TABLE}, 3 days: 2017-01-10..2017-01-12; each for the like of 2017-01-10, since" in said
    assert said.count("platform-assets withdraw") == 1
    assert "sales/2017-02-01/a" in said
