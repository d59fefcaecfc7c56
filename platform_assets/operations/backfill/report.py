"""Report on a backfill: why, who, at what price, before and after, and how to repeat it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from types import MappingProxyType

from platform_assets.engine.platform import Platform
from platform_assets.operations.backfill.files import written
from platform_assets.operations.backfill.standing import cores_of, days_told, kept_figures, record_json, stage_of
from platform_assets.operations.lineage.amount_changes import AmountChanges, Shown, amount_changes
from platform_assets.operations.plan_record import BackfillRecord
from platform_assets.planning.backfill.pace import Figures, GateVerdict, difference_percent, judged
from platform_assets.planning.backfill.plan_file import Gate
from platform_assets.planning.selection import shown_keys
from platform_assets.planning.windows import which
from platform_assets.records.decisions import PlanDecision, signed
from platform_assets.records.history import DayRecord
from platform_assets.records.manifest import STAGED, DayContent
from platform_assets.report import (
    Calendar,
    Details,
    Figure,
    Heading,
    Listing,
    Note,
    Pair,
    Part,
    Plot,
    Points,
    Quote,
    Report,
)
from platform_assets.report import Table as Grid
from platform_assets.words import as_code, counted, lasting, size

_MOST_PLOTS = 3
"""Columns of a table that are plotted; what its gates look at first."""
_KEY = (
    "= as it was; ≠ other content, the same figure; a number: so many percent apart, darker from 1 and from 10 on; "
    "new: never computed before"
)


@dataclass(frozen=True)
class DayChange:
    """A day of a table; every pair is before and after.

    Args:
        rows: number of rows; None before if the day was never computed.
        bytes: bytes of its files; None likewise.
        digests: digests of its whole content; empty likewise.
        figures: figures for the gates of the plan; None without gates.
    """

    table: str
    day: date
    rows: tuple[int | None, int]
    bytes: tuple[int | None, int]
    digests: tuple[str, str]
    figures: Figures | None = None

    @property
    def is_equal(self) -> bool:
        """Return whether the day is unchanged."""
        return self.digests[0] == self.digests[1]

    def cell(self, measure: str) -> tuple[str, int, str]:
        """Return the day's cell of a calendar: its relative change, by a sum or by rows."""
        if not self.digests[0]:
            return "new", 4, f"{self.day}: never computed before"
        if self.is_equal:
            return "=", 0, f"{self.day}: came out unchanged"
        what = "rows"
        pair: tuple[Figure, Figure] = self.rows
        if measure and self.figures:
            what, pair = f"the sum of {measure}", self.figures.sums.get(measure, (0, 0))
        percent = difference_percent(*(Decimal(str(side or 0)) for side in pair))
        if not percent:
            return "≠", 1, f"{self.day}: other content, {what} as before"
        shade = 2 if percent < 1 else 3 if percent < 10 else 4
        short = f"{percent:.1f}" if percent < 10 else f"{percent:.0f}" if percent < 1000 else ">999"
        return "<.1" if percent < Decimal("0.1") else short, shade, f"{self.day}: {what} {percent:.2f} % apart"


@dataclass(frozen=True)
class TableReport:
    """A table of a backfill.

    Args:
        days: before and after, oldest first.
        measure: column whose sum compares days; empty to compare rows.
        amounts: sums that differ over all its days, before and after; None if no day exists.
    """

    table: str
    days: tuple[DayChange, ...]
    measure: str = ""
    amounts: Mapping[str, Pair] = field(default_factory=dict)

    @property
    def changed(self) -> int:
        """Return how many days changed."""
        return sum(not day.is_equal for day in self.days)

    def total(self, name: str) -> Pair:
        """Return the rows or bytes of all its days, before and after."""
        before, after = zip(*(getattr(day, name) for day in self.days), strict=True)
        return sum(filter(None, before)), sum(after)

    @property
    def sums(self) -> dict[str, tuple[Decimal, Decimal]]:
        """Return the sums of every numeric column that gates looked at, before and after."""
        totals: dict[str, tuple[Decimal, Decimal]] = {}
        for day in self.days:
            for name, (before, after) in day.figures.sums.items() if day.figures else ():
                was, now = totals.get(name, (Decimal(0), Decimal(0)))
                totals[name] = was + Decimal(str(before)), now + Decimal(str(after))
        return totals

    def plotted(self, column: str) -> Mapping[date, tuple[Figure, Figure]]:
        """Return the sum of a column, or the number of rows, by day, before and after."""
        if not column:
            return {day.day: day.rows for day in self.days}
        plotted: dict[date, tuple[Figure, Figure]] = {}
        for day in self.days:
            if day.figures and column in day.figures.sums:
                before, after = day.figures.sums[column]
                plotted[day.day] = (before if day.digests[0] else None, after)
        return plotted


