"""What a delivered file may cost: bounds that are looked at before anything of it is read, or while it streams past.

A file is written by others. One beyond a bound is refused by its name, with the setting that would let it pass; without
bounds a small one could take the memory, the disk or the hours that all others need.
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
    """A file is beyond a bound; the text says which, and what to do."""


def _default(setting: str) -> Any:
    from platform_assets.settings import Settings  # which no help of a command needs

    return Settings.model_fields[setting].default


@dataclass(frozen=True)
class Limits:
    """The bounds of one file, as the settings of the same names have them."""

    file_mib: int = field(default_factory=partial(_default, "file_mib"))
    file_rows: int = field(default_factory=partial(_default, "file_rows"))
    file_columns: int = field(default_factory=partial(_default, "file_columns"))
    file_nesting: int = field(default_factory=partial(_default, "file_nesting"))
    line_mib: int = field(default_factory=partial(_default, "line_mib"))
    unpacked_ratio: int = field(default_factory=partial(_default, "unpacked_ratio"))

    @classmethod
    def of(cls, settings: Settings) -> Limits:
        """Return the bounds of an installation."""
        return cls(**{name: getattr(settings, name) for name in cls.__dataclass_fields__})

    @property
    def file_bytes(self) -> int:
        """Most bytes of a file as it lies there."""
        return self.file_mib * _MIB

    @property
    def line_bytes(self) -> int:
        """Return the most bytes of a line, which is held in memory whole."""
        return self.line_mib * _MIB

    def unpacked_bytes(self, size: int) -> int:
        """Most bytes that a file of a size may become."""
        return max(self.unpacked_ratio * size, _SMALL)

    def repeated_bytes(self, size: int) -> int:
        """Most bytes of a Parquet file's values where one is written once and meant often: as a file may be anyway."""
        return max(self.file_bytes, self.unpacked_bytes(size))

    def too_large(self, size: int) -> str | None:
        """Say that a file has more bytes than are taken, if so."""
        if size <= self.file_bytes:
            return None
        # It is not recorded, so that it is taken as it lies there once the setting is another.
        todo = "deliver it in parts, or set PLATFORM_FILE_MIB higher"
        return f"has {size:,} bytes, more than {self.file_bytes:,}; {todo}"

    def too_many_rows(self, rows: int) -> str | None:
        """Say that a file has more rows than are taken, if so."""
        if rows <= self.file_rows:
            return None
        return f"has more than {self.file_rows:,} rows; {_parts_or('file_rows')}"

    def too_many_columns(self, columns: int) -> str | None:
        """Say that a file has more columns than are taken, if so."""
        if columns <= self.file_columns:
            return None
        todo = "deliver fewer, or set PLATFORM_FILE_COLUMNS higher and deliver it anew"
        return f"has {columns:,} columns, more than {self.file_columns:,}; {todo}"

    def too_nested(self, depth: int) -> str | None:
        """Say that fields lie deeper in each other than is taken, if so."""
        if depth <= self.file_nesting:
            return None
        todo = "deliver flatter ones, or set PLATFORM_FILE_NESTING higher and deliver it anew"
        return f"has fields {depth} deep in each other, more than {self.file_nesting}; {todo}"

    def unpacks_too_far(self, unpacked: int, size: int) -> str | None:
        """Say that a file becomes more than it may, if so."""
        most = self.unpacked_bytes(size)
        if unpacked <= most:
            return None
        return (
            f"becomes more than {most:,} bytes unpacked, {self.unpacked_ratio} times its size; "
            f"{_parts_or('unpacked_ratio')}"
        )

    def row_too_long(self, length: int, number: int) -> str | None:
        """Say that a row of a Parquet file has more bytes than one of a text file may have, if so."""
        if length <= self.line_bytes:
            return None
        return f"has more than {self.line_bytes:,} bytes in row {number}; deliver shorter rows"

    def repeats_too_much(self, repeated: int, size: int) -> str | None:
        """Say that the values of a file become more than they may, if so."""
        most = self.repeated_bytes(size)
        if repeated <= most:
            return None
        return f"repeats its values to more than {most:,} bytes; {_parts_or('file_mib')}"


def _parts_or(setting: str) -> str:
    """Return what to do about a file that is beyond a bound."""
    return f"deliver it in parts, or set PLATFORM_{setting.upper()} higher and deliver it anew"
