"""Files in an object store: S3, Azure's blobs, or Google's.

A store keeps acknowledged writes, so there is nothing to sync; a folder is only a prefix of names. A store must support
*conditional writes*: a file written only if there is none has exactly one winner. Credentials and endpoints come from
the environment, by the names that the store's own tools use (`AWS_ACCESS_KEY_ID`, `AZURE_STORAGE_ACCOUNT_KEY`, …).

The endpoint of a store other than Amazon's is checked here first: with an unexpected form of address, libraries end
with a panic, or with no more than `builder error`.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import PurePosixPath
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

import obstore
from obstore.exceptions import AlreadyExistsError, NotFoundError, PreconditionError
from obstore.fsspec import FsspecStore
from obstore.store import from_url
from pyarrow import NativeFile, PythonFile
from pyarrow.fs import FileInfo, FSSpecHandler, PyFileSystem

from platform_assets.lakehouse.errors import LakeError
from platform_assets.lakehouse.storage.answers import lacks_bucket, no_bucket, refusals_explained
from platform_assets.lakehouse.storage.location import Entry, Location, about_to_appear
from platform_assets.places import FORMS, names_bucket, without_secrets

if TYPE_CHECKING:
    from obstore.store import ObjectStore as Client
    from pyarrow.fs import FileSystem

_PART_BYTES = 8 * 1024 * 1024
_TRIES = 6
"""How often it is tried to remove what a store lists, and says is not there."""


class OtherObjectError(Exception):
    """An object was overwritten since it was listed."""


@dataclass(frozen=True, order=True)
class Stored(Location):
    """A file or a folder of a bucket, named by a URL such as `s3://bucket/lake/gold`.

    Azure calls a bucket a container: `abfss://container@account.dfs.core.windows.net/lake/gold`.
    """

    @classmethod
    def of(cls, url: str) -> Self:
        """Return the location that a person or a library names."""
        if not names_bucket(url):
            known = " or ".join(FORMS.values())
            raise LakeError(
                f"A lake cannot be in {without_secrets(url)}.",
                f"Name a folder of this machine or {known} in PLATFORM_LAKE.",
            )
        return cls(url.rstrip("/"))

    @property
    def parent(self) -> Self:
        bucket, path = self._parts
        return type(self)(f"{bucket}/{path.rpartition('/')[0]}".rstrip("/"))

    def exists(self) -> bool:
        return self.size() is not None or next(self._listed(), None) is not None

    def size(self) -> int | None:
        seen = self._head()
        return None if seen is None else int(seen["size"])

    def written(self) -> datetime:
        seen = self._head()
        times = [seen["last_modified"]] if seen else [each["last_modified"] for each in self._listed()]
        if not times:
            raise FileNotFoundError(errno.ENOENT, "there is no such object", self.address)
        return max(times).astimezone(UTC)

    def read(self, last: int | None = None) -> bytes | None:
        with refusals_explained(self.address):
            try:
                if last is None:
                    return bytes(obstore.get(self._client, self._path).bytes())
                size = self.size()
                if not size or not last:
                    return None if size is None else b""
                return bytes(obstore.get_range(self._client, self._path, start=max(size - last, 0), end=size))
            except (NotFoundError, FileNotFoundError) as error:
                if lacks_bucket(error):
                    raise  # which is no lake where nothing was published yet
                return None

    def names(self) -> list[str]:
        with refusals_explained(self.address):
            listed = obstore.list_with_delimiter(self._client, self._prefix)
        paths = [*listed["common_prefixes"], *(each["path"] for each in listed["objects"])]
        return sorted({path.rstrip("/").rpartition("/")[2] for path in paths})

    def folders(self) -> list[Self]:
        with refusals_explained(self.address):
            listed = obstore.list_with_delimiter(self._client, self._prefix)
        return [self / path.rstrip("/").rpartition("/")[2] for path in sorted(listed["common_prefixes"])]

    def files(self) -> dict[str, Entry]:
        return {
            each["path"].removeprefix(self._prefix or ""): Entry(
                int(each["size"]), each["last_modified"].astimezone(UTC), _quoted(each["e_tag"])
            )
            for each in self._listed_files()
        }

    def pieces(self, below: str, e_tag: str) -> Iterator[bytes]:
        """Yield the content of one of `files`, piece by piece.

        Raises:
            OtherObjectError: it was replaced.
            FileNotFoundError: it is gone.
        """
        gone = FileNotFoundError(errno.ENOENT, "No such object", f"{self.address}/{below}")
        path = f"{self._prefix or ''}{below}"
        with refusals_explained(self.address):
            try:
                options: obstore.GetOptions = {"if_match": e_tag} if e_tag else {}
                content = obstore.get(self._client, path, options=options)
                for piece in content.stream(min_chunk_size=_PART_BYTES):
                    yield bytes(piece)
            except PreconditionError:
                # Some stores say so of one that is gone
                if self._head(path) is None:
                    raise gone from None
                raise OtherObjectError(f"{self.address}/{below}") from None
            except (NotFoundError, FileNotFoundError):
                raise gone from None

    def now(self) -> datetime:
        probe = self / f".{token_hex(8)}.now"
        try:
            probe.replace(b"")
            return probe.written()
        finally:
            probe.remove()

    def write_new(self, content: bytes) -> bool:
        try:
            self._put(content, "create")
        except (AlreadyExistsError, FileExistsError):
            return False
        return True

    def replace(self, content: bytes) -> None:
        self._put(content, "overwrite")

    def ensure_writable(self) -> None:
        self.write_new(b"")

    def write_in_place(self, pieces: Iterable[bytes]) -> None:
        self.receive(pieces)

    def receive(self, pieces: Iterable[bytes]) -> None:
        with refusals_explained(self.address):
            obstore.put(self._client, self._path, iter(pieces), chunk_size=_PART_BYTES)

    def replace_if_held(self, content: bytes, still_held: Callable[[], None], draft: Self) -> bool:
        # Nothing can be renamed here. A later holder of the lock has removed the draft, which is looked for at the last
        # moment; and if it has written this file, its version is not the one that may be replaced.
        draft.replace(content)
        seen = self._head()
        try:
            still_held()
            if not draft.exists():
                return False
            self._put(content, "create" if seen is None else {"e_tag": seen["e_tag"]})
        except (AlreadyExistsError, FileExistsError, PreconditionError):
            # It may be this content that is there: a store that wrote it, and did not get to say so, is asked again
            return self.read() == content
        finally:
            draft.remove(durable=False)
        return True

    def copy_to(self, target: Location) -> None:
        with refusals_explained(self.address):
            try:
                if isinstance(target, Stored) and target._parts[0] == self._parts[0]:
                    obstore.copy(self._client, self._path, target._path)
                    return
                content = obstore.get(self._client, self._path)
            except (NotFoundError, FileNotFoundError):
                raise FileNotFoundError(errno.ENOENT, "there is no such object", self.address) from None
            target.receive(bytes(piece) for piece in content.stream(min_chunk_size=_PART_BYTES))

    def remove(self, *, durable: bool = True) -> None:
        listed = {each["path"] for each in self._listed()}
        paths = {self._path, *listed}
        for turn in range(_TRIES):
            with refusals_explained(self.address):
                try:
                    obstore.delete(self._client, sorted(paths))
                    return
                except (NotFoundError, FileNotFoundError):
                    # Not every store forgives that there was nothing; what it was asked besides may be undone
                    time.sleep(0.1 * turn)
            paths = listed = {each["path"] for each in self._listed()}
            if not paths:
                return
        raise LakeError(
            f"The object store lists {min(listed)} below {self.address} and says that it is not there.",
            "Look for what stands between here and the store, or is wrong with it, and run the same again; nothing "
            "that is needed was removed.",
        )

    def make(self) -> None:
        """Do nothing: a folder exists as soon as it has a file."""

    def tidy(self) -> None:
        """Do nothing: a folder ends with its last file."""

    def sync(self) -> None:
        """Check that it exists: the store keeps acknowledged writes."""
        if not self.exists():
            raise FileNotFoundError(errno.ENOENT, "there is no such object", self.address)

    def arrow(self) -> tuple[FileSystem, str]:
        from platform_assets.lakehouse.storage.object_store import store_files  # and Arrow, which most do without

        url = urlsplit(self.address)
        return store_files(url.scheme), f"{url.netloc}{url.path}"

    @property
    def _parts(self) -> tuple[str, str]:
        """Return the bucket's URL, and the name in it."""
        url = urlsplit(self.address)
        return f"{url.scheme}://{url.netloc}", url.path.strip("/")

    @property
    def _path(self) -> str:
        return self._parts[1]

    @property
    def _prefix(self) -> str | None:
        return f"{self._path}/" if self._path else None

    @property
    def _client(self) -> Client:
        return _client_of(self._parts[0])

    def _head(self, path: str | None = None) -> obstore.ObjectMeta | None:
        """Return the head of this or another object of the bucket; None if it does not exist."""
        path = path or self._path
        if not path:
            return None
        with refusals_explained(self.address):
            try:
                return obstore.head(self._client, path)
            except (NotFoundError, FileNotFoundError):
                return None

    def _listed(self) -> Iterator[obstore.ObjectMeta]:
        with refusals_explained(self.address):
            for chunk in obstore.list(self._client, self._prefix):
                yield from chunk

    def _listed_files(self) -> list[obstore.ObjectMeta]:
        """Return the listed objects without the empty ones by which Hadoop marks folders in Azure."""
        listed = list(self._listed())
        if all(each["size"] for each in listed):
            return listed
        folders = {str(above) for each in listed for above in PurePosixPath(each["path"]).parents}
        return [each for each in listed if each["size"] or each["path"] not in folders]

    def _put(self, content: bytes, mode: obstore.PutMode) -> None:
        about_to_appear()
        with refusals_explained(self.address):
            try:
                obstore.put(self._client, self._path, content, mode=mode, use_multipart=False)
            except (NotFoundError, FileNotFoundError):
                raise no_bucket(self.address) from None


