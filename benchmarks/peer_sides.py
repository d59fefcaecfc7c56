"""The platform and its newer peers with the calendar loaded, put back before every run, and what a run did to them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from deltalake import DeltaTable
from rich.console import Console

from benchmarks.corrected import Corrections, replace_by_copy, rewritten
from benchmarks.equality import Content, check_equal, table_content
from benchmarks.harness import BenchmarkError, Run, print_runs
from benchmarks.peer_projects import DuckLake, Peer, SQLBuild
from benchmarks.sample import Sample, landed
from benchmarks.store_sales import STORE_SALES
from platform_assets.domains.retail.contracts import RAW_TRANSACTIONS, SILVER_TRANSACTIONS
from platform_assets.domains.retail.sample import Simulation

PLATFORM, DUCKLAKE, SQLBUILD = "platform", "DuckLake", "SQLBuild"
SQLBUILD_SINGLY = "SQLBuild, build by build"
CONTRACTS = (SILVER_TRANSACTIONS, STORE_SALES)

_PEERS: dict[str, tuple[str, type[Peer]]] = {"ducklake": (DUCKLAKE, DuckLake), "sqlbuild": (SQLBUILD, SQLBuild)}


@dataclass
class PeersLoaded:
    """All sides with the calendar loaded, and what their runs did to it.

    Args:
        sample: what was landed.
        peers: by their names.
        kept: folder with a copy of each side as it was loaded, and of the platform as it was corrected.
        loaded: rows of both models as they were loaded.
        contents: rows of both models, by side, after its latest run.
        days: rewritten by its latest run, by side and model; or what it was told.
    """

    sample: Sample
    peers: dict[str, Peer]
    kept: Path
    loaded: dict[str, Content] = field(default_factory=dict)
    contents: dict[str, dict[str, Content]] = field(default_factory=dict)
    days: dict[str, dict[str, set[date]] | str] = field(default_factory=dict)

    def delta(self, name: str) -> Path:
        """A table of the platform's."""
        return self.sample.lake(PLATFORM) / name.replace(".", "/")

    def refresh(self, case: Corrections) -> Run:
        """The corrections delivered, and what they make stale computed."""
        return self._platform(PLATFORM, lambda: self._delivered(case))

    def rollback(self, case: Corrections) -> Run:
        """What that published undone; what went before does not count."""
        corrected = self.kept / "corrected" / case.name.replace(" ", "-")
        if not corrected.exists():
            replace_by_copy(self.sample.state(PLATFORM), self.kept / PLATFORM)
            self._delivered(case)
            corrected.parent.mkdir(exist_ok=True)
            shutil.copytree(self.sample.state(PLATFORM), corrected)
        release = json.loads((self.kept / "release.json").read_text(encoding="utf-8"))
        command = ("rollback", "--to", release, "--reason", "a benchmark", "--by", "a benchmark")
        return self._platform("corrected/" + corrected.name, lambda: self.sample.cli(PLATFORM, *command))

    def ducklake_corrects(self, case: Corrections) -> Run:
        """The days that its change feed names."""
        lake = self._ducklake()
        return self._peer(DUCKLAKE, DUCKLAKE, case, lake.correct)

    def ducklake_undoes(self, case: Corrections) -> Run:
        """What that wrote undone; what went before does not count."""
        lake = self._ducklake()

        def undo() -> Run:
            lake.correct()
            return lake.undo()

        return self._peer(DUCKLAKE, DUCKLAKE, case, undo)

    def sqlbuild_corrects(self, case: Corrections, *, singly: bool = False) -> Run:
        """One interval that holds all corrected days, or each on its own."""
        project = self.peers[SQLBUILD]
        assert isinstance(project, SQLBuild)
        first, last = case.days[0], case.days[-1]
        if singly:
            self.days[SQLBUILD_SINGLY] = f"{len(case.days)}, as it was told"
            return self._peer(SQLBUILD_SINGLY, SQLBUILD, case, lambda: project.correct_singly(case.days))
        self.days[SQLBUILD] = f"{(last - first).days + 1}, as it was told"
        return self._peer(SQLBUILD, SQLBUILD, case, lambda: project.correct(first, last))

    def check(self) -> None:
        """Compare what all sides hold after a round.

        Raises:
            UnequalError: it is not the same.
        """
        first, *others = self.contents
        for other in others:
            check_equal(self.contents[first], self.contents[other], f"{first} and {other}")

    def check_as_loaded(self) -> None:
        """Compare what all sides hold with what was loaded.

        Raises:
            UnequalError: it is not the same.
        """
        for side, found in self.contents.items():
            check_equal(self.loaded, found, f"What was loaded and {side}")

    def keep(self) -> None:
        """Compare all sides as they were loaded, and keep them.

        Raises:
            UnequalError: they do not hold the same rows.
        """
        self._look(PLATFORM)
        for name in self.peers:
            self._look_at_peer(name, name)
        self.check()
        self.loaded = self.contents[PLATFORM]
        replace_by_copy(self.kept / PLATFORM, self.sample.state(PLATFORM))
        for name, peer in self.peers.items():
            replace_by_copy(self.kept / name, peer.folder)

    def _ducklake(self) -> DuckLake:
        lake = self.peers[DUCKLAKE]
        assert isinstance(lake, DuckLake)
        return lake

    def _delivered(self, case: Corrections) -> Run:
        with case.landed(self.sample.landing):
            return self.sample.cli(PLATFORM, "refresh")

    def _platform(self, kept: str, command: Callable[[], Run]) -> Run:
        state, before = self.sample.state(PLATFORM), self.kept / kept
        replace_by_copy(state, before)
        run = command()
        self._look(PLATFORM)
        tables = {one.name: self.delta(one.name) for one in CONTRACTS}
        self.days[PLATFORM] = {name: rewritten(before / path.relative_to(state), path) for name, path in tables.items()}
        return run

    def _peer(self, side: str, name: str, case: Corrections, command: Callable[[], Run]) -> Run:
        peer = self.peers[name]
        replace_by_copy(peer.folder, self.kept / name)
        peer.append(case)
        run = command()
        self._look_at_peer(side, name)
        if isinstance(peer, DuckLake):
            self.days[side] = peer.written()
        return run

    def _look(self, side: str) -> None:
        self.contents[side] = {one.name: table_content(self.delta(one.name), one) for one in CONTRACTS}

    def _look_at_peer(self, side: str, name: str) -> None:
        folder = self.kept / "exported"
        shutil.rmtree(folder, ignore_errors=True)
        self.peers[name].tables("export", folder)
        self.contents[side] = {one.name: table_content(folder / one.name, one) for one in CONTRACTS}


