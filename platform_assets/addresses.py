"""Judge web addresses: whether they are encrypted, where a page comes from, what must be masked."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
"""Names of this machine that lead nowhere else."""
_ORIGIN = re.compile(r"(https?)://((?:[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?)")
_PORTS = {"http": ":80", "https": ":443"}
"""Which browsers leave out."""
_WITH_CONTAINERS = ("abfs", "abfss", "wasb", "wasbs")
"""Schemes of places in Azure, `abfss://container@account…`."""


def nobody_can_listen(url: str) -> bool:
    """Return whether what is sent there is encrypted, or stays on this machine."""
    try:
        parts = urlsplit(url)
        name = parts.hostname
    except ValueError:
        return False
    return bool(name) and (parts.scheme == "https" or (parts.scheme == "http" and name in LOOPBACK))


def origin_of(url: str) -> str | None:
    """Scheme, host and port of a page, as a browser names where a request comes from.

    Returns:
        As in `https://dagster.example.com`; None if it has none that could be told by these rules.
    """
    found = _ORIGIN.match(url.lower())
    if found is None or url[found.end() : found.end() + 1] not in {"", "/"}:
        return None
    scheme, place = found.groups()
    return f"{scheme}://{place.removesuffix(_PORTS[scheme])}"


def hosts_of(origin: str) -> frozenset[str]:
    """Return what a request to a page may have for `Host`: the port can be left out where it is the usual one.

    Args:
        origin: as `origin_of` gives it.
    """
    scheme, _, place = origin.partition("://")
    has_port = ":" in place.rpartition("]")[2]
    return frozenset({place} if has_port else {place, place + _PORTS[scheme]})


def without_secrets(place: str) -> str:
    """Return a URL without what is before its host and after its path, where people put keys and signatures."""
    if "://" not in place:
        return place
    scheme, _, rest = place.partition("://")
    named = re.split(r"[?#;]", rest, maxsplit=1)[0]
    user, at, server = named.rpartition("@")
    # In Azure's, the name of a container stands there
    if at and not (scheme in _WITH_CONTAINERS and re.fullmatch(r"[a-z0-9-]+", user)):
        user = "***"
    return f"{scheme}://{user}{at}{server}{'' if named == rest else '***'}"
