"""`init`: a domain of one's own, outside this package, that runs as it is written."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from keyword import iskeyword
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from platform_assets.cli.console import UsageError
from platform_assets.contracts.columns import IDENTIFIER
from platform_assets.report import Note, Report
from platform_assets.settings import load_settings

TEMPLATE = Path(__file__).parent.parent / "template"
_ENDING = ".txt"
"""Of Python in the template: it is nobody's module until it has a name."""
_NAME = re.compile(r"(?<![a-z@])example(?![a-z])")
"""The word that stands for the domain; an address at example.com is none."""
_MOST_LETTERS = 30
"""With what tables are called besides, it must be a name still."""


def init(
    domain: Annotated[str, typer.Argument(help="Its name, which is that of its package, too.")],
    into: Annotated[Path, typer.Option("--into", help="Folder in which the package is made.")] = Path(),
) -> Report:
    """Write a domain of your own: contracts, transforms, a sample to land and a test, to begin with."""
    home = into.expanduser().resolve()
    target = home / domain
    if not IDENTIFIER.fullmatch(domain) or len(domain) > _MOST_LETTERS or iskeyword(domain):
        name = f"at most {_MOST_LETTERS} lower-case letters, digits and underscores, beginning with a letter"
        raise UsageError(f"{domain!r} cannot name a domain.", f"Use {name}, and no word of Python's own.")
    if target.exists() or target.is_symlink():
        raise UsageError(f"{target} is there already, and nothing is overwritten.", "Choose another name, or --into.")
    used = {part for package in load_settings().domains for part in package.split(".")}
    if domain in used or domain in sys.stdlib_module_names or find_spec(domain) is not None:
        raise UsageError(f"The name {domain!r} is in use: Python finds a module of that name.", "Choose another one.")
    home.mkdir(parents=True, exist_ok=True)
    # All of it at once: what was written in part would be taken for somebody's work.
    with TemporaryDirectory(prefix=f".{domain}-", dir=home) as folder:
        made = Path(folder) / domain
        for source in (path for path in sorted(TEMPLATE.rglob("*")) if path.is_file()):
            name = _NAME.sub(domain, str(source.relative_to(TEMPLATE)).removesuffix(_ENDING))
            (made / name).parent.mkdir(parents=True, exist_ok=True)
            text = source.read_text(encoding="utf-8")
            if source.name.startswith("settings.sh"):
                text = text.replace("FOLDER", shlex.quote(str(home / domain))).replace("HOME", shlex.quote(str(home)))
            (made / name).write_text(_NAME.sub(domain, text), encoding="utf-8")
        made.rename(target)
    steps = [*_next_steps(target)]
    data = {"written": target, "next": [line.strip() for line in steps]}
    return Report([Note("green", "written", str(target)), "Next:", *steps], data)


def _next_steps(target: Path) -> Iterator[str]:
    settings = shlex.quote(str(target / "settings.sh"))
    yield f"  . {settings}    # PYTHONPATH and PLATFORM_DOMAINS: for all commands, `up` and Dagster's processes"
    sample = shlex.quote(str(target / "sample" / "deliveries"))
    yield f'  mkdir -p "$PLATFORM_STATE/landing" && cp -r {sample}/. "$PLATFORM_STATE/landing/"'
    yield "  platform-assets check                # contracts and transforms, before any row"
    # Not `python`, which need not be the one that has the platform.
    yield f"  {shlex.quote(sys.executable)} -m pytest {shlex.quote(str(target))}"
    yield "  platform-assets refresh"
    yield "docs/first-table.md goes on from there; what a contract can say is in docs/contracts.md."
