"""How what became of a backfill looks: for people, as a page to keep, and for programs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import TYPE_CHECKING, Any

from platform_assets.cli.console import console, say
from platform_assets.cli.plan_view import size
from platform_assets.operations.backfill.record import BackfillRecord, plan_of
from platform_assets.planning.windows import which
from platform_assets.visible import as_code
from platform_assets.words import counted

if TYPE_CHECKING:
    from platform_assets.engine.platform import Platform
    from platform_assets.records.history import PublicationRecord


def print_records(records: Sequence[BackfillRecord]) -> None:
    """A line for each."""
    if not records:
        console.print("No plan was applied yet. `plan apply FILE` applies one.", highlight=False)
    for record in records:
        say(f"[bold]{record.name}[/]", _standing(record))


def print_record(record: BackfillRecord) -> None:
    """Where one stands, and what happened."""
    say(f"[bold]{record.name}[/]", _standing(record))
    say("  why", f"{record.file.reason} ({record.file.owner})")
    for event in record.events:
        by = f" ({event.who})" if event.who else ""
        say("  ", f"{event.at:%Y-%m-%d %H:%M:%S}  {event.what}{by}")


def record_json(record: BackfillRecord) -> dict[str, Any]:
    """The same for programs."""
    return record.model_dump(mode="json") | {"days": record.days, "staged_share": _share(record)}


def record_markdown(platform: Platform, record: BackfillRecord) -> list[str]:
    """A page to keep: why, who, what, before and after per table, what happened, and how to do it again."""
    file = record.file
    lines = [f"# Plan {record.name}: {record.state}", "", as_code(file.reason), "", f"Owner {as_code(file.owner)}."]
    if record.release is not None:
        lines.append(f"Release {record.release}, publication `{record.publication}`.")
    lines += ["", "| rollout | table | days |", "| ---: | --- | --- |"]
    for step in record.steps:
        for table, days in step.days.items():
            lines.append(f"| {step.share} % | {table} | {len(days):,}: {which(days)} |")
    published = platform.ledger.publication(record.publication) if record.publication else None
    if published:
        lines += [
            "",
            "| table | day | rows before | rows | digest before | digest |",
            "| --- | --- | ---: | ---: | --- | --- |",
        ]
        among: dict[str, list[date]] = {}
        for day in published.days:
            among.setdefault(day.table, []).append(day.day)
        histories = {table: platform.ledger.histories(table, days) for table, days in among.items()}
        for day in published.days:
            earlier = [one for one in histories[day.table][day.day] if one.publication < day.publication]
            before = max(earlier, key=lambda one: one.publication, default=None)
            was = (f"{before.rows:,}", before.digest) if before else ("", "")
            lines.append(f"| {day.table} | {day.day} | {was[0]} | {day.rows:,} | `{was[1]}` | `{day.digest}` |")
    lines += [
        "",
        f"Explained {record.explained_seconds:,.1f} s, took {record.seconds:,.1f} s; {size(record.bytes)} staged.",
    ]
    lines += ["", "| when | what | who |", "| --- | --- | --- |"]
    for event in record.events:
        lines.append(
            f"| {event.at:%Y-%m-%d %H:%M:%S} | {as_code(event.what)} | {as_code(event.who) if event.who else ''} |"
        )
    return [*lines, "", f"Hash `{record.hash}`. `platform-assets plan replay {record.name}` computes all of it again."]


def recomputed_json(head: PublicationRecord) -> dict[str, Any]:
    """A publication that recomputed days, and of which plan; of none, where nobody planned it."""
    return {
        "release": head.release,
        "at": f"{head.created_at:%Y-%m-%d %H:%M:%S}",
        "plan": plan_of(head.run),
        "publication": head.publication,
        "run": head.run,
        "who": head.who,
        "why": head.why,
    }


def _standing(record: BackfillRecord) -> str:
    shown = f" in release {record.release}" if record.release is not None else f" at {_share(record)} %"
    left = max(record.explained_seconds - record.seconds, 0)
    time = f"{record.seconds:,.0f} s computed" + ("" if record.release is not None else f", about {left:,.0f} s left")
    return f"{record.state}{shown}: {counted(record.days, 'day')} of tables, {size(record.bytes)}, {time}"


def _share(record: BackfillRecord) -> int:
    return record.steps[record.done - 1].share if record.done else 0
