"""Audit of an installation: its lake, whether the ledger agrees, and with Spark the content of its days."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from functools import cache
from typing import TYPE_CHECKING
from zlib import crc32

from platform_assets.errors import PlatformError
from platform_assets.lakehouse.delta import commits
from platform_assets.lakehouse.errors import LakeError, MovedLakeError, OtherHistoryError
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.releases import manifest_of, newest_release, published
from platform_assets.lakehouse.storage.location import Location
from platform_assets.lakehouse.storage.parquet import damage, opened, other_length
from platform_assets.ledger.holds import of_publication
from platform_assets.ledger.ledger import Ledger
from platform_assets.ledger.sync import recorder, require_one_history
from platform_assets.operations.audit_logs import ChainAudit, ChainHead, Check, Findings, Scope, TableAudit
from platform_assets.planning.steps import batches
from platform_assets.planning.windows import as_named
from platform_assets.progress import OnProgress, Progress
from platform_assets.records.chain import Entry, Head, Heads, breaks
from platform_assets.records.decisions import Decision, LiftDecision, PublicationDecision, from_content
from platform_assets.records.differences import Digest
from platform_assets.records.history import PublicationRecord
from platform_assets.records.manifest import DataFile, change_of
from platform_assets.settings import Settings
from platform_assets.words import counted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from platform_assets.spark.session.on_demand import SparkOnDemand


def look_at_files(table: TableAudit) -> None:
    """Check the files of a table in the newest release; with `every_release` also files of older ones."""
    rows: defaultdict[date, int] = defaultdict(int)
    broken: set[date] = set()
    for path, (file, of) in sorted(_looked_at(table)):
        held = _rows(table, file, of)
        if path not in table.live:
            continue
        if held is None:
            broken.add(of)
        else:
            rows[of] += held
    for day, content in sorted(table.recorded.items(), key=str):
        if day and content.digest and table.scope.has_day(day) and day not in broken:
            table.findings.seen["rows"] += 1
            if rows[day] != content.rows:
                table.findings.fault(
                    "rows",
                    f"The files of {table.table} {day} hold {rows[day]:,} rows; {content.rows:,} were published.",
                    repair_of(table.table, day),
                    table=table.table,
                    day=day,
                )


def read_contents(tables: Sequence[TableAudit], budget: int | None, turn: int, progress: OnProgress) -> str:
    """Read this turn's files page by page; over all turns every file is read once.

    Args:
        tables: after `look_at_files`; files that it found damaged are not read.
        budget: approximate bytes to read in one turn; None means all.
        turn: the number of the day; the next day reads the next part.

    Returns:
        What a person should know about what was left out; empty if nothing was.
    """
    wanted = [
        (table, table.lake.table_path(table.table) / path, file, day)
        for table in tables
        for path, (file, day) in sorted(_looked_at(table))
    ]
    turns = turns_for(sum(file.size for _, _, file, _ in wanted), budget)
    broken = {fault.file for table in tables for fault in table.findings.faults}
    due = [each for each in wanted if crc32(f"{each[0].table}/{each[2].path}".encode()) % turns == turn % turns]
    for number, (table, place, file, day) in enumerate(due, start=1):
        progress(Progress("reading", "files", number, len(due), "file", finished=number == len(due)))
        if str(place) not in broken:
            table.findings.seen["contents"] += 1
            if problem := damage(place, file.size):
                _fault(table, "contents", file, day, place, problem)
    if turns == 1:
        return ""
    return (
        f"{len(due):,} of {len(wanted):,} files were read page by page; with one audit a day every file is read "
        f"within {turns:,} days. --read-mb reads more at once, --read-all everything."
    )


def turns_for(size: int, budget: int | None) -> int:
    """Return how many turns reading so many bytes takes, each about the budget, rounded up to a power of two.

    When a lake grows, the number of turns doubles: a day that was late in the old turns is read in the second half of
    the new ones at the latest. While less is added than is read, no file waits longer than three times the old number.
    """
    if budget is None:
        return 1
    return 1 << max(0, -(-size // max(budget, 1)) - 1).bit_length()


def _looked_at(table: TableAudit) -> Iterator[tuple[str, tuple[DataFile, date]]]:
    older = table.every_file if table.scope.every_release else {}
    for path, (file, day) in {**older, **table.live}.items():
        if day is not None and table.scope.has_day(day):
            yield path, (file, day)


def _rows(table: TableAudit, file: DataFile, day: date) -> int | None:
    """Return the number of rows in a file; None if it is not the published file."""
    import pyarrow as pa  # which the heads of the chains do without

    table.findings.seen["files"] += 1
    path = table.lake.table_path(table.table) / file.path
    problem = other_length(path, file.size)
    if not problem:
        try:
            with opened(path) as parquet:
                rows: int = parquet.metadata.num_rows
                return rows
        except (pa.ArrowInvalid, OSError) as error:
            problem = f"cannot be read ({str(error).splitlines()[0].rstrip('.')})"
    _fault(table, "files", file, day, path, problem)
    return None


def _fault(table: TableAudit, check: Check, file: DataFile, day: date, place: Location, problem: str) -> None:
    table.findings.fault(
        check,
        f"The file {file.path} of {table.table} {day} {problem}.",
        repair_of(table.table, day),
        table=table.table,
        day=day,
        file=place,
    )


def repair_of(table: str, *days: date) -> str:
    """Return the remedy for damaged days: delivered rows exist nowhere else, other days can be computed again."""
    if table.startswith(("silver.", "gold.")):
        named = ",".join(as_named(days))
        again = f"`platform-assets refresh {table} --days {named} --force`"
        whose, it = ("day's", "it") if len(days) == 1 else ("days'", "them")
        return f"Restore the {whose} files from a backup, or compute {it} again: {again}."
    return "Restore the day's files from a backup."


def audit(
    lake: Lake, scope: Scope, findings: Findings, progress: OnProgress
) -> tuple[ChainAudit, dict[str, TableAudit]]:
    """Audit a lake without disturbing readers and publishers. Ignores their changes during the audit."""
    newest = newest_release(lake)
    chain = ChainAudit(lake, newest, findings)
    tables: dict[str, TableAudit] = {}
    for shown in chain.walk(parse=not scope.fast):
        for name in {*shown.versions, *tables}:
            if scope.has_table(name):
                tables.setdefault(name, TableAudit(lake, name, scope, findings)).follow(shown)
        progress(Progress("following", "releases", shown.number + 1, newest + 1, "release"))
    begun: dict[str, str] = {}
    for name, table in sorted(tables.items()):
        progress(Progress("checking", name))
        begun |= dict.fromkeys(table.look_beyond(), name)
        if table.is_whole and not scope.fast:
            table.look_at_checkpoint()
            look_at_files(table)
        days = [content for day, content in table.recorded.items() if table.scope.has_day(day)]
        rows = sum(content.rows for content in days) if days else None
        progress(Progress("checking", name, len(days), len(days), rows=rows, finished=True))
    if not scope.fast and scope.read_bytes != 0:
        whole = [table for _, table in sorted(tables.items()) if table.is_whole]
        if left := read_contents(whole, scope.read_bytes, datetime.now(UTC).toordinal(), progress):
            findings.notes.append(left)
    with suppress(LakeError):  # the next audit reports problems of releases since this one began
        for _, publication in published(lake, after=newest):
            begun.pop(publication, None)
    for publication in sorted(begun):
        findings.notes.append(
            f"Publication {publication} has begun to change {begun[publication]} and is not released: if its process "
            "is dead, the next publisher finishes it."
        )
    return chain, tables


_COMPARE = "Find out who writes to the ledger, and compare its table ledger_decisions with a backup from before."


class DecisionAudit:
    """Check the chain of decisions, first by itself, then against the manifests, which count if the two differ."""

    def __init__(self, entries: Sequence[Entry], findings: Findings) -> None:
        self._findings = findings
        self._found: dict[int, Decision] = {}
        for entry in entries:
            findings.seen["decisions"] += 1
            try:
                self._found[entry.number] = from_content(entry.content)
            except ValueError as error:
                if entry.is_whole:  # a changed entry is reported as changed
                    self._fault(f"Decision {entry.number} cannot be read: {error}.")
        for broken in breaks(entries):
            self._fault(f"{self._named(broken.number)} {broken.what}.")
        found = self._found.items()
        self._of = {each.publication: number for number, each in found if isinstance(each, PublicationDecision)}

    def compare(self, record: PublicationRecord) -> None:
        """Compare the chain with a manifest."""
        wanted, number = of_publication(record), self._of.get(record.publication)
        if wanted is None:
            return
        if number is None:
            self._fault(
                f"The chain of decisions lacks the {wanted.kind} by {wanted.who} that publication "
                f"{record.publication} (release {record.release}) carried out.",
                f"{_COMPARE} `platform-assets admin ledger --rebuild` enters it anew, from the manifest.",
            )
        elif self._found[number] != wanted:
            self._fault(f"{self._named(number)} says something else than the manifest of {record.publication}.")

    def note_unknown(self, released: Collection[str]) -> None:
        """Mention decisions about publications that the lake does not have."""
        for number, decision in self._found.items():
            if isinstance(decision, PublicationDecision | LiftDecision) and decision.publication not in released:
                self._findings.notes.append(
                    f"{self._named(number)} was carried out by publication {decision.publication}, which the lake does "
                    "not have: an older lake was restored since, or the entry is forged."
                )

    def _fault(self, what: str, todo: str = _COMPARE) -> None:
        self._findings.fault("decisions", what, todo)

    def _named(self, number: int) -> str:
        decision = self._found.get(number)
        if decision is None:
            return f"Decision {number}"
        return f"Decision {number} ({decision.kind} by {decision.who}, {decision.created_at:%Y-%m-%d %H:%M} UTC)"


def heads_of(lake: Lake, ledger: Ledger) -> Heads:
    """Return the heads of both chains without any check, so cheaply."""
    newest = newest_release(lake)
    chain = commits.commit(lake.releases_path, newest).chain if newest >= 0 else ""
    return Heads(Head(newest, chain) if chain else Head(), ledger.decision_head())


def compare_heads(
    expected: Heads, releases: Mapping[int, str], decisions: Mapping[int, str] | None, findings: Findings
) -> None:
    """Check that both chains contain the heads of an earlier audit. More entries may follow these.

    Args:
        decisions: the chain up to each decision; None if the ledger cannot be read, which was reported already.
    """
    _compare_head("releases", expected.releases, releases, "lake", findings)
    if decisions is not None:
        _compare_head("decisions", expected.decisions, decisions, "ledger", findings)


def _compare_head(what: str, expected: Head, chain: Mapping[int, str], where: str, findings: Findings) -> None:
    findings.seen["anchor"] += 1
    if expected.is_in(chain):
        return
    there = f"{expected.number} carries {chain[expected.number] or 'no chain'}" if expected.number in chain else ""
    findings.fault(
        "anchor",
        f"The {what} do not go through the expected head {expected}; "
        f"{there or f'they end at {max(chain, default=-1)}'}: history was rewritten or cut since.",
        f"If an older {where} was not restored on purpose, nor a new one begun, restore it from a backup whose chain "
        "goes through that head; else review what is there, and keep its head from now on.",
    )


@dataclass(frozen=True)
class Audit:
    """Result of an audit.

    Args:
        release: the newest release, up to which everything was checked; -1 without any.
    """

    release: int
    chain: ChainHead
    decisions: Head
    findings: Findings

    @property
    def heads(self) -> Heads:
        """Return the heads of both chains, to be kept elsewhere."""
        return Heads(Head(self.chain.release, self.chain.chain) if self.chain.chain else Head(), self.decisions)


def audit_installation(
    settings: Settings,
    scope: Scope,
    progress: OnProgress,
    spark: SparkOnDemand | None = None,
    expected: Heads | None = None,
) -> Audit:
    """Audit lake and ledger in their present state; nothing is written, repaired or caught up.

    Args:
        spark: gives the session that computes digests; without it digests are not checked.
        expected: heads of an earlier audit, kept elsewhere.
    """
    lake, findings = Lake.at(settings.lake), Findings()
    chain, tables = audit(lake, scope, findings, progress)
    decisions: tuple[Entry, ...] | None = None
    try:
        with Ledger.open(settings.ledger_url.get_secret_value(), read_only=True) as ledger:
            indexed = ledger.indexed()  # before the decisions: those of indexed publications are in the chain
            decisions = ledger.decision_chain()
            _compare_ledger(lake, ledger, indexed, DecisionAudit(decisions, findings), scope, findings, progress)
    except PlatformError as error:
        findings.fault("ledger", error.what, error.todo)
    if expected is not None:
        chains = None if decisions is None else {entry.number: entry.chain for entry in decisions}
        compare_heads(expected, chain.chains, chains, findings)
    if spark is not None:
        _hash_days(lake, tables, spark, settings.batch_days, findings, progress)
    return Audit(chain.newest, chain.head, decisions[-1].head if decisions else Head(), findings)


def _compare_ledger(
    lake: Lake,
    ledger: Ledger,
    indexed: Mapping[str, int],
    decisions: DecisionAudit,
    scope: Scope,
    findings: Findings,
    progress: OnProgress,
) -> None:
    """Check that the ledger matches the manifests. The next command indexes what is not indexed yet."""
    released: dict[str, int] = {}
    # An unreadable release was reported already. Those after it cannot be compared.
    with suppress(PlatformError):
        released.update((publication, number) for number, publication in published(lake))
        decisions.note_unknown(released)
        try:
            require_one_history(lake, indexed, released)
        except (MovedLakeError, OtherHistoryError) as error:
            findings.fault("ledger", error.what, error.todo)
    if lacking := [name for name in released if name not in indexed]:
        lacks = counted(len(lacking), "publication")
        findings.notes.append(f"The ledger lacks {lacks}, which the next command indexes.")
    for table, day in () if scope.fast else ledger.marked_otherwise():
        findings.fault(
            "ledger",
            f"The ledger says of {table} {day} that another release replaced its content than did.",
            "`platform-assets admin ledger --rebuild` indexes the manifests anew.",
            table=table,
            day=day,
        )
    record_of = recorder(lake, released.__getitem__)
    for number, (name, release) in enumerate(indexed.items() if not scope.fast else ()):
        progress(Progress("comparing", "the ledger", number + 1, len(indexed), "publication"))
        if released.get(name) != release:
            continue
        findings.seen["ledger"] += 1
        with suppress(PlatformError):
            record = record_of(name)
            decisions.compare(record)
            if record != ledger.publication(name):
                findings.fault(
                    "ledger",
                    f"The ledger says something else of publication {name} (release {release}) than its manifest.",
                    "`platform-assets admin ledger --rebuild` indexes the manifests anew.",
                )


def _hash_days(
    lake: Lake,
    tables: Mapping[str, TableAudit],
    spark: SparkOnDemand,
    batch_days: int,
    findings: Findings,
    progress: OnProgress,
) -> None:
    """Compute the digest of every audited day, and compare it with the published one."""
    for name, table in sorted(tables.items()):
        broken = {fault.day for fault in findings.faults if fault.table == name}
        if not table.is_whole:
            findings.notes.append(f"The days of {name} were not hashed: its log is damaged.")
            continue
        alike = list(_by_schema(lake, table, broken))
        now = Progress("hashing", f"digests of {name}", 0, sum(len(days) for _, days in alike))
        progress(now)
        for schema, days in alike:
            for batch in batches(days, batch_days):
                _hash(table, schema, batch, spark(), findings)
                now = replace(now, done=now.done + len(batch))
                progress(now)
        progress(replace(now, finished=True))


def _by_schema(lake: Lake, table: TableAudit, broken: set[date | None]) -> Iterator[tuple[str, tuple[date, ...]]]:
    """Group days by the columns that their table had when they were published."""
    find = cache(lambda publication: manifest_of(lake, publication))
    groups: defaultdict[str, list[date]] = defaultdict(list)
    for day, content in table.recorded.items():
        if day and content.digest and day not in broken and table.scope.has_day(day):
            made_by = content.restores or table.made_by[day]
            groups[change_of(find(made_by), table.table).schema_string].append(day)
    for schema_string, days in groups.items():
        yield schema_string, tuple(sorted(days))


def _hash(table: TableAudit, schema: str, days: tuple[date, ...], spark: SparkSession, findings: Findings) -> None:
    from pyspark.sql.types import StructType

    from platform_assets.spark.compare.profiles import digests_in_files

    path = table.lake.table_path(table.table)
    files = [file.path for day in days for file in table.recorded[day].files]
    lying = digests_in_files(spark, path, files, StructType.fromJson(json.loads(schema)))
    for day in days:
        findings.seen["digests"] += 1
        digest = lying.get(day, Digest())
        if digest != Digest.parse(table.recorded[day].digest):
            findings.fault(
                "digests",
                f"The files of {table.table} {day} hold other rows than were published: their digest is {digest}, not "
                f"{table.recorded[day].digest}.",
                repair_of(table.table, day),
                table=table.table,
                day=day,
            )
