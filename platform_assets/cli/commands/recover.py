"""`recover`: finish what a killed process began, and say what that was."""

from __future__ import annotations

from typing import Annotated

import typer

from platform_assets.cli.options import By, Reason, decided_by
from platform_assets.cli.progress import telling
from platform_assets.operations.recovery import recover_installation
from platform_assets.progress import meanwhile
from platform_assets.report import Note, Part, Report, picked
from platform_assets.settings import load_settings


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
