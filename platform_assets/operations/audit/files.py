"""The files of a table: there, as long as they were, and with as many rows as were published."""

from __future__ import annotations

from collections import defaultdict
from datetime import date

import pyarrow as pa

from platform_assets.lakehouse.storage.parquet import opened
from platform_assets.operations.audit.tables import TableAudit
from platform_assets.records.manifest import DataFile


def look_at_files(table: TableAudit) -> None:
    """Check what the newest release shows of a table; with `every_release` also what older ones refer to."""
    rows: defaultdict[date, int] = defaultdict(int)
    broken: set[date] = set()
    for path, (file, day) in sorted({**_older(table), **table.live}.items()):
        if day is None or not table.scope.has_day(day):
            continue
        counted = _rows(table, file, day)
        if path not in table.live:
            continue
        if counted is None:
            broken.add(day)
        else:
            rows[day] += counted
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


def _older(table: TableAudit) -> dict[str, tuple[DataFile, date | None]]:
    return table.every_file if table.scope.every_release else {}


def _rows(table: TableAudit, file: DataFile, day: date) -> int | None:
    """How many rows a file holds; None if it is not what was published."""
    table.findings.seen["files"] += 1
    path = table.lake.table_path(table.table) / file.path
    size = path.size()
    if size == file.size:
        try:
            with opened(path) as parquet:
                rows: int = parquet.metadata.num_rows
        except (pa.ArrowInvalid, OSError) as error:
            problem = f"cannot be read ({str(error).splitlines()[0].rstrip('.')})"
        else:
            return rows
    else:
        problem = "is missing" if size is None else f"has {size:,} bytes; {file.size:,} were published"
    table.findings.fault(
        "files",
        f"The file {file.path} of {table.table} {day} {problem}.",
        repair_of(table.table, day),
        table=table.table,
        day=day,
        file=path,
    )
    return None


def repair_of(table: str, day: date) -> str:
    """What to do about a day's content: what was delivered is nowhere else, what was computed can be computed again."""
    if table.startswith(("silver.", "gold.")):
        again = f"`platform-assets refresh {table} --days {day} --force`"
        return f"Restore the day's files from a backup, or compute it again: {again}."
    return "Restore the day's files from a backup."
