"""What an exposure is told, and how long what could not be delivered waits."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date, timedelta

from hypothesis import given
from hypothesis import strategies as st

from platform_assets.planning.outbox import MOST_TRIES, key_of, message_of, next_try
from platform_assets.records.manifest import Warned
from platform_assets_tests.support.ledger_records import NOON, day_record, nth, publication_record

KEYS = st.text(st.sampled_from("0123456789abcdef"), min_size=32, max_size=32)
TRIES = st.integers(1, MOST_TRIES - 1)


@given(KEYS, TRIES)
def test_a_pause_is_at_least_its_own_and_a_fifth_longer_at_most(key: str, tries: int) -> None:
    due = next_try(key, tries, NOON)
    assert due is not None
    plain = timedelta(seconds=min(30 * 2 ** (tries - 1), 6 * 3600))
    assert plain <= due - NOON <= plain * 1.2
    assert due == next_try(key, tries, NOON), "the same question has the same answer"


@given(KEYS, st.integers(1, MOST_TRIES - 2))
def test_no_pause_is_shorter_than_the_one_before_but_for_the_jitter_of_the_longest(key: str, tries: int) -> None:
    first, second = next_try(key, tries, NOON), next_try(key, tries + 1, NOON)
    assert first is not None
    assert second is not None
    assert second > first or first - NOON >= timedelta(hours=6)


@given(KEYS, st.integers(MOST_TRIES, 10**9))
def test_what_was_tried_often_enough_is_given_up(key: str, tries: int) -> None:
    assert next_try(key, tries, NOON) is None


@given(KEYS)
def test_a_weekend_without_an_answer_is_not_enough_to_give_up(key: str) -> None:
    now = NOON
    for tries in range(1, MOST_TRIES):
        due = next_try(key, tries, now)
        assert due is not None
        now = due
    assert timedelta(hours=62) < now - NOON < timedelta(hours=76)


def test_messages_that_failed_together_are_not_tried_together_again() -> None:
    due = {next_try(key_of("a publication", f"exposure {n}"), 5, NOON) for n in range(100)}
    assert len(due) == 100


def test_a_message_says_which_days_of_which_tables_a_publication_changed_and_why() -> None:
    record = publication_record(7)
    changed: dict[str, list[date]] = {"gold.b": [nth(3), nth(1), nth(2), nth(9)], "gold.a": [nth(0)], "gold.c": []}
    message = message_of(record, "a dashboard", changed)
    assert message is not None
    assert message.title == ("Release 7 changed gold.a: 2017-01-01; gold.b: 2017-01-02..2017-01-04, 2017-01-10.")
    said = json.loads(message.body)
    assert said.pop("text") == f"{message.title}\n`because` (`Zoë`)"
    assert said == {
        "what": "published",
        "key": key_of("publication-0007", "a dashboard"),
        "exposure": "a dashboard",
        "release": 7,
        "publication": "publication-0007",
        "kind": "recompute",
        "tables": [
            {"table": "gold.a", "days": ["2017-01-01"], "days_in_all": 1},
            {"table": "gold.b", "days": ["2017-01-02..2017-01-04", "2017-01-10"], "days_in_all": 4},
        ],
        "warnings": [],
        "days_warned": 0,
        "why": "because",
        "by": "Zoë",
        "at": NOON.isoformat(),
    }
    assert message.key == said["key"]
    scattered = message_of(record, "a dashboard", {"gold.a": [nth(n) for n in (1, 3, 5, 7)]})
    assert scattered is not None
    assert scattered.title == "Release 7 changed gold.a: 2017-01-02, 2017-01-04, 2017-01-06 and 1 more."
    assert message_of(record, "a dashboard", {"gold.c": []}) is None
    assert key_of("p", "a") != key_of("p", "b")


def test_a_message_says_what_gates_found_of_the_days_that_changed_for_its_exposure() -> None:
    half = Warned(gate="volume", found="416 rows", expected="780 to 840 rows are usual")
    made = [replace(day_record("publication-0007", nth(n), table="gold.a"), warnings=(half,)) for n in range(30)]
    message = message_of(publication_record(7, made), "a dashboard", {"gold.a": [nth(n) for n in range(1, 30)]})
    assert message is not None
    said = json.loads(message.body)
    assert (said["days_warned"], len(said["warnings"])) == (29, 20)
    assert said["warnings"][0] == {"table": "gold.a", "day": "2017-01-02", **half.model_dump()}
    assert f"Of 29 days gates warned, first: `gold.a 2017-01-02 {half}`" in said["text"]
    other = message_of(publication_record(7, made), "a dashboard", {"gold.b": [nth(1)]})
    assert other is not None
    assert json.loads(other.body)["days_warned"] == 0, "of what it does not read it is told nothing"
