"""What is told of a backfill once it has begun: one value for the page that is kept of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal

from platform_assets.engine.platform import Platform
from platform_assets.operations.backfill.changes import DayChange, changed_amounts, day_changes
from platform_assets.operations.backfill.explain import cores_of
from platform_assets.operations.backfill.figures import kept_figures
from platform_assets.operations.backfill.files import written
from platform_assets.operations.plan_record import BackfillRecord
from platform_assets.planning.backfill.plan_file import Gate
from platform_assets.planning.backfill.verdicts import GateVerdict, Number, judged
from platform_assets.records.decisions import PlanDecision
from platform_assets.records.history import DayRecord


@dataclass(frozen=True)
class TableReport:
    """One table of a backfill.

    Args:
        table: its name.
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
        """The sum of a column, or the number of rows, by day, before and after."""
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
        table: its name.
        code: versions of its transform.
        configuration: of its contract.
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
        record: what became of it.
        plan: its file, as YAML.
        approvals: of the plan, of whatever hash, oldest first.
        tables: that it is about.
        gates: what those of the plan said, by share of the rollout.
        made_by: by what its published days were made.
        cores: that Spark computes with, where that is known.
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
    changes = day_changes(platform, record)
    measures = measures_of(record.file.gates)
    names = [*platform.catalogue.names, *sorted({day.table for day in changes}.difference(platform.catalogue.names))]
    amounts = changed_amounts(platform, record, changes)
    tables = tuple(
        TableReport(name, days, measures.get(name, ""), amounts.of(name, [day.day for day in days]))
        for name in names
        if (days := tuple(day for day in changes if day.table == name))
    )
    return Report(
        record,
        written(record.file),
        tuple(said for said in platform.ledger.decisions(PlanDecision) if said.plan == record.name),
        tables,
        _gates(platform, record),
        _made_by(platform, record),
        cores_of(platform),
    )


def measures_of(gates: Sequence[Gate]) -> dict[str, str]:
    """The column by whose sum days of a table are compared, empty for their rows: the first gate that has either says.

    Nulls, distributions and changed keys are no sums, and their columns need not be numbers.
    """
    return {gate.table: gate.column or "" for gate in reversed(gates) if gate.metric in ("rows", "keys", "sum")}


def _gates(platform: Platform, record: BackfillRecord) -> dict[int, tuple[GateVerdict, ...]]:
    """What each step of the rollout came to: all days up to it, by the figures that were kept."""
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
