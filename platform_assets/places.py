"""Judge places: folders of this machine, buckets, web addresses; and who has access to a folder.

A mode is written as `chmod` takes it. A file has that of its folder without the right to execute; a process writes both
through its umask, which everything that it starts inherits.
"""

from __future__ import annotations

import os
import pwd
import re
import socket
import stat
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field

FORMS = {"s3": "s3://bucket/folder", "abfss": "abfss://container@account.dfs.core.windows.net/folder"}
"""How a place in an object store is written, by the schemes of the kinds of store that can keep either."""
_WHERE = f"must be a folder of this machine, or a URL like {' or '.join(FORMS.values())}"
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(.*)", re.DOTALL)
_BUCKETS = {
    "s3": re.compile(r"[a-z0-9][a-z0-9._-]*"),
    # As Spark and deltalake take it alike. The short forms, az:// for example, do not say whose container it is.
    "abfss": re.compile(r"[a-z0-9][a-z0-9-]*@[a-z0-9]+\.dfs\.core\.windows\.net"),
}
_BELOW = re.compile(r"([A-Za-z0-9._~-]+/)*[A-Za-z0-9._~-]*")
_ALMOST = re.compile(r"(abfss?|adl|azure|az|file|gs|hdfs|s3[an]?|wasbs?):", re.IGNORECASE)
"""How a URL begins: with one slash, or none, it would be a folder of that name."""

_LONGEST = 103 if sys.platform == "darwin" else 107
USE_A_SHORTER = "Name a shorter one with the variable TMPDIR, as /tmp."
"""What to do then."""


def _as_place(value: object) -> object:
    if isinstance(value, Path):
        return str(value)
    if not isinstance(value, str):
        return value
    if (url := _URL.fullmatch(value)) is None:
        if _ALMOST.match(value):
            raise ValueError(_WHERE)
        return value
    below = url[2].partition("/")[2]
    if not names_bucket(value) or not _BELOW.fullmatch(below) or ".." in below.split("/"):
        raise ValueError(f"{_WHERE}, without user, password, port, query or spaces")
    return value.rstrip("/")


Place = Annotated[str, BeforeValidator(_as_place), Field(min_length=1)]
"""A folder, or a URL without its last slash."""


def names_bucket(url: str) -> bool:
    """Return whether it is the URL of a bucket, or of something in one, of a supported kind of object store."""
    parts = _URL.fullmatch(url)
    return bool(parts and parts[1] in FORMS and _BUCKETS[parts[1]].fullmatch(parts[2].partition("/")[0]))


def is_object_store(place: str) -> bool:
    """Return whether it is an object store's URL."""
    return _URL.fullmatch(place) is not None


def for_hadoop(place: str) -> str:
    """Return a place for Spark: without a scheme it would be in the file system of `HADOOP_CONF_DIR`."""
    return place if is_object_store(place) else f"file:{one_root(place)}"


def one_root(folder: str) -> str:
    """Return a folder with one leading slash: after two, a URL would have a machine's name, and Python keeps them."""
    return f"/{folder.lstrip('/')}" if folder.startswith("//") else folder


def folder_of(place: str) -> Path | None:
    """Return the folder of this machine; None for a place in an object store."""
    return None if is_object_store(place) else Path(place)


def store_of(place: str) -> str | None:
    """Return its kind of object store, by the scheme of its URL; None for a folder of this machine."""
    url = _URL.fullmatch(place)
    return url[1] if url else None


def why_no_socket(below: str) -> str:
    """Return why a socket cannot be made there; empty if it can.

    Args:
        below: its path in that folder, as long as it will be.
    """
    folder = Path(tempfile.gettempdir())
    if len(os.fsencode(folder / below)) <= _LONGEST:
        return ""
    return f"the folder for temporary files has too long a path for sockets: {folder}"


_ALL = 0o777
PRIVATE_UMASK = 0o077
"""As long as the settings are not known."""


def _without_zeros(value: object) -> object:
    return value.strip().removeprefix("0o").lstrip("0") if isinstance(value, str) else value


StateMode = Annotated[Literal["700", "750", "770"], BeforeValidator(_without_zeros)]
"""Of the state folder: this user alone, a group that reads, a group that works with it."""
LakeMode = Annotated[Literal["", "700", "750", "755", "770", "775"], BeforeValidator(_without_zeros)]
"""Mode of a lake, which may be open for readers; empty for the state folder's mode."""


