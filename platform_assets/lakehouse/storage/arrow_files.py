"""Files of an object store for Arrow, with refusals of the store explained as everywhere else.

Arrow would raise an error of a file system, which a reader of the lake takes for damage. A file that a store does not
give just now is not damaged.
"""

from __future__ import annotations

from typing import Any

from obstore.fsspec import FsspecStore
from pyarrow import NativeFile, PythonFile
from pyarrow.fs import FileInfo, FSSpecHandler, PyFileSystem

from platform_assets.lakehouse.storage.answers import refusals_explained


def store_files(protocol: Any) -> PyFileSystem:
    """Return what Arrow reads files through, by the bucket's name and the path in it."""
    return PyFileSystem(_Files(FsspecStore(protocol)))


class _Files(FSSpecHandler):  # type: ignore[misc]
    def get_file_info(self, paths: list[str]) -> list[FileInfo]:
        """Do as Arrow's own."""
        with refusals_explained(self._address(paths[0] if paths else "")):
            found: list[FileInfo] = super().get_file_info(paths)
            return found

    def open_input_stream(self, path: str) -> NativeFile:
        """Do as Arrow's own."""
        return self.open_input_file(path)

    def open_input_file(self, path: str) -> NativeFile:
        """Do as Arrow's own."""
        address = self._address(path)
        with refusals_explained(address):
            # The library's `isfile` answers no for any refusal of the store
            if self.fs.info(path)["type"] != "file":
                raise FileNotFoundError(path)
            return PythonFile(_File(self.fs.open(path, mode="rb"), address), mode="r")

    def _address(self, path: str) -> str:
        return f"{self.fs.protocol}://{path}"


class _File:
    """A file that is open, as much of it as Arrow asks for."""

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
