"""Kill a command of a story at a fail point, run it again, and compare with an undisturbed run.

A story is commands of one installation, one after the other. A reader in a process of its own never stops meanwhile: it
adds up all tables of the newest release, again and again.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, fields
from datetime import date
from decimal import Decimal
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random

import pyarrow.compute as pc

from platform_assets.failpoints import PASSED
from platform_assets.lakehouse.horizon import horizon_of
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.reading import read_arrow
from platform_assets.lakehouse.releases import Release, current_release, release
from platform_assets.ledger.sync import rebuild
from platform_assets.operations.audit import audit_installation
from platform_assets.operations.audit_logs import Scope
from platform_assets.operations.deletion import delete_unneeded
from platform_assets.operations.opening import open_platform
from platform_assets.records.code_version import Refused
from platform_assets.settings import Settings
from platform_assets_tests.support.installation import Jvm
from platform_assets_tests.support.kills.points import POINTS
from platform_assets_tests.support.places import on_disk
from platform_assets_tests.support.shelf import FORKS, age, in_process, killed

Sums = tuple[int | Decimal | None, ...]
"""The sum of one column of every table of a story; None where the table has no release yet."""


@dataclass(frozen=True)
class Command:
    """What a user would run.

    Args:
        name: of the command.
        run: with the state folder, the seed, and the JVM where one is needed. Killed anywhere and run again it does
            what it would have done.
        before: brings about what it finds.
    """

    name: str
    run: Callable[[Path, int, Jvm | None], None]
    before: Callable[[Path, int], None] | None = None


@dataclass(frozen=True)
class Story:
    """Commands, and what plain Python says must be there after each.

    Args:
        name: of the story.
        columns: of every table that readers add up.
        settings: of an installation in a state folder.
        begin: makes the installation.
        commands: in their order.
        expected: the sums after a command, for a seed.
        lost_or_twice: what is wrong with the rows that are there after a command, for a seed.
    """

    name: str
    columns: tuple[tuple[str, str], ...]
    settings: Callable[[Path], Settings]
    begin: Callable[[Path, int, Jvm | None], None]
    commands: tuple[Command, ...]
    expected: Callable[[int, str], Sums]
    lost_or_twice: Callable[[Path, int, str], list[str]]


def sums(lake: Lake, columns: tuple[tuple[str, str], ...], release: Release) -> Sums:
    """What a reader of a release adds up."""
    return tuple(
        pc.sum(read_arrow(lake, table, columns=[column], release=release)[column]).as_py() or 0
        if table in release.versions
        else None
        for table, column in columns
    )


OF_SPARK = ("ingest", "stage", "gate", "compact")
"""Phases that take a session; all others are passed on paper."""
OF_OTHERS = ("outbox", "plan", "move", "circuit", "adoption")
"""Phases that tests of their own kill in."""
ON_PAPER = tuple(point for phase, points in POINTS.items() if phase not in OF_SPARK + OF_OTHERS for point in points)
WITH_SPARK = tuple(point for phase in OF_SPARK for point in POINTS[phase])


@dataclass(frozen=True)
class Seen:
    """What an installation shows, without what differs from run to run: names and times.

    Args:
        sums: of the current release.
        releases: of every release, oldest first; None of those beyond the window.
        digests: of every day of every table.
        holds: table, day, what is refused, gate.
        publications: the kind of every one, oldest first.
    """

    sums: Sums
    releases: tuple[Sums | None, ...]
    digests: dict[str, dict[date, str]]
    holds: frozenset[tuple[str, date, Refused, str]]
    publications: tuple[str, ...]


@dataclass
class Rehearsal:
    """An undisturbed run of a story.

    Args:
        story: which.
        seed: of its rows.
        jvm: that its processes work with.
        before: the state folder before every command.
        after: what is to be seen after it.
        passed: every fail point with the commands that pass it, and how often.
    """

    story: Story
    seed: int
    jvm: Jvm | None
    before: dict[str, Path] = field(default_factory=dict)
    after: dict[str, Seen] = field(default_factory=dict)
    passed: dict[str, list[tuple[Command, int]]] = field(default_factory=dict)

    @property
    def whole(self) -> set[Sums]:
        """What readers may see."""
        return {one for seen in self.after.values() for one in (*seen.releases, seen.sums) if one is not None}


@dataclass(frozen=True)
class Killed:
    """What came of killing a command once.

    Args:
        point: where.
        command: which.
        passing: the how manieth time it came by there.
        seed: of the rows.
        watched: what the reader saw all through.
        problems: what differs from the undisturbed run, or is wrong.
    """

    point: str
    command: str
    passing: int
    seed: int
    watched: Watched
    problems: tuple[str, ...]


def rehearse(story: Story, seed: int, folder: Path, jvm: Jvm | None) -> Rehearsal:
    """Run a story without a kill, and keep the state before each command."""
    found = Rehearsal(story, seed, jvm)
    state = folder / "state"
    story.begin(state, seed, jvm)
    for command in story.commands:
        if command.before:
            command.before(state, seed)
        found.before[command.name] = Path(shutil.copytree(state, folder / command.name))
        passed = folder / "passed.json"
        ended = in_process(_counted, passed, command, state, seed, jvm)
        assert ended.exitcode == 0, f"{command.name} failed undisturbed"
        for point, times in json.loads(passed.read_text()).items():
            found.passed.setdefault(point, []).append((command, times))
        seen = look(story, state)
        assert seen.sums == story.expected(seed, command.name), command.name
        assert not (wrong := story.lost_or_twice(state, seed, command.name)), wrong
        found.after[command.name] = seen
    return found


def _counted(passed: Path, command: Command, state: Path, seed: int, jvm: Jvm | None) -> None:
    command.run(state, seed, jvm)
    passed.write_text(json.dumps(PASSED))


def kill(rehearsal: Rehearsal, point: str, reader: Reader, folder: Path, reads: int) -> Killed:
    """Kill one of the commands that pass a point there, run it again, and look.

    Args:
        rehearsal: of the story; its seed decides which command is killed, and how often it comes by there before.
        point: where.
        reader: looks at the newest release all the time.
        folder: for the state; empty afterwards.
        reads: how often the reader has to look, at least.
    """
    random = Random(f"{rehearsal.seed} {point}")
    command, times = random.choice(rehearsal.passed[point])
    passing = random.randint(1, times)
    story, seed, state = rehearsal.story, rehearsal.seed, folder / "state"
    shutil.copytree(rehearsal.before[command.name], state)
    reader.watch(story.settings(state).lake_folder, story.columns, rehearsal.whole)
    dead = in_process(command.run, state, seed, rehearsal.jvm, failpoint=f"{point}:{passing}")
    again = in_process(command.run, state, seed, rehearsal.jvm)
    watched = reader.stop(reads)
    problems = [] if killed(dead) else [f"it was not killed: {dead.exitcode}"]
    problems += [] if again.exitcode == 0 else ["run again it failed"]
    problems += [f"a reader met {watched.count} mixed releases: {watched.mixed}"] if watched.count else []
    problems += _differences(look(story, state), rehearsal.after[command.name])
    problems += story.lost_or_twice(state, seed, command.name)
    problems += _unsound(story, state)
    shutil.rmtree(state)
    return Killed(point, command.name, passing, seed, watched, tuple(problems))


def look(story: Story, state: Path) -> Seen:
    """What is there, read from the files of every release."""
    with open_platform(story.settings(state)) as platform:
        lake, ledger = platform.lake, platform.ledger
        now, cut = current_release(lake), horizon_of(lake)
        releases = [release(lake, number) if cut.has(number) else None for number in range(now.number + 1)]
        heads = [ledger.head(name) for name in ledger.indexed()]
        return Seen(
            sums=sums(lake, story.columns, now),
            releases=tuple(None if one is None else sums(lake, story.columns, one) for one in releases),
            digests={
                table: {day: record.digest for day, record in ledger.current_days(table).items()}
                for table in now.versions
            },
            holds=frozenset((hold.table, hold.day, hold.refused, hold.gate) for hold in ledger.holds()),
            publications=tuple(head.kind for head in heads if head),
        )


def _differences(found: Seen, expected: Seen) -> Iterator[str]:
    for name in (one.name for one in fields(Seen)):
        have, wanted = getattr(found, name), getattr(expected, name)
        if have != wanted:
            yield f"{name} are {have}, undisturbed {wanted}"


def _unsound(story: Story, state: Path) -> Iterator[str]:
    """What audit, a rebuilt ledger and maintenance find."""
    settings = story.settings(state)
    audited = audit_installation(settings, Scope(every_release=True), lambda *_: None)
    yield from (f"audit: {fault.what}" for fault in audited.findings.faults)
    with open_platform(settings) as platform:
        lake, ledger = platform.lake, platform.ledger
        before = {name: ledger.publication(name) for name in ledger.indexed()}, ledger.holds()
        rebuilt = rebuild(lake, ledger)
        if ({name: ledger.publication(name) for name in ledger.indexed()}, ledger.holds()) != before or rebuilt.added:
            yield "the ledger is another one when it is rebuilt"
        shown = current_release(lake).versions
        folders = sorted(path for path in on_disk(lake.root).glob("*/*/*Z-*") if path.is_dir())
        for table in {f"{path.parent.parent.name}.{path.parent.name}" for path in folders}:
            age(lake, table)
        delete_unneeded(platform, "stages")
        left = [path for path in folders if path.is_dir() and not any(_refers(path, table, lake) for table in shown)]
        yield from (f"a stage was left: {path.relative_to(on_disk(lake.root))}" for path in left)
        yield from (f"a lock was left: {path.name}" for path in on_disk(lake.locks_path).glob("stage-*"))


def _refers(folder: Path, table: str, lake: Lake) -> bool:
    """Whether a commit of a table refers to a file in a folder of its."""
    if on_disk(lake.table_path(table)) != folder.parent:
        return False
    commits = (folder.parent / "_delta_log").glob("*.json")
    return any(f'"path":"{folder.name}/' in commit.read_text() for commit in commits)


_PATIENCE_S = 120


@dataclass(frozen=True)
class Watched:
    """What the reader saw.

    Args:
        reads: how often it looked at a release.
        mixed: what it saw that was no whole release, or could not be read; at most five of them.
        count: of these, all.
    """

    reads: int
    mixed: tuple[str, ...]
    count: int


class Reader:
    """The process; close it at the end.

    Args:
        pause_s: between two looks. Without one it takes a core for itself.
    """

    def __init__(self, pause_s: float = 0) -> None:
        self._pipe, theirs = FORKS.Pipe()
        self._process = FORKS.Process(target=_read, args=(theirs, pause_s), daemon=True)
        self._process.start()

    def watch(self, lake: Path, columns: tuple[tuple[str, str], ...], whole: Collection[Sums]) -> None:
        """Look at a lake from now on; returns after the first look."""
        self._pipe.send((lake, columns, frozenset(whole)))
        self._answer()

    def stop(self, at_least: int) -> Watched:
        """Look away, but not before so many looks."""
        self._pipe.send(at_least)
        found: Watched = self._answer()
        return found

    def close(self) -> None:
        """End the process."""
        self._pipe.send(None)
        self._process.join(_PATIENCE_S)

    def _answer(self) -> Watched:
        if not self._pipe.poll(_PATIENCE_S):
            raise TimeoutError("the reader says nothing")
        found: Watched = self._pipe.recv()
        return found


def _read(pipe: Connection, pause_s: float) -> None:
    while (asked := pipe.recv()) is not None:
        lake, columns, whole = asked
        reads, mixed, at_least = 0, list[str](), None
        while at_least is None or reads < at_least:
            try:
                release = current_release(Lake.at(lake))
                seen = sums(Lake.at(lake), columns, release)
                if seen not in whole:
                    mixed.append(f"release {release.number} read as {seen}")
            except Exception as error:  # noqa: BLE001 - whatever a reader meets is told
                mixed.append(repr(error))
            reads += 1
            if reads == 1:
                pipe.send(None)
            if at_least is None and pipe.poll(pause_s):
                at_least = pipe.recv()
        pipe.send(Watched(reads, tuple(mixed[:5]), len(mixed)))
