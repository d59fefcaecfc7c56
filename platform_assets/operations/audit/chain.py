"""What an audit looks at and finds; and first of all the chain: no release is missing or another than was published."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date
from typing import Literal

from platform_assets.lakehouse.delta import commits
from platform_assets.lakehouse.errors import LakeError
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.releases import (
    foreign_commits,
    in_its_file,
    manifest_bytes,
    manifest_file,
    parsed,
    release,
)
from platform_assets.planning.selection import Selection
from platform_assets.records.chain import hash_of, linked
from platform_assets.records.manifest import Manifest

Check = Literal["chain", "logs", "commits", "files", "rows", "contents", "digests", "ledger", "decisions", "anchor"]
CHECKS: dict[Check, str] = {
    "chain": "releases and their manifests",
    "logs": "commits of tables",
    "commits": "days as published",
    "files": "files",
    "rows": "days counted",
    "contents": "files read",
    "digests": "days hashed",
    "ledger": "publications indexed",
    "decisions": "decisions of people",
    "anchor": "heads compared",
}
"""Every check, in the order it is made, with what it counts."""


@dataclass(frozen=True)
class Scope(Selection):
    """A selection that is looked at, and how closely.

    Args:
        tables: as of every selection. The chain is always looked at as a whole.
        fast: only the chain and the logs, neither what commits changed nor any file.
        every_release: also files that only older releases refer to.
        read_bytes: about how much of the files is read page by page; None is all of it, 0 nothing.
    """

    fast: bool = False
    every_release: bool = False
    read_bytes: int | None = 0


@dataclass(frozen=True)
class Fault:
    """Something that is not as it should be.

    Args:
        what: one sentence that names file, table or day.
    """

    check: Check
    what: str
    todo: str
    table: str = ""
    day: date | None = None
    file: str = ""


@dataclass
class Findings:
    """What an audit has looked at and found so far.

    Args:
        notes: what a person should know though nothing is wrong.
        seen: how much every check looked at.
    """

    faults: list[Fault] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    seen: Counter[Check] = field(default_factory=Counter)

    def fault(
        self, check: Check, what: str, todo: str, *, table: str = "", day: date | None = None, file: object = ""
    ) -> None:
        """Write down what is wrong."""
        self.faults.append(Fault(check, what, todo, table, day, str(file)))

    def of(self, check: Check) -> int:
        """Return how many faults a check found."""
        return sum(fault.check == check for fault in self.faults)


_FROM_BACKUP = "Restore the file from a backup."


@dataclass(frozen=True)
class Shown:
    """A release as far as it can be read.

    Args:
        manifest: of the publication; None where it cannot be read, or was not to be.
    """

    number: int
    publication: str
    versions: dict[str, int]
    manifest: Manifest | None


@dataclass(frozen=True)
class ChainHead:
    """Where the chain stands, to be written down elsewhere: a lake that was rewritten as a whole has another.

    Args:
        first: release with which the chain starts; -1 without one.
    """

    first: int = -1
    release: int = -1
    chain: str = ""


class ChainAudit:
    """Walks through the releases, oldest first."""

    def __init__(self, lake: Lake, newest: int, findings: Findings) -> None:
        self._lake = lake
        self.newest = newest
        self._findings = findings
        self.head = ChainHead()
        self.chains: dict[int, str] = {}

    def walk(self, *, parse: bool) -> Iterator[Shown]:
        """Yield every release that can be read.

        Args:
            parse: also read what the manifests say; else only their bytes are hashed.
        """
        self._look_for_gaps()
        before: commits.Commit | None = None
        unread = False
        for number in range(self.newest + 1):
            self._findings.seen["chain"] += 1
            shown = None
            if commit := self._commit(number):
                self.chains[number] = commit.chain
                content = self._manifest(commit)
                self._check_link(before, commit)
                # What a release that cannot be read changed is not held against the manifest of the next.
                shown = self._shown(commit, None if unread or not parse else content)
            before = commit
            unread = shown is None
            if shown:
                yield shown
        if self.newest >= 0 and not self.head.chain:
            self._findings.notes.append("No release carries a chain yet: it starts with the next publication.")

    def _look_for_gaps(self) -> None:
        path = self._lake.releases_path
        for foreign in foreign_commits(self._lake):
            self._findings.fault(
                "chain",
                f"Version {foreign.version} of `_releases` was not made by a publication but by {foreign.made_by}; "
                f"readers see release {self.newest}.",
                "Find out who writes there, then `platform-assets audit put-back _releases --reason …`.",
                file=commits.commit_file(path, foreign.version),
            )
        beyond = [number for number in commits.listed_versions(path) if number > self.newest]
        if beyond != [self.newest + 1 + n for n in range(len(beyond))]:
            self._findings.fault(
                "chain",
                f"There is a release {beyond[-1]}, but one before it is missing: releases end at {self.newest}.",
                f"{_FROM_BACKUP} Publish nothing before.",
                file=commits.commit_file(path, beyond[-1]),
            )
        elif beyond and commits.is_torn(path, beyond[-1]):
            self._findings.fault(
                "chain",
                f"The commit of release {beyond[-1]} is torn; readers see release {beyond[-1] - 1}.",
                "After a power cut, nothing: whoever publishes next removes it and finishes what was begun. If it had "
                "been whole before, restore the file from a backup.",
                file=commits.commit_file(path, beyond[-1]),
            )

    def _commit(self, number: int) -> commits.Commit | None:
        file = commits.commit_file(self._lake.releases_path, number)
        try:
            commit = commits.commit(self._lake.releases_path, number)
        except LakeError as error:
            self._findings.fault("chain", error.what, _FROM_BACKUP, file=file)
            return None
        if commit.publication is None:
            self._findings.fault(
                "chain",
                f"Release {number} was not made by a publication but by {commit.made_by}.",
                "Find out who writes there, and restore `_releases` from a backup.",
                file=file,
            )
            return None
        return commit

    def _manifest(self, commit: commits.Commit) -> bytes | None:
        assert commit.publication is not None
        file = manifest_file(self._lake, commit.publication)
        try:
            content = manifest_bytes(self._lake, commit.publication)
        except LakeError as error:
            self._findings.fault("chain", error.what, error.todo, file=file)
            return None
        if commit.manifest_hash and hash_of(content) != commit.manifest_hash:
            self._findings.fault(
                "chain",
                f"The manifest of publication {commit.publication} is not the one that release {commit.version} was "
                "made with: its hash is another.",
                _FROM_BACKUP,
                file=file,
            )
        return content

    def _check_link(self, before: commits.Commit | None, commit: commits.Commit) -> None:
        file = commits.commit_file(self._lake.releases_path, commit.version)
        if not commit.chain:
            if self.head.chain:
                self._findings.fault(
                    "chain",
                    f"Release {commit.version} carries no chain, though release {self.head.release} does.",
                    "It was rewritten, or published by an older version of the platform: compare it with a backup.",
                    file=file,
                )
            return
        if not self.head.chain:
            self.head = ChainHead(commit.version)
            if commit.version:
                self._findings.notes.append(
                    f"The chain starts at release {commit.version}; those before were made when there was none."
                )
        known = before is not None or commit.version == 0
        if known and commit.chain != linked(before.chain if before else "", commit.manifest_hash):
            self._findings.fault(
                "chain",
                f"The chain breaks at release {commit.version}: a release up to it was rewritten, taken out or put in.",
                "Compare `_releases` and `_publications` with a backup from before, and restore what differs.",
                file=file,
            )
        self.head = ChainHead(self.head.first, commit.version, commit.chain)

    def _shown(self, commit: commits.Commit, content: bytes | None) -> Shown | None:
        assert commit.publication is not None
        try:
            versions = release(self._lake, commit.version).versions
            if in_its_file(self._lake, commit.version) != versions:
                self._findings.fault(
                    "chain",
                    f"The file of release {commit.version} has other versions than its commit.",
                    _FROM_BACKUP,
                    file=self._lake.releases_path,
                )
        except LakeError as error:
            self._findings.fault("chain", error.what, error.todo, file=self._lake.releases_path)
            return None
        manifest = None
        try:
            manifest = parsed(self._lake, commit.publication, content) if content is not None else None
        except LakeError as error:
            self._findings.fault("chain", error.what, error.todo, file=manifest_file(self._lake, commit.publication))
        return Shown(commit.version, commit.publication, versions, manifest)
