"""Who has approved a backfill: different people, and never its owner, however a name is written."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from platform_assets.planning.backfill.consent import consent
from platform_assets.planning.backfill.plan_file import PlanFile
from platform_assets.records.decisions import PlanDecision

HASH = "25ae4916c48caffb"


def given(*names: str, owner: str = "ada", hash: str = HASH) -> tuple[str, ...]:
    said = {"name": "a", "reason": "a", "owner": owner, "tables": ["gold.a"], "days": {"stale": True}}
    decided = [
        PlanDecision("approval of a plan", "a", hash, reason="looked", who=name, created_at=datetime.now(UTC))
        for name in names
    ]
    return consent(PlanFile.model_validate(said), ("it is large",), HASH, decided).given


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
