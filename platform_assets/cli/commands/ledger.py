"""`ledger` and `recover`: make the index of the lake's manifests anew, move it, finish what a killed process began."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from pydantic import SecretStr

from platform_assets.cli.console import opened_platform
from platform_assets.cli.options import By, Reason, decided_by
from platform_assets.cli.progress import telling
from platform_assets.lakehouse.errors import masked
from platform_assets.lakehouse.layout import Lake
from platform_assets.ledger.connection import moved_to, parse_url
from platform_assets.ledger.errors import LedgerCorruptError
from platform_assets.ledger.ledger import Ledger
from platform_assets.ledger.moving import move_ledger, require_server, salvage, set_aside, url_of_file
from platform_assets.ledger.sync import rebuild as rebuild_index
from platform_assets.operations.opening import held_again, recover_installation
from platform_assets.progress import meanwhile
from platform_assets.report import Note, Part, Report, picked
from platform_assets.settings import load_settings
from platform_assets.words import counted

app = typer.Typer(
    help="The index of what was published: rebuilt from the lake where it differs, or moved to a server.",
    no_args_is_help=True,
)


@app.command()
def rebuild() -> Report:
    """Rebuild the index from the lake's manifests; holds and people's decisions stay.

    A ledger whose file is damaged is set aside; what can be read of holds and decisions goes into the new one.
    """
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
        with telling("ledger rebuild") as progress:
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


@app.command()
def move(
    file: Annotated[Path | None, typer.Argument(help="The SQLite ledger; that of the state folder by default.")] = None,
) -> Report:
    """Move a SQLite ledger, with every decision, to the PostgreSQL that PLATFORM_LEDGER_URL names now.

    Both are compared row by row. The file is set aside, and a note in its place refuses whoever has the old setting.
    """
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
    with telling("ledger move") as progress:
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


def recover(
    undo: Annotated[
        bool, typer.Option("--undo", help="Put tables back to what the newest release shows instead of finishing.")
    ] = False,
    reason: Reason = None,
    by: By = None,
) -> Report:
    """Finish what killed processes began; whoever writes next would do so too."""
    author = decided_by(reason, by) if undo else None
    with telling("recover") as progress, meanwhile(progress, "finishing what was begun"):
        recovered = recover_installation(load_settings(), author)
    parts = [Note("green", "done", sentence) for sentence in recovered.done]
    if recovered.indexed:
        names = ", ".join(f"{name} (release {number})" for name, number in recovered.indexed.items())
        parts.append(Note("green", "indexed", f"The ledger is up to date; it lacked {names}."))
    nothing: list[Part] = []
    if not parts:
        shown = f"release {recovered.release} shows all that was begun"
        nothing = [f"Nothing to recover: {shown if recovered.release >= 0 else 'nothing was published yet'}."]
    mended = [Note("yellow", "mended", sentence) for sentence in recovered.mended]
    return Report([*parts, *mended, *nothing], picked(recovered, "release done indexed mended"))
