"""All commands, and what happens to errors."""

from __future__ import annotations

import ast
import errno
import gc
import inspect
import json
import os
import signal
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from platform_assets.cli.console import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_USAGE, errors, say, show
from platform_assets.cli.options import AsJson, By, Reason, decided_by
from platform_assets.cli.progress import is_interruption, never_lost, speaking
from platform_assets.errors import PlatformError
from platform_assets.report import Report

GROUPS = {
    "Begin": ("demo", "init", "check", "test", "up", "land"),
    "Look": ("status", "read", "stale", "why", "releases", "release", "views", "verify", "reconcile", "source"),
    "Change": ("refresh", "plan", "stage", "rollback", "withdraw", "reload", "erase"),
    "Decide": ("ack", "late", "quarantine", "accept", "breaker"),
    "Operate": ("doctor", "engine", "recover", "outbox", "maintenance", "ledger", "audit", "backup", "restore"),
}
"""In the order of the help; each is a function of its name in a module of `commands`, or for a group a Typer."""
_TOGETHER = {
    "backup": ("restore", "ledger", "recover"),
    "begin": ("init", "check", "land"),
    "kept_back": ("accept", "late", "quarantine"),
    "read": ("views",),
    "release": ("releases",),
    "rollback": ("withdraw", "reload"),
    "verify": ("reconcile", "engine"),
}
"""Commands that lie in a module of another name."""
_MODULES = {name: module for module, names in _TOGETHER.items() for name in names}
COMMANDS = tuple(name for names in GROUPS.values() for name in names)

_COMPLETES = "_PLATFORM_ASSETS_COMPLETE"
"""The variable by which a shell asks what could come next."""
_DISK_FULL = {errno.ENOSPC, errno.EDQUOT}

HELP = """Correct the past of a data platform safely.

Exit codes: 0 done; 1 done, and something needs a look (held, missing or stale days, refused files, a failed check);
2 the command line is wrong; 3 it could not be done, the message says why and what to do. With --json the last line on
standard error is {"error": {"what": …, "do": …, "code": …, "kind": …}} then.
"""


def build(names: Iterable[str] = COMMANDS, *, only_described: bool = False) -> typer.Typer:
    """Build the command line with some of its commands; importing all takes as long as most need to answer.

    Args:
        only_described: for the list of all commands, which needs no more of each than its first sentence.
    """
    app = typer.Typer(help=_in_one_line(HELP), no_args_is_help=True, pretty_exceptions_enable=False)
    app.callback()(_options)  # a command that is alone is named all the same
    panels = {name: group for group, members in GROUPS.items() for name in members}
    for name in names:
        if only_described:
            app.command(name, help=_description(name), rich_help_panel=panels[name])(_nothing)
            continue
        named = getattr(import_module(module_of(name)), name)
        if isinstance(named, typer.Typer):
            for command in named.registered_commands:
                assert command.callback is not None
                command.callback = _reporting(command.callback)
            app.add_typer(named, name=name, rich_help_panel=panels[name])
        else:
            app.command(name, rich_help_panel=panels[name])(_reporting(named))
    _let_wrap(app)
    return app


def module_of(command: str) -> str:
    """Return the name of the module that has a command."""
    return f"platform_assets.cli.commands.{_MODULES.get(command, command)}"


def _reporting(command: Callable[..., Report | None]) -> Callable[..., Any]:
    """Return a command with `--json` that prints the report which the function returns.

    A parameter `author` is the person who decides: `--reason` and `--by` on the command line, no author in a dry run.
    """
    if getattr(command, "__wrapped__", None):
        return command  # of a module that was built before
    own = inspect.signature(command, eval_str=True).parameters
    options = [each for name, each in own.items() if name not in ("author", "as_json")]
    options += [_option(name, kind, None) for name, kind in (("reason", Reason), ("by", By)) if "author" in own]

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
    printed.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    return printed


def _option(name: str, kind: object, default: object) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)


def _let_wrap(app: typer.Typer) -> None:
    """Join the lines of descriptions: Typer leaves them as they are, and a narrow terminal breaks each once more."""
    for command in app.registered_commands:
        command.help = _in_one_line(command.help or inspect.getdoc(command.callback) or "")
    for group in app.registered_groups:
        if group.typer_instance is not None:
            _let_wrap(group.typer_instance)


def _in_one_line(description: str) -> str:
    return "\n\n".join(paragraph.replace("\n", " ") for paragraph in description.strip().split("\n\n"))


def _description(name: str) -> str:
    """Read what a command's module says of it, without importing it."""
    file = f"{_MODULES.get(name, name)}.py"
    tree = ast.parse(Path(__file__).with_name("commands").joinpath(file).read_bytes())
    for node in tree.body:
        match node:
            case ast.FunctionDef() if node.name == name:
                return ast.get_docstring(node) or ""
            case ast.Assign(targets=[ast.Name(id=group)], value=ast.Call(keywords=keywords)) if group == name:
                return next(str(ast.literal_eval(word.value)) for word in keywords if word.arg == "help")
    raise AssertionError(name)


def _nothing() -> None:
    """Stand for a command in the list of all; the command itself is imported when it is asked for."""


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
    asked = next((argument for argument in sys.argv[1:] if not argument.startswith("-")), None)
    _prepare(asked)
    try:
        with never_lost(), speaking(asked or "platform-assets"):
            alone = [asked] if asked in COMMANDS else None
            app = build(alone or COMMANDS, only_described=not alone and _COMPLETES not in os.environ)
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
    """Keep what a command writes for those whom the settings name; print its platform if it could be mistaken."""
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
    """Return whether there are only words before `--help`: after an option it could be what the option is given."""
    *words, last = sys.argv
    return last == "--help" and not any(word.startswith("-") for word in words[1:])


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
