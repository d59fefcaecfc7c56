"""The whole tree of commands, and an example of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from typer.main import get_command

from platform_assets.cli.app import build
from platform_assets_tests.support.cli.commands import TABLE

DECIDED = ("--reason", "a test")
EXAMPLES: Mapping[str, tuple[str, ...]] = {
    "ack": ("transactions/2017-01-01/a.txt", *DECIDED),
    "accept": (TABLE, "--days", "2017-01-01", *DECIDED),
    "admin adopt": (TABLE, "NO FOLDER", "--dry-run"),
    "admin audit": (),
    "admin backup": ("A FOLDER",),
    "admin breaker": (TABLE, "--open", *DECIDED),
    "admin doctor": (),
    "admin erase": ("raw.transactions", "--key", "household_id=4711", "--dry-run"),
    "admin ledger": ("--rebuild",),
    "admin maintenance": ("--dry-run",),
    "admin outbox": (),
    "admin pin": ("0", *DECIDED),
    "admin pull": ("raw.transactions",),
    "admin recover": (),
    "admin reload": ("raw.transactions", "--dry-run"),
    "admin restore": ("A FOLDER",),
    "admin verify": (),
    "backfill apply": ("plan.yaml",),
    "backfill approve": ("plan.yaml", "--hash", "0", *DECIDED),
    "backfill explain": ("plan.yaml",),
    "backfill new": ("discount", TABLE, "--days", "2017-01-01", *DECIDED),
    "backfill pause": ("discount", *DECIDED),
    "backfill report": ("discount",),
    "backfill resume": ("discount",),
    "check": (),
    "demo": (),
    "diff": ("0",),
    "init": ("own_tills",),
    "late approve": ("a/b", *DECIDED),
    "late refuse": ("a/b", *DECIDED),
    "publish": ("trial", *DECIDED),
    "quarantine discard": ("raw.transactions", *DECIDED),
    "quarantine replay": ("raw.transactions", *DECIDED),
    "read": (TABLE,),
    "refresh": ("silver.products", "--explain"),
    "status": (),
    "test": (),
    "undo": ("since:0", "--dry-run"),
    "up": (),
    "why": (TABLE, "2017-01-01"),
}
BEFORE: Mapping[str, tuple[str, ...]] = {
    "audit decisions": (),
    "audit head": (),
    "audit put-back": (TABLE, *DECIDED),
    "audit show": (TABLE, "2017-01-01"),
    "audit verify": (),
    "backup": ("A FOLDER",),
    "breaker close": (TABLE, *DECIDED),
    "breaker list": (),
    "breaker open": (TABLE, *DECIDED),
    "breaker override": (TABLE, "--until", "2999-01-01T00:00", *DECIDED),
    "breaker show": (TABLE,),
    "doctor": (),
    "engine compare": (TABLE, "--days", "2017-01-01"),
    "engine list": (),
    "engine verify": (TABLE,),
    "erase": ("raw.transactions", "--key", "household_id=4711", "--dry-run"),
    "land": ("--until", "2017-01-01", "--days", "1"),
    "late approve": ("--table", "raw.products", "--days", "2017-01-01", *DECIDED),
    "late list": (),
    "late refuse": ("--table", "raw.products", "--days", "2017-01-01", *DECIDED),
    "ledger move": (),
    "ledger rebuild": (),
    "maintenance delete": ("p",),
    "maintenance run": ("--dry-run",),
    "outbox drop": ("abcd", *DECIDED),
    "outbox list": (),
    "outbox retry": ("--all",),
    "outbox send": (),
    "plan apply": ("plan.yaml",),
    "plan approve": ("plan.yaml", "--hash", "0", *DECIDED),
    "plan cancel": ("discount", *DECIDED),
    "plan compare": ("plan.yaml",),
    "plan explain": ("plan.yaml",),
    "plan history": (),
    "plan new": ("discount", "--table", TABLE, "--days", "2017-01-01", *DECIDED),
    "plan pause": ("discount", *DECIDED),
    "plan replay": ("discount",),
    "plan report": ("discount",),
    "plan resume": ("discount",),
    "plan rollback": ("discount", *DECIDED),
    "plan status": (),
    "quarantine list": (),
    "quarantine show": ("raw.transactions",),
    "reconcile": (TABLE, TABLE),
    "recover": (),
    "release diff": ("0",),
    "release pin": ("0", *DECIDED),
    "release show": (),
    "release unpin": ("0", *DECIDED),
    "releases": (),
    "reload": ("raw.transactions", "--dry-run"),
    "restore": ("A FOLDER",),
    "rollback": ("--to", "0", "--dry-run"),
    "source list": (),
    "source pull": ("raw.transactions",),
    "source verify": ("raw.transactions",),
    "stage compare": ("trial",),
    "stage drop": ("trial",),
    "stage list": (),
    "stage publish": ("trial", *DECIDED),
    "stage read": ("trial", TABLE),
    "stage show": ("trial",),
    "stale": (),
    "status": ("--files",),
    "verify": (),
    "views": (),
    "withdraw": ("a/b", *DECIDED),
}
"""The same for commands by the names that they had before."""


def commands(command: Any, *names: str) -> Iterator[tuple[str, Any]]:
    if not hasattr(command, "commands"):
        yield " ".join(names), command
        return
    for name, below in command.commands.items():
        yield from commands(below, *names, name)


ALL = dict(commands(get_command(build())))


def options(name: str) -> dict[str, Any]:
    return {spelling: parameter for parameter in ALL[name].params for spelling in parameter.opts}