@dataclass(frozen=True)
class Access:
    """Modes of an installation's folders.

    Args:
        state: of the state folder, and of a lake's folders that are not for readers.
        lake: of a lake's folders for readers.
    """

    state: int
    lake: int

    @classmethod
    def of(cls, state: str, lake: str) -> Access:
        """Return the access that settings name."""
        return cls(int(state, 8), int(lake or state, 8))

    @property
    def umask(self) -> int:
        """Return the process's umask; each folder's own mode restricts further."""
        return _ALL & ~(self.state | self.lake)

    @property
    def lake_is_wider(self) -> bool:
        """Return whether some users may read the lake and not the state folder."""
        return bool(self.lake & ~self.state)


def make_folder(folder: Path, mode: int) -> None:
    """Make a folder and missing parents with a mode; an existing folder stays unchanged."""
    if folder.is_dir():
        return
    if not folder.parent.is_dir():
        make_folder(folder.parent, mode)
    with suppress(FileExistsError):  # another process was faster
        folder.mkdir(mode)
        _open_to(folder, mode)


def take_folder(folder: Path, mode: int, allowed: Path | None) -> None:
    """Make a folder as `make_folder` does. Also give its mode to an existing unused folder.

    A folder made by hand has the default mode, which was not chosen.

    Args:
        allowed: an entry that it may have already, if any.
    """
    make_folder(folder, mode)
    if given_beyond(folder, mode) and is_unused(folder, allowed):
        _open_to(folder, mode)


def is_unused(folder: Path, allowed: Path | None) -> bool:
    """Return whether a folder is this user's own and is empty except for the allowed entry.

    A folder open to all, such as `/tmp`, is for others too, and a link may lead anywhere.
    """
    try:
        seen = folder.stat(follow_symlinks=False)
        is_own = stat.S_ISDIR(seen.st_mode) and seen.st_uid == os.geteuid() and not seen.st_mode & stat.S_ISVTX
        return is_own and all(entry == allowed for entry in folder.iterdir())
    except OSError:
        return False


def _open_to(folder: Path, mode: int) -> None:
    """Give a folder a mode; its new files belong to its group, if the group has access."""
    folder.chmod(mode | (stat.S_ISGID if mode & stat.S_IRWXG else 0))


def given_beyond(path: Path, mode: int) -> int:
    """Return the permissions of a folder in excess of a mode; 0 without any."""
    try:
        return stat.S_IMODE(path.stat().st_mode) & _ALL & ~mode
    except FileNotFoundError:
        return 0


def is_ours_alone(path: Path) -> bool:
    """Return whether only this user and the administrator can write a file, or could have written it."""
    seen = path.stat(follow_symlinks=False)
    return seen.st_uid in (0, os.geteuid()) and not seen.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def own_user() -> str:
    """Return the user that the process belongs to, not the environment's; a number if it has no name."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # as in a container
        return f"uid {os.getuid()}"


def own_host() -> str:
    """Return the name of the machine, or of the container."""
    return socket.gethostname()


LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
"""Names of this machine that lead nowhere else."""
_ORIGIN = re.compile(r"(https?)://((?:[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?)")
_PORTS = {"http": ":80", "https": ":443"}
"""Which browsers leave out."""
_WITH_CONTAINERS = ("abfs", "abfss", "wasb", "wasbs")
"""Schemes of places in Azure, `abfss://container@account…`."""


def is_private_url(url: str) -> bool:
    """Return whether traffic to a URL is encrypted, or stays on this machine."""
    try:
        parts = urlsplit(url)
        name = parts.hostname
    except ValueError:
        return False
    return bool(name) and (parts.scheme == "https" or (parts.scheme == "http" and name in LOOPBACK))


def origin_of(url: str) -> str | None:
    """Return scheme, host and port of a page, as browsers send the origin of a request.

    Returns:
        As in `https://dagster.example.com`; None for a URL without a valid origin.
    """
    found = _ORIGIN.match(url.lower())
    if found is None or url[found.end() : found.end() + 1] not in {"", "/"}:
        return None
    scheme, place = found.groups()
    return f"{scheme}://{place.removesuffix(_PORTS[scheme])}"


def hosts_of(origin: str) -> frozenset[str]:
    """Return the valid `Host` headers of requests to a page: a default port can be left out."""
    scheme, _, place = origin.partition("://")
    has_port = ":" in place.rpartition("]")[2]
    return frozenset({place} if has_port else {place, place + _PORTS[scheme]})


def without_secrets(place: str) -> str:
    """Return a URL without user, password, query and fragment, where people put keys and signatures."""
    if "://" not in place:
        return place
    scheme, _, rest = place.partition("://")
    named = re.split(r"[?#;]", rest, maxsplit=1)[0]
    user, at, server = named.rpartition("@")
    # In Azure's, the name of a container stands there
    if at and not (scheme in _WITH_CONTAINERS and re.fullmatch(r"[a-z0-9-]+", user)):
        user = "***"
    return f"{scheme}://{user}{at}{server}{'' if named == rest else '***'}"
