"""How what became of a backfill looks: for people, and for programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from platform_assets.cli.console import console, say
from platform_assets.operations.backfill.pages import staged_share, standing
from platform_assets.operations.plan_record import BackfillRecord, plan_of
from platform_assets.planning.key_scope import shown_keys
from platform_assets.words import counted

if TYPE_CHECKING:
    from platform_assets.planning.backfill.backfill import Backfill
    from platform_assets.planning.backfill.standing import Standing
    from platform_assets.records.history import PublicationRecord


def print_records(records: Sequence[BackfillRecord], waits: Mapping[str, Sequence[str]]) -> None:
    """A line for each, and what each waits for below it."""
    if not records:
        console.print("No plan was applied yet. `plan apply FILE` applies one.", highlight=False, soft_wrap=True)
    for record in records:
        say(f"[bold]{record.name}[/]", standing(record))
        for sentence in waits[record.name]:
            say("  [yellow]waits[/]", sentence)


def print_unbegun(backfill: Backfill, waits: Sequence[str]) -> None:
    """A plan that nobody has applied yet, and what keeps it."""
    file = backfill.file
    say(f"[bold]{file.name}[/]", f"not begun: {counted(backfill.plan.days, 'day')} of tables, hash {backfill.hash}")
    for sentence in waits or ("Nothing keeps it: `platform-assets plan apply FILE`.",):
        say("  ", sentence)


def print_record(record: BackfillRecord, waits: Sequence[str] = (), now: Standing | None = None) -> None:
    """Where one stands, what it waits for, and what happened."""
    say(f"[bold]{record.name}[/]", standing(record, now))
    say("  why", f"{record.file.reason} ({record.file.owner})")
    if record.file.only is not None:
        say("  only", f"rows of {shown_keys(record.file.only)}; the others are carried over")
    if record.runs:
        say("  runs", ", ".join(record.runs))
    for sentence in waits:
        say("  [yellow]waits[/]", sentence)
    for event in record.events:
        by = f" ({event.who})" if event.who else ""
        say("  ", f"{event.at:%Y-%m-%d %H:%M:%S}  {event.what}{by}")


def record_json(record: BackfillRecord) -> dict[str, Any]:
    """The same for programs."""
    return record.model_dump(mode="json") | {"days": record.days, "staged_share": staged_share(record)}


def recomputed_json(head: PublicationRecord, *, rolled_back: bool) -> dict[str, Any]:
    """A publication that recomputed days, and of which plan; of none, where nobody planned it.

    Args:
        head: of the publication.
        rolled_back: whether that plan was rolled back since.
    """
    return {
        "release": head.release,
        "at": f"{head.created_at:%Y-%m-%d %H:%M:%S}",
        "plan": plan_of(head.run),
        "rolled_back": rolled_back,
        "publication": head.publication,
        "run": head.run,
        "who": head.who,
        "why": head.why,
    }
