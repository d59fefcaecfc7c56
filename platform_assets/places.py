"""Where a lake or a landing area may lie, as settings name it: in a folder of this machine, or in a bucket."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field

OBJECT_STORES = ("s3",)
"""Schemes of the URLs of what can keep either."""
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(.*)", re.DOTALL)
_BUCKET = re.compile(r"[a-z0-9][a-z0-9._-]*(/[A-Za-z0-9._~-]+)*/?")


def _as_place(value: object) -> object:
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, str) and (url := _URL.fullmatch(value)):
        if url[1] not in OBJECT_STORES:
            known = ", ".join(f"{scheme}://" for scheme in OBJECT_STORES)
            raise ValueError(f"must be a folder of this machine or a URL that begins with {known}")
        if not _BUCKET.fullmatch(url[2]) or ".." in url[2].split("/"):
            raise ValueError(
                f"must be written like {url[1]}://bucket/folder: without user, password, port, query or spaces"
            )
        return value.rstrip("/")
    return value


Place = Annotated[str, BeforeValidator(_as_place), Field(min_length=1)]
"""A folder, or a URL without its last slash."""


def is_object_store(place: str) -> bool:
    """Whether it is named by the URL of an object store."""
    return _URL.fullmatch(place) is not None


def folder_of(place: str) -> Path | None:
    """The folder of this machine; None for what lies in an object store."""
    return None if is_object_store(place) else Path(place)
