"""All commands, and what happens to errors."""

from __future__ import annotations

import ast
import errno
import gc
import inspect
import json
import os
import shlex
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from functools import cache, wraps
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, NamedTuple, NoReturn, get_args

import typer

from platform_assets.cli.console import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_USAGE, errors, say, show
from platform_assets.cli.options import AsJson, By, NeededReason, ReasonButDry, decided_by
from platform_assets.cli.progress import is_interruption, never_lost, speaking
from platform_assets.errors import PlatformError
from platform_assets.report import Report

PANELS = {
    "Begin": ("demo", "init", "check", "test", "up"),
    "Look": ("status", "read", "why", "diff"),
    "Change": ("refresh", "undo", "backfill", "publish"),
    "Decide": ("accept", "late", "quarantine", "ack"),
    "Operate": ("admin",),
}
"""The first page of the help, in its order."""
GROUPS = {
    "backfill": "Backfills as reviewed code: a file is explained, approved and applied; `undo` takes one back.",
    "late": "Rows that came too late wait until a person approves or refuses them: `status late` lists them.",
    "quarantine": "Rows that were refused or broke a rule: replay them after a fix, or discard them.",
    "admin": "For operators: health, repair, audit, maintenance, backup, erasure, sources, circuits, messages, ledger.",
}
COMMANDS = {
    "demo": "demo:demo",
    "init": "begin:init",
    "check": "begin:check",
    "test": "begin:test",
    "up": "up:up",
    "status": "status:status",
    "read": "read:read",
    "why": "why:why",
    "diff": "diff:diff",
    "refresh": "refresh:refresh",
    "undo": "undo:undo",
    "publish": "release:publish",
    "backfill new": "backfill:new",
    "backfill explain": "backfill:explain",
    "backfill approve": "backfill:approve",
    "backfill apply": "backfill:apply",
    "backfill pause": "backfill:pause",
    "backfill resume": "backfill:resume",
    "backfill report": "backfill:report",
    "accept": "kept_back:accept",
    "ack": "breaker:ack",
    "late approve": "kept_back:approve",
    "late refuse": "kept_back:refuse",
    "quarantine replay": "kept_back:replay",
    "quarantine discard": "kept_back:discard",
    "admin doctor": "doctor:doctor",
    "admin recover": "ledger:recover",
    "admin audit": "audit:audit",
    "admin verify": "diff:verify",
    "admin maintenance": "ledger:maintenance",
    "admin backup": "ledger:backup",
    "admin restore": "ledger:restore",
    "admin ledger": "ledger:ledger",
    "admin pin": "release:pin",
    "admin reload": "undo:reload",
    "admin erase": "erase:erase",
    "admin pull": "source:pull",
    "admin adopt": "adopt:adopt",
    "admin breaker": "breaker:breaker",
    "admin outbox": "outbox:outbox",
}
"""The module of `commands` and the function of each command."""

_COMPLETES = "_PLATFORM_ASSETS_COMPLETE"
"""The variable by which a shell asks what could come next."""
_DISK_FULL = {errno.ENOSPC, errno.EDQUOT}

HELP = """Correct the past of a data platform safely.

Exit codes: 0 done; 1 done, and something needs a look (held, missing or stale days, refused files, a failed check);
2 the command line is wrong; 3 it could not be done, the message says why and what to do. With --json the last line on
standard error is {"error": {"what": …, "do": …, "code": …, "kind": …}} then.
"""


def build(names: Iterable[str] = tuple(COMMANDS), *, only_described: bool = False) -> typer.Typer:
    """Build the command line from some of its commands; importing all takes longer than most need to answer.

    Args:
        only_described: for a list of commands: their descriptions are enough.
    """
    app = typer.Typer(help=_in_one_line(HELP), no_args_is_help=True, pretty_exceptions_enable=False)
    app.callback()(_options)  # a command that is alone is named all the same
    panels = {name: panel for panel, members in PANELS.items() for name in members}
    groups: dict[str, typer.Typer] = {}
    for name in sorted(names, key=[*COMMANDS].index):
        first, _, rest = name.partition(" ")
        into = app
        if rest:
            if first not in groups:
                groups[first] = typer.Typer(no_args_is_help=True)
                groups[first].callback()(_nothing)
            into = groups[first]
        help_ = _description(name) if only_described else None
        command = _nothing if only_described else _reporting(function_of(name))
        into.command(rest or first, help=help_, rich_help_panel=None if rest else panels[first])(command)
    for members in PANELS.values():
        for name in members:
            if name in groups:
                app.add_typer(groups[name], name=name, help=GROUPS[name], rich_help_panel=panels[name])
    _let_wrap(app)
    return app


