"""What a code version that somebody sets by hand looks like."""

from __future__ import annotations

import re
from collections.abc import Iterator

from platform_assets.contracts.errors import ContractError

_CODE_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def code_version_problems(where: str, version: str | None, table: str | None = None) -> Iterator[ContractError]:
    """Why a hand-set code version could not be told from others: it is empty, or has other characters."""
    if version is not None and not _CODE_VERSION.fullmatch(version):
        yield ContractError(
            f"{where} sets the code version {version!r}, which is {'not one' if version.strip() else 'empty'}.",
            "Write letters, digits, dots and dashes, as in '2024-03.1', or remove it to have the source decide.",
            table=table,
            field="code_version",
        )
