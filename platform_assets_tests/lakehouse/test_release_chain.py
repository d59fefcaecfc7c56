"""Every commit says of its publication what a person asks first, and the releases form a chain of hashes."""

from __future__ import annotations

from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from platform_assets.lakehouse.delta import commits
from platform_assets.lakehouse.layout import Lake, located
from platform_assets.lakehouse.publish import publish
from platform_assets.lakehouse.recovery import recover
from platform_assets.lakehouse.releases import manifest_file
from platform_assets_tests.support.places import on_disk
from platform_assets_tests.support.shelf import (
    PUBLISHING,
    SALES,
    STORES,
    day,
    publish_elsewhere,
    staged_manifest,
    unchain,
)

DAYS = {SALES: {day(0): [("a", 1)]}, STORES: {day(0): [("s", 2)]}}
ESSENTIALS = {
    "platform.kind": "withdrawal",
    "platform.run": "run-7",
    "platform.who": "Zoë",
    "platform.why": "x" * 199 + "…",
    "platform.git_commit": "abc123",
    "platform.version": "1.2",
}


def info(path: Path, version: int) -> dict[str, Any]:
    """What a commit says of itself, as any Delta reader finds it."""
    return next(a["commitInfo"] for a in commits.actions(located(path), version) if "commitInfo" in a)


def said(found: dict[str, Any]) -> dict[str, Any]:
    return {name: found[name] for name in ESSENTIALS if name in found}


def signed(lake: Lake) -> Any:
    changes = {"kind": "withdrawal", "run": "run-7", "who": "Zoë", "why": "x" * 500, "git_commit": "abc123"}
    return staged_manifest(lake, DAYS).model_copy(update={**changes, "platform_version": "1.2"})


def links(lake: Lake) -> list[commits.Commit]:
    return [commits.commit(lake.releases_path, n) for n in commits.listed_versions(lake.releases_path)]


def is_chained(lake: Lake) -> bool:
    found = links(lake)
    stored = [on_disk(manifest_file(lake, str(one.publication))).read_bytes() for one in found]
    return [sha256(content).hexdigest() for content in stored] == [one.manifest_hash for one in found] and all(
        new.chain == sha256(f"{old.chain}{new.manifest_hash}".encode()).hexdigest() for old, new in pairwise(found)
    )


def test_every_commit_of_a_publication_says_who_why_and_by_which_code(lake: Lake) -> None:
    publish(lake, signed(lake))
    for path in (lake.table_path(SALES), lake.table_path(STORES), lake.releases_path):
        assert said(info(on_disk(path), 0)) == ESSENTIALS


def test_releases_form_a_chain(lake: Lake) -> None:
    for _ in range(3):
        publish(lake, staged_manifest(lake, DAYS))
    assert is_chained(lake)
    assert links(lake)[0].chain == sha256(links(lake)[0].manifest_hash.encode()).hexdigest()


@pytest.mark.parametrize("name", PUBLISHING[PUBLISHING.index("replace.after_commit") :])
def test_whoever_finishes_a_dead_publication_writes_what_it_would_have(lake: Lake, tmp_path: Path, name: str) -> None:
    publish(lake, staged_manifest(lake, DAYS))
    publish_elsewhere(lake, signed(lake), tmp_path, name)
    recover(lake)
    for path in (lake.table_path(SALES), lake.table_path(STORES), lake.releases_path):
        assert said(info(on_disk(path), 1)) == ESSENTIALS
    assert is_chained(lake)


def test_the_chain_goes_on_from_releases_that_have_none(lake: Lake) -> None:
    publish(lake, staged_manifest(lake, DAYS))
    unchain(lake, 0)
    publish(lake, staged_manifest(lake, DAYS))
    assert [bool(one.chain) for one in links(lake)] == [False, True]
    assert links(lake)[1].chain == sha256(links(lake)[1].manifest_hash.encode()).hexdigest()
