"""A copy of the ledger, taken while others write."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from secrets import token_hex

from platform_assets.lakehouse.database_url import masked
from platform_assets.ledger.connection import connect_reader, parse_url, sqlite_file
from platform_assets.ledger.damaged import require_intact
from platform_assets.ledger.errors import LedgerUnreachableError, explained


def copy_ledger(url: str, target: Path) -> bool:
    """Copy a SQLite ledger as it is at this moment; a copy that was there is replaced once the new one is whole.

    Args:
        url: of the ledger.
        target: file of the copy.

    Returns:
        Whether it was copied: a server's database is for the server's own tools.

    Raises:
        LedgerError: the ledger is not there, is damaged, or cannot be read.
    """
    parsed = parse_url(url)
    file = sqlite_file(parsed)
    if file is None:
        return False
    if not file.exists():
        raise LedgerUnreachableError(
            f"The ledger {masked(parsed)} is not there.",
            "Correct PLATFORM_LEDGER_URL or PLATFORM_STATE; if it is lost, `platform-assets ledger rebuild` makes one.",
        )
    require_intact(url)
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.{token_hex(4)}.tmp")
    try:
        with closing(connect_reader(file)) as source, closing(sqlite3.connect(temporary)) as copy:
            source.backup(copy)
        temporary.replace(target)
    except sqlite3.Error as error:
        raise explained(error, parsed) from error
    finally:
        temporary.unlink(missing_ok=True)
    return True
