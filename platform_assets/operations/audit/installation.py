"""The audit of an installation: its lake, whether the ledger says the same, and with Spark the content of its days."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date
from functools import cache
from typing import TYPE_CHECKING

from platform_assets.errors import PlatformError
from platform_assets.lakehouse.errors import MovedLakeError, OtherHistoryError
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.releases import manifest_of, published
from platform_assets.ledger.ledger import Ledger
from platform_assets.ledger.sync import recorder, require_one_history
from platform_assets.operations.audit.chain import ChainHead
from platform_assets.operations.audit.decisions import DecisionAudit, compare_heads
from platform_assets.operations.audit.faults import Findings, Scope
from platform_assets.operations.audit.lake import Audited, audit, repair_of
from platform_assets.operations.audit.tables import TableAudit
from platform_assets.planning.steps import batches
from platform_assets.progress import OnProgress, Progress
from platform_assets.records.chain import Entry, Head, Heads
from platform_assets.records.digest import Digest
from platform_assets.records.manifest import change_of
from platform_assets.settings import Settings
from platform_assets.words import counted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from platform_assets.spark.session.on_demand import SparkOnDemand


@dataclass(frozen=True)
class Audit:
    """What an audit found.

    Args:
        release: the newest, up to which everything was looked at; -1 without any.
    """

    release: int
    chain: ChainHead
    decisions: Head
    findings: Findings

    @property
    def heads(self) -> Heads:
        """Of both chains, to be kept elsewhere."""
        return Heads(Head(self.chain.release, self.chain.chain) if self.chain.chain else Head(), self.decisions)


def audit_installation(
    settings: Settings,
    scope: Scope,
    progress: OnProgress,
    spark: SparkOnDemand | None = None,
    expected: Heads | None = None,
) -> Audit:
    """Look at lake and ledger as they are; nothing is written, mended or caught up.

    Args:
        spark: gives the session to compute digests with; none leaves them out.
        expected: heads of before, which somebody kept elsewhere.
    """
    lake, findings = Lake.at(settings.lake), Findings()
    audited = audit(lake, scope, findings, progress)
    decisions: tuple[Entry, ...] | None = None
    try:
        with Ledger.open(settings.ledger_url.get_secret_value(), read_only=True) as ledger:
            indexed = ledger.indexed()  # before the decisions: what is indexed has entered their chain
            decisions = ledger.decision_chain()
            _compare_ledger(lake, ledger, indexed, DecisionAudit(decisions, findings), scope, findings, progress)
    except PlatformError as error:
        findings.fault("ledger", error.what, error.todo)
    if expected is not None:
        chains = None if decisions is None else {entry.number: entry.chain for entry in decisions}
        compare_heads(expected, audited.chains, chains, findings)
    if spark is not None:
        _hash_days(lake, audited, spark, settings.batch_days, findings, progress)
    return Audit(audited.release, audited.chain, decisions[-1].head if decisions else Head(), findings)


def _compare_ledger(
    lake: Lake,
    ledger: Ledger,
    indexed: Mapping[str, int],
    decisions: DecisionAudit,
    scope: Scope,
    findings: Findings,
    progress: OnProgress,
) -> None:
    """Check that the ledger says what the manifests say; what is not indexed yet, the next command indexes."""
    released: dict[str, int] = {}
    # A release that cannot be read was told already: what follows it cannot be compared.
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
            "`platform-assets ledger rebuild` indexes the manifests anew.",
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
                    "`platform-assets ledger rebuild` indexes the manifests anew.",
                )


def _hash_days(
    lake: Lake, audited: Audited, spark: SparkOnDemand, batch_days: int, findings: Findings, progress: OnProgress
) -> None:
    """Compute the digest of every day that was looked at, and compare it with the one that was published.

    Args:
        audited: its audit; days of a table whose log or files are damaged are left out.
    """
    for name, table in sorted(audited.tables.items()):
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
    """Yield days by the columns that their table had when they were published."""
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
