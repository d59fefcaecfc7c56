"""Which arrivals may be to blame for a held day."""

from __future__ import annotations

from datetime import date
from typing import Any

from platform_assets.planning.new_arrivals import RawDay, new_arrivals
from platform_assets.records.history import ArrivalRecord

DAY = date(2017, 1, 2)
RELEASED = {"p0": 0, "p1": 1, "p2": 2}


def arrival(path: str, publication: str, **changes: Any) -> ArrivalRecord:
    known: dict[str, Any] = {"table": "raw.t", "path": path, "arrival_date": DAY, "size": 1, "sha256": "0"}
    known |= {"modified_ns": 1, "taken": 1, "publication": publication}
    return ArrivalRecord(**(known | changes))


def named(*arrivals: ArrivalRecord, since: int = 0) -> list[str]:
    day = RawDay("raw.t", DAY, since, {each.path for each in arrivals} - {"elsewhere"})
    return [each.path for each in new_arrivals([day], arrivals, RELEASED)]


def test_those_that_came_since_the_last_good_content_are_named_newest_first() -> None:
    arrivals = arrival("old", "p0"), arrival("new", "p1"), arrival("newest", "p2"), arrival("elsewhere", "p2")
    assert named(*arrivals) == ["newest", "new"]
    assert named(*arrivals, since=-1) == ["newest", "new", "old"]


def test_what_was_withdrawn_counts_no_more() -> None:
    gone = arrival("withdrawal of new", "p2", kind="withdrawal", origin="new")
    assert named(arrival("new", "p1"), arrival("other", "p1"), gone) == ["other"]


def test_what_is_new_on_any_of_the_days_is_named_once() -> None:
    days = [RawDay("raw.t", DAY, 1, {"a"}), RawDay("raw.t", date(2017, 1, 3), 0, {"a"})]
    assert [each.path for each in new_arrivals(days, [arrival("a", "p1")], RELEASED)] == ["a"]
