"""What every benchmark shares: whole processes timed, sides alternated, ratios judged against goals and printed."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Annotated, Any, Literal, NoReturn

import typer
from rich.console import Console
from rich.table import Table

GIB = 1 << 30
COMMAND = (sys.executable, "-P", "-c", "from platform_assets.cli import main; main()")
"""The platform's command line."""

Quick = Annotated[bool, typer.Option("--quick", help="At most a quarter of an hour, on less.")]
Rounds = Annotated[int, typer.Option(min=1, help="Rounds of alternating sides.")]
JsonPath = Annotated[Path | None, typer.Option("--json", help="Write the goals there, for programs.")]

_SAMPLE_EVERY_S = 0.5
_LAST_LINES = 25
_END_WITHIN_S = 30

console = Console(width=None if sys.stdout.isatty() else 120)


class BenchmarkError(Exception):
    """A side did not run to its end, or sides hold different rows: nothing was measured."""


def measured(title: str, json_path: Path | None, measure: Callable[[Path], Sequence[Outcome]]) -> NoReturn:
    """Measure in a temporary folder, show the goals, and exit: 1 if one is missed, 3 if nothing could be measured."""
    with tempfile.TemporaryDirectory(prefix="benchmark-", ignore_cleanup_errors=True) as folder:
        try:
            outcomes = measure(Path(folder))
        except BenchmarkError as error:
            console.print(str(error), markup=False, highlight=False, style="red")
            raise typer.Exit(3) from error
    judged = [
        (
            one.name,
            one.goal,
            "not measured" if one.ratio is None else f"{one.ratio:.2f}",
            "one round" if one.spread is None else f"{one.spread:.0%}",
            "[green]held[/]" if one.held else "[red]missed[/]",
        )
        for one in outcomes
    ]
    print_table(title, ("goal", "wanted", "found", "spread", ""), judged)
    if json_path:
        said = json.dumps([asdict(one) for one in outcomes], indent=2)
        json_path.write_text(said + "\n", encoding="utf-8")
    raise typer.Exit(0 if all(one.held for one in outcomes) else 1)


@dataclass(frozen=True)
class Run:
    """One side of one round: wall time, which says less than processor time on a busy machine, and what was printed.

    The peak is the most memory that a JVM had resident; None where there was none, or no /proc to ask.
    """

    seconds: float
    cpu_s: float
    jvm_peak_bytes: int | None
    load: float
    printed: str


@dataclass(frozen=True)
class Goal:
    """What a ratio should be."""

    name: str
    relation: Literal["<=", ">="]
    bound: float

    def judge(self, ratios: Sequence[float]) -> Outcome:
        """Hold the ratios of all rounds against the goal; none at all is a miss."""
        if not ratios:
            return Outcome(self.name, f"{self.relation} {self.bound:g}", None, None, held=False)
        middle = median(ratios)
        held = middle <= self.bound if self.relation == "<=" else middle >= self.bound
        spread = round((max(ratios) - min(ratios)) / middle, 3) if len(ratios) > 1 else None
        return Outcome(self.name, f"{self.relation} {self.bound:g}", round(middle, 3), spread, held)


@dataclass(frozen=True)
class Outcome:
    """A goal and what came of it: the median of all rounds, and their spread as a share of it."""

    name: str
    goal: str
    ratio: float | None
    spread: float | None
    held: bool


def run_command(command: Sequence[object], *, env: Mapping[str, str], log: Path, done: Collection[int] = (0,)) -> Run:
    """Run a program.

    Args:
        done: exit codes by which it says that its work is done.

    Raises:
        BenchmarkError: it failed; the message has its last lines.
    """
    os.sync()  # what an earlier process left to write is not this one's to wait for
    load = os.getloadavg()[0]
    words = [*map(str, command)]
    with log.open("wb") as output:
        started, cpu_before_s = time.monotonic(), _cpu_of_children_s()
        # Python keeps what it has compiled, unless somebody forbade it: then most of a short process is compiling
        own = {name: value for name, value in env.items() if name != "PYTHONDONTWRITEBYTECODE"}
        process = subprocess.Popen(words, env=own, stdout=output, stderr=subprocess.STDOUT)
        peaks: dict[int, int] = {}
        used_s: dict[int, float] = {}
        while True:
            try:
                process.wait(_SAMPLE_EVERY_S)
                break
            except subprocess.TimeoutExpired:
                below = [*_descendants(process.pid)]
                peaks |= {pid: peak for pid in below if (peak := _java_peak_bytes(pid))}
                used_s |= {pid: used for pid in (process.pid, *below) if (used := _cpu_s(pid))}
        seconds = time.monotonic() - started
    _wait_for_end(peaks)
    printed = log.read_text(encoding="utf-8", errors="replace")
    if process.returncode not in done:
        last = "\n".join(printed.splitlines()[-_LAST_LINES:])
        raise BenchmarkError(f"`{' '.join(words[1:])}` failed ({process.returncode}); its log {log} ends:\n{last}")
    # Of a JVM that outlives its process nobody is told what it took
    cpu_s = max(_cpu_of_children_s() - cpu_before_s, sum(used_s.values()))
    return Run(seconds, cpu_s, max(peaks.values(), default=None), load, printed)


