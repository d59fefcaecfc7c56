"""The tables' logs: every commit there and whole, made by a publication, and saying what its manifest says."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import date
from urllib.parse import unquote

from platform_assets.lakehouse.delta import commits
from platform_assets.lakehouse.delta.log import State, table_snapshot
from platform_assets.lakehouse.delta.schema import differing_columns, types_in
from platform_assets.lakehouse.errors import LakeError
from platform_assets.lakehouse.horizon import horizon_of
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.releases import manifest_file
from platform_assets.operations.audit.chain import Findings, Scope, Shown
from platform_assets.records.manifest import DataFile, DayContent

Files = Mapping[str, DataFile]


@dataclass
class TableAudit:
    """Follows one table through the releases.

    Args:
        version: up to which the log was followed.
        recorded: what the manifests say of every day, newest.
        made_by: publication whose manifest that is.
        every_file: whatever is part of a release that still has its files, with its day.
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

    @property
    def live(self) -> dict[str, tuple[DataFile, date | None]]:
        """Return what the newest release followed shows, by path, with its day."""
        return {path: (file, self._state.days[path]) for path, file in self._state.files.items()}

    def follow(self, shown: Shown) -> None:
        """Go on to a release."""
        version = shown.versions.get(self.table, -1)
        if version < self.version:
            self.findings.fault(
                "commits",
                f"Release {shown.number} shows version {version} of {self.table}, older than {self.version} before it.",
                "Compare `_releases` with a backup: publications only go forward.",
                table=self.table,
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
        """Compare what readers make of the newest checkpoint with what all commits say."""
        if self.version < 0:
            return
        try:
            shown = table_snapshot(self._path, self.version)
        except LakeError as error:
            self._damaged(error, self.version)
            return
        if shown.files.keys() != self._state.files.keys():
            self.findings.fault(
                "logs",
                f"The newest checkpoint of {self.table} says something else than its commits: readers see "
                f"{len(shown.files):,} files, published were {len(self._state.files):,}.",
                f"Remove the newest .checkpoint.parquet and `_last_checkpoint` in {self._path}/_delta_log: all that "
                "they say is in the commits.",
                table=self.table,
            )

    def look_beyond(self) -> set[str]:
        """Look at commits that the newest release does not show: begun, or somebody else's."""
        listed = [number for number in commits.listed_versions(self._path) if number > self.version]
        if listed != [self.version + 1 + n for n in range(len(listed))]:
            self.findings.fault(
                "logs",
                f"{self.table} has a commit {listed[-1]}, but one before it is missing.",
                "Restore the missing files of its `_delta_log` from a backup. Publish nothing before.",
                table=self.table,
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
        """Note a damaged commit, after which nothing can be told any more."""
        self.is_whole = False
        file = commits.commit_file(self._path, number)
        self.findings.fault("logs", error.what, "Restore the file from a backup.", table=self.table, file=file)

    def _publication(self, number: int) -> str | None:
        """Return the publication that made a commit which no release shows."""
        if commits.is_torn(self._path, number):
            self.findings.notes.append(f"Commit {number} of {self.table} is torn; whoever publishes next removes it.")
            return None
        commit = commits.commit(self._path, number)
        if commit.publication is None:
            self.findings.fault(
                "logs",
                f"Version {number} of {self.table} was not made by a publication but by {commit.made_by}.",
                f"Readers at a release do not see it. `platform-assets audit put-back {self.table} --reason …` "
                "undoes it.",
                table=self.table,
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
            self.findings.fault(
                "logs",
                f"Version {commit.version} of {self.table} is of publication {commit.publication}, which has no "
                "manifest.",
                f"Restore {file} from a backup.",
                table=self.table,
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
                self.findings.fault(
                    "commits",
                    f"{self.table} has at release {shown.number} other columns than the manifest of publication "
                    f"{shown.publication} says: {', '.join(sorted(differing))}.",
                    f"Restore `{self.table.replace('.', '/')}/_delta_log` from a backup.",
                    table=self.table,
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
        self.findings.fault(
            "commits",
            f"{self.table} {day} became at release {shown.number} what the manifest of publication {shown.publication} "
            f"{said}: {len(gone)} files are missing and {len(more)} are too many, such as {', '.join(differing)}.",
            f"Restore `{self.table.replace('.', '/')}/_delta_log` from a backup; or compute the day again: "
            f"`platform-assets refresh {self.table} --days {day} --force`.",
            table=self.table,
            day=day,
            file=differing[0] if differing else "",
        )


def _changes(shown: Shown, table: str) -> dict[date | None, DayContent]:
    """Return what the manifest says of the table; nothing where it cannot be read."""
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
