"""How it looks that a rollback ended, or is about to."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from platform_assets.cli.console import say
from platform_assets.contracts import Catalogue
from platform_assets.planning.plan import Intake

if TYPE_CHECKING:
    from platform_assets.operations.lineage.ended_rollbacks import EndedRollback


def may_end_lines(
    catalogue: Catalogue, intakes: Collection[Intake], standing: Iterable[EndedRollback]
) -> Iterator[str]:
    """Rollbacks that end if what waits for a raw table touches their days: which it touches, nobody knows yet."""
    for rollback in standing:
        made_from = catalogue.with_inputs([rollback.table])
        if waits := [intake.table for intake in intakes if intake.table in made_from]:
            it = "it" if len(rollback.days) == 1 else "one of them"
            yield f"{rollback.name} ends if what is taken for {' or '.join(waits)} touches {it}"


def print_ended(rollback: EndedRollback) -> None:
    """That a rollback ends or ended; only a note where what it was about was withdrawn."""
    say("[bold]note[/]" if rollback.is_done else "[yellow]look[/]", rollback.sentence)


def ended_json(rollback: EndedRollback) -> dict[str, Any]:
    """The same for programs."""
    return {
        "table": rollback.table,
        "days": list(rollback.days),
        "rollback": rollback.rollback.publication,
        "release": rollback.rollback.release,
        "files": list(rollback.files),
        "withdrawn": list(rollback.withdrawn),
        "ended_by": rollback.by.publication if rollback.by else None,
    }
