"""Content of listed files that are about to be taken: hashed, and looked at once more before it counts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from platform_assets.sources.content import ChangedError, sha256_of
from platform_assets.sources.landing import NOT_AS_LISTED, LandedFile, Problem, not_as_listed


def hashed(files: Iterable[LandedFile]) -> tuple[list[LandedFile], list[Problem]]:
    """Files with the sha256 of their content, and what is wrong with those that are not as they were listed."""
    with_sha256: list[LandedFile] = []
    problems: list[Problem] = []
    for landed in files:
        try:
            with_sha256.append(replace(landed, sha256=sha256_of(landed.file, landed.path, landed.state)))
        except NOT_AS_LISTED as error:
            problems.append(not_as_listed(landed.path, error))
    return with_sha256, problems


def changed_since(files: Iterable[LandedFile]) -> dict[LandedFile, Problem]:
    """Those of hashed files that are not what they were, by their content, and what is wrong with each."""
    changed: dict[LandedFile, Problem] = {}
    for landed in files:
        again, problems = hashed([landed])
        if problems:
            changed[landed] = problems[0]
        elif again[0].sha256 != landed.sha256:
            changed[landed] = not_as_listed(landed.path, ChangedError())
    return changed


def replaced_since(files: Iterable[LandedFile]) -> dict[LandedFile, Problem]:
    """Those of listed files that are not what they were, by their state, without reading them.

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
