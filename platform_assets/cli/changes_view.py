"""Show differences: figures and sums before and after, what a rollback restores, columns and keys of days."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any

from platform_assets.contracts import Catalogue
from platform_assets.planning.plan import Intake
from platform_assets.planning.windows import which
from platform_assets.records.history import Hold
from platform_assets.report import Cell, Heading, Note, Pair, Part, Points, Report, Table, picked
from platform_assets.words import counted

if TYPE_CHECKING:
    from platform_assets.operations.backfill.afterwards import Comparison, PlanTable
    from platform_assets.operations.lineage.amount_changes import AmountChanges
    from platform_assets.operations.lineage.day_history import EndedRollback
    from platform_assets.operations.rollback import Rollback
    from platform_assets.operations.stages.compare import ColumnBeside, Example, Spread, StagedDay


_SUMS_SHOWN = 4
_AGAIN = "they are computed again when their input or code is another one, or by `refresh --force`."
_LASTING = "held until a person lifts that, also with new input or code: `undo rollback:TABLE --days DAY --reason …`."
_UNTIL = (
    "One new row in what such a day is made from ends the rollback, and what was taken back counts again. For good, "
    "`undo` what was delivered wrongly, correct the code, or roll back with --until-lifted; `refresh --explain` "
    "names rollbacks that end."
)


def became(then: Any, now: Any, shown: Callable[[Any], str] = "{:,}".format) -> str:
    """Describe a figure before and after, once if equal; None means not there."""
    before, after = ("not there" if number is None else shown(number) for number in (then, now))
    return after if before == after else f"{before} → {after}"


def sums_shown(moved: Mapping[str, tuple[Any, Any]]) -> tuple[str, ...]:
    """Return a line for each sum that differs; of many sums, the first ones."""
    shown = tuple(f"sum of {name} {became(*pair)}" for name, pair in list(moved.items())[:_SUMS_SHOWN])
    return shown if len(moved) <= _SUMS_SHOWN else (*shown, f"and {len(moved) - _SUMS_SHOWN} more: --json")


def amounts_parts(changes: AmountChanges, days: Mapping[str, Collection[date]]) -> Iterator[Part]:
    """Show sums of tables that differ over the days compared, and tables without sums."""
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
    """Show tables without amounts, with the reason."""
    yield from (Note("yellow", "amounts not shown", f"{table}: {why}") for table, why in changes.unread.items())


def sums_json(moved: Mapping[str, Pair]) -> dict[str, Any]:
    """Return sums that differ, as JSON."""
    return {name: {"before": before, "after": after} for name, (before, after) in moved.items()}


def rollback_parts(
    done: Rollback, amounts: AmountChanges, *, lasts: bool = False, ends: Iterable[Hold] = ()
) -> Iterator[Part]:
    """Show what a rollback does or would do, what ends it, and which lasting rollbacks it ends."""
    counts = ("rows before", "rows after")  # the rollback, whether it was done or not
    named = ("amounts",) if amounts.by_day else ()
    rows: list[tuple[Cell, ...]] = []
    for table, days in done.days.items():
        undone, back = zip(*(done.records[table, day] for day in days), strict=True)
        after = sum(record.rows for record in back if record)
        sums = [sums_shown(amounts.of(table, days))] if named else []
        rows.append((table, which(days), f"{sum(record.rows for record in undone):,}", f"{after:,}", *sums))
    title = "Rolled back" if done.release is not None else "Would be rolled back"
    yield Table(title, ("table", "days", *counts, *named), rows, counts, ("table", *named))
    yield from unread_parts(amounts)
    lines = [
        *_without_content(done),
        f"{', '.join(done.raw)}: raw is append-only and stays; `undo` takes a delivery out." if done.raw else "",
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
    """Name days that become as if never computed."""
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


def rollbacks_parts(
    catalogue: Catalogue,
    intakes: Collection[Intake],
    ending: Sequence[EndedRollback],
    standing: Iterable[EndedRollback],
) -> Iterator[Part]:
    """Show rollbacks that a plan ends, and rollbacks that end if a waiting delivery touches their days."""
    yield from map(ended_note, ending)
    known = {(one.table, one.rollback.publication) for one in ending}
    for one in standing:
        made_from = catalogue.with_inputs([one.table])
        waits = [intake.table for intake in intakes if intake.table in made_from]
        if waits and (one.table, one.rollback.publication) not in known:
            it = "it" if len(one.days) == 1 else "one of them"
            yield Note("yellow", "look", f"{one.name} ends if a delivery for {' or '.join(waits)} touches {it}")


def ended_note(rollback: EndedRollback) -> Note:
    """Say that a rollback ends or ended; a plain note if the rolled-back publication's arrival was withdrawn."""
    return Note("bold", "note", rollback.sentence) if rollback.is_done else Note("yellow", "look", rollback.sentence)


