"""The two chains: no release is missing or another than was published, and people's decisions are as they were made."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from platform_assets.lakehouse.delta import commits
from platform_assets.lakehouse.errors import LakeError
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.releases import (
    foreign_commits,
    in_its_file,
    manifest_bytes,
    manifest_file,
    newest_release,
    parsed,
    release,
)
from platform_assets.ledger.decisions import of_publication
from platform_assets.ledger.ledger import Ledger
from platform_assets.operations.audit.faults import Findings
from platform_assets.records.chain import Entry, Head, Heads, breaks, hash_of, linked
from platform_assets.records.decisions import Decision, LiftDecision, PublicationDecision, from_content
from platform_assets.records.history import PublicationRecord
from platform_assets.records.manifest import Manifest

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


_COMPARE = "Find out who writes to the ledger, and compare its table ledger_decisions with a backup from before."


class DecisionAudit:
    """Looks at the chain of decisions: first by itself, then beside the manifests, which count where the two differ."""

    def __init__(self, entries: Sequence[Entry], findings: Findings) -> None:
        self._findings = findings
        self._found: dict[int, Decision] = {}
        for entry in entries:
            findings.seen["decisions"] += 1
            try:
                self._found[entry.number] = from_content(entry.content)
            except ValueError as error:
                if entry.is_whole:  # what was changed is told as such
                    self._fault(f"Decision {entry.number} is none: {error}.")
        for broken in breaks(entries):
            self._fault(f"{self._named(broken.number)} {broken.what}.")
        found = self._found.items()
        self._of = {each.publication: number for number, each in found if isinstance(each, PublicationDecision)}

    def compare(self, record: PublicationRecord) -> None:
        """Hold the chain against a manifest."""
        wanted, number = of_publication(record), self._of.get(record.publication)
        if wanted is None:
            return
        if number is None:
            self._fault(
                f"The chain of decisions lacks the {wanted.kind} by {wanted.who} that publication "
                f"{record.publication} (release {record.release}) carried out.",
                f"{_COMPARE} `platform-assets ledger rebuild` enters it anew, from the manifest.",
            )
        elif self._found[number] != wanted:
            self._fault(f"{self._named(number)} says something else than the manifest of {record.publication}.")

    def note_unknown(self, released: Collection[str]) -> None:
        """Mention decisions of publications that the lake does not have."""
        for number, decision in self._found.items():
            if isinstance(decision, PublicationDecision | LiftDecision) and decision.publication not in released:
                self._findings.notes.append(
                    f"{self._named(number)} was carried out by publication {decision.publication}, which the lake does "
                    "not have: an older lake was put back since, or nobody decided so."
                )

    def _fault(self, what: str, todo: str = _COMPARE) -> None:
        self._findings.fault("decisions", what, todo)

    def _named(self, number: int) -> str:
        decision = self._found.get(number)
        if decision is None:
            return f"Decision {number}"
        return f"Decision {number} ({decision.kind} by {decision.who}, {decision.created_at:%Y-%m-%d %H:%M} UTC)"


def heads_of(lake: Lake, ledger: Ledger) -> Heads:
    """Return where both chains stand now; nothing is looked at besides, so it costs next to nothing."""
    newest = newest_release(lake)
    chain = commits.commit(lake.releases_path, newest).chain if newest >= 0 else ""
    return Heads(Head(newest, chain) if chain else Head(), ledger.decision_head())


def compare_heads(
    expected: Heads, releases: Mapping[int, str], decisions: Mapping[int, str] | None, findings: Findings
) -> None:
    """Check that both chains go through heads that somebody kept; what follows may have come since.

    Args:
        decisions: the chain up to each decision; None where the ledger cannot be read, which was told already.
    """
    _compare("releases", expected.releases, releases, "lake", findings)
    if decisions is not None:
        _compare("decisions", expected.decisions, decisions, "ledger", findings)


def _compare(what: str, expected: Head, chain: Mapping[int, str], where: str, findings: Findings) -> None:
    findings.seen["anchor"] += 1
    if expected.is_in(chain):
        return
    if expected.number in chain:
        instead = f"what has that number carries {chain[expected.number] or 'no chain'}: history was rewritten since"
    elif expected.number < max(chain, default=-1):
        instead = "what has that number cannot be read"
    else:
        instead = (
            f"they end at {max(chain)}: history was cut since" if chain else "there are none: history was cut since"
        )
    findings.fault(
        "anchor",
        f"The {what} do not go through the expected head {expected}; {instead}.",
        f"If nobody put an older {where} back on purpose, or made a new one, restore it from a backup whose chain goes "
        "through that head; else look through what is there, and keep its head from now on.",
    )
