"""What is told of a backfill once it has begun: one value for the page that is kept of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from operator import itemgetter

from platform_assets.engine.platform import Platform
from platform_assets.operations.backfill.files import written
from platform_assets.operations.backfill.staged import cores_of, kept_figures, stage_of
from platform_assets.operations.lineage.amount_changes import AmountChanges, Shown, amount_changes
from platform_assets.operations.plan_record import BackfillRecord
from platform_assets.planning.backfill.plan_file import Gate
from platform_assets.planning.backfill.verdicts import Figures, GateVerdict, Number, difference_percent, judged
from platform_assets.records.decisions import PlanDecision
from platform_assets.records.history import DayRecord
from platform_assets.records.manifest import DayContent


@dataclass(frozen=True)
class DayChange:
    """One day of one table; every pair is before and after.

    Args:
        rows: number of rows; None before where the day was never computed.
        bytes: of its files; None likewise.
        digests: of its whole content; empty likewise.
        figures: that the gates of the plan looked at; None where there were none.
    """

    table: str
    day: date
    rows: tuple[int | None, int]
    bytes: tuple[int | None, int]
    digests: tuple[str, str]
    figures: Figures | None = None

    @property
    def is_new(self) -> bool:
        """Whether it was never computed before."""
        return not self.digests[0]

    @property
    def is_equal(self) -> bool:
        """Whether it came out as it was."""
        return self.digests[0] == self.digests[1]

    def percent(self, column: str = "") -> Decimal:
        """Return how far the sum of a column, or the number of rows, is from what it was."""
        if column and self.figures:
            before, after = self.figures.sums.get(column, (0, 0))
            return difference_percent(Decimal(str(before)), Decimal(str(after)))
        return difference_percent(Decimal(self.rows[0] or 0), Decimal(self.rows[1]))


def day_changes(platform: Platform, record: BackfillRecord) -> tuple[DayChange, ...]:
    """Before and after of every day that a backfill published or has staged, by table and day."""
    figures = {(one.table, one.day): one for one in kept_figures(platform.lake, record.name)}
    after = _after(platform, record)
    before = _before(platform, record, after)
    changes = []
    for (table, day), now in sorted(after.items(), key=itemgetter(0)):
        was = before.get((table, day))
        rows, size = (was.rows, was.bytes) if was else (None, None)
        digests = (was.digest if was else "", now.digest)
        changes.append(DayChange(table, day, (rows, now.rows), (size, now.bytes), digests, figures.get((table, day))))
    return tuple(changes)


def changed_amounts(platform: Platform, record: BackfillRecord, changes: Iterable[DayChange]) -> AmountChanges:
    """Return what the days of a backfill come to, before and after; nothing while it is not published."""
    if record.release is None:
        return AmountChanges()
    before, after = record.release - 1, record.release
    return amount_changes(
        platform,
        {
            (one.table, one.day): (None if one.is_new else Shown(before, one.bytes[0] or 0), Shown(after, one.bytes[1]))
            for one in changes
            if not one.is_equal
        },
    )


def _after(platform: Platform, record: BackfillRecord) -> dict[tuple[str, date], DayRecord | DayContent]:
    if published := platform.ledger.publication(record.publication) if record.publication else None:
        return {(day.table, day.day): day for day in published.days}
    changes = stage.staged.tables if (stage := stage_of(platform, record.name)) else {}
    return {(table, day): content for table, change in changes.items() for day, content in change.days.items()}


def _before(
    platform: Platform, record: BackfillRecord, days: Iterable[tuple[str, date]]
) -> dict[tuple[str, date], DayRecord]:
    """Return these days before the publication of a backfill; as they are, while it has none."""
    among: dict[str, list[date]] = {}
    for table, day in days:
        among.setdefault(table, []).append(day)
    found = {}
    for table, of_table in among.items():
        for its_day, records in platform.ledger.histories(table, of_table).items():
            was = before_publication(records, record.publication)
            if was and was.digest:
                found[table, its_day] = was
    return found


def before_publication(records: Sequence[DayRecord], publication: str | None) -> DayRecord | None:
    """Return what a day was before a publication made something of it; what it is, where there is none yet.

    Args:
        records: all that it has ever been, newest first: by releases, since names go by the clocks of machines, and by
            when work was begun.
    """
    names = [one.publication for one in records]
    older = records[names.index(publication) + 1 :] if publication in names else records
    return older[0] if older else None


@dataclass(frozen=True)
class TableReport:
    """One table of a backfill.

    Args:
        days: before and after, oldest first.
        measure: column by whose sum days are compared; empty for their rows.
        amounts: sums that differ over all its days, before and after; None where no day is there.
    """

    table: str
    days: tuple[DayChange, ...]
    measure: str = ""
    amounts: Mapping[str, tuple[int | Decimal | None, int | Decimal | None]] = field(default_factory=dict)

    @property
    def changed(self) -> int:
        """How many days came out another one."""
        return sum(not day.is_equal for day in self.days)

    @property
    def rows(self) -> tuple[int, int]:
        """Of all its days, before and after."""
        return sum(day.rows[0] or 0 for day in self.days), sum(day.rows[1] for day in self.days)

    @property
    def bytes(self) -> tuple[int, int]:
        """Of all its days, before and after."""
        return sum(day.bytes[0] or 0 for day in self.days), sum(day.bytes[1] for day in self.days)

    @property
    def sums(self) -> dict[str, tuple[Decimal, Decimal]]:
        """Of every column of numbers that gates looked at, before and after."""
        totals: dict[str, tuple[Decimal, Decimal]] = {}
        for day in self.days:
            for name, (before, after) in day.figures.sums.items() if day.figures else ():
                was, now = totals.get(name, (Decimal(0), Decimal(0)))
                totals[name] = was + Decimal(str(before)), now + Decimal(str(after))
        return totals

    @property
    def told_sums(self) -> dict[str, tuple[Decimal | int, Decimal | int]]:
        """Amounts that differ, and every column that gates looked at; what is not there is nothing."""
        amounts = {name: (before or 0, after or 0) for name, (before, after) in self.amounts.items()}
        return {**amounts, **self.sums}

    def plotted(self, column: str = "") -> Mapping[date, tuple[Number | None, Number]]:
        """Return the sum of a column, or the number of rows, by day, before and after."""
        if not column:
            return {day.day: day.rows for day in self.days}
        there = [day for day in self.days if day.figures and column in day.figures.sums]
        return {
            day.day: (None if day.is_new else day.figures.sums[column][0], day.figures.sums[column][1])
            for day in there
            if day.figures
        }


@dataclass(frozen=True)
class MadeBy:
    """By what days of a table were made, so that they can be made again.

    Args:
        commits: of the repository that the code lies in; empty where it lies in none.
        reads: versions of the tables that were read, by table.
    """

    table: str
    code: tuple[str, ...]
    configuration: tuple[str, ...]
    commits: tuple[str, ...]
    reads: Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class Report:
    """All that is told of one.

    Args:
        plan: its file, as YAML.
        approvals: of the plan, of whatever hash, oldest first.
        gates: what those of the plan said, by share of the rollout.
    """

    record: BackfillRecord
    plan: str
    approvals: tuple[PlanDecision, ...]
    tables: tuple[TableReport, ...]
    gates: Mapping[int, tuple[GateVerdict, ...]]
    made_by: tuple[MadeBy, ...]
    cores: int | None

    @property
    def rows(self) -> int:
        """Written."""
        return sum(table.rows[1] for table in self.tables)

    @property
    def money(self) -> Decimal | None:
        """That it took so far; None without a price."""
        hourly = self.record.file.budget.price_per_core_hour
        if hourly is None or self.cores is None:
            return None
        return (Decimal(self.record.seconds) * self.cores * hourly / 3600).quantize(Decimal("0.01"))


def report(platform: Platform, record: BackfillRecord) -> Report:
    """Gather what is told of a backfill, from its record, the ledger and the chain of decisions."""
    tables, _ = table_reports(platform, record)
    return Report(
        record,
        written(record.file),
        tuple(said for said in platform.ledger.decisions(PlanDecision) if said.plan == record.name),
        tables,
        _gates(platform, record),
        _made_by(platform, record),
        cores_of(platform),
    )


def table_reports(platform: Platform, record: BackfillRecord) -> tuple[tuple[TableReport, ...], Mapping[str, str]]:
    """Return each table of a backfill before and after, inputs first; and why amounts of some are not told."""
    changes = day_changes(platform, record)
    measures = measures_of(record.file.gates)
    names = [*platform.catalogue.names, *sorted({day.table for day in changes}.difference(platform.catalogue.names))]
    amounts = changed_amounts(platform, record, changes)
    tables = tuple(
        TableReport(name, days, measures.get(name, ""), amounts.of(name, [day.day for day in days]))
        for name in names
        if (days := tuple(day for day in changes if day.table == name))
    )
    return tables, amounts.unread


def measures_of(gates: Sequence[Gate]) -> dict[str, str]:
    """Return the column by whose sum days of a table are compared, empty for their rows: by the first gate of either.

    Nulls, distributions and changed keys are no sums, and their columns need not be numbers.
    """
    return {gate.table: gate.column or "" for gate in reversed(gates) if gate.metric in ("rows", "keys", "sum")}


def _gates(platform: Platform, record: BackfillRecord) -> dict[int, tuple[GateVerdict, ...]]:
    """Return what each step of the rollout came to: all days up to it, by the figures that were kept."""
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


def _made_by(platform: Platform, record: BackfillRecord) -> tuple[MadeBy, ...]:
    published = platform.ledger.publication(record.publication) if record.publication else None
    days = published.days if published else ()
    return tuple(
        _of_table(name, of_table)
        for name in platform.catalogue.names
        if (of_table := [day for day in days if day.table == name])
    )


def _of_table(table: str, days: Sequence[DayRecord]) -> MadeBy:
    reads: dict[str, set[int]] = {}
    for day in days:
        for read, version in day.reads.items():
            reads.setdefault(read, set()).add(version)
    return MadeBy(
        table,
        tuple(sorted({day.code_version for day in days})),
        tuple(sorted({day.configuration for day in days})),
        tuple(sorted({day.git_commit for day in days if day.git_commit})),
        {read: tuple(sorted(versions)) for read, versions in sorted(reads.items())},
    )
