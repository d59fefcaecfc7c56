"""The last word of an audit: the digests of published days, computed again from what lies in their files."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from functools import cache

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.releases import manifest_of
from platform_assets.operations.audit.faults import Findings
from platform_assets.operations.audit.lake import Audited, repair_of
from platform_assets.operations.audit.tables import TableAudit
from platform_assets.planning.steps import batches
from platform_assets.progress import OnProgress, Progress
from platform_assets.records.digest import Digest
from platform_assets.records.manifest import change_of
from platform_assets.spark.compare.profiles import digests_in_files
from platform_assets.spark.session.on_demand import SparkOnDemand


def hash_days(
    lake: Lake,
    audited: Audited,
    spark: SparkOnDemand,
    batch_days: int,
    findings: Findings,
    progress: OnProgress,
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


def _by_schema(
    lake: Lake, table: TableAudit, broken: set[date | None]
) -> Iterator[tuple[StructType, tuple[date, ...]]]:
    """Yield days by the columns that their table had when they were published."""
    find = cache(lambda publication: manifest_of(lake, publication))
    groups: defaultdict[str, list[date]] = defaultdict(list)
    for day, content in table.recorded.items():
        if day and content.digest and day not in broken and table.scope.has_day(day):
            made_by = content.restores or table.made_by[day]
            groups[change_of(find(made_by), table.table).schema_string].append(day)
    for schema_string, days in groups.items():
        yield StructType.fromJson(json.loads(schema_string)), tuple(sorted(days))


def _hash(
    table: TableAudit, schema: StructType, days: tuple[date, ...], spark: SparkSession, findings: Findings
) -> None:
    path = table.lake.table_path(table.table)
    files = [file.path for day in days for file in table.recorded[day].files]
    lying = digests_in_files(spark, path, files, schema)
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
