"""`admin ledger`: the index of what was published, rebuilt from the lake where it differs, or moved to a server."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from pydantic import SecretStr

from platform_assets.cli.console import UsageError, opened_platform
from platform_assets.cli.progress import telling
from platform_assets.lakehouse.layout import Lake
from platform_assets.progress import meanwhile
from platform_assets.report import Note, Part, Report, picked
from platform_assets.settings import load_settings
from platform_assets.words import counted


def ledger(
    file: Annotated[Path | None, typer.Argument(help="With --move: the SQLite ledger; that of the state.")] = None,
    rebuild: Annotated[bool, typer.Option("--rebuild", help="Make the index again from the manifests.")] = False,
    move: Annotated[bool, typer.Option("--move", help="Move it to where PLATFORM_LEDGER_URL says now.")] = False,
) -> Report:
    """Rebuild the index of what was published from the lake, or move it to PostgreSQL; decisions of people stay."""
    if rebuild == move or (file and not move):
        raise UsageError("Say what to do with the ledger, one thing.", "Add --rebuild, or --move and its file.")
    return _move(file) if move else _rebuild()


def _rebuild() -> Report:
    """Rebuild the index from the lake's manifests; holds and people's decisions stay.

    A ledger whose file is damaged is set aside; what can be read of holds and decisions goes into the new one.
    """
    from platform_assets.ledger.errors import LedgerCorruptError
    from platform_assets.ledger.ledger import Ledger
    from platform_assets.ledger.moving import salvage, set_aside
    from platform_assets.ledger.sync import rebuild as rebuild_index
    from platform_assets.operations.opening import held_again

    started = time.monotonic()
    settings = load_settings()
    url = settings.ledger_url.get_secret_value()
    aside: Path | None = None
    salvaged: dict[str, int | None] = {}
    try:
        ledger = Ledger.open(url)
    except LedgerCorruptError:
        aside = set_aside(url)
        ledger = Ledger.open(url)
        salvaged = salvage(aside, url)
    try:
        with telling("ledger") as progress:
            result = rebuild_index(Lake.at(settings.lake), ledger, progress)
            held = held_again(ledger, result.added)
    finally:
        ledger.close()
    seconds = time.monotonic() - started
    data = {
        "publications": len(result.publications),
        **picked(result, "forgotten lifted"),
        "held_again": held,
        "set_aside": aside,
        "salvaged": salvaged,
        "seconds": round(seconds, 3),
    }

    def parts() -> Iterator[Part]:
        yield f"Rebuilt the ledger from {counted(len(result.publications), 'publication')} in {seconds:.1f} s."
        if aside:
            yield Note("yellow", "set aside", f"the damaged ledger is {aside} now.")
            kept = sum(rows or 0 for rows in salvaged.values())
            yield Note("yellow", "kept", f"{counted(kept, 'row')} of holds and people's decisions were read from it.")
            if unread := [table.removeprefix("ledger_") for table, rows in salvaged.items() if rows is None]:
                todo = "Restore them from a backup, or decide again."
                yield Note("red", "lost", f"not all could be read of: {', '.join(unread)}.", todo)
        if result.forgotten:
            first, last = result.forgotten[0], result.forgotten[-1]
            forgotten = counted(len(result.forgotten), "publication")
            yield Note("yellow", "forgotten", f"{forgotten} that the lake has not: {first} to {last}")
        for hold in result.lifted:
            yield Note("yellow", "lifted", f"{hold.table} {hold.day}, held by {hold.gate}: {hold.reason}")
        yield from (Note("yellow", "mended", sentence) for sentence in held)

    return Report(parts(), data)


def _move(file: Path | None) -> Report:
    """Move a SQLite ledger, with every decision, to the PostgreSQL that PLATFORM_LEDGER_URL names now.

    Both are compared row by row. The file is set aside, and a note in its place refuses commands with the old setting.
    """
    from platform_assets.lakehouse.errors import masked
    from platform_assets.ledger.connection import moved_to, parse_url
    from platform_assets.ledger.moving import move_ledger, require_server, url_of_file

    started = time.monotonic()
    settings = load_settings()
    url = settings.ledger_url.get_secret_value()
    require_server(url)
    source = (file or settings.state / "ledger.db").absolute()
    target = masked(parse_url(url))
    if (where := moved_to(source)).startswith(f"to {target}, "):
        where = f"{source} was moved {where}, the database that PLATFORM_LEDGER_URL names."
        nothing: dict[str, object] = {"rows": {}, "set_aside": None, "seconds": 0.0}
        return Report([Note("green", "Nothing to move:", where)], nothing)
    with telling("ledger") as progress:
        # Migrated, of this lake, and with all that was published in it.
        with opened_platform(settings.model_copy(update={"ledger_url": SecretStr(url_of_file(source))})):
            pass
        with meanwhile(progress, "copying and comparing"):
            moved = move_ledger(source, url)
    rows, seconds = sum(moved.rows.values()), time.monotonic() - started
    names = {table.removeprefix("ledger_"): count for table, count in moved.rows.items()}
    what = f"{counted(rows, 'row')}, {counted(moved.rows['ledger_decisions'], 'decision')} among them"
    aside = f"the file is {moved.aside} now; {source} only says where the ledger is."
    todo = "Set PLATFORM_LEDGER_URL wherever the platform runs, and start it again."
    parts = [
        Note("green", "Moved", f"{what}, to {target} in {seconds:.1f} s."),
        Note("yellow", "set aside", aside, todo),
    ]
    return Report(parts, {"rows": names, "set_aside": moved.aside, "seconds": round(seconds, 3)})
