"""What a code version that somebody sets by hand looks like."""

from __future__ import annotations

import re

from platform_assets.contracts.errors import ContractError

_CODE_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def check_code_version(where: str, version: str) -> None:
    """Refuse a hand-set code version that could not be told from others.

    Raises:
        ContractError: it is empty or has characters that a version does not have.
    """
    if not _CODE_VERSION.fullmatch(version):
        raise ContractError(
            f"{where} sets the code version {version!r}, which is {'not one' if version.strip() else 'empty'}.",
            "Write letters, digits, dots and dashes, as in '2024-03.1', or remove it to have the source decide.",
        )
