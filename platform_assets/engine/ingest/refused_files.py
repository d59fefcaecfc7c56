"""Files that stand refused: which somebody has to repair or take away, and which were delivered again in order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from platform_assets.engine.ingest.aside import open_rows
from platform_assets.engine.platform import Platform
from platform_assets.quality.deliveries import repaired_by
from platform_assets.quality.set_aside import much_refused
from platform_assets.records.history import ArrivalRecord
from platform_assets.sources.listing import landing_area


@dataclass(frozen=True)
class RefusedFiles:
    """Files that stand refused, whole or in large part, by what there is to do about them.

    Args:
        there: that lie in the landing area, or may, where it cannot be looked at: to be repaired, or taken away.
        gone: that somebody took away since. The ledger keeps that they came, and why they were refused.
        in_large_part: that were taken, but for so many rows that the file seems to be broken, and not withdrawn since.
        repaired: whole or in large part, and delivered again in order under another name: with that name.
    """

    there: tuple[ArrivalRecord, ...] = ()
    gone: tuple[ArrivalRecord, ...] = ()
    in_large_part: tuple[ArrivalRecord, ...] = ()
    repaired: Mapping[ArrivalRecord, str] = field(default_factory=dict)


def refused_files(platform: Platform) -> RefusedFiles:
    """Files of which no row was taken, or few, and that were not delivered in order since."""
    catalogue, ledger = platform.catalogue, platform.ledger
    standing = [file for file in ledger.arrivals(refused_only=True) if file.table in catalogue.names]
    standing = [file for file in standing if file.reason is not None or much_refused(catalogue[file.table], file)]
    tables = {file.table for file in standing}
    left = {table: rows for table in tables if (rows := open_rows(platform, table)) is not None}
    standing = [
        file.model_copy(update={"refused": left[file.table][file.path]}) if file.table in left else file
        for file in standing
        if file.table not in left or file.path in left[file.table]
    ]
    standing = [file for file in standing if file.reason is not None or much_refused(catalogue[file.table], file)]
    withdrawn = {table: ledger.withdrawn(table) for table in tables}
    good = {
        table: [
            file
            for file in ledger.arrivals(table)
            if file.kind == "delivery"
            and file.reason is None
            and file.path not in withdrawn[table]
            and not much_refused(catalogue[table], file)
        ]
        for table in tables
    }
    released = ledger.indexed() if standing else {}
    repairs = {file: repaired_by(file, good[file.table], released) for file in standing}
    area = landing_area(platform.settings)
    # Of a root that is not there, as one that is not mounted, nothing says that somebody took a file away.
    is_mounted = bool(standing) and area.is_there()
    open_still = [file for file in standing if not repairs[file]]
    refused = [file for file in open_still if file.reason is not None]
    taken = [file for file in open_still if file.reason is None]
    gone = {file.path for file in refused if is_mounted and area.has_gone(file.path)}
    return RefusedFiles(
        there=tuple(file for file in refused if file.path not in gone),
        gone=tuple(file for file in refused if file.path in gone),
        in_large_part=tuple(file for file in taken if file.path not in withdrawn[file.table]),
        repaired={file: others[-1].path for file, others in repairs.items() if others},
    )
