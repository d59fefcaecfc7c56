"""Read or make the secret of an installation, the key of all hashes of personal values.

It is what `PLATFORM_SECRET` says, or else made once and kept in the state folder, readable for its owner only, and for
the group that the folder's mode lets work there. It is in no setting of Spark, no manifest, no log and no table;
backups keep the file, because remembered erasures need it.
"""

from __future__ import annotations

import hmac
import os
import stat
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING

from filelock import FileLock

from platform_assets.errors import PlatformError
from platform_assets.settings_words import LEAST_SECRET

if TYPE_CHECKING:
    from platform_assets.settings import Settings

_BYTES = 32
_OWNER_ONLY = 0o600
_ITS_GROUP = 0o640


class SecretError(PlatformError):
    """The secret of the installation cannot be read or made."""


def secret_file(settings: Settings) -> Path:
    """Return where an installation keeps the secret that it made."""
    return settings.state / "secret"


def installation_secret(settings: Settings) -> bytes:
    """Return the secret. Creates it if there is none; concurrent processes get the same one.

    Raises:
        SecretError: the file cannot be read or written, or holds no secret.
    """
    if settings.secret is not None:
        return settings.secret.get_secret_value().encode()
    file = secret_file(settings)
    try:
        if not file.exists():
            settings.make_state()
            _make(file, _ITS_GROUP if settings.access.state & stat.S_IWGRP else _OWNER_ONLY)
        secret = file.read_bytes().strip()
    except OSError as error:
        raise SecretError(
            f"{file} cannot be read or written: {error.strerror}.",
            "It is the key of masked values. Give this user the right to it, or set PLATFORM_SECRET.",
        ) from error
    if len(secret) < LEAST_SECRET:
        raise SecretError(
            f"{file} is cut short: it has {len(secret)} characters.",
            "Put it back from a backup; remove it only if nothing was ever erased, and another one is made.",
        )
    return secret


def name_of(secret: bytes) -> str:
    """Return a short name of a secret that reveals nothing of it."""
    return hmac.digest(secret, b"name of the secret", "sha256").hex()[:8]


def _make(file: Path, mode: int) -> None:
    with FileLock(file.with_name(".secret.lock")):
        if file.exists():
            return
        draft = file.with_name(".secret.new")
        draft.unlink(missing_ok=True)
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _OWNER_ONLY)
        with os.fdopen(descriptor, "w") as content:
            os.fchmod(descriptor, mode)
            content.write(token_hex(_BYTES))
            content.flush()
            os.fsync(content.fileno())
        draft.replace(file)
