"""Approving a backfill: a person's decision about the very thing that was explained."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from platform_assets.engine.platform import Author, Platform
from platform_assets.errors import PlatformError
from platform_assets.operations.backfill.explain import explain
from platform_assets.planning.backfill.backfill import Backfill
from platform_assets.planning.backfill.consent import is_same, people
from platform_assets.planning.backfill.plan_file import PlanFile
from platform_assets.records.decisions import PlanDecision


class ApprovalError(PlatformError):
    """A backfill cannot be approved as somebody asks."""


def approve(platform: Platform, file: PlanFile, hash: str, author: Author) -> Backfill:
    """Write down that somebody approves a backfill as it was explained.

    Args:
        platform: as it is now.
        file: the plan.
        hash: that `explain` showed to whoever approves.
        author: who approves, and why.

    Returns:
        The backfill, with the approval.

    Raises:
        ApprovalError: it comes to something else by now, something is in the way of it, or its owner approves.
    """
    backfill = explain(platform, file)
    if backfill.hash != hash:
        raise ApprovalError(
            f"The plan {file.name} is {backfill.hash} now, not {hash}: its file, the days that it comes to, or "
            "the code that computes them is another one.",
            "Look at it again with `platform-assets plan explain`, and approve that.",
        )
    if is_same(author.who, file.owner):
        raise ApprovalError(
            f"{author.who} owns the plan {file.name}, and nobody approves what is his own.",
            "Ask somebody else: `platform-assets plan approve … --by NAME`.",
        )
    if backfill.blocking:
        first = backfill.blocking[0]
        raise ApprovalError(f"The plan {file.name} cannot begin: {first.told}", first.todo)
    platform.ledger.decide(PlanDecision("approval of a plan", file.name, hash, **author.signature(datetime.now(UTC))))
    given = people([*backfill.consent.given, author.who])
    return replace(backfill, consent=replace(backfill.consent, given=given))
