"""Content of listed files that are about to be taken: fetched, hashed, and looked at once more before it counts."""

from __future__ import annotations

import errno
import hashlib
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from platform_assets.lakehouse.layout import stored
from platform_assets.sources.landing import (
    NOT_AS_LISTED,
    ChangedError,
    LandedFile,
    Problem,
    not_as_listed,
    sha256_of,
    state_of,
)

_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS})
"""What says nothing of a file, but of where it is to be fetched to."""


@contextmanager
def at_hand(files: Iterable[LandedFile], folder: Path) -> Iterator[tuple[list[LandedFile], list[Problem]]]:
    """Yield files as `hashed` gives them, whose content lies on this machine: objects of a bucket are fetched, once.

    Args:
        folder: for what is fetched, where nothing else lies; it is gone again afterwards.

    Raises:
        OSError: there is no room for what is to be fetched.
    """
    shutil.rmtree(folder, ignore_errors=True)  # of somebody who was killed
    here: list[LandedFile] = []
    problems: list[Problem] = []
    try:
        for file in files:
            try:
                here.append(file if file.stored is None else _fetched(file, folder))
            except NOT_AS_LISTED as error:
                if isinstance(error, OSError) and error.errno in _NO_ROOM:
                    raise
                problems.append(not_as_listed(file.path, error))
        with_sha256, others = hashed(here)
        yield with_sha256, [*problems, *others]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def hashed(files: Iterable[LandedFile]) -> tuple[list[LandedFile], list[Problem]]:
    """Return files with the sha256 of their content, and what is wrong with those that are not as they were listed."""
    with_sha256: list[LandedFile] = []
    problems: list[Problem] = []
    for landed in files:
        try:
            with_sha256.append(replace(landed, sha256=content_sha256(landed)))
        except NOT_AS_LISTED as error:
            problems.append(not_as_listed(landed.path, error))
    return with_sha256, problems


def changed_since(files: Iterable[LandedFile]) -> dict[LandedFile, Problem]:
    """Return those of hashed files that are not what they were, by their content, and what is wrong with each."""
    changed: dict[LandedFile, Problem] = {}
    for landed in files:
        again, problems = hashed([landed])
        if problems:
            changed[landed] = problems[0]
        elif again[0].sha256 != landed.sha256:
            changed[landed] = not_as_listed(landed.path, ChangedError())
    return changed


def replaced_since(files: Iterable[LandedFile]) -> dict[LandedFile, Problem]:
    """Return those of listed files that are not what they were, by their state, without reading them.

    That is enough of one that is refused for what it was found to be: none of its rows is recorded.
    """
    replaced: dict[LandedFile, Problem] = {}
    for landed in files:
        try:
            with landed.open():
                pass
        except NOT_AS_LISTED as error:
            replaced[landed] = not_as_listed(landed.path, error)
    return replaced


def content_sha256(landed: LandedFile) -> str:
    """Return the sha256 of what is in a listed file; of an object of a bucket, read through the network.

    Raises:
        ChangedError, LinkError, OSError, LakeError: it is not as it was listed, or cannot be read.
    """
    if landed.stored is None:
        return sha256_of(landed.file, landed.path, landed.state)
    digest = hashlib.sha256()
    for piece in _pieces(landed):
        digest.update(piece)
    return digest.hexdigest()


def _fetched(landed: LandedFile, folder: Path) -> LandedFile:
    file = folder / landed.path
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("xb") as copy:
        for piece in _pieces(landed):
            copy.write(piece)
    return replace(landed, file=file, state=state_of(file.stat()), stored=None)


def _pieces(landed: LandedFile) -> Iterator[bytes]:
    from platform_assets.lakehouse.storage.object_store import OtherObjectError  # which a landing folder does without

    assert landed.stored is not None
    root = stored(landed.stored.root)
    try:
        yield from root.pieces(landed.path, landed.stored.e_tag)
    except OtherObjectError:
        raise ChangedError from None
