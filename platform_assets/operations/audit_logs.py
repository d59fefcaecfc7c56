"""Subjects and findings of an audit: the chain of releases, and the logs of tables against their manifests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Literal
from urllib.parse import unquote

from platform_assets.lakehouse.delta import commits
from platform_assets.lakehouse.delta.log import State, table_snapshot
from platform_assets.lakehouse.delta.schema import differing_columns, types_in
from platform_assets.lakehouse.errors import LakeError
from platform_assets.lakehouse.horizon import horizon_of
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
from platform_assets.records.manifest import DataFile, DayContent, Manifest

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
    """What an audit covers, and how thoroughly.

    Args:
        tables: like every selection. The chain is always checked as a whole.
        fast: only the chain and the logs, neither the changes of commits nor any file.
        every_release: also files that only older releases need.
        read_bytes: approximate bytes of files to read page by page; None is all, 0 nothing.
    """

    fast: bool = False
    every_release: bool = False
    read_bytes: int | None = 0


@dataclass(frozen=True)
class Fault:
    """A difference between the lake and what was published.

    Args:
        what: a sentence that names file, table or day.
    """

    check: Check
    what: str
    todo: str
    table: str = ""
    day: date | None = None
    file: str = ""


@dataclass
class Findings:
    """What an audit has checked and found so far.

    Args:
        notes: remarks for a person though nothing is wrong.
        seen: how much each check covered.
    """

    faults: list[Fault] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    seen: Counter[Check] = field(default_factory=Counter)

    def fault(
        self, check: Check, what: str, todo: str, *, table: str = "", day: date | None = None, file: object = ""
    ) -> None:
        """Record a fault."""
        self.faults.append(Fault(check, what, todo, table, day, str(file)))

    def of(self, check: Check) -> int:
        """Return the number of faults of a check."""
        return sum(fault.check == check for fault in self.faults)


_FROM_BACKUP = "Restore the file from a backup."


@dataclass(frozen=True)
class Shown:
    """A release, as far as it can be read.

    Args:
        manifest: manifest of the publication; None if it cannot be read, or was not needed.
    """

    number: int
    publication: str
    versions: dict[str, int]
    manifest: Manifest | None


@dataclass(frozen=True)
class ChainHead:
    """Head of the chain, to be kept elsewhere: a rewritten lake has another one.

    Args:
        first: first release of the chain; -1 without one.
    """

    first: int = -1
    release: int = -1
    chain: str = ""


class ChainAudit:
    """Walk through the releases, oldest first."""

    def __init__(self, lake: Lake, newest: int, findings: Findings) -> None:
        self._lake = lake
        self.newest = newest
        self._findings = findings
        self.head = ChainHead()
        self.chains: dict[int, str] = {}

    def walk(self, *, parse: bool) -> Iterator[Shown]:
        """Yield every readable release."""
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

    def _fault(self, what: str, todo: str, file: object) -> None:
        self._findings.fault("chain", what, todo, file=file)

    def _look_for_gaps(self) -> None:
        path = self._lake.releases_path
        for foreign in foreign_commits(self._lake):
            self._fault(
                f"Version {foreign.version} of `_releases` was not made by a publication but by {foreign.made_by}; "
                f"readers see release {self.newest}.",
                "Find out who writes there, then `platform-assets undo foreign:_releases --reason …`.",
                file=commits.commit_file(path, foreign.version),
            )
        beyond = [number for number in commits.listed_versions(path) if number > self.newest]
        if beyond != [self.newest + 1 + n for n in range(len(beyond))]:
            self._fault(
                f"There is a release {beyond[-1]}, but one before it is missing: releases end at {self.newest}.",
                f"{_FROM_BACKUP} Publish nothing before.",
                file=commits.commit_file(path, beyond[-1]),
            )
        elif beyond and commits.is_torn(path, beyond[-1]):
            self._fault(
                f"The commit of release {beyond[-1]} is torn; readers see release {beyond[-1] - 1}.",
                "After a power cut, nothing: the next publisher removes it and finishes what was begun. If it had been "
                "whole before, restore the file from a backup.",
                file=commits.commit_file(path, beyond[-1]),
            )

    def _commit(self, number: int) -> commits.Commit | None:
        file = commits.commit_file(self._lake.releases_path, number)
        try:
            commit = commits.commit(self._lake.releases_path, number)
        except LakeError as error:
            self._fault(error.what, _FROM_BACKUP, file=file)
            return None
        if commit.publication is None:
            self._fault(
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
            self._fault(error.what, error.todo, file=file)
            return None
        if commit.manifest_hash and hash_of(content) != commit.manifest_hash:
            self._fault(
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
                self._fault(
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
            self._fault(
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
                self._fault(
                    f"The file of release {commit.version} has other versions than its commit.",
                    _FROM_BACKUP,
                    file=self._lake.releases_path,
                )
        except LakeError as error:
            self._fault(error.what, error.todo, file=self._lake.releases_path)
            return None
        manifest = None
        try:
            manifest = parsed(self._lake, commit.publication, content) if content is not None else None
        except LakeError as error:
            self._fault(error.what, error.todo, file=manifest_file(self._lake, commit.publication))
        return Shown(commit.version, commit.publication, versions, manifest)


Files = Mapping[str, DataFile]


@dataclass
class TableAudit:
    """Follow one table through the releases.

    Args:
        version: version of the log reached so far.
        recorded: newest record of every day in the manifests.
        every_file: all files of kept releases, with their days.
    """

    lake: Lake
    table: str
    scope: Scope
    findings: Findings
    version: int = -1
    recorded: dict[date | None, DayContent] = field(default_factory=dict)
    made_by: dict[date | None, str] = field(default_factory=dict)
    every_file: dict[str, tuple[DataFile, date | None]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._path = self.lake.table_path(self.table)
        self._state = State(self.table)
        self._known: set[str] = set()
        self._cut = horizon_of(self.lake)
        self.is_whole = True

    def _fault(self, check: Check, what: str, todo: str, *, day: date | None = None, file: object = "") -> None:
        self.findings.fault(check, what, todo, table=self.table, day=day, file=file)

    @property
    def live(self) -> dict[str, tuple[DataFile, date | None]]:
        """Return the files of the newest release so far, by path, with their days."""
        return {path: (file, self._state.days[path]) for path, file in self._state.files.items()}

    def follow(self, shown: Shown) -> None:
        """Advance to a release."""
        version = shown.versions.get(self.table, -1)
        if version < self.version:
            self._fault(
                "commits",
                f"Release {shown.number} shows version {version} of {self.table}, older than {self.version} before it.",
                "Compare `_releases` with a backup: publications only go forward.",
            )
            return
        read = [self._commit(number) for number in range(self.version + 1, version + 1)]
        self.version = version
        if self.scope.fast or not self.is_whole:
            return
        touched = _days_touched(read, self._state)
        changes = _changes(shown, self.table)
        before = self._of(touched - changes.keys())
        try:
            for actions in read:
                self._state.apply(actions)
        except LakeError as error:
            self._damaged(error, version)
            return
        after = self._of(touched | changes.keys())
        for day in touched - changes.keys() if shown.manifest is None else ():
            self.recorded.pop(day, None)
        self.recorded |= changes
        self.made_by |= dict.fromkeys(changes, shown.publication)
        self._compare_columns(shown)
        for day in sorted(after, key=str):
            self._compare(shown, day, changes.get(day), before.get(day, {}), after[day])
        if shown.number == self._cut.before or shown.number in self._cut.kept:
            self.every_file |= self.live
        elif shown.number > self._cut.before:
            for day, files in after.items():
                self.every_file |= {path: (file, day) for path, file in files.items()}

    def look_at_checkpoint(self) -> None:
        """Compare the newest checkpoint, as readers see it, with all commits."""
        if self.version < 0:
            return
        try:
            shown = table_snapshot(self._path, self.version)
        except LakeError as error:
            self._damaged(error, self.version)
            return
        if shown.files.keys() != self._state.files.keys():
            self._fault(
                "logs",
                f"The newest checkpoint of {self.table} says something else than its commits: readers see "
                f"{len(shown.files):,} files, published were {len(self._state.files):,}.",
                f"Remove the newest .checkpoint.parquet and `_last_checkpoint` in {self._path}/_delta_log: all that "
                "they say is in the commits.",
            )

    def look_beyond(self) -> set[str]:
        """Check commits after the newest release: unfinished ones, or another tool's."""
        listed = [number for number in commits.listed_versions(self._path) if number > self.version]
        if listed != [self.version + 1 + n for n in range(len(listed))]:
            self._fault(
                "logs",
                f"{self.table} has a commit {listed[-1]}, but one before it is missing.",
                "Restore the missing files of its `_delta_log` from a backup. Publish nothing before.",
                file=commits.commit_file(self._path, listed[-1]),
            )
            return set()
        return {publication for number in listed if (publication := self._publication(number))}

    def _commit(self, number: int) -> list[commits.Action]:
        self.findings.seen["logs"] += 1
        try:
            actions = commits.actions(self._path, number)
            self._look_for_manifest(commits.made_by(number, actions))
        except LakeError as error:
            self._damaged(error, number)
            return []
        return actions

    def _damaged(self, error: LakeError, number: int) -> None:
        """Record a damaged commit. Nothing after it can be checked."""
        self.is_whole = False
        file = commits.commit_file(self._path, number)
        self._fault("logs", error.what, "Restore the file from a backup.", file=file)

    def _publication(self, number: int) -> str | None:
        """Return the publication of a commit that no release shows."""
        if commits.is_torn(self._path, number):
            self.findings.notes.append(f"Commit {number} of {self.table} is torn; the next publisher removes it.")
            return None
        commit = commits.commit(self._path, number)
        if commit.publication is None:
            self._fault(
                "logs",
                f"Version {number} of {self.table} was not made by a publication but by {commit.made_by}.",
                f"Readers at a release do not see it. `platform-assets undo foreign:{self.table} --reason …` "
                "undoes it.",
                file=commits.commit_file(self._path, number),
            )
        else:
            self._look_for_manifest(commit)
        return commit.publication

    def _look_for_manifest(self, commit: commits.Commit) -> None:
        if commit.publication is None:
            self.findings.notes.append(
                f"Version {commit.version} of {self.table} is a {commit.made_by}, put back since."
            )
        elif commit.publication not in self._known:
            file = manifest_file(self.lake, commit.publication)
            if file.exists():
                self._known.add(commit.publication)
                return
            self._fault(
                "logs",
                f"Version {commit.version} of {self.table} is of publication {commit.publication}, which has no "
                "manifest.",
                f"Restore {file} from a backup.",
                file=commits.commit_file(self._path, commit.version),
            )

    def _of(self, days: Collection[date | None]) -> dict[date | None, dict[str, DataFile]]:
        by_day: dict[date | None, dict[str, DataFile]] = {day: {} for day in days}
        for path, file in self._state.files.items() if days else ():
            if (day := self._state.days[path]) in by_day:
                by_day[day][path] = file
        return by_day

    def _compare_columns(self, shown: Shown) -> None:
        changes = shown.manifest.tables if shown.manifest else ()
        for change in (change for change in changes if change.table == self.table):
            if differing := differing_columns(types_in(change.schema_string), types_in(self._state.schema_string)):
                self._fault(
                    "commits",
                    f"{self.table} has at release {shown.number} other columns than the manifest of publication "
                    f"{shown.publication} says: {', '.join(sorted(differing))}.",
                    f"Restore `{self.table.replace('.', '/')}/_delta_log` from a backup.",
                )

    def _compare(self, shown: Shown, day: date | None, change: DayContent | None, before: Files, after: Files) -> None:
        if shown.manifest is None or not self.scope.has_day(day):
            return
        self.findings.seen["commits"] += 1
        wanted = before if change is None else {file.path: file for file in change.files}
        if _sizes(wanted) == _sizes(after):
            return
        said = "does not name" if change is None else "says otherwise"
        gone, more = sorted(wanted.keys() - after.keys()), sorted(after.keys() - wanted.keys())
        differing = [*gone[:1], *more[:1]] or sorted(after)[:1]
        self._fault(
            "commits",
            f"{self.table} {day} became at release {shown.number} what the manifest of publication {shown.publication} "
            f"{said}: {len(gone)} files are missing and {len(more)} are too many, such as {', '.join(differing)}.",
            f"Restore `{self.table.replace('.', '/')}/_delta_log` from a backup; or compute the day again: "
            f"`platform-assets refresh {self.table} --days {day} --force`.",
            day=day,
            file=differing[0] if differing else "",
        )


def _changes(shown: Shown, table: str) -> dict[date | None, DayContent]:
    """Return a table's changes in the manifest; none if it cannot be read."""
    changes = shown.manifest.tables if shown.manifest else ()
    return {day: content for change in changes if change.table == table for day, content in change.days.items()}


def _days_touched(read: list[list[commits.Action]], state: State) -> set[date | None]:
    adding = State(state.where)
    for actions in read:
        adding.apply(action for action in actions if "add" in action)
    leaving = {unquote(action["remove"]["path"]) for actions in read for action in actions if "remove" in action}
    return {adding.days[path] for path in adding.days} | {state.days[path] for path in leaving if path in state.days}


def _sizes(files: Files) -> dict[str, int]:
    return {path: file.size for path, file in files.items()}
