"""Places of a lake as paths, for tests that look at files or damage them as another tool would; what manifests say."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import cast

import obstore
from obstore.store import from_url

from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.releases import manifest_of, published
from platform_assets.lakehouse.storage.location import Location

STORED: dict[str, Path | None] = {}
"""The folders in which object stores of tests keep their buckets, by the buckets' URLs; None for those that keep them
in a form of their own."""


def on_disk(location: Location) -> Path:
    """Where something lies on this machine's disk, or what can be asked as if it did."""
    for bucket, folder in STORED.items():
        if str(location).startswith(f"{bucket}/"):
            below = str(location).removeprefix(f"{bucket}/")
            return folder / below if folder else cast("Path", Kept(bucket, below))
    return Path(str(location))


@dataclass(frozen=True)
class Size:
    """What a test asks of a file without opening it."""

    st_size: int


@dataclass(frozen=True, order=True)
class Kept:
    """An object, or a beginning of names, with as much of a path's ways as tests use; by the store's own interface.

    Args:
        bucket: its URL.
        key: the name.
    """

    bucket: str
    key: str

    def __str__(self) -> str:
        return f"{self.bucket}/{self.key}"

    __fspath__ = __str__

    def __truediv__(self, below: str) -> Kept:
        return Kept(self.bucket, f"{self.key}/{below}")

    @property
    def name(self) -> str:
        return self.key.rpartition("/")[2]

    @property
    def parent(self) -> Kept:
        return Kept(self.bucket, self.key.rpartition("/")[0])

    def relative_to(self, folder: Kept) -> Path:
        return Path(self.key).relative_to(folder.key)

    def is_dir(self) -> bool:
        return bool(self._below())

    def is_file(self) -> bool:
        return any(path == self.key for path in self._paths(self.parent.key))

    def exists(self) -> bool:
        return self.is_dir() or self.is_file()

    def iterdir(self) -> Iterator[Kept]:
        return iter(sorted({self / path.partition("/")[0] for path in self._below()}))

    def glob(self, pattern: str) -> Iterator[Kept]:
        wanted = pattern.split("/")
        for each in self._all():
            parts = each.key.removeprefix(f"{self.key}/").split("/")
            if len(parts) == len(wanted) and all(map(fnmatch, parts, wanted)):
                yield each

    def rglob(self, pattern: str) -> Iterator[Kept]:
        return (each for each in self._all() if fnmatch(each.name, pattern))

    def open(self, mode: str = "rb") -> io.BytesIO:
        return io.BytesIO(self.read_bytes()) if mode == "rb" else _Written(self)

    def read_bytes(self) -> bytes:
        return bytes(obstore.get(from_url(self.bucket), self.key).bytes())

    def read_text(self) -> str:
        return self.read_bytes().decode()

    def write_bytes(self, content: bytes) -> None:
        obstore.put(from_url(self.bucket), self.key, content)

    def write_text(self, content: str) -> None:
        self.write_bytes(content.encode())

    def stat(self) -> Size:
        return Size(int(obstore.head(from_url(self.bucket), self.key)["size"]))

    def rename(self, target: Kept) -> None:
        obstore.rename(from_url(self.bucket), self.key, target.key)

    def unlink(self) -> None:
        obstore.delete(from_url(self.bucket), self.key)

    def mkdir(self, *, parents: bool = False, exist_ok: bool = False) -> None:
        """Nothing: a folder is there as soon as something lies in it."""

    def _all(self) -> list[Kept]:
        """What lies below, and the folders on the way there."""
        there = {
            "/".join(parts[:n])
            for path in self._below()
            for parts in [path.split("/")]
            for n in range(1, len(parts) + 1)
        }
        return sorted(self / path for path in there)

    def _below(self) -> list[str]:
        return [path.removeprefix(f"{self.key}/") for path in self._paths(self.key)]

    def _paths(self, folder: str) -> list[str]:
        return [each["path"] for chunk in obstore.list(from_url(self.bucket), f"{folder}/") for each in chunk]


class _Written(io.BytesIO):
    """What becomes an object when it is closed."""

    def __init__(self, target: Kept) -> None:
        super().__init__()
        self._target = target

    def close(self) -> None:
        if not self.closed:
            self._target.write_bytes(self.getvalue())
        super().close()


Digests = Mapping[str, Mapping[str, str]]
"""Of every day, by table."""


def digests_of(place: str) -> Digests:
    """The digest of every day, as its newest manifest says."""
    lake, newest = Lake.at(place), dict[str, dict[str, str]]()
    for _, publication in published(lake):
        for change in manifest_of(lake, publication).tables:
            newest.setdefault(change.table, {}).update(
                {str(day): content.digest for day, content in change.days.items()}
            )
    return newest