def function_of(command: str) -> Callable[..., Report | None]:
    """Import the function of a command."""
    module, _, function = COMMANDS[command].partition(":")
    carries_out: Callable[..., Report | None] = getattr(
        import_module(f"platform_assets.cli.commands.{module}"), function
    )
    return carries_out


def _reporting(command: Callable[..., Report | None]) -> Callable[..., Any]:
    """Return a command with `--json` that prints the report returned by the function.

    A parameter `author` is the person who decides: `--reason` and `--by` on the command line, no author in a dry run.
    """
    own = inspect.signature(command, eval_str=True).parameters
    options = [each for name, each in own.items() if name not in ("author", "as_json")]
    reason = ReasonButDry if "dry_run" in own else NeededReason
    options += [_option(name, kind, None) for name, kind in (("reason", reason), ("by", By)) if "author" in own]

    @wraps(command)
    def printed(*, as_json: bool, **given: Any) -> None:
        if "author" in own:
            reason, by = given.pop("reason"), given.pop("by")
            given["author"] = None if given.get("dry_run") else decided_by(reason, by)
        if "as_json" in own:
            given["as_json"] = as_json
        report = command(**given)
        if report is not None:
            show(report, as_json)

    options.append(_option("as_json", AsJson, False))
    for type_, *described in filter(None, (get_args(option.annotation) for option in options)):
        if type_ is bool:
            described[0].metavar = ""  # the help would show a flag as if it took a value
    printed.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    return printed


def _option(name: str, kind: object, default: object) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)


def _let_wrap(app: typer.Typer) -> None:
    """Join the lines of descriptions, which Typer keeps; a narrow terminal would break each line again."""
    for command in app.registered_commands:
        command.help = _in_one_line(command.help or inspect.getdoc(command.callback) or "")
    for group in app.registered_groups:
        if group.typer_instance is not None:
            _let_wrap(group.typer_instance)


def _in_one_line(description: str) -> str:
    return "\n\n".join(paragraph.replace("\n", " ") for paragraph in description.strip().split("\n\n"))


def _description(command: str) -> str:
    """Read a command's description from the source of its module, without importing it."""
    module, _, function = COMMANDS[command].partition(":")
    [found] = (node for node in _parsed(module) if isinstance(node, ast.FunctionDef) and node.name == function)
    return ast.get_docstring(found) or ""


@cache
def _parsed(module: str) -> list[ast.stmt]:
    return ast.parse(Path(__file__).with_name("commands").joinpath(f"{module}.py").read_bytes()).body


def _nothing() -> None:
    """Stand in for a command in the list of all commands; the command itself is imported when it runs."""


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version  # which takes as long as everything else here

        print(f"platform-assets {version('platform-assets')}")
        raise typer.Exit


_Version = Annotated[bool, typer.Option("--version", help="Show the version.", callback=_version, is_eager=True)]


def _options(shown: _Version = False) -> None:
    pass


def main() -> None:
    """Run a command; an expected failure is a message on standard error, never a traceback."""
    try:
        _main()
    except (KeyboardInterrupt, SystemExit) as end:
        is_told = isinstance(end, SystemExit) and end.code == EXIT_INTERRUPTED  # Typer's way to say so
        if not (is_told or is_interruption(end)):
            raise
        # A second Ctrl-C must not show Python's clean-up.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        todo = "Published days stay; readers see nothing else. Run the same command again to go on."
        if _for_programs():
            _fail(["Interrupted."], todo, EXIT_INTERRUPTED, "Interrupted")
        say("[yellow]Interrupted.[/]", todo, to=errors)
        sys.exit(EXIT_INTERRUPTED)


