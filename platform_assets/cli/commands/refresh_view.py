"""What became of a refresh, for people and for programs."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from platform_assets.cli.console import console, say
from platform_assets.cli.files_view import refused_lines
from platform_assets.cli.warned_view import DayWarning, print_warnings
from platform_assets.contracts.dead_letters import quarantine_table, refused_table
from platform_assets.planning.replays import REPLAY, UNDATED
from platform_assets.quality.repairs import remedy
from platform_assets.records.manifest import Arrival
from platform_assets.words import counted

if TYPE_CHECKING:
    from platform_assets.engine.meanwhile import PublishedMeanwhile
    from platform_assets.engine.refresh import RefreshResult


class Quarantined(NamedTuple):
    """What broke a rule in the days of a table that a refresh computed, and had not broken one before.

    Args:
        rows: that broke one.
        days: which have such rows.
    """

    rows: int
    days: int


@dataclass(frozen=True)
class Outcome:
    """What a refresh did, for people and programs.

    Args:
        published: days with new content, by table.
        unchanged: days that were computed and came out as they were, by table.
        struck: days by table that turned out to need nothing.
        why_struck: why not, in a few words.
        left: days that were not published, by table, with the reason.
        files: taken.
        refused_files: not one row of which was taken, with the reason.
        refused_in: files of which some rows were refused and others taken, by raw table.
        delivered_rows: of all files of which any were taken, by raw table.
        late_rows: that wait in a late queue since, by raw table.
        replays: what is to be said of files whose content came before, by path.
        undated: the same of files with deletes that have found no record yet.
        quarantined: of the days that it computed, by silver table.
        warnings: what gates newly found of days that were published all the same, by table, the newest day first.
        growing: files that were changed a moment ago.
        seconds: wall time.
        stage: that the days are in, and no release yet.
        others: what others published meanwhile of the days that were planned.
    """

    published: dict[str, int]
    unchanged: dict[str, int]
    struck: dict[str, int]
    why_struck: str
    left: list[tuple[str, str, str]]
    files: int
    refused_files: dict[str, str]
    refused_in: dict[str, list[Arrival]]
    delivered_rows: dict[str, int]
    late_rows: dict[str, int]
    replays: dict[str, str]
    undated: dict[str, str]
    quarantined: dict[str, Quarantined]
    warnings: tuple[DayWarning, ...]
    growing: int
    seconds: float
    stage: str | None = None
    others: tuple[PublishedMeanwhile, ...] = ()

    @property
    def refused_rows(self) -> dict[str, int]:
        """Of files of which others were taken, by raw table."""
        return {table: sum(file.refused for file in files) for table, files in self.refused_in.items()}

    @property
    def wants_a_look(self) -> bool:
        """Whether something was left that a person should look at."""
        return bool(self.left or self.refused_files or self.refused_in)

    def json(self) -> dict[str, Any]:
        """The document of `--json`."""
        return {
            "staged" if self.stage else "published": self.published,
            "unchanged": self.unchanged,
            "struck": self.struck,
            "left": [{"table": table, "day": day, "reason": reason} for table, day, reason in self.left],
            "files": self.files,
            "refused_files": [{"path": path, "reason": reason} for path, reason in self.refused_files.items()],
            "refused_rows": self.refused_rows,
            "late_rows": self.late_rows,
            "replays": [{"path": path, "note": note} for path, note in self.replays.items()],
            "deletes_without_record": [{"path": path, "note": note} for path, note in self.undated.items()],
            "quarantined": {table: found._asdict() for table, found in self.quarantined.items()},
            "warnings": [warning.json() for warning in self.warnings],
            "growing_files": self.growing,
            "published_meanwhile": [
                {
                    "table": other.table,
                    "days": other.days,
                    "publication": other.by.publication,
                    "release": other.by.release,
                    "run": other.by.run,
                    "who": other.by.who,
                    "why": other.by.why,
                }
                for other in self.others
            ],
            "seconds": round(self.seconds, 1),
        }

    def print(self, told: Collection[tuple[str, str]] = ()) -> None:
        """A line per table, and one per day that was not published; what was refused, and what is left for later.

        Args:
            told: days, each with its table, of which it is said elsewhere what keeps them.
        """
        for table, count in self.published.items():
            done = f"in the stage {self.stage}" if self.stage else "published"
            console.print(f"{table}: {counted(count, 'day')} {done}", highlight=False)
        for table, count in self.unchanged.items():
            console.print(
                f"{table}: {counted(count, 'day')} came out as before, readers see nothing new", highlight=False
            )
        for table, count in self.struck.items():
            console.print(f"{table}: {counted(count, 'day')} struck: {self.why_struck}", highlight=False)
        for other in self.others:
            say(
                "published meanwhile",
                f"{other.table}: {counted(other.days, 'day')} not by this run but by {other.by.run} of {other.by.who} "
                f"({other.by.why}), publication {other.by.publication}, release {other.by.release}",
            )
        for table, day, reason in (left for left in self.left if left[:2] not in told):
            say(f"[red]not {'staged' if self.stage else 'published'}[/]", f"{table} {day}: {reason}")
        for line in refused_lines(self.refused_files):
            say("[red]refused[/]", line)
        for table, rows in self.refused_rows.items():
            delivered = self.delivered_rows[table]
            say(
                "[red]refused[/]",
                f"{rows:,} of {counted(delivered, 'row')} delivered for {table}: `platform-assets read "
                f"{refused_table(table)}` shows them; {remedy(self.refused_in[table], delivered)}",
            )
        for table, rows in self.late_rows.items():
            came = f"{counted(rows, 'row')} delivered for {table} came too late, or too far ahead, and wait"
            history = "A history that is loaded for the first time is taken by `late approve FILE`."
            say("[yellow]late[/]", f"{came}: `platform-assets late list`. {history}")
        for line in refused_lines(self.replays):
            say("[yellow]sent again[/]", line)
        for line in refused_lines(self.undated):
            say("[yellow]deletes nothing yet[/]", line)
        for table, found in self.quarantined.items():
            broke = f"{counted(found.rows, 'row')} of {counted(found.days, 'day')} broke a rule"
            # Those of a stage are nowhere yet that anybody reads.
            shown = "" if self.stage else f": `platform-assets read {quarantine_table(table)}` shows them"
            say("[yellow]quarantined[/]", f"{table}: {broke}{shown}")
        print_warnings(self.warnings, self.stage)
        if self.stage:
            console.print(
                f"Nobody sees it yet: `stage compare {self.stage}`, `stage publish {self.stage} --reason …` or `stage "
                f"drop {self.stage}`. Done in {self.seconds:.1f} s.",
                highlight=False,
                soft_wrap=True,
            )
            return
        grows = f", {counted(self.growing, 'file')} may still grow and {'is' if self.growing == 1 else 'are'} left"
        left = f"{grows} for the next refresh" if self.growing else ""
        console.print(f"{counted(self.files, 'file')} taken{left}. Done in {self.seconds:.1f} s.", highlight=False)


def outcome_of(
    result: RefreshResult, seconds: float, stage: str | None, others: tuple[PublishedMeanwhile, ...] = ()
) -> Outcome:
    """What people and programs are told of a refresh.

    Args:
        seconds: wall time.
        stage: that the days are in; None if they were published.
        others: what others published meanwhile of the days that were planned.
    """
    published = {done.table: len(done.published) for done in result.ingests if done.published}
    published |= {done.table: new for done in result.steps if (new := len(done.published) - len(done.unchanged))}
    left = [
        (done.table, str(day), reason) for done in result.steps for day, reason in sorted(done.not_published.items())
    ]
    arrivals = [arrival for done in result.ingests for arrival in done.arrivals]
    refused_in: defaultdict[str, list[Arrival]] = defaultdict(list)
    delivered_rows, late_rows = Counter[str](), Counter[str]()
    for arrival in arrivals:
        if arrival.reason is None:
            if arrival.refused:
                refused_in[arrival.table].append(arrival)
            late_rows[arrival.table] += arrival.late
            delivered_rows[arrival.table] += arrival.landed
    return Outcome(
        published=published,
        unchanged={done.table: len(done.unchanged) for done in result.steps if done.unchanged},
        struck={table: len(days) for table, days in result.struck.items()},
        why_struck=result.why_struck,
        left=left,
        files=sum(arrival.reason is None for arrival in arrivals),
        refused_files={arrival.path: arrival.reason for arrival in arrivals if arrival.reason is not None},
        refused_in=dict(refused_in),
        delivered_rows=dict(delivered_rows),
        replays={arrival.path: note for arrival in arrivals for note in arrival.notes if note.startswith(REPLAY)},
        undated={arrival.path: note for arrival in arrivals for note in arrival.notes if note.startswith(UNDATED)},
        late_rows={table: rows for table, rows in late_rows.items() if rows},
        quarantined={
            done.table: Quarantined(sum(broken.values()), len(broken))
            for done in result.steps
            if (broken := done.newly_quarantined)
        },
        warnings=tuple(
            DayWarning(done.table, day, warned)
            for done in result.steps
            for day in sorted(done.published, reverse=True)
            for warned in done.newly_warned(day)
        ),
        growing=sum(len(done.growing) for done in result.ingests),
        seconds=seconds,
        stage=stage,
        others=others,
    )
