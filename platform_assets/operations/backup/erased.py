"""Rows that were erased, and backups: none is taken while they still lie there, and one from before is told."""

from __future__ import annotations

from collections.abc import Iterator

from platform_assets.lakehouse.delta import commits
from platform_assets.lakehouse.errors import ErasedError
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.releases import Release, current_release, manifest_of
from platform_assets.operations.backup.generations import BackupFolder, Generation
from platform_assets.records.history import ERASURE
from platform_assets.records.manifest import Manifest


def erasures_after(lake: Lake, number: int, until: int) -> Iterator[Manifest]:
    """What was erased by releases after one, up to another, oldest first; one that was only lifted is not among it."""
    for after in range(number + 1, until + 1):
        made = commits.commit(lake.releases_path, after)
        if made.kind == ERASURE and made.publication:
            manifest = manifest_of(lake, made.publication)
            if not all(erasure.lifts for erasure in manifest.erasures):
                yield manifest


def erased_since(backup: BackupFolder, generation: Generation) -> tuple[Manifest, ...]:
    """What was erased after a generation was taken, as far as newer ones know; its rows are in that generation."""
    newest = backup.generations()[-1]
    return tuple(erasures_after(Lake.at(newest.lake), generation.release, newest.release))


def refuse_half_an_erasure(lake: Lake, now: Release, cut: int) -> None:
    """Keep no copy of rows that nobody is shown any more, and whose files are still to be deleted.

    Args:
        lake: that is to be copied.
        now: its newest release.
        cut: before which release the newest erasure that came so far cut history.

    Raises:
        ErasedError: there are such rows.
    """
    for manifest in erasures_after(lake, cut, now.number):
        raise ErasedError(
            f"Rows were erased from {lake.root} by publication {manifest.publication}, and the files that hold them "
            "are not deleted yet; the backup shows what it showed before.",
            "Wait until `platform-assets erase` is done. If it was ended, call it again, or let `platform-assets "
            "maintenance run` delete them; then run `platform-assets backup` again.",
        )


def refuse_what_is_erased(lake: Lake, copied: Release) -> None:
    """Keep no copy of rows that were erased since it was begun: it would look like one from after that.

    Raises:
        ErasedError: some were.
    """
    since = range(copied.number + 1, current_release(lake).number + 1)
    if any(commits.commit(lake.releases_path, number).kind == ERASURE for number in since):
        raise ErasedError(
            f"Rows were erased from {lake.root} while it was copied; the backup shows what it showed before.",
            "Run `platform-assets backup` again: the next generation has none of them.",
        )
