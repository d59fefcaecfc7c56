"""A backup put in the place of what was lost, and the rehearsal of it, which leaves no trace."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from pydantic import SecretStr

from platform_assets.ledger.connection import parse_url, sqlite_file
from platform_assets.operations.audit.faults import Check, Fault, Scope
from platform_assets.operations.audit.installation import audit_installation
from platform_assets.operations.backup.generations import BackupError, Generation, linked
from platform_assets.operations.opening import open_platform
from platform_assets.progress import OnProgress, meanwhile
from platform_assets.settings import Settings


@dataclass(frozen=True)
class Rehearsed:
    """What a rehearsal of a restore found.

    Args:
        generation: that was restored.
        release: which it shows.
        faults: what is not as it was published; none if it can be relied on.
        seen: how much every check looked at.
        said: what the platform said when it was opened, in a sentence each.
    """

    generation: str
    release: int
    faults: tuple[Fault, ...]
    seen: Mapping[Check, int]
    said: tuple[str, ...]


def restore(generation: Generation, settings: Settings, progress: OnProgress) -> tuple[Path, Path | None]:
    """Put lake and ledger of a generation where the settings look for them.

    Returns:
        Where they lie now; no ledger where that is a server's database.

    Raises:
        BackupError: something lies there already; nothing was written.
    """
    ledger = sqlite_file(parse_url(settings.ledger_url.get_secret_value())) if generation.ledger.exists() else None
    for place in (settings.lake, *([] if ledger is None else _files_of(ledger))):
        if place.is_dir() and not any(place.iterdir()):
            place.rmdir()
        elif place.exists():
            raise BackupError(
                f"{place} is there already, and a restore replaces nothing.",
                "Stop the platform and move it aside, or restore elsewhere: set PLATFORM_STATE to an empty folder.",
            )
    with meanwhile(progress, "restoring the lake"):
        draft = settings.lake.with_name(f".{settings.lake.name}.restoring")
        shutil.rmtree(draft, ignore_errors=True)
        shutil.copytree(generation.lake, draft)
        draft.rename(settings.lake)
    if ledger is not None:
        ledger.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(generation.ledger, ledger)
    return settings.lake, ledger


def rehearse(generation: Generation, settings: Settings, progress: OnProgress) -> Rehearsed:
    """Restore a generation beside itself, open the platform on it, read every page of every file, and remove it again.

    Raises:
        PlatformError: the platform cannot be opened on it; the message says why.
    """
    with TemporaryDirectory(prefix=".rehearsal-", dir=generation.folder.parent) as place:
        restored = Path(place)
        with meanwhile(progress, "restoring"):
            linked(generation.lake, restored / "lake")
            if generation.ledger.exists():
                shutil.copy2(generation.ledger, restored / "ledger.db")
        url = SecretStr(f"sqlite:///{restored / 'ledger.db'}")
        there = settings.model_copy(update={"state": restored, "lake": restored / "lake", "ledger_url": url})
        said: list[str] = []
        with open_platform(there, said.append):
            pass
        audit = audit_installation(there, Scope(every_release=True, read_bytes=None), progress)
        return Rehearsed(
            generation.name, audit.release, tuple(audit.findings.faults), dict(audit.findings.seen), tuple(said)
        )


def _files_of(ledger: Path) -> list[Path]:
    return [ledger, *(ledger.with_name(f"{ledger.name}-{ending}") for ending in ("wal", "shm"))]
