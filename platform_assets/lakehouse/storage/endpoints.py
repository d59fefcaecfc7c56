"""Where an object store is that is not Amazon's, as variables say: what its libraries cannot use is told here first.

They end with a panic, or with no more than `builder error`, at an address that is written otherwise than they expect.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from platform_assets.addresses import without_secrets
from platform_assets.lakehouse.errors import LakeError

_OF_S3 = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
_TRUE = ("1", "true", "on", "yes", "y")
"""As the library for files reads it."""


def require_endpoint(bucket: str, environ: Mapping[str, str]) -> None:
    """See that a store can be asked at the place that variables name.

    Args:
        bucket: its URL; of Azure's nothing is looked at.
        environ: the variables.

    Raises:
        LakeError: the place is no address, or one without encryption that was not allowed.
    """
    if not bucket.startswith("s3://"):
        return
    for name in _OF_S3:
        if not (address := environ.get(name)):
            continue
        if not _is_address(address):
            raise LakeError(
                f"{name} is {without_secrets(address)!r}, at which no object store can be asked.",
                f"Write {name} with its protocol, as http://127.0.0.1:9000 or https://store.example.com.",
            )
        if address.lower().startswith("http://") and environ.get("AWS_ALLOW_HTTP", "").lower() not in _TRUE:
            raise LakeError(
                f"{name} is {without_secrets(address)}, which is not encrypted, and that was not allowed.",
                "Set AWS_ALLOW_HTTP=true if nobody listens on the way, or name an https:// address.",
            )


def _is_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme.lower() in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is none
        return False
