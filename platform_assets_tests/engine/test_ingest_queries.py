"""Taking a small delivery asks Spark to parse it; what is counted and looked up then is read from files."""

from __future__ import annotations

from platform_assets.engine.ingest.ingest import ingest
from platform_assets.engine.platform import Author
from platform_assets_tests.support.prepared import Lakes, Prepared
from platform_assets_tests.support.queries import asked
from platform_assets_tests.support.world import World, sale

DAYS = ("2017-01-05", "2017-01-06")


def taken(lakes: Lakes) -> World:
    """Two days of sales in raw."""
    world = lakes.new()
    for number, day in enumerate(DAYS):
        world.deliver_rows("transactions", day, f"{day}.jsonl", [sale(100 * number + n, 1, day) for n in range(9)])
    world.refresh()
    return world


def test_two_files_are_taken_in_a_query_and_rows_that_do_not_enter_raw_in_one_more_each(prepared: Prepared) -> None:
    world = prepared(taken)
    again = {"updated_at": "2017-02-01T11:00:00Z"}
    broken, late = sale(1, 2, DAYS[0], quantity="x"), sale(1, 3, "2016-09-01")
    with world.open() as platform:
        contract = platform.catalogue["raw.transactions"]
        for n, (more, queries) in enumerate([([], 1), ([broken], 2), ([broken, late], 3)]):
            for number, day in enumerate(DAYS):
                rows = [sale(100 * number + n, 1, day, **again), *more]
                world.deliver_rows("transactions", "2017-01-31", f"{n}-{day}.jsonl", rows)
            with asked(world.spark) as found:
                done = ingest(platform, lambda: world.spark, contract, Author("test", "a test"))
            figures = {(arrival.taken, arrival.refused, arrival.late) for arrival in done.arrivals}
            assert figures == {(1, int(broken in more), int(late in more))}
            assert found.queries == queries, found.plans
            assert found.jobs <= queries + int(bool(more))  # the files with refused rows go to every task
        moved = sale(0, 1, DAYS[1], updated_at="2017-02-01T12:00:00Z")
        world.deliver_rows("transactions", "2017-01-31", "moved.jsonl", [moved])
        done = ingest(platform, lambda: world.spark, contract, Author("test", "a test"))
    tombstones = {str(day): content.figures["tombstones"] for day, content in done.published.items()}
    assert tombstones == dict(zip(DAYS, (1, 0), strict=True))
