"""End the demo: correct five lines of one day, and compare the rewritten days with the stale ones.

The executed plan says which days were stale. The difference of two releases says which were rewritten: every day of
every table, by its publication, digest and files.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.text import Text

from platform_assets.contracts import AllHistory, AsOf, Input, MonthToDate, Offsets, Span
from platform_assets.engine.platform import Platform
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.lakehouse.releases import release
from platform_assets.operations.readers import read
from platform_assets.planning.windows import which
from platform_assets.report import Note, Table, Tone, picked
from platform_assets.words import counted, visible

if TYPE_CHECKING:
    from platform_assets.engine.refresh import RefreshResult

SALES = "gold.daily_sales"


class Shown(NamedTuple):
    """A day as a release shows it."""

    publication: str
    digest: str
    files: tuple[str, ...]


Content = Mapping[str, Mapping[date, Shown]]


@dataclass(frozen=True)
class Comparison:
    """Days that a newer release rewrote by table, how many it did not, and mistakes in either direction."""

    rewritten: Mapping[str, tuple[date, ...]]
    untouched: int
    surprises: tuple[tuple[str, date], ...]

    @property
    def days(self) -> int:
        """Return how many days were rewritten."""
        return sum(map(len, self.rewritten.values()))


@dataclass(frozen=True)
class Story:
    """A correction from its file to the sums that readers see at the releases before and after.

    Args:
        why: reasons of stale days, by table in the order of the tables; days that were not rewritten are left out.
    """

    path: str
    day: date
    store: int
    before: int
    after: int
    why: Mapping[str, str]
    compared: Comparison
    net: tuple[Decimal, Decimal]


def compare(before: Content, after: Content, stale: Mapping[str, Collection[date]]) -> Comparison:
    """Compare every day of every table that either release shows."""
    rewritten: dict[str, tuple[date, ...]] = {}
    surprises: list[tuple[str, date]] = []
    untouched = 0
    for table in {**before, **after}:
        then, now = before.get(table, {}), after.get(table, {})
        days = {*then, *now}
        changed = {day for day in days if then.get(day) != now.get(day)}
        untouched += len(days - changed)
        surprises += [(table, day) for day in sorted(changed ^ set(stale.get(table, ())))]
        if changed:
            rewritten[table] = tuple(sorted(changed))
    return Comparison(rewritten, untouched, tuple(surprises))


def shown_at(platform: Platform, number: int) -> Content:
    """Return every day of every table at a release, from the ledger and the tables' own logs."""
    snapshot = LakeSnapshot(platform, release(platform.lake, number))
    return {
        table: {
            day: Shown(record.publication, record.digest, tuple(sorted(file.path for file in files.get(day, ()))))
            for files in [snapshot.files(table)]
            for day, record in snapshot.days(table).items()
        }
        for table in platform.catalogue.names
    }


def net_sales(platform: Platform, day: date, number: int) -> Decimal:
    """Return the net sales of a day, in dollars, as readers see them at a release."""
    rows = read(SALES, days=day, release=number, settings=platform.settings)
    return sum(rows["net"].to_pylist(), Decimal(0))


def stale_days(result: RefreshResult) -> dict[str, set[date]]:
    """Return the days that a refresh had to write: of its files, and the planned ones except struck days."""
    stale = {done.table: set(done.published) for done in result.ingests if done.published}
    for step in result.plan.steps:
        stale[step.table] = {*step.days} - {*result.struck.get(step.table, ())}
    return stale


def reasons(platform: Platform, result: RefreshResult) -> dict[str, str]:
    """Return why days of each table were stale: the plan's reason, and the window that reached them."""
    steps = {step.table: step for step in result.plan.steps}
    stale = stale_days(result)
    said: dict[str, str] = {}
    for contract in platform.catalogue:
        if contract.name in steps:
            why = ", ".join(dict.fromkeys(reason for some in steps[contract.name].by_reasons for reason in some))
            through = " and ".join(_reads(read) for read in contract.inputs if stale.get(read.table))
            said[contract.name] = f"{why}: reads {through}" if through else why
        elif contract.name in stale:
            said[contract.name] = "lines in the file"
    return said


def _reads(read: Input) -> str:
    match read.window:
        case Span(0, 0):
            return f"the same day of {read.table}"
        case Span(before, after):
            return f"{before + after + 1} days of {read.table}"
        case Offsets(each):
            return f"{len(each)} days of {read.table}"
        case MonthToDate():
            return f"the month to date of {read.table}"
        case AsOf():
            return f"{read.table} as of the day"
        case AllHistory():
            return f"all history of {read.table}"


def story_parts(story: Story) -> Iterator[Any]:
    """Show the story of the correction."""
    yield ""
    lines = f"Five lines of {story.day} in store {story.store} were sold at twice the price."
    yield _paragraph("One more file:", f"{story.path} arrives. {lines}")
    compared = story.compared
    rows = []
    for table, why in story.why.items():
        days = compared.rewritten.get(table, ())
        rows.append((table, f"{len(days):,}", which(days), why))
    yield Table("Days that this makes stale", ("table", "days", "which", "why"), rows, ("days",), ("table", "which"))
    if compared.surprises:
        table, day = compared.surprises[0]
        count = counted(len(compared.surprises), "day")
        what = f"{count} rewritten without being stale, or stale and not rewritten, for example {table} {day}"
        yield _paragraph("Not as promised:", f"{what}. `platform-assets admin audit` looks closer.", "bold red")
    else:
        others = f"The other {compared.untouched:,} of {compared.days + compared.untouched:,} are as they were"
        what = f"digest, files and publication of every day of every table, compared at releases {story.before} and"
        mark = f"Exactly these {counted(compared.days, 'day')} were rewritten."
        yield _paragraph(mark, f"{others}: {what} {story.after}.", "green")
    before, after = story.net
    sides = f"{before:,.2f} at release {story.before}, {after:,.2f} at release {story.after}, {after - before:+,.2f}"
    yield _paragraph("Net sales", f"of {story.day} as readers see them: {sides}.")
    yield Note("bold", "Undo it with:", f'uv run platform-assets undo since:{story.before} --reason "just trying"')


def _paragraph(mark: str, text: str, tone: Tone = "bold") -> Text:
    """Return a paragraph that the terminal wraps between words."""
    return Text.assemble((mark, tone), " ", visible(text))


def story_json(story: Story) -> dict[str, Any]:
    """Return the story as JSON."""
    return {
        "file": story.path,
        "day": story.day,
        "releases": {"before": story.before, "after": story.after},
        "surprises": [{"table": table, "day": day} for table, day in story.compared.surprises],
        "net_sales": {"before": story.net[0], "after": story.net[1]},
        "why": story.why,
        **picked(story.compared, "rewritten untouched"),
    }
