"""Parse the place of a lake or landing area: a folder of this machine, or a bucket."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field

FORMS = {"s3": "s3://bucket/folder", "abfss": "abfss://container@account.dfs.core.windows.net/folder"}
"""How a place in an object store is written, by the schemes of the kinds of store that can keep either."""
_WHERE = f"must be a folder of this machine or a URL that begins with {', '.join(f'{name}://' for name in FORMS)}"
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(.*)", re.DOTALL)
_BUCKETS = {
    "s3": re.compile(r"[a-z0-9][a-z0-9._-]*"),
    # As Spark and deltalake take it alike. The short forms, az:// for example, do not say whose container it is.
    "abfss": re.compile(r"[a-z0-9][a-z0-9-]*@[a-z0-9]+\.dfs\.core\.windows\.net"),
}
_BELOW = re.compile(r"([A-Za-z0-9._~-]+/)*[A-Za-z0-9._~-]*")
_ALMOST = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/*(?!/).*", re.DOTALL)
"""A scheme without its two slashes, or with three; one letter would be a drive."""
_OF_AZURE = ("abfs", "adl", "az", "azure", "wasb", "wasbs")
_OTHERS = re.compile(rf"(file|gs|hdfs|s3a|s3n|{'|'.join(_OF_AZURE)}):/", re.IGNORECASE)
"""With one slash, as Hadoop writes some of them, they would be folders of that name."""

_LONGEST = 103 if sys.platform == "darwin" else 107
USE_A_SHORTER = "Name a shorter one with the variable TMPDIR, as /tmp."
"""What to do then."""


def _as_place(value: object) -> object:
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, str) and (url := _URL.fullmatch(value)):
        if url[1] in _OF_AZURE:
            raise ValueError(f"must be written like {FORMS['abfss']}")
        if url[1] not in FORMS:
            raise ValueError(_WHERE)
        below = url[2].partition("/")[2]
        if not names_bucket(value) or not _BELOW.fullmatch(below) or ".." in below.split("/"):
            raise ValueError(f"must be written like {FORMS[url[1]]}: without user, password, port, query or spaces")
        return value.rstrip("/")
    if isinstance(value, str) and (almost := _ALMOST.fullmatch(value)) and almost[1].lower() in FORMS:
        raise ValueError(f"must be written like {FORMS[almost[1].lower()]}, with two slashes")
    if isinstance(value, str) and (of_others := _OTHERS.match(value)):
        raise ValueError(f"must be written like {FORMS['abfss']}" if of_others[1].lower() in _OF_AZURE else _WHERE)
    return value


Place = Annotated[str, BeforeValidator(_as_place), Field(min_length=1)]
"""A folder, or a URL without its last slash."""


def names_bucket(url: str) -> bool:
    """Return whether it is the URL of a bucket, or of something in one, of a kind of object store that is known."""
    parts = _URL.fullmatch(url)
    return bool(parts and parts[1] in FORMS and _BUCKETS[parts[1]].fullmatch(parts[2].partition("/")[0]))


def is_object_store(place: str) -> bool:
    """Return whether it is named by the URL of an object store."""
    return _URL.fullmatch(place) is not None


def for_hadoop(place: str) -> str:
    """Return a place as Spark takes it: without a scheme it would be one of the file system of `HADOOP_CONF_DIR`."""
    return place if is_object_store(place) else f"file:{one_root(place)}"


def one_root(folder: str) -> str:
    """Return a folder with one slash before it: what follows two would be a machine in a URL, and Python keeps them."""
    return f"/{folder.lstrip('/')}" if folder.startswith("//") else folder


def folder_of(place: str) -> Path | None:
    """Return the folder of this machine; None for what lies in an object store."""
    return None if is_object_store(place) else Path(place)


def store_of(place: str) -> str | None:
    """Return the kind of object store it lies in, as the scheme of its URL; None for a folder of this machine."""
    url = _URL.fullmatch(place)
    return url[1] if url else None


def why_no_socket(below: str) -> str:
    """Return what keeps a socket from being made there; empty if nothing does.

    Args:
        below: its path in that folder, as long as it will be.
    """
    folder = Path(tempfile.gettempdir())
    if len(os.fsencode(folder / below)) <= _LONGEST:
        return ""
    return f"the folder for temporary files has too long a path for sockets: {folder}"
