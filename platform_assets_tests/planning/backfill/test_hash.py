"""The hash that people approve is of all that is done, and of nothing that comes and goes without them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import date, timedelta

from platform_assets.contracts import Checks, Span
from platform_assets.planning.backfill.backfill import backfill_hash, gates_of
from platform_assets.planning.backfill.plan_file import PlanFile
from platform_assets.planning.backfill.rollout import RolloutStep, rollout_steps
from platform_assets.planning.selection import Request
from platform_assets.records.code_version import Version
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
