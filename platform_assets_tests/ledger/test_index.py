"""What is recorded comes back, once, on both databases, and adds up."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone
from random import Random

import pytest

from platform_assets.ledger.errors import LedgerError
from platform_assets.ledger.ledger import Ledger
from platform_assets.ledger.sync import day_records
from platform_assets.planning.selection import mixed
from platform_assets.records.decisions import LateDecision
from platform_assets.records.history import DayTotals, PublicationRecord
from platform_assets.records.manifest import DayContent, Manifest, Scope, TableChange
from platform_assets_tests.support.ledger_records import (
    NOON,
    RAW,
    TABLE,
    approval,
    arrival_record,
    day_record,
    hold,
    name_of,
    nth,
    publication_record,
    simple,
    year,
)


def _with_arrivals(release: int, *paths: str, **values: str | int) -> PublicationRecord:
    name = name_of(release)
    return publication_record(release, arrivals=[arrival_record(name, path, **values) for path in paths])  # type: ignore[arg-type]


def test_a_publication_comes_back_as_it_was_recorded(ledger: Ledger) -> None:
    name = name_of(1)
    days = [day_record(name, nth(0)), day_record(name, nth(1))]
    given = publication_record(1, days, [arrival_record(name, "transactions/2017-01-01/Größe 100% 'a';--.csv")])
    assert ledger.record(given) == 1
    assert ledger.publication(name) == given
    assert ledger.publication("another") is None


def test_the_moment_of_a_publication_is_utc_whatever_zone_it_was_given_in(ledger: Ledger) -> None:
    ledger.record(replace(simple(1, 0), created_at=NOON.astimezone(timezone(timedelta(hours=5)))))
    found = ledger.publication(name_of(1))
    assert found is not None
    assert found.created_at == NOON
    assert found.created_at.tzinfo == UTC


def test_a_moment_without_a_zone_is_refused_instead_of_guessed(ledger: Ledger) -> None:
    with pytest.raises(Exception, match="has no time zone"):
        ledger.record(replace(simple(1, 0), created_at=NOON.replace(tzinfo=None)))
    assert ledger.indexed() == {}


def test_recording_twice_is_recording_once(ledger: Ledger) -> None:
    record = year(1, tables=2, files=10)
    assert ledger.record(record) == 1
    before = ledger.publication(record.publication)
    assert ledger.record(record, record) == 0
    assert ledger.publication(record.publication) == before
    assert ledger.indexed() == {record.publication: 1}


def test_one_refused_record_leaves_nothing_of_its_transaction(ledger: Ledger) -> None:
    ledger.record(simple(1, 0))
    with pytest.raises(LedgerError, match="contradicts the ledger"):
        ledger.record(simple(2, 1), replace(simple(1, 2), release=9))
    assert ledger.indexed() == {name_of(1): 1}
    assert list(ledger.current_days(TABLE)) == [nth(0)]


def test_two_publications_of_one_release_are_refused(ledger: Ledger) -> None:
    ledger.record(simple(1, 0))
    with pytest.raises(LedgerError, match="ledger --rebuild"):
        ledger.record(publication_record(1, name="another"))


def test_parts_of_another_publication_are_a_mistake_of_the_caller() -> None:
    with pytest.raises(ValueError, match="holds parts of publication-0002"):
        publication_record(1, [day_record(name_of(2), nth(0))])


def test_the_history_of_a_day_is_newest_first(ledger: Ledger) -> None:
    ledger.record(simple(2, 1), simple(1, 0, 1), simple(3, 0))
    assert [record.publication for record in ledger.history(TABLE, nth(1))] == [name_of(2), name_of(1)]
    assert ledger.history(TABLE, nth(5)) == ()


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.proof) for seed in range(1, 4))])
def test_every_release_shows_the_same_in_whatever_order_publications_are_indexed(ledger: Ledger, seed: int) -> None:
    random = Random(seed)
    known: dict[int, set[int]] = {}
    for _ in range(12):
        if known and random.random() < 0.3:
            gone = random.sample(sorted(known), random.randint(1, min(2, len(known))))
            ledger.reindex([name_of(release) for release in gone], ())
            known = {release: days for release, days in known.items() if release not in gone}
        else:
            free = sorted(set(range(1, 40)) - known.keys())
            batch = {release: set(random.sample(range(4), 2)) for release in random.sample(free, random.randint(1, 3))}
            ledger.record(*(simple(release, *days) for release, days in batch.items()))
            known |= batch
        for at in range(40):
            shown = {
                nth(day): name_of(max(release for release in known if release <= at and day in known[release]))
                for day in sorted(set().union(*(days for release, days in known.items() if release <= at)))
            }
            found = {day: record.publication for day, record in ledger.current_days(TABLE, at=at).items()}
            assert found == shown
        assert ledger.current_days(TABLE) == ledger.current_days(TABLE, at=39)
        assert ledger.current_days(TABLE) == ledger.current_days(TABLE, at=39)


def test_an_emptied_day_is_loaded_and_empty(ledger: Ledger) -> None:
    empty = replace(day_record(name_of(1), nth(0)), rows=0, bytes=0, files=0, digest="0-0-0-0-0")
    ledger.record(publication_record(1, [empty]))
    assert ledger.current_days(TABLE) == {nth(0): empty}


def test_forgetting_everything_keeps_holds_and_decisions(ledger: Ledger) -> None:
    ledger.record(year(1, tables=1, files=3))
    ledger.hold([hold(nth(0))])
    ledger.decide(approval())
    ledger.reindex(ledger.indexed(), ())
    assert (ledger.indexed(), ledger.arrivals(), ledger.current_days("gold.table_0")) == ({}, (), {})
    assert len(ledger.holds()) == len(ledger.decisions(LateDecision)) == 1


def test_arrivals_are_listed_oldest_first_and_by_table(ledger: Ledger) -> None:
    ledger.record(_with_arrivals(2, "b", "a"), _with_arrivals(1, "c"))
    assert [arrival.path for arrival in ledger.arrivals()] == ["c", "a", "b"]
    assert ledger.arrivals(RAW) == ledger.arrivals()
    assert ledger.arrivals("raw.products") == ()


def test_the_newest_arrival_date_is_that_of_what_was_taken_up_to_a_release(ledger: Ledger) -> None:
    def came(release: int, n: int, reason: str | None = None) -> PublicationRecord:
        arrival = arrival_record(name_of(release), f"{n}.csv", reason=reason)
        arrival = arrival.model_copy(update={"arrival_date": nth(n)})
        return publication_record(release, arrivals=[arrival])

    ledger.record(came(1, 3), came(2, 1), came(3, 9, "is corrupt"), came(4, 5))
    assert [ledger.newest_arrival_date(RAW, at=release) for release in (0, 1, 3, 4)] == [None, nth(3), nth(3), nth(5)]
    assert ledger.newest_arrival_date("raw.products", at=4) is None


def test_the_newest_record_of_a_file_counts(ledger: Ledger) -> None:
    ledger.record(_with_arrivals(1, "a", reason="is corrupt"), _with_arrivals(2, "a"))
    newest = ledger.arrival(RAW, "a")
    assert newest is not None
    assert (newest.publication, newest.reason, newest.notes) == (name_of(2), None, ("a note",))
    assert ledger.arrival(RAW, "b") is None


def test_a_file_stands_refused_until_it_is_delivered_in_order(ledger: Ledger) -> None:
    ledger.record(_with_arrivals(1, "whole", reason="is corrupt"), _with_arrivals(2, "part", refused=3))
    ledger.record(_with_arrivals(3, "good"))
    assert [arrival.path for arrival in ledger.arrivals(refused_only=True)] == ["whole", "part"]
    ledger.record(_with_arrivals(4, "whole"))
    assert [arrival.path for arrival in ledger.arrivals(RAW, refused_only=True)] == ["part"]
    assert [arrival.path for arrival in ledger.arrivals()] == ["whole", "part", "good", "whole"]


def test_rows_of_a_replay_count_as_refused_until_they_entered(ledger: Ledger) -> None:
    ledger.record(_with_arrivals(1, "part", refused=3))
    in_vain = {"kind": "replay", "origin": "part", "landed": 3, "taken": 0, "refused": 0, "reason": "is corrupt"}
    for release, figures in ((2, in_vain), (3, {**in_vain, "taken": 1, "refused": 2, "reason": None})):
        ledger.record(
            publication_record(
                release,
                arrivals=[arrival_record(name_of(release), f"replayed/{release}/part").model_copy(update=figures)],
            )
        )
        assert ledger.refused_rows() == {RAW: 3 if release == 2 else 2}


def test_marks_are_what_the_newest_release_made_of_each_day(ledger: Ledger) -> None:
    ledger.record(simple(1, 0, 1), simple(2, 1, digest="4-a-b-c-d"), simple(5, 0, digest="5-a-b-c-d"))
    found = ledger.marks([TABLE], at=2)[TABLE]
    assert list(found) == [nth(0), nth(1)]
    assert {day: (mark.release, mark.digest) for day, mark in found.items()} == {
        nth(0): (1, "3-a-b-c-d"),
        nth(1): (2, "4-a-b-c-d"),
    }
    for day, record in ledger.current_days(TABLE, at=2).items():
        mark = found[day]
        shared = set(mark._fields) & set(vars(record))
        assert shared >= {"digest", "fingerprint", "rows", "bytes", "code_version", "configuration", "seconds"}
        assert {name: getattr(mark, name) for name in shared} == {name: getattr(record, name) for name in shared}
    assert ledger.marks(["gold.nothing"], at=9) == {"gold.nothing": {}}


@pytest.mark.parametrize("more", [0, 600], ids=["few", "more days than a database takes parameters"])
def test_days_can_be_asked_for_by_name_and_as_all_they_have_been(ledger: Ledger, more: int) -> None:
    ledger.record(simple(1, 0, 1, 2), simple(2, 1, digest="4-a-b-c-d"), simple(5, 1, digest="5-a-b-c-d"))
    named = [nth(1), *(nth(400 + n) for n in range(more))]
    assert list(ledger.current_days(TABLE, among=named)) == [nth(1)]
    found = ledger.revisions(TABLE, named, at=4)
    assert [(revision.release, revision.digest) for revision in found[nth(1)]] == [(1, "3-a-b-c-d"), (2, "4-a-b-c-d")]
    assert all(found[day] == () for day in named[1:])
    assert ledger.revisions(TABLE, [], at=4) == {}


def test_the_head_of_a_publication_comes_without_its_parts(ledger: Ledger) -> None:
    ledger.record(simple(1, 0))
    assert ledger.head(name_of(1)) == replace(simple(1, 0), days=())
    assert ledger.head("another") is None


OTHER, NEVER = "raw.transactions", "gold.never"


FIGURES: tuple[dict[str, int], ...] = (
    {},
    {"quarantined": 2},
    {"tombstones": 1, "withdrawals": 2},
    {"quarantined": 1, "tombstones": 1},
)


def test_totals_are_those_of_all_days_as_each_release_shows_them(ledger: Ledger) -> None:
    chance = Random(7)
    for release in range(6):
        name = name_of(release)
        days = [
            replace(day_record(name, nth(n), table=table, digest=chance.choice(["3-a-b-c-d", ""])), rows=n, figures=of)
            for table in (TABLE, OTHER)
            for n in chance.sample(range(8), 4)
            for of in [dict(chance.choice(FIGURES))]
        ]
        ledger.record(publication_record(release, days))
    for release in range(6):
        by_day = {table: ledger.current_days(table, at=release) for table in (TABLE, OTHER, NEVER)}
        assert ledger.counts.totals([TABLE, OTHER, NEVER], at=release) == {
            table: DayTotals(
                len(days),
                max(days, default=None),
                sum(day.delivered for day in days.values()),
                *(sum(day.figures.get(name, 0) for day in days.values()) for name in ("quarantined", "ahead")),
            )
            for table, days in by_day.items()
        }


def test_what_was_published_between_two_releases_is_told_by_table(ledger: Ledger) -> None:
    for release, numbers in enumerate([(0, 1), (1, 2), (3,)]):
        name = name_of(release)
        days = [day_record(name, nth(n)) for n in numbers] + [day_record(name, nth(release), table=OTHER)]
        ledger.record(publication_record(release, days))
    assert ledger.counts.published_between(0, 2) == {TABLE: {nth(1), nth(2), nth(3)}, OTHER: {nth(1), nth(2)}}
    assert ledger.counts.published_between(2, 2) == {}


DAY, SCOPED = date(2017, 1, 2), "gold.daily_sales"


SCOPE = Scope(
    keys={"store_id": ("330",)}, rows=1, made_from="f2", code_version=mixed("before", "now"), reads={"silver.x": 1}
)


def content(scope: Scope | None = None, restores: str = "") -> DayContent:
    fingerprint = mixed("f1", "f2")
    return DayContent(
        files=(), base=(), digest="1-1-1-1-1", fingerprint=fingerprint, rows=1, bytes=1, scope=scope, restores=restores
    )


def change_with(day: DayContent) -> TableChange:
    return TableChange(table=SCOPED, schema_string="{}", days={DAY: day}, reads={"silver.x": 9}, code_version="now")


def test_it_keeps_its_mixed_version_and_what_its_other_rows_were_made_from() -> None:
    made = change_with(content(SCOPE))
    manifest = Manifest(
        publication="one",
        created_at=datetime.now(UTC),
        kind="recompute",
        run="r",
        who="w",
        why="y",
        git_commit=None,
        tables=(made,),
    )
    assert Manifest.model_validate_json(manifest.model_dump_json()) == manifest
    taken_over = change_with(content(restores="one"))
    for records in (day_records(made, "one"), day_records(taken_over, "two", lambda name: manifest)):
        [record] = records
        assert (record.code_version, record.reads) == (SCOPE.code_version, {"silver.x": 1})
