"""What Spark says, without the secrets that it was given: in errors it quotes settings and addresses."""

from __future__ import annotations

import re
from collections.abc import Iterator

from platform_assets.settings import Settings

_SECRET = re.compile(r"secret|password|passwd|token|credential|(access|account|encryption|api)[._-]?key", re.IGNORECASE)
"""Names of settings whose values are secret, as Spark's own logs have it, and a few more."""
_OPEN_PARAMETERS = ("use_ssl", "user_agent", "session_id")
"""Of a Spark Connect URL; all others are hidden."""
_HIDDEN = "***"


def without_secrets(text: str, settings: Settings) -> str:
    """A text in which no secret of the settings is left."""
    for secret in sorted(filter(None, _secrets(settings)), key=len, reverse=True):
        text = text.replace(secret, _HIDDEN)
    return text


def _secrets(settings: Settings) -> Iterator[str]:
    yield from (value for name, value in settings.spark_conf.items() if _SECRET.search(name))
    if settings.spark_remote:
        address, *parameters = settings.spark_remote.get_secret_value().split(";")
        yield address.rpartition("@")[0].rpartition("/")[2]  # where no user belongs, somebody may have put one
        for name, _, value in (parameter.partition("=") for parameter in parameters):
            if name not in _OPEN_PARAMETERS:
                yield value