def _main() -> None:
    sys.argv[1:] = _by_new_name(sys.argv[1:])
    words = [argument for argument in sys.argv[1:] if not argument.startswith("-")]
    asked = next((name for name in (" ".join(words[:2]), *words[:1]) if name in COMMANDS or name in GROUPS), "")
    _prepare(asked)
    try:
        with never_lost(), nullcontext() if _asks_for_help() else speaking(asked or "platform-assets"):
            is_alone = asked in COMMANDS
            if _COMPLETES in os.environ:
                app = build()
            elif is_alone:
                app = build([asked])
            else:
                app = build(only_described=True)
            gc.freeze()  # modules are no garbage: to look through them again and again takes longer than most answers
            gc.enable()
            code = app(standalone_mode=not _for_programs())
        if code == EXIT_INTERRUPTED:
            raise KeyboardInterrupt  # Typer returns a code in its place if it does not end the process itself
        if code:
            sys.exit(code)
    except typer.TyperException as error:  # for a person Typer itself prints it
        _fail([error.format_message()], "Add --help to see what it takes.", error.exit_code, "UsageError")
    except PlatformError as error:
        code = EXIT_USAGE if error.is_misspelt else EXIT_FAILED
        _fail(error.lines, error.todo, code, type(error).__name__)
    except UnicodeEncodeError as error:
        letter, of_output = error.object[error.start], getattr(sys.stdout, "encoding", None) or "utf-8"
        if letter.encode(of_output, "replace").decode(of_output, "replace") == letter:
            raise  # it was for something else; the error itself may have another name of the encoding
        what = [f"The output is to be {of_output}, which has no {letter!a}."]
        todo = "Set PYTHONIOENCODING=utf-8, or a locale with every letter, as LC_ALL=C.UTF-8."
        _fail(what, todo, EXIT_FAILED, "UnicodeEncodeError")
    except OSError as error:
        what = [f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}."]
        if error.errno in _DISK_FULL:
            todo = "Free some disk space and run the same command again; what was published stays."
            _fail(what, todo, EXIT_FAILED, "OSError")
        _fail(what, "Check that this path is as it should be and that this user may use it.", EXIT_FAILED, "OSError")


def _prepare(command: str | None) -> None:
    """Set the umask for the configured readers; print which platform is used where the user could mistake it."""
    if command not in COMMANDS or command == "init" or _asks_for_help():  # `init`: its files are the user's own
        return
    from platform_assets.places import PRIVATE_UMASK
    from platform_assets.project import platform_in_use
    from platform_assets.settings import load_settings  # which a list of commands needs not

    os.umask(PRIVATE_UMASK)
    with suppress(PlatformError, OSError):  # which the command itself tells
        settings = load_settings()
        os.umask(settings.access.umask)
        platform, is_unclear = platform_in_use(settings.state, os.environ)
        if is_unclear and not _for_programs():
            say("[yellow]platform[/]", platform, to=errors)


def _asks_for_help() -> bool:
    """Return whether there are only words before `--help`: after an option it could be that option's value."""
    *words, last = sys.argv
    return last == "--help" and not any(word.startswith("-") for word in words[1:])


def _by_new_name(arguments: list[str]) -> list[str]:
    """Return the command line with today's name of a command; say so once if an earlier name was typed."""
    new = translated(arguments)
    if new is None:
        return arguments
    say("[yellow]renamed[/]", f"this is now: platform-assets {shlex.join(new)}", to=errors)
    return new


def _for_programs() -> bool:
    arguments = sys.argv[1:]
    return "--json" in (arguments[: arguments.index("--")] if "--" in arguments else arguments)


def _fail(what: Sequence[str], todo: str, code: int, kind: str) -> NoReturn:
    if _for_programs():
        # In ASCII: a name that is no text, or would act on a terminal, is part of it.
        error = {"what": "\n".join(what), "do": todo, "code": code, "kind": kind}
        print(json.dumps({"error": error}), file=sys.stderr)
        sys.exit(code)
    say("[bold red]Error:[/]", *what, to=errors)
    say("[bold]What to do:[/]", todo, to=errors)
    sys.exit(code)


class Old(NamedTuple):
    """Today's spelling of an earlier command.

    Args:
        new: its words today; the last one may say with `{}` how arguments are written.
        options: replacement of an option, with `{}` for its value.
        without: argument if none was given.
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
    """Return the command line in today's spelling; None if it is not an earlier one."""
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
