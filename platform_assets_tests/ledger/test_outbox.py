"""Messages are there exactly if the publication is that they tell of, and each is taken by one sender at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from unittest.mock import ANY

import pytest
from hypothesis import given
from hypothesis import strategies as st

from platform_assets.ledger.ledger import Ledger
from platform_assets.planning.outbox import MOST_TRIES, key_of, next_try
from platform_assets.records.decisions import MessageDecision
from platform_assets.records.history import PublicationRecord
from platform_assets.records.outbox import Message
from platform_assets_tests.support.ledger_records import NOON, TABLE, day_record, name_of, nth, publication_record
from platform_assets_tests.support.shelf import in_process

CACHE = "a cache"


def told(release: int, *days: int, digest: str = "", name: str | None = None) -> PublicationRecord:
    """A publication of some days, which a cache is to be told of."""
    name = name or name_of(release)
    made = [day_record(name, nth(n), digest=digest or f"3-{release:x}-0-0-0") for n in days]
    return replace(publication_record(release, made, name=name), exposures={CACHE: (TABLE,)})


def now() -> datetime:
    return datetime.now(UTC)


def told_days(message: Message) -> list[str]:
    days: list[str] = json.loads(message.body)["tables"][0]["days"]
    return days


def test_a_publication_that_is_indexed_is_told_once_however_often_it_is_indexed(ledger: Ledger) -> None:
    ledger.record(told(0, 0, 1))
    ledger.record(told(0, 0, 1))
    [message] = ledger.outbox.messages()
    assert (message.key, message.publication, message.release) == (key_of(name_of(0), CACHE), name_of(0), 0)
    assert (message.target, message.state, message.tries) == (CACHE, "waiting", 0)
    assert told_days(message) == ["2017-01-01..2017-01-02"]
    assert message.due_at <= now()


def test_only_days_that_came_out_differently_are_told_of(ledger: Ledger) -> None:
    ledger.record(told(0, 0, 1, 2, digest="3-a-0-0-0"))
    ledger.record(told(1, 0, 1, 2, digest="3-a-0-0-0"))
    assert [message.release for message in ledger.outbox.messages()] == [0], "computed anew to the same"
    ledger.record(told(2, 1, digest="3-b-0-0-0"))
    ledger.record(told(3, 0, 1, 2, digest="3-a-0-0-0"))
    assert [told_days(message) for message in ledger.outbox.messages()[1:]] == [["2017-01-02"], ["2017-01-02"]]
    ledger.record(told(4, 0, digest=""), told(5, 0))
    assert [message.release for message in ledger.outbox.messages()[3:]] == [4, 5]


def test_several_publications_indexed_at_once_are_told_as_if_one_by_one(ledger: Ledger) -> None:
    """As where processes died before they could index what they had published."""
    ledger.record(told(0, 0))
    ledger.record(told(1, 0, 1), told(2, 1), told(3, 2))
    assert [(m.release, told_days(m)) for m in ledger.outbox.messages()] == [
        (0, ["2017-01-01"]),
        (1, ["2017-01-01..2017-01-02"]),
        (2, ["2017-01-02"]),
        (3, ["2017-01-03"]),
    ]


def test_a_rebuilt_ledger_tells_nothing_again_and_forgets_nothing(ledger: Ledger) -> None:
    records = [told(0, 0), told(1, 0), told(2, 0)]
    for record in records:
        ledger.record(record)
    first, second, _ = ledger.outbox.messages()
    ledger.outbox.delivered(first, NOON)
    ledger.outbox.drop(
        MessageDecision("drop", second.key, CACHE, second.publication, reason="no need", who="Zoë", created_at=NOON)
    )
    before = ledger.outbox.messages()
    ledger.reindex(list(ledger.indexed()), records)
    assert ledger.outbox.messages() == before
    ledger.reindex(list(ledger.indexed()), [*records, told(3, 0)])
    assert [message.release for message in ledger.outbox.messages(["waiting"])] == [2, 3], "what it lacked is told"


def test_a_ledger_made_anew_tells_of_the_newest_publication_alone(ledger: Ledger) -> None:
    """That one may be of a process that died; what of the others was delivered, only the lost ledger knew."""
    ledger.reindex((), [told(0, 0), told(1, 0), told(2, 0, 1)])
    assert [message.release for message in ledger.outbox.messages()] == [2]
    ledger.record(told(3, 0))
    assert [message.release for message in ledger.outbox.messages()] == [2, 3]


def test_a_ledger_that_follows_another_lake_tells_nothing_of_the_one_before(ledger: Ledger) -> None:
    ledger.record(told(0, 0))
    ledger.record(told(1, 0))
    others = [told(0, 0, name="another-0"), told(1, 0, name="another-1")]
    ledger.reindex(list(ledger.indexed()), others, lift=True)
    assert [message.publication for message in ledger.outbox.messages()] == ["another-1"]


def test_a_publication_that_is_not_in_the_lake_is_told_to_nobody_and_what_was_told_stays_known(ledger: Ledger) -> None:
    for release in (0, 1, 2):
        ledger.record(told(release, 0))
    _, second, _ = ledger.outbox.messages()
    ledger.outbox.delivered(second, NOON)
    ledger.reindex([name_of(1), name_of(2)], ())
    assert [(message.release, message.state) for message in ledger.outbox.messages()] == [
        (0, "waiting"),
        (1, "delivered"),
    ]


def test_one_sender_has_a_message_until_it_says_what_became_of_it_or_was_gone_for_too_long(ledger: Ledger) -> None:
    ledger.record(told(0, 0))
    start = now()
    taken = ledger.outbox.take([CACHE], start)
    assert taken is not None
    assert taken.tries == 1
    assert ledger.outbox.take([CACHE], start + timedelta(seconds=60)) is None
    assert ledger.outbox.take(["another"], start + timedelta(hours=1)) is None
    again = ledger.outbox.take([CACHE], start + timedelta(seconds=121))
    assert again is not None
    assert (again.key, again.body, again.tries) == (taken.key, taken.body, 2)
    ledger.outbox.failed(taken, "too late to count", None, now())
    assert ledger.outbox.messages()[0].state == "waiting", "another one has it now"
    ledger.outbox.delivered(again, now())
    assert ledger.outbox.take([CACHE], start + timedelta(days=9)) is None


def test_senders_that_all_die_do_not_go_on_for_ever(ledger: Ledger) -> None:
    ledger.record(told(0, 0))
    at = now()
    for tries in range(1, MOST_TRIES + 1):
        taken = ledger.outbox.take([CACHE], at)
        assert taken is not None
        assert taken.tries == tries
        at += timedelta(minutes=3)
    assert ledger.outbox.take([CACHE], at) is None
    [message] = ledger.outbox.messages()
    assert (message.state, message.settled_at) == ("given up", at)
    assert "died before it knew" in message.problem


def test_what_is_older_goes_first_and_what_failed_waits_until_it_is_due(ledger: Ledger) -> None:
    for release in (0, 1):
        ledger.record(replace(told(release, 0), created_at=NOON + timedelta(hours=release)))
    at = now()
    first = ledger.outbox.take([CACHE], at)
    assert first is not None
    assert first.release == 0
    ledger.outbox.failed(first, "answered 500", at + timedelta(minutes=5), at)
    second = ledger.outbox.take([CACHE], at)
    assert second is not None
    assert second.release == 1
    ledger.outbox.delivered(second, at)
    assert ledger.outbox.take([CACHE], at + timedelta(seconds=299)) is None
    again = ledger.outbox.take([CACHE], at + timedelta(seconds=300))
    assert again is not None
    assert (again.key, again.problem) == (first.key, "answered 500")


def test_what_a_person_drops_is_a_decision_and_only_once(ledger: Ledger) -> None:
    ledger.record(told(0, 0))
    [message] = ledger.outbox.messages()
    decision = MessageDecision(
        "drop", message.key, CACHE, message.publication, reason="it is switched off", who="Zoë", created_at=NOON
    )
    assert ledger.outbox.drop(decision)
    assert not ledger.outbox.drop(decision)
    assert len(ledger.decision_chain()) == 1
    assert ledger.outbox.open_by_target() == {}
    assert ledger.outbox.messages(["dropped"])[0].problem == "it is switched off"


def take_all(url: str, keys: Path) -> None:
    """Take messages as a sender does, until none is left."""
    with Ledger.open(url) as ledger, keys.open("w") as taken:
        while message := ledger.outbox.take([CACHE], now()):
            taken.write(f"{message.key}\n")
            ledger.outbox.delivered(message, now())


def test_two_senders_at_once_share_the_messages_and_none_is_taken_twice(url: str, tmp_path: Path) -> None:
    with Ledger.open(url) as ledger:
        ledger.record(told(0, 0))
        ledger.record(*(told(release, 0) for release in range(1, 20)))
    files = [tmp_path / "one", tmp_path / "other"]
    senders = [in_process(take_all, url, file, wait=False) for file in files]
    for sender in senders:
        sender.join()
    keys = [key for file in files for key in file.read_text().split()]
    assert len(keys) == len(set(keys)) == 20


def test_without_exposures_nothing_is_written(ledger: Ledger) -> None:
    ledger.record(replace(told(0, 0), exposures={}))
    assert ledger.outbox.messages() == ()


_MINUTES = st.integers(0, 10).map(lambda n: timedelta(minutes=n / 2))


def test_a_clock_that_was_set_back_by_a_day_keeps_no_message_waiting_for_a_day(ledger: Ledger) -> None:
    tomorrow = now() + timedelta(days=1)
    ledger.record(replace(told(0, 0), created_at=tomorrow))
    message = ledger.outbox.take([CACHE], tomorrow)
    assert message is not None
    assert ledger.outbox.take([CACHE], now()) == replace(message, tries=2, due_at=ANY), "who took it then is gone"
    ledger.record(replace(told(1, 1), created_at=tomorrow))
    new = ledger.outbox.take([CACHE], now())
    assert new is not None
    assert new.release == 1
    assert ledger.outbox.take([CACHE], now()) is None, "both are taken"


_STEPS = st.lists(st.tuples(_MINUTES, st.sampled_from(["taken", "refused", "dies", "dies after it was taken"])))


@pytest.fixture(scope="module")
def in_memory() -> Iterator[Ledger]:
    with Ledger.open("sqlite://") as opened:
        yield opened


@given(steps=_STEPS, messages=st.integers(1, 4))
def test_whatever_becomes_of_senders_every_message_arrives_and_no_two_have_one_at_a_time(
    in_memory: Ledger, steps: list[tuple[timedelta, str]], messages: int
) -> None:
    first = len(in_memory.indexed())
    target = f"cache {first}"
    told_of = [replace(told(first + n, 0), exposures={target: (TABLE,)}) for n in range(messages)]
    in_memory.record(*told_of)
    outbox, at = in_memory.outbox, now()
    arrived: set[str] = set()
    has_it_until: dict[str, datetime] = {}
    # Whatever happened first, somebody is there in the end, and takes what comes.
    for pause, what in [*steps, *[(timedelta(hours=8), "taken")] * messages * 2]:
        at += pause
        message = outbox.take([target], at)
        if message is None:
            continue
        assert message.key not in arrived or message.tries > 1
        assert at >= has_it_until.get(message.key, at)
        has_it_until[message.key] = message.due_at
        if what in ("taken", "dies after it was taken"):
            arrived.add(message.key)
        if what == "taken":
            outbox.delivered(message, at)
            has_it_until[message.key] = datetime.max.replace(tzinfo=UTC)
        elif what == "refused":
            outbox.failed(message, "no", next_try(message.key, message.tries, at), at)
            has_it_until.pop(message.key)
    states = {message.key: message.state for message in outbox.messages() if message.target == target}
    assert len(states) == messages
    assert {key for key, state in states.items() if state == "delivered"} <= arrived
    assert set(states.values()) <= {"delivered", "given up"}
