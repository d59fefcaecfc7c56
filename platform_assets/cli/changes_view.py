"""Show what a rollback does and that it ended, and pairs of figures: rows, bytes, and the sums of amounts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import date
from typing import TYPE_CHECKING, Any

from platform_assets.contracts import Catalogue
from platform_assets.planning.plan import Intake
from platform_assets.planning.windows import which
from platform_assets.records.history import Hold
from platform_assets.report import Cell, Note, Pair, Part, Table, picked
from platform_assets.words import counted

if TYPE_CHECKING:
    from platform_assets.operations.lineage.amount_changes import AmountChanges
    from platform_assets.operations.lineage.day_history import EndedRollback
    from platform_assets.operations.rollback import Rollback

_SUMS_SHOWN = 4
_AGAIN = "they are computed again when their input or code is another one, or by `refresh --force`."
_LASTING = "held until a person lifts that, whatever input or code comes: `rollback --lift TABLE --days DAY`."
_UNTIL = (
    "One new row in what such a day is made from ends the rollback, and what was taken back counts again. For good, "
    "`withdraw` what was delivered wrongly, correct the code, or roll back with --until-lifted; `refresh --explain` "
    "names rollbacks that end."
)


def became(then: Any, now: Any, shown: Callable[[Any], str] = "{:,}".format) -> str:
    """Say what a figure was and is, once where that is the same; None is of what is not there."""
    before, after = ("not there" if number is None else shown(number) for number in (then, now))
    return after if before == after else f"{before} → {after}"


def sums_shown(moved: Mapping[str, tuple[Any, Any]]) -> tuple[str, ...]:
    """Say which sums differ, a line each; of many the first."""
    shown = tuple(f"sum of {name} {became(*pair)}" for name, pair in list(moved.items())[:_SUMS_SHOWN])
    return shown if len(moved) <= _SUMS_SHOWN else (*shown, f"and {len(moved) - _SUMS_SHOWN} more: --json")


def amounts_parts(changes: AmountChanges, days: Mapping[str, Collection[date]]) -> Iterator[Part]:
    """Show which sums of tables differ over some of their days, and of which tables they are not told."""
    numbers = ("before", "after", "difference")
    rows: list[tuple[str, ...]] = []
    for table, of_it in days.items():
        sums = changes.of(table, of_it)
        for name, (before, after) in list(sums.items())[:_SUMS_SHOWN]:
            pair = ("not there" if one is None else f"{one:,}" for one in (before, after))
            rows.append((table, name, *pair, "" if before is None or after is None else f"{after - before:+,}"))
        if len(sums) > _SUMS_SHOWN:
            rows.append((table, f"and {len(sums) - _SUMS_SHOWN} more: --json"))
    if rows:
        yield Table("Amounts", ("table", "sum of", *numbers), rows, numbers, ("table", "sum of"))
    yield from unread_parts(changes)


def unread_parts(changes: AmountChanges) -> Iterator[Part]:
    """Show of which tables amounts are not told."""
    yield from (Note("yellow", "amounts not told", f"{table}: {why}") for table, why in changes.unread.items())


def sums_json(moved: Mapping[str, Pair]) -> dict[str, Any]:
    """Return sums that differ, for programs."""
    return {name: {"before": before, "after": after} for name, (before, after) in moved.items()}


def rollback_parts(
    done: Rollback, amounts: AmountChanges, *, lasts: bool = False, ends: Iterable[Hold] = ()
) -> Iterator[Part]:
    """Show what a rollback does or would do, what ends it again, and which others that last it ends."""
    counts = ("rows before", "rows after")  # the rollback, whether it was done or not
    named = ("amounts",) if amounts.by_day else ()
    rows: list[tuple[Cell, ...]] = []
    for table, days in done.days.items():
        undone, back = zip(*(done.records[table, day] for day in days), strict=True)
        after = sum(record.rows for record in back if record)
        told = [sums_shown(amounts.of(table, days))] if named else []
        rows.append((table, which(days), f"{sum(record.rows for record in undone):,}", f"{after:,}", *told))
    title = "Rolled back" if done.release is not None else "Would be rolled back"
    yield Table(title, ("table", "days", *counts, *named), rows, counts, ("table", *named))
    yield from unread_parts(amounts)
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
    yield from filter(None, lines)


def _without_content(done: Rollback) -> Iterator[str]:
    """Name days that become as if never computed; rows in quarantine go with a day, and readers do not miss them."""
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
    """Name rollbacks that end if what waits for a raw table touches their days, which is not known yet."""
    for rollback in standing:
        made_from = catalogue.with_inputs([rollback.table])
        if waits := [intake.table for intake in intakes if intake.table in made_from]:
            it = "it" if len(rollback.days) == 1 else "one of them"
            yield f"{rollback.name} ends if what is taken for {' or '.join(waits)} touches {it}"


def ended_note(rollback: EndedRollback) -> Note:
    """Say that a rollback ends or ended; only a note where what it was about was withdrawn."""
    return Note("bold", "note", rollback.sentence) if rollback.is_done else Note("yellow", "look", rollback.sentence)


def ended_json(rollback: EndedRollback) -> dict[str, Any]:
    """Return it for programs."""
    ended_by = rollback.by.publication if rollback.by else None
    made = {"rollback": rollback.rollback.publication, "release": rollback.rollback.release, "ended_by": ended_by}
    return picked(rollback, "table days files withdrawn", **made)