def alternate(
    sides: Mapping[str, Callable[[int], Run]],
    rounds: int,
    within_s: float = float("inf"),
    check: Callable[[], None] = lambda: None,
) -> dict[str, list[Run]]:
    """Run all sides round by round, every second round in reverse order.

    Args:
        sides: given the number of the round, from 0.
        rounds: how many, at least one.
        within_s: no round is begun that would, as long as the one before, end later than this after the first began.
        check: called after every round, before its times count.
    """
    runs: dict[str, list[Run]] = {name: [] for name in sides}
    begun = time.monotonic()
    for number in range(rounds):
        started = time.monotonic()
        for name in list(sides) if number % 2 == 0 else list(sides)[::-1]:
            runs[name].append(sides[name](number))
        check()
        if 2 * time.monotonic() - started - begun > within_s:
            break
    return runs


def ratios(runs: Mapping[str, Sequence[Run]], side: str, other: str) -> list[float]:
    """Seconds of one side over those of another, round by round."""
    return [a.seconds / b.seconds for a, b in zip(runs[side], runs[other], strict=True)]


def print_runs(title: str, runs: Mapping[str, Sequence[Run]]) -> None:
    """Seconds and memory of every side."""
    headings = ("side", "rounds", "median s", "min to max s", "CPU s", "JVM peak GiB", "load average")
    rows = []
    for name, done in runs.items():
        peaks = [run.jvm_peak_bytes / GIB for run in done if run.jvm_peak_bytes is not None]
        cpu, most = median(run.cpu_s for run in done), f"{max(peaks):.2f}" if peaks else ""
        load = " ".join(f"{run.load:.1f}" for run in done)
        rows.append((name, str(len(done)), *middle_and_spread([run.seconds for run in done]), f"{cpu:.1f}", most, load))
    print_table(title, headings, rows)


def middle_and_spread(seconds: Sequence[float], places: int = 1) -> tuple[str, str]:
    """Median, and least to most."""
    return f"{median(seconds):.{places}f}", f"{min(seconds):.{places}f} to {max(seconds):.{places}f}"


def print_table(title: str, headings: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> None:
    """A table whose first columns are names, and whose others are figures."""
    table = Table(title=title, title_justify="left")
    for number, heading in enumerate(headings):
        table.add_column(heading, justify="left" if number < left else "right", overflow="fold")
    for row in rows:
        table.add_row(*row)
    console.print(table)


def printed_json(run: Run) -> list[dict[str, Any]]:
    """The lines of JSON that a process printed."""
    return [json.loads(line) for line in run.printed.splitlines() if line.startswith("{")]


def _cpu_of_children_s() -> float:
    """Processor time of all processes that ended below this one."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _cpu_s(pid: int) -> float:
    """Processor time that a process has taken by itself; 0 where it ended, or there is no /proc to ask."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _descendants(pid: int) -> Iterator[int]:
    """Processes below one, on systems with /proc."""
    children: list[int] = []
    # A process may end at any moment, its folder with it.
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            children += map(int, (task / "children").read_text().split())
    for child in children:
        yield child
        yield from _descendants(child)


def _wait_for_end(pids: Iterable[int]) -> None:
    """Wait for JVMs that outlive their process for a moment: the next run is to have the machine to itself."""
    deadline = time.monotonic() + _END_WITHIN_S
    while time.monotonic() < deadline and any(Path(f"/proc/{pid}").exists() for pid in pids):
        time.sleep(0.05)


def _java_peak_bytes(pid: int) -> int:
    """Most memory that a JVM ever had resident; 0 for other processes."""
    try:
        lines = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    except OSError:
        return 0
    return int(lines["VmHWM"].split()[0]) * 1024 if lines["Name"].strip() == "java" and "VmHWM" in lines else 0
