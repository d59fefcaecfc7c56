"""Names that commands had before: each is answered by its command of today for this version."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple


class Old(NamedTuple):
    """How a command of before is typed today.

    Args:
        new: the words in its place; the last one may say with `{}` how arguments are written.
        options: what stands in the place of an option, with `{}` its value.
        without: the argument where none is given.
    """

    new: str
    options: Mapping[str, str] = {}
    without: str = ""


_TABLE = {"--table": "{}"}
OLD: Mapping[str, Old] = {
    "audit decisions": Old("status decisions"),
    "audit head": Old("admin audit --head"),
    "audit put-back": Old("undo foreign:{}"),
    "audit show": Old("why --history"),
    "audit verify": Old("admin audit", _TABLE),
    "backup": Old("admin backup"),
    "breaker close": Old("admin breaker --close"),
    "breaker list": Old("status circuits"),
    "breaker open": Old("admin breaker --open"),
    "breaker override": Old("admin breaker"),
    "breaker show": Old("status circuits"),
    "doctor": Old("admin doctor"),
    "engine compare": Old("diff spark sail"),
    "engine list": Old("status engines"),
    "engine verify": Old("admin verify --admit"),
    "erase": Old("admin erase"),
    "land": Old("demo --land"),
    "late approve": Old("late approve", _TABLE),
    "late list": Old("status late"),
    "late refuse": Old("late refuse", _TABLE),
    "ledger move": Old("admin ledger --move"),
    "ledger rebuild": Old("admin ledger --rebuild"),
    "maintenance delete": Old("admin maintenance --delete={}"),
    "maintenance run": Old("admin maintenance"),
    "outbox drop": Old("admin outbox --drop"),
    "outbox list": Old("status messages"),
    "outbox retry": Old("admin outbox --retry"),
    "outbox send": Old("admin outbox"),
    "plan apply": Old("backfill apply"),
    "plan approve": Old("backfill approve"),
    "plan cancel": Old("undo backfill:{}"),
    "plan compare": Old("diff backfill:{}"),
    "plan explain": Old("backfill explain"),
    "plan history": Old("status recomputed"),
    "plan new": Old("backfill new", _TABLE),
    "plan pause": Old("backfill pause"),
    "plan replay": Old("admin verify backfill:{}"),
    "plan report": Old("backfill report"),
    "plan resume": Old("backfill resume"),
    "plan rollback": Old("undo backfill:{}"),
    "plan status": Old("status backfills"),
    "quarantine list": Old("status quarantine"),
    "quarantine show": Old("status quarantine --rows"),
    "reconcile": Old("diff"),
    "recover": Old("admin recover"),
    "release diff": Old("diff", _TABLE),
    "release pin": Old("admin pin"),
    "release show": Old("status releases", without="current"),
    "release unpin": Old("undo pin:{}"),
    "releases": Old("status releases"),
    "reload": Old("admin reload"),
    "restore": Old("admin restore"),
    "rollback": Old("undo publication:{}", {"--run": "run:{}", "--to": "since:{}", "--lift": "rollback:{}"}),
    "source list": Old("status sources"),
    "source pull": Old("admin pull"),
    "source verify": Old("admin pull --verify"),
    "stage compare": Old("diff stage:{}", _TABLE),
    "stage drop": Old("undo stage:{}"),
    "stage list": Old("status stages"),
    "stage publish": Old("publish"),
    "stage read": Old("read --stage"),
    "stage show": Old("status stages"),
    "stale": Old("status stale"),
    "status": Old("status", {"--warnings": "warnings", "--files": "files"}),
    "verify": Old("admin verify"),
    "views": Old("read --views duckdb", {"--engine": "--views {}"}),
    "withdraw": Old("undo arrival:{}"),
}
OLD_GROUPS = {
    "audit": Old("admin audit"),
    "breaker": Old("admin breaker"),
    "engine": Old("status engines"),
    "ledger": Old("admin ledger"),
    "maintenance": Old("admin maintenance"),
    "outbox": Old("admin outbox"),
    "plan": Old("backfill"),
    "release": Old("status releases"),
    "source": Old("status sources"),
    "stage": Old("status stages"),
}
"""Groups of before, for their help."""
_WITH_VALUE = {"--reason", "--by", "--days", "--limit", "--name", "--release", "--until", "--examples", "--sample"}
"""Options of these commands whose value could be taken for an argument."""


def translated(arguments: Sequence[str]) -> list[str] | None:
    """Return the command line as it is typed today; None if it is not one of before."""
    for count in (2, 1):
        old = {**OLD, **OLD_GROUPS}.get(" ".join(arguments[:count]))
        if old is not None:
            *head, last = old.new.split()
            rest = [*_rest(arguments[count:], old, last if "{}" in last else "{}")]
            words = [*head, *([] if "{}" in last else [last])]
            if old.without and not any(is_argument for _, is_argument in rest):
                words.append(old.without)
            new = [*words, *(word for word, _ in rest)]
            return None if new == [*arguments] else new
    return None


def _rest(arguments: Sequence[str], old: Old, argument: str) -> Iterator[tuple[str, bool]]:
    """Yield the words after the name, and whether each is an argument."""
    left = iter(arguments)
    for word in left:
        name, equals, value = word.partition("=")
        if name in old.options:
            template = old.options[name]
            if "{}" in template and not equals:
                value = next(left, "")
            yield from ((part.format(value), True) for part in template.split())
        elif word.startswith("-") and word != "-":
            yield word, False
            if word in _WITH_VALUE:
                yield from ((given, False) for given in [next(left, None)] if given is not None)
        else:
            yield argument.format(word), True
