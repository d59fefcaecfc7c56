"""What every commit says of its publication, and the chain of hashes that runs through the releases.

Only under the publish lock is it known which release comes before: so the release commit, not the manifest, carries
the chain. Whoever finishes a dead publication writes the same values, because all of them come from its manifest.
"""

from __future__ import annotations

from platform_assets.lakehouse.delta import commits
from platform_assets.records.chain import hash_of, linked
from platform_assets.records.manifest import Manifest

_MOST_WHY = 200
"""Characters of the reason that a commit repeats; the manifest has it whole."""


def commit_metadata(manifest: Manifest) -> dict[str, str]:
    """The essentials of a manifest, as metadata of each of its commits: for whoever has only the log at hand."""
    why = manifest.why if len(manifest.why) <= _MOST_WHY else f"{manifest.why[: _MOST_WHY - 1]}…"
    said = {
        commits.PUBLICATION: manifest.publication,
        commits.KIND: manifest.kind,
        "platform.run": manifest.run,
        "platform.who": manifest.who,
        "platform.why": why,
        "platform.git_commit": manifest.git_commit or "",
        "platform.version": manifest.platform_version,
    }
    return {name: value for name, value in said.items() if value}


def link(before: commits.Commit | None, content: bytes) -> dict[str, str]:
    """What the commit of a release adds to its metadata.

    Args:
        before: commit of the release before; None for the first.
        content: of the manifest, as stored.
    """
    manifest_hash = hash_of(content)
    return {commits.MANIFEST_HASH: manifest_hash, commits.CHAIN: linked(before.chain if before else "", manifest_hash)}