def record_report(platform: Platform, record: BackfillRecord, most_days: int | None = None) -> Report:
    """Report on a backfill from its record, the ledger and the chain of decisions."""
    tables, unread = table_reports(platform, record)
    parts = record_parts(
        record,
        tables,
        unread=unread,
        approvals=tuple(said for said in platform.ledger.decisions(PlanDecision) if said.plan == record.name),
        gates=_gates(platform, record),
        made_by=tuple(_made_by(platform, record)),
        cores=cores_of(platform),
        most_days=most_days,
    )
    return Report(parts, record_json(record))


def record_parts(
    record: BackfillRecord,
    tables: Sequence[TableReport],
    *,
    unread: Mapping[str, str] = MappingProxyType({}),
    approvals: Sequence[PlanDecision] = (),
    gates: Mapping[int, tuple[GateVerdict, ...]] = MappingProxyType({}),
    made_by: Sequence[Sequence[str]] = (),
    cores: int | None = None,
    most_days: int | None = None,
) -> Iterator[Part]:
    """Show the report of a backfill.

    Args:
        unread: tables whose amounts are not shown, with the reason.
        approvals: of the plan, for any hash, oldest first.
        gates: results of the plan's gates, by share of the rollout.
        made_by: code, contract, commit and inputs of each table's published days.
        cores: cores of Spark, if known.
    """
    file = record.file
    yield Heading(f"Plan {record.name}: {record.state}", 1)
    yield Quote(file.reason)
    yield f"Owner {as_code(file.owner)}."
    if record.release is not None:
        yield f"Release {record.release}, publication `{record.publication}`: {days_told(record)}."
    if file.only is not None:
        yield f"Only rows of {as_code(shown_keys(file.only))}; the others were carried over."
    if (override := file.override_protected) is not None:
        yield f"Protected days of {override.days} were computed all the same: {as_code(override.reason)}."
    yield Details("", [*_approvals(record, approvals), *_cost(record, tables, cores)])
    yield from _before_and_after(record, tables, unread, most_days)
    yield Details("", [*_verdicts(record, gates)])
    yield Heading("Timeline")
    took = f"took {record.seconds:,.1f} s; {size(record.bytes)} staged"
    yield f"Explained {record.explained_seconds:,.1f} s, {took}."
    if record.runs:
        yield f"Runs: {', '.join(map(as_code, record.runs))}."
    happened = [(f"{event.at:%Y-%m-%d %H:%M:%S}", event.what, event.who) for event in record.events]
    yield Grid("", ("when", "what", "who"), happened, quoted=("what", "who"))
    yield Heading("Rollout")
    steps = ((step.share, table, days) for step in record.steps for table, days in step.days.items())
    rollout = [(f"{share} %", table, f"{len(days):,}", which(days)) for share, table, days in steps]
    yield Grid("", ("rollout", "table", "days", "which"), rollout, right=("rollout", "days"))
    yield Heading("To do it again")
    again = f"`platform-assets admin verify backfill:{record.name}` computes all of it again, and compares checksums."
    yield f"Hash `{record.hash}`. {again} `platform-assets undo backfill:{record.name}` puts exactly these days back."
    made = Grid("", ("table", "code", "contract", "commit", "read"), made_by, quoted=("code", "contract"))
    yield Details("", [*([made] if made_by else []), "The plan, as it was applied:", Listing(written(file))])


def _approvals(record: BackfillRecord, approvals: Sequence[PlanDecision]) -> Iterator[Part]:
    yield Heading("Approvals")
    if not approvals:
        yield "It was not approved; `approvals` in the plan says whether that was required."
        return
    rows = []
    for said in approvals:
        which_one = "this one" if said.hash == record.hash else "another one"
        by = signed(said.who, said.as_user, said.on_host)
        rows.append((f"{said.created_at:%Y-%m-%d %H:%M:%S}", by, said.hash, which_one, said.reason))
    yield Grid("", ("when, UTC", "who", "hash", "", "why"), rows, quoted=("hash", "why"))


