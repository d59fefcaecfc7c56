"""The URL of a database as a person may see it, and what its driver said: passwords are kept out of every message."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote, quote_plus

if TYPE_CHECKING:
    from sqlalchemy import URL

_SHOWN = {
    "application_name", "cache", "channel_binding", "connect_timeout", "gssencmode", "host", "hostaddr", "keepalives",
    "load_balance_hosts", "mode", "port", "sslmode", "sslrootcert", "target_session_attrs", "timeout", "uri",
}  # fmt: skip
"""Options that hold no secret. All others are masked: an option of a driver to come may hold one."""
_HIDDEN = "***"


def masked(url: URL) -> str:
    """Return the URL without a password, before the host, among the options, or moved by a sign left unescaped."""
    shown = url.update_query_dict(dict.fromkeys(_secret_options(url), _HIDDEN))
    if "@" in (url.host or ""):
        shown = shown.set(host=_HIDDEN)
    if url.get_backend_name() != "sqlite" and "@" in (url.database or ""):
        shown = shown.set(database=_HIDDEN)
    return shown.render_as_string(hide_password=True)


def driver_message(error: BaseException, url: URL) -> str:
    """Return the first line of what a driver said, without any secret of the URL that it may have quoted."""
    text = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
    moved = [part for part in (url.host, url.database) if part and "@" in part]
    for secret in filter(None, (url.password, *_secret_options(url).values(), *moved)):
        for spelling in (secret, quote(secret, safe=""), quote_plus(secret)):
            text = text.replace(spelling, _HIDDEN)
    return text


def _secret_options(url: URL) -> dict[str, str]:
    return {
        name: value if isinstance(value, str) else ",".join(value)
        for name, value in url.query.items()
        if name not in _SHOWN
    }
