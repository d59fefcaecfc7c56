"""Which files that stand refused were delivered again since, in order and under another name."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import PurePosixPath

from platform_assets.contracts.landing import COMPRESSED
from platform_assets.records.history import ArrivalRecord
from platform_assets.records.manifest import Arrival
from platform_assets.visible import for_shell
from platform_assets.words import counted


def repaired_by(
    refused: ArrivalRecord, delivered: Collection[ArrivalRecord], released: Mapping[str, int]
) -> tuple[ArrivalRecord, ...]:
    """Return what took the place of a file, as far as names and counts can tell; nothing if that is not enough.

    Those are later files of the same arrival date whose names go on like its own (`till-3.csv`, `till-3-again.csv` or
    `till-3.csv.gz`), and they have to bring as many rows as were missing. A file of another date proves nothing: with
    many sources the next day's file has the same name. Nor does one of the same name with another ending.

    Args:
        refused: of which some rows, or all, are in no table.
        delivered: files of its table that count.
        released: the release of every publication, by which one is later; their names go by the clocks of machines.
    """
    later = tuple(
        other
        for other in delivered
        if released[other.publication] > released[refused.publication]
        and PurePosixPath(other.path).parent == PurePosixPath(refused.path).parent
        and _goes_on(other.path, refused.path)
    )
    missing = refused.landed - refused.taken - refused.late - refused.erased
    return later if sum(other.taken + other.late for other in later) >= max(missing, 1) else ()


def remedy(refused: Collection[Arrival], delivered: int) -> str:
    """Return what to do about refused rows of files of which others were taken, with one of the files as an example.

    Args:
        delivered: rows that came with them and with the files beside them.
    """
    path = max(refused, key=lambda file: file.refused).path
    stem = _stem(path)
    again = f"{stem}-again{PurePosixPath(path).name.removeprefix(stem)}"
    others = f" (and {counted(len(refused) - 1, 'other file')} likewise)" if len(refused) > 1 else ""
    # A source that cannot write a file in order at all is rarer than a contract that says something else.
    contract = "correct the contract, if the files are right, and `platform-assets reload {table}`; or "
    mostly = 2 * sum(file.refused for file in refused) > delivered
    return (contract.format(table=next(iter(refused)).table) if mostly else "") + (
        f"deliver them again in order, as {again} beside {path}{others}, or take that file out with "
        f"`platform-assets withdraw {for_shell(path)}`"
    )


def _goes_on(path: str, before: str) -> bool:
    """Return whether a name begins with all of another one: part-1-again with part-1, but not part-10."""
    more = _stem(path).removeprefix(_stem(before))
    return (more != _stem(path) and bool(more) and not more[0].isalnum()) or path == f"{before}{COMPRESSED}"


def _stem(path: str) -> str:
    name = PurePosixPath(path)
    return PurePosixPath(name.stem).stem if name.suffix.lower() == COMPRESSED else name.stem
