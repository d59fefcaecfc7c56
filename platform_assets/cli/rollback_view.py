"""How a rollback looks, and that it ended, or is about to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from datetime import date
from typing import TYPE_CHECKING, Any

from platform_assets.cli.amounts_view import print_unread, sums_shown
from platform_assets.cli.console import console, say
from platform_assets.cli.grids import new_grid
from platform_assets.contracts import Catalogue
from platform_assets.planning.plan import Intake
from platform_assets.planning.windows import which
from platform_assets.records.history import Hold
from platform_assets.words import counted

if TYPE_CHECKING:
    from platform_assets.operations.lineage.amount_changes import AmountChanges
    from platform_assets.operations.lineage.ended_rollbacks import EndedRollback
    from platform_assets.operations.rollback.rollback import Rollback

_AGAIN = "they are computed again when their input or code is another one, or by `refresh --force`."
_LASTING = "held until a person lifts that, whatever input or code comes: `rollback --lift TABLE --days DAY`."
_UNTIL = (
    "One new row in what such a day is made from ends the rollback, and what was taken back counts again. For good, "
    "`withdraw` what was delivered wrongly, correct the code, or roll back with --until-lifted; `refresh --explain` "
    "names rollbacks that end."
)


def print_rollback(done: Rollback, amounts: AmountChanges, *, lasts: bool = False, ends: Iterable[Hold] = ()) -> None:
    """What a rollback does or would do, of whatever it is, what ends it again, and which others that last it ends."""
    title = "Rolled back" if done.release is not None else "Would be rolled back"
    counts = ("rows before", "rows after")  # the rollback, whether it was done or not
    named = ("amounts",) if amounts.by_day else ()
    grid = new_grid(title, ("table", "days", *counts, *named), right=counts, whole=("table", *named))
    for table, days in done.days.items():
        undone, back = zip(*(done.records[table, day] for day in days), strict=True)
        rows = sum(record.rows for record in back if record)
        told = [sums_shown(amounts.of(table, days))] if named else []
        grid.add_row(table, which(days), f"{sum(record.rows for record in undone):,}", f"{rows:,}", *told)
    console.print(grid)
    print_unread(amounts)
    lines = [
        *_without_content(done),
        f"{', '.join(done.raw)}: raw is append-only and stays; `withdraw` takes a delivery out." if done.raw else "",
        *(
            f"{table}: days that read these are stale then; the next refresh takes up those whose input is there."
            for table in done.stale
        ),
    ]
    if done.release is None:
        shows, will, did = "", "would be", "do"
    else:
        shows, will, did = f"Release {done.release} shows it. ", "are", "did"
    lines += [f"{h.table} {h.day} was {h.reason}: this ends that." for h in ends if (h.table, h.day) in done.records]
    lines += [
        f"{shows}All of these days {will} {_LASTING}"
        if lasts
        else f"{shows}Days whose inputs {did} not go back {will} held: {_AGAIN}",
        "" if lasts else _UNTIL,
        "Nothing was changed: this was a dry run." if done.release is None else "",
    ]
    for line in filter(None, lines):
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def _without_content(done: Rollback) -> Iterator[str]:
    """Days that become as if never computed; rows in quarantine go with a day, and are none that readers miss."""
    of_tables: defaultdict[str, list[date]] = defaultdict(list)
    aside: list[date] = []
    for (table, day), (undone, back) in sorted(done.records.items()):
        if back is None and not table.startswith("quarantine."):
            of_tables[table].append(day)
        elif back is None and undone.rows:
            aside.append(day)
    if of_tables:
        see, count = "see" if done.release is not None else "would see", sum(map(len, of_tables.values()))
        named = ", ".join(f"{table} {which(days)}" for table, days in of_tables.items())
        yield f"{counted(count, 'day')} had no content before: readers {see} nothing of {named}, as if never computed."
    if aside:
        goes = "would go" if done.release is None else "goes"
        yield f"The quarantine of {counted(len(aside), 'day')} ({which(aside)}) {goes}, too."


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
