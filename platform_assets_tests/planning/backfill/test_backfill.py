"""The hash that people approve is of all that is done; who has approved it: different people, and never its owner."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest

from platform_assets.contracts import Checks, Span
from platform_assets.planning.backfill.backfill import approved_by, backfill_hash, gates_of
from platform_assets.planning.backfill.days import RolloutStep, rollout_steps
from platform_assets.planning.backfill.plan_file import PlanFile
from platform_assets.planning.selection import Request
from platform_assets.records.code_version import Version
from platform_assets.records.decisions import PlanDecision
from platform_assets_tests.support.catalogues import CALENDAR, chain, computed, planned

CATALOGUE = chain(Span(0, 0))
NAMED = CATALOGUE.names[1]
DAYS = tuple(CALENDAR.first + timedelta(number) for number in range(28))


def steps(volumes: Mapping[date, int], days: tuple[date, ...] = DAYS) -> tuple[RolloutStep, ...]:
    request = Request(frozenset({NAMED}), by_person=True, force=True, by_table={NAMED: frozenset(days)})
    plan = planned(CATALOGUE, computed(CATALOGUE), request)
    return rollout_steps(plan, days, [NAMED], (25, 100), CATALOGUE, CALENDAR, volumes)


def hash_of(
    found: tuple[RolloutStep, ...],
    code: str = "code",
    put_back: tuple[date, ...] = (),
    checks: Checks = CATALOGUE[NAMED].checks,
    **fields: object,
) -> str:
    said = {"name": "a", "reason": "a", "owner": "ada", "tables": ["gold.a"], "days": {"stale": True}}
    by_table = {NAMED: put_back} if put_back else {}
    gates = {NAMED: gates_of(replace(CATALOGUE[NAMED], checks=checks))}
    versions = {NAMED: Version(code, "contract")}
    return backfill_hash(PlanFile.model_validate(said | fields), found, versions, gates, by_table)


def test_rows_that_come_meanwhile_change_the_order_of_days_and_not_what_was_approved() -> None:
    before, now = steps(dict(zip(DAYS, range(28), strict=True))), steps(dict(zip(DAYS, range(28, 0, -1), strict=True)))
    assert before[0].days != now[0].days
    assert hash_of(before) == hash_of(now)


def test_other_days_other_code_and_another_file_need_another_approval() -> None:
    known = {
        hash_of(steps({})),
        hash_of(steps({}, DAYS[:-1])),
        hash_of(steps({}), "other"),
        hash_of(steps({}), cap_days=7),
        hash_of(steps({}), checks=Checks(volume="block")),
        hash_of(steps({}), put_back=DAYS[:1]),
        hash_of(steps({}), put_back=DAYS[:2]),
    }
    assert len(known) == 7


HASH = "25ae4916c48caffb"


def given(*names: str, owner: str = "ada", hash: str = HASH) -> tuple[str, ...]:
    said = {"name": "a", "reason": "a", "owner": owner, "tables": ["gold.a"], "days": {"stale": True}}
    decided = [
        PlanDecision("approval of a plan", "a", hash, reason="looked", who=name, created_at=datetime.now(UTC))
        for name in names
    ]
    return approved_by(PlanFile.model_validate(said), HASH, decided)


def test_each_person_counts_once_and_only_for_this_very_plan() -> None:
    assert given("zoe", "bob", "zoe") == ("bob", "zoe")
    assert given("bob", hash="another") == ()


@pytest.mark.parametrize("owner", ["ada", "Ada", "ada\n", "  ada", "ada\u00a0"])
@pytest.mark.parametrize("name", ["ada", "ADA", "ada ", "a\u200bda", "\uff41da"])
def test_the_owner_does_not_count_by_any_spelling(owner: str, name: str) -> None:
    assert given(name, owner=owner) == ()


@pytest.mark.parametrize("name", ["Bob", "bob ", "b\u00adob", "\uff42ob"])
def test_nobody_counts_twice_by_two_spellings(name: str) -> None:
    assert len(given("bob", name)) == 1