def _cost(record: BackfillRecord, tables: Sequence[TableReport], cores: int | None) -> Iterator[Part]:
    yield Heading("Cost")
    between, hourly = record.explained_between, record.file.budget.price_per_core_hour
    ends = f", {lasting(between[0])} to {lasting(between[1])}" if between else ""
    rows = [
        ("time of computing", f"{lasting(record.explained_seconds)}{ends}", lasting(record.seconds)),
        ("written", size(record.explained_bytes), size(record.bytes)),
        ("rows", f"{record.explained_rows:,}", f"{sum(table.total('rows')[1] or 0 for table in tables):,}"),
    ]
    known = None if hourly is None or cores is None else Decimal(record.seconds) * cores * hourly / 3600
    if record.explained_money or known is not None:
        spent = "unknown" if known is None else str(known.quantize(Decimal("0.01")))
        rows.append(("money", record.explained_money or "unknown", spent))
    yield Grid("", ("", "estimated", "actual"), rows, right=("estimated", "actual"))


def _before_and_after(
    record: BackfillRecord, tables: Sequence[TableReport], unread: Mapping[str, str], most_days: int | None
) -> Iterator[Part]:
    """Show rows and amounts per table, then day by day; before publication, the staged ones."""
    if not tables:
        return
    yield Heading("Before and after")
    days = [day for table in tables for day in table.days]
    if all(day.is_equal for day in days):
        yield f"Nothing changed: {counted(len(days), 'day')} of tables came out unchanged."
    numbers = ("days", "of these changed", "rows before", "rows after", "difference", "size before", "size after")
    rows = []
    for table in tables:
        changed = str(table.changed or "nothing changed")
        sizes = (size(int(side or 0)) for side in table.total("bytes"))
        rows.append((table.table, f"{len(table.days):,}", changed, *_compared(table.total("rows")), *sizes))
    yield Grid("", ("table", *numbers), rows, right=numbers)
    beside = ("before", "after", "difference")
    sums = [(one.table, *of) for one in tables for of in {**one.amounts, **one.sums}.items()]
    if sums:
        amounts = [(table, name, *_compared(pair)) for table, name, pair in sums]
        yield Grid("Amounts", ("table", "sum of", *beside), amounts, right=beside)
    if unread:
        yield Points([f"Amounts of {name} are not shown: {why}." for name, why in unread.items()])
    for table in tables:
        cells = {day.day: day.cell(table.measure) for day in table.days}
        nothing = [] if table.changed else ["Nothing changed: all its days came out unchanged."]
        calendar = Calendar(f"Days of {table.table} by change", _KEY, cells)
        yield Details("", [Heading(table.table, 3), calendar, *nothing, *_plots(table)])
    of_days = []
    for day in days[:most_days]:
        digests = (day.digests[0], "the same" if day.is_equal else day.digests[1])
        was = "" if day.rows[0] is None else f"{day.rows[0]:,}"
        of_days.append((day.table, str(day.day), was, f"{day.rows[1]:,}", *digests))
    names = ("table", "day", "rows before", "rows", "digest before", "digest")
    each = Grid("", names, of_days, right=names[2:4], quoted=names[4:])
    yield Details(f"{counted(len(days), 'day')} with checksums", [each], everywhere=True)
    if more := len(days) - len(of_days):
        yield f"And {counted(more, 'more day')}: `platform-assets backfill report {record.name}`."


def _compared(pair: Pair) -> tuple[str, str, str]:
    """Return cells of a figure before and after, and of the difference."""
    (before, after), (was, now) = pair, ("not there" if one is None else f"{one:,}" for one in pair)
    if before is None or after is None:
        return was, now, ""
    difference = after - before
    percent = f" ({difference / before:+.2%})" if before else ""
    return was, now, f"{difference:+,}{percent}" if difference else "0"


def _plots(table: TableReport) -> Iterator[Part]:
    moved = [name for name, (was, now) in table.sums.items() if was != now]
    for column in ("", *sorted(moved, key=lambda name: name != table.measure)[:_MOST_PLOTS]):
        values = table.plotted(column)
        if len(values) > 1 and any(before != after for before, after in values.values()):
            yield Plot(f"{table.table}: {f'sum of {column}' if column else 'rows'}", values)


def _verdicts(record: BackfillRecord, gates: Mapping[int, Sequence[GateVerdict]]) -> Iterator[Part]:
    yield Heading("Gates")
    yield "Every staged day passed the gates of its table's contract, or it would not be here. Those of the plan:"
    if not gates:
        yield "None has looked at a day yet." if record.file.gates else "It has none of its own."
    for share, verdicts in gates.items():
        yield Heading(f"at {share} %", 3)
        for one in verdicts:
            text = "; ".join([one.sentence, *one.worst])
            yield Note("green", "passed", text) if one.passed else Note("red", "failed", text)


