"""Limits of delivered files, checked before anything of a file is read, or while it streams past.

Others write the files. One beyond a limit is refused by name, with the setting that would allow it; without limits a
small file could take the memory, the disk or the hours that all others need.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from platform_assets.settings import Settings

_MIB = 1 << 20
_SMALL = 1 << 26
"""Bytes that anything may become."""


class LimitError(Exception):
    """A file is beyond a limit; the text says which, and what to do."""


def _default(setting: str) -> Any:
    from platform_assets.settings import Settings  # which no help of a command needs

    return Settings.model_fields[setting].default


@dataclass(frozen=True)
class Limits:
    """The limits of one file, as the settings of the same names have them."""

    file_mib: int = field(default_factory=partial(_default, "file_mib"))
    file_rows: int = field(default_factory=partial(_default, "file_rows"))
    file_columns: int = field(default_factory=partial(_default, "file_columns"))
    file_nesting: int = field(default_factory=partial(_default, "file_nesting"))
    line_mib: int = field(default_factory=partial(_default, "line_mib"))
    unpacked_ratio: int = field(default_factory=partial(_default, "unpacked_ratio"))

    @classmethod
    def of(cls, settings: Settings) -> Limits:
        """Return the limits of an installation."""
        return cls(**{name: getattr(settings, name) for name in cls.__dataclass_fields__})

    @property
    def file_bytes(self) -> int:
        """Return the most bytes of a file on disk."""
        return self.file_mib * _MIB

    @property
    def line_bytes(self) -> int:
        """Return the most bytes of a line, which is held in memory whole."""
        return self.line_mib * _MIB

    def unpacked_bytes(self, size: int) -> int:
        """Return the most unpacked bytes of a file of a size."""
        return max(self.unpacked_ratio * size, _SMALL)

    def repeated_bytes(self, size: int) -> int:
        """Return the most bytes of a Parquet file's values, counting repeated ones: those of any allowed file."""
        return max(self.file_bytes, self.unpacked_bytes(size))

    def too_large(self, size: int) -> str | None:
        """Return the problem of a file with too many bytes, if so."""
        if size <= self.file_bytes:
            return None
        # It is not recorded, so that it is taken as it lies there once the setting is another.
        todo = "deliver it in parts, or set PLATFORM_FILE_MIB higher"
        return f"has {size:,} bytes, more than {self.file_bytes:,}; {todo}"

    def too_many_rows(self, rows: int) -> str | None:
        """Return the problem of a file with too many rows, if so."""
        if rows <= self.file_rows:
            return None
        return f"has more than {self.file_rows:,} rows; {_parts_or('file_rows')}"

    def too_many_columns(self, columns: int) -> str | None:
        """Return the problem of a file with too many columns, if so."""
        if columns <= self.file_columns:
            return None
        todo = "deliver fewer, or set PLATFORM_FILE_COLUMNS higher and deliver it anew"
        return f"has {columns:,} columns, more than {self.file_columns:,}; {todo}"

    def too_nested(self, depth: int) -> str | None:
        """Return the problem of a file with too deeply nested fields, if so."""
        if depth <= self.file_nesting:
            return None
        todo = "deliver flatter ones, or set PLATFORM_FILE_NESTING higher and deliver it anew"
        return f"has fields {depth} deep in each other, more than {self.file_nesting}; {todo}"

    def unpacks_too_far(self, unpacked: int, size: int) -> str | None:
        """Return the problem of a file that unpacks to more bytes than allowed, if so."""
        most = self.unpacked_bytes(size)
        if unpacked <= most:
            return None
        return (
            f"becomes more than {most:,} bytes unpacked, {self.unpacked_ratio} times its size; "
            f"{_parts_or('unpacked_ratio')}"
        )

    def row_too_long(self, length: int, number: int) -> str | None:
        """Return the problem of a Parquet file's row with more bytes than a text row may have, if so."""
        if length <= self.line_bytes:
            return None
        return f"has more than {self.line_bytes:,} bytes in row {number}; deliver shorter rows"

    def repeats_too_much(self, repeated: int, size: int) -> str | None:
        """Return the problem of a file whose repeated values exceed the limit, if so."""
        most = self.repeated_bytes(size)
        if repeated <= most:
            return None
        return f"repeats its values to more than {most:,} bytes; {_parts_or('file_mib')}"


def _parts_or(setting: str) -> str:
    """Return the remedy for a file that is beyond a limit."""
    return f"deliver it in parts, or set PLATFORM_{setting.upper()} higher and deliver it anew"