def _quoted(e_tag: str | None) -> str:
    """Quote a version for a condition; Azure lists it without quotes."""
    return f'"{e_tag}"' if e_tag and '"' not in e_tag else e_tag or ""


@cache
def _client_of(bucket: str) -> Client:
    require_endpoint(bucket, os.environ)
    return from_url(bucket)


_OF_S3 = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
_TRUE = ("1", "true", "on", "yes", "y")
"""As the library for files reads it."""


def require_endpoint(bucket: str, environ: Mapping[str, str]) -> None:
    """Check that the configured endpoint can be used."""
    if not bucket.startswith("s3://"):
        return
    for name in _OF_S3:
        if not (address := environ.get(name)):
            continue
        if not _is_address(address):
            raise LakeError(
                f"{name} is {without_secrets(address)!r}, which is not an http(s) URL.",
                f"Write {name} with its protocol, as http://127.0.0.1:9000 or https://store.example.com.",
            )
        if address.lower().startswith("http://") and environ.get("AWS_ALLOW_HTTP", "").lower() not in _TRUE:
            raise LakeError(
                f"{name} is {without_secrets(address)}, which is not encrypted, and AWS_ALLOW_HTTP is not set.",
                "Name an https:// address; or set AWS_ALLOW_HTTP=true if you trust the network in between.",
            )