def table_reports(platform: Platform, record: BackfillRecord) -> tuple[tuple[TableReport, ...], Mapping[str, str]]:
    """Return each table of a backfill before and after, by name; and tables without amounts, with the reason."""
    changes = day_changes(platform, record)
    measures = measures_of(record.file.gates)
    amounts = changed_amounts(platform, record, changes)
    by_table: dict[str, list[DayChange]] = {}
    for change in changes:
        by_table.setdefault(change.table, []).append(change)
    tables = tuple(
        TableReport(name, tuple(days), measures.get(name, ""), amounts.of(name, [day.day for day in days]))
        for name, days in by_table.items()
    )
    return tables, amounts.unread


def day_changes(platform: Platform, record: BackfillRecord) -> tuple[DayChange, ...]:
    """Return every published or staged day of a backfill before and after, by table and day."""
    figures = {(one.table, one.day): one for one in kept_figures(platform.lake, record.name)}
    changes: list[DayChange] = []
    for table, days in sorted(_after(platform, record).items()):
        histories = platform.ledger.histories(table, list(days))
        for day, now in sorted(days.items()):
            was = before_publication(histories.get(day, ()), record.publication)
            was = was if was and was.digest else None
            rows, size = (was.rows if was else None, now.rows), (was.bytes if was else None, now.bytes)
            digests = (was.digest if was else "", now.digest)
            changes.append(DayChange(table, day, rows, size, digests, figures.get((table, day))))
    return tuple(changes)


def _after(platform: Platform, record: BackfillRecord) -> dict[str, Mapping[date, DayRecord | DayContent]]:
    """Return the published or staged records of a backfill's days, by table."""
    if published := platform.ledger.publication(record.publication) if record.publication else None:
        names = dict.fromkeys(day.table for day in published.days)
        return {name: {day.day: day for day in published.days if day.table == name} for name in names}
    stage = stage_of(platform, record.name)
    return {table: change.days for table, change in stage.staged.tables.items()} if stage else {}


def before_publication(records: Sequence[DayRecord], publication: str | None) -> DayRecord | None:
    """Return a day's record before a publication, or its newest without one. `records` are newest first."""
    names = [one.publication for one in records]
    older = records[names.index(publication) + 1 :] if publication in names else records
    return older[0] if older else None


def changed_amounts(platform: Platform, record: BackfillRecord, changes: Sequence[DayChange]) -> AmountChanges:
    """Return the amounts of a backfill's days, before and after; nothing until it is published."""
    if (after := record.release) is None:
        return AmountChanges()
    sides = {
        (day.table, day.day): (
            Shown(after - 1, day.bytes[0] or 0) if day.digests[0] else None,
            Shown(after, day.bytes[1]),
        )
        for day in changes
        if not day.is_equal
    }
    return amount_changes(platform, sides)


def measures_of(gates: Sequence[Gate]) -> dict[str, str]:
    """Return the column whose sum compares days of a table, from its first gate on rows or a sum; empty for rows.

    Nulls, distributions and changed keys are not sums, and their columns need not be numbers.
    """
    return {gate.table: gate.column or "" for gate in reversed(gates) if gate.metric in ("rows", "keys", "sum")}


def _gates(platform: Platform, record: BackfillRecord) -> dict[int, tuple[GateVerdict, ...]]:
    """Return the gate results of each step of the rollout, from the recorded figures of all days up to it."""
    figures = kept_figures(platform.lake, record.name)
    verdicts: dict[int, tuple[GateVerdict, ...]] = {}
    so_far: set[tuple[str, date]] = set()
    for number, step in enumerate(record.steps):
        so_far |= {(table, day) for table, days in step.days.items() for day in days}
        there = [one for one in figures if (one.table, one.day) in so_far]
        if number > record.done or not there:
            break
        verdicts[step.share] = judged(record.file.gates, there)
    return verdicts


def _made_by(platform: Platform, record: BackfillRecord) -> Iterator[Sequence[str]]:
    """Yield code, contract, commit and inputs of each table's published days, so that they can be computed again."""
    published = platform.ledger.publication(record.publication) if record.publication else None
    for name in platform.catalogue.names if published else ():
        if days := [day for day in published.days if day.table == name] if published else []:
            made = [
                " ".join(sorted({text for day in days if (text := getattr(day, of))}))
                for of in ("code_version", "configuration", "git_commit")
            ]
            read = sorted({(table, version) for day in days for table, version in day.reads.items()})
            names = dict.fromkeys(table for table, _ in read)
            reads = (f"{one} {', '.join(_version(v) for table, v in read if table == one)}" for one in names)
            yield name, *made[:2], made[2] or "in no repository", "; ".join(reads)


def _version(number: int) -> str:
    return "staged with it" if number == STAGED else str(number)