def ended_json(rollback: EndedRollback) -> dict[str, Any]:
    """Return an ended rollback as JSON."""
    ended_by = rollback.by.publication if rollback.by else None
    made = {"rollback": rollback.rollback.publication, "release": rollback.rollback.release, "ended_by": ended_by}
    return picked(rollback, "table days files withdrawn", **made)


_COLUMNS = ("column", "keys changed", "nulls", "distinct", "lowest", "highest", "mean")


def comparison_report(comparison: Comparison) -> Report:
    """Compare a plan with the release: tables, each column that differs with its distribution, then examples."""
    from platform_assets.operations.stages.compare import QUANTILES

    data = picked(
        comparison,
        "name release failed as_before",
        after=comparison.what,
        equal=comparison.is_equal,
        tables=[
            picked(
                table,
                "table columns examples",
                equal=table.is_equal,
                code={"before": table.code[0], "after": table.code[1]},
                days=[comparison_json(day) for day in table.days],
                quantiles=QUANTILES,
            )
            for table in comparison.tables
        ],
    )

    def parts() -> Iterator[Part]:
        yield Heading(f"Plan {comparison.name}, compared")
        yield Points([*_heads(comparison)])
        for table in comparison.tables:
            yield Points([_of_table(table)])
            yield from columns_parts(table.table, table.columns, table.examples)

    return Report(parts(), data, not comparison.is_equal)


def columns_parts(table: str, columns: Iterable[ColumnBeside], examples: Iterable[Example]) -> Iterator[Part]:
    """Show each column that differs with its distribution on both sides, then keys that differ."""
    if rows := [_cells(column) for column in columns if column.changed or column.before != column.after]:
        from platform_assets.operations.stages.compare import QUANTILES

        at = "/".join(f"{q:.0%}".removesuffix("%") for q in QUANTILES) + " %"  # where the last column has a value
        names = (*_COLUMNS, at)
        yield Table(f"Columns of {table}", names, rows, right=("keys changed",), quoted=names)
    if lines := [_example_text(example) for example in examples]:
        yield Points(lines, quoted=True)


def comparison_json(day: StagedDay) -> dict[str, Any]:
    """Return a compared day as JSON."""
    pairs = {"rows": day.rows, "keys": day.keys, **{f"sum of {name}": pair for name, pair in day.sums.items()}}
    sides = {name: {"before": pair[0], "after": pair[1]} for name, pair in pairs.items() if pair}
    return picked(day, "table day added removed changed", equal=day.is_equal, **sides)


def _heads(comparison: Comparison) -> Iterator[str]:
    yield (
        f"Before is release {comparison.release}, after is {comparison.what}: "
        f"{'nothing differs' if comparison.is_equal else 'they differ'}."
    )
    for table, failed in comparison.failed.items():
        for day, why in sorted(failed.items()):
            yield f"{table} {day} did not pass the gates of its contract, so there is nothing to compare: {why}"
    for table, days in comparison.as_before.items():
        yield f"{counted(len(days), 'day')} of {table} ({which(days)}) not computed: nothing that they read differs."


def _of_table(table: PlanTable) -> str:
    days, (old, new) = table.days, table.code
    equal = sum(day.is_equal for day in days)
    keys = ", ".join(f"{sum(getattr(day, how) for day in days):,} {how}" for how in ("added", "removed", "changed"))
    rows = became(sum(day.rows[0] for day in days), sum(day.rows[1] for day in days))
    which_days = f"{counted(len(days), 'day')} ({which([day.day for day in days])})"
    code = f"code {', '.join(old) or 'none'} → {new}"
    return f"{table.table}: {which_days}, {equal:,} equal; rows {rows}; keys {keys}; {code}"


def _cells(column: ColumnBeside) -> tuple[str, ...]:
    before, after = column.before, column.after
    return (
        column.name,
        f"{column.changed:,}",
        *(
            _beside(*(getattr(side, name) if side else None for side in (before, after)))
            for name in ("nulls", "distinct", "lowest", "highest", "mean")
        ),
        _beside(_quantiles(before), _quantiles(after)),
    )


def _beside(before: object, after: object) -> str:
    then, now = _value_text(before), _value_text(after)
    return now if then == now else f"{then} → {now}"


def _quantiles(side: Spread | None) -> str | None:
    return "/".join(map(_value_text, side.quantiles)) if side and side.quantiles else None


def _value_text(value: object) -> str:
    match value:
        case None:
            return "-"
        case float():
            return f"{value:,.4g}"
        case bool():
            return str(value).lower()
        case int():
            return f"{value:,}"
        case _:
            return str(value)


def _example_text(example: Example) -> str:
    what = "; ".join(f"{name} {_value_text(then)} → {_value_text(now)}" for name, (then, now) in example.values.items())
    return f"{example.how} {example.day}: {example.key}" + (f": {what}" if what else "")