@contextmanager
def load_peers(root: Path, days: int, names: Sequence[str], console: Console) -> Iterator[PeersLoaded]:
    """The first days of the sample loaded by all sides, equal; a peer that cannot be installed is told and left out.

    Raises:
        BenchmarkError: no peer can be installed.
    """
    with landed(root, Simulation(days=days), {"PLATFORM_DOMAINS": "benchmarks.store_sales"}) as sample:
        peers: dict[str, Peer] = {}
        for name, peer in (_PEERS[one] for one in names):
            try:
                peers[name] = peer.installed(name, sample.state(name))
            except BenchmarkError as error:
                console.print(f"{name} is left out. {error}", markup=False, highlight=False, style="yellow")
        if not peers:
            raise BenchmarkError("There is nobody to compare with.")
        loaded = PeersLoaded(sample, peers, sample.folder / "kept")
        runs = {PLATFORM: [sample.cli(PLATFORM, "refresh")]}
        files = DeltaTable(loaded.delta(RAW_TRANSACTIONS.name)).file_uris()
        runs |= {name: [peer.fill(files)] for name, peer in peers.items()}
        loaded.keep()
        releases = json.loads(sample.cli(PLATFORM, "releases", "--json").printed)
        (loaded.kept / "release.json").write_text(json.dumps(releases[0]["release"]), encoding="utf-8")
        print_runs(console, f"First load of {days} days; the platform takes raw besides; no goal", runs)
        yield loaded