def _is_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme.lower() in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # the port is not a number
        return False


def try_store(root: Stored) -> None:
    """Write, read, list and delete below a lake as publishing does, to learn whether the store supports it.

    A conditional write must have exactly one winner.

    Raises:
        LakeError: the store cannot be reached, denies access, or lacks what keeps a lake safe.
    """
    probe = root / f"_trial/{token_hex(8)}"
    try:
        # What the first says is not asked for: a store that wrote it and could not say so is asked again, and denies it
        probe.write_new(b"1")
        if probe.write_new(b"2") or probe.read() != b"1":
            raise LakeError(
                f"The store of {root} has no conditional writes: of two that wrote the same new file, both succeeded.",
                "Keep the lake in a store that has them (Amazon S3, MinIO, Ceph from Squid on, Azure), or on a disk.",
            )
        if probe.name not in probe.parent.names():
            raise LakeError(
                f"The store of {root} does not list what was just written.",
                "Keep the lake in a store that shows at once what it has acknowledged.",
            )
    finally:
        probe.remove()


def store_files(protocol: Any) -> PyFileSystem:
    """Return the file system through which Arrow reads, by the bucket's name and the path in it."""
    return PyFileSystem(_Files(FsspecStore(protocol)))


class _Files(FSSpecHandler):  # type: ignore[misc]
    def get_file_info(self, paths: list[str]) -> list[FileInfo]:
        """Do the same as Arrow's own."""
        with refusals_explained(self._address(paths[0] if paths else "")):
            found: list[FileInfo] = super().get_file_info(paths)
            return found

    def open_input_stream(self, path: str) -> NativeFile:
        """Do the same as Arrow's own."""
        return self.open_input_file(path)

    def open_input_file(self, path: str) -> NativeFile:
        """Do the same as Arrow's own."""
        address = self._address(path)
        with refusals_explained(address):
            # The library's `isfile` answers no for any refusal of the store
            if self.fs.info(path)["type"] != "file":
                raise FileNotFoundError(path)
            return PythonFile(_File(self.fs.open(path, mode="rb"), address), mode="r")

    def _address(self, path: str) -> str:
        return f"{self.fs.protocol}://{path}"


class _File:
    """An open file, read as far as Arrow needs it."""

    def __init__(self, file: Any, address: str) -> None:
        self._file, self._address = file, address

    def read(self, size: int | None = -1) -> bytes:
        with refusals_explained(self._address):
            return bytes(self._file.read(-1 if size is None else size))

    def seek(self, place: int, whence: int = 0) -> int:
        with refusals_explained(self._address):
            return int(self._file.seek(place, whence))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)
