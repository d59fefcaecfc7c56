"""`status sources`, `status schema`, `admin pull`: waiting rows, columns otherwise than declared, reading, drift."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from platform_assets.cli.console import UsageError, opened_platform, parse_days, platform_to_look, selected_tables
from platform_assets.cli.options import By, Days, DryRun, Reason, decided_by
from platform_assets.cli.progress import telling
from platform_assets.cli.session import computing
from platform_assets.engine.readings import pull_alone, unread, verify_source
from platform_assets.planning.windows import which
from platform_assets.progress import meanwhile
from platform_assets.records.schema_drift import is_declared
from platform_assets.report import Note, Part, Points, Report, Table, plain
from platform_assets.sources.source import Again, Drift, Source, SourceError
from platform_assets.words import counted

if TYPE_CHECKING:
    from platform_assets.engine.platform import Author


def sources() -> Report:
    """Show how far each source was read and how much waits there; it needs a look if one cannot be read."""
    shown: list[dict[str, Any]] = []
    with platform_to_look() as platform:
        for contract in platform.catalogue:
            if isinstance(contract.source, Source):
                try:
                    waits = unread(platform, contract)
                    shown.append({"table": contract.name, "rows": waits.rows, "what": waits.what, "problem": ""})
                except SourceError as error:
                    problem = f"{error.what} {error.todo}"
                    shown.append({"table": contract.name, "rows": None, "what": "", "problem": problem})
    return Report(_list_parts(shown), {"sources": shown}, any(row["problem"] for row in shown))


def schema(names: Sequence[str] = (), *, everything: bool = False) -> Report:
    """Show columns that came otherwise than contracts declare, each with the file that showed it first.

    Args:
        everything: those as well that contracts declare by now.
    """
    with platform_to_look() as platform:
        only = selected_tables(platform, names) or platform.catalogue.names
        found = [event for event in platform.ledger.schema_drift() if event.table in only]
        over = {event for event in found if is_declared(event.drift, platform.catalogue[event.table])}
    shown = [event for event in found if everything or event not in over]
    rows = [
        (event.table, event.drift.column, event.drift.what, event.first, f"{event.since:%Y-%m-%d}", f"{event.files:,}")
        for event in shown
    ]
    columns = ("table", "column", "how it came", "first in", "taken on", "files")
    parts: list[Part] = (
        [Table("Columns otherwise than declared", columns, rows, ("files",), ("table",))] if rows else []
    )
    if len(shown) < len(found):
        parts.append(f"{counted(len(found) - len(shown), 'other')} are declared by now: --all")
    data = [plain(event) | {"drift": event.drift._asdict(), "declared": event in over} for event in shown]
    return Report(parts or ["All columns came as contracts declare them."], {"drift": data})


def _list_parts(shown: list[dict[str, Any]]) -> Iterator[Part]:
    if not shown:
        yield "No table has a source that is read; files are delivered to the landing area: `platform-assets status`."
        return
    names = ("table", "rows that wait", "how far")
    rows = [(row["table"], "?" if row["rows"] is None else f"{row['rows']:,}", row["what"]) for row in shown]
    yield Table("Sources", names, rows, ("rows that wait",), ("table",))
    yield from (Note("red", "not read", row["problem"]) for row in shown if row["problem"])


_From = Annotated[
    str, typer.Option("--from", metavar="PLACE", help="Read again from a time, or PARTITION:OFFSET,… of Kafka.")
]
_To = Annotated[str, typer.Option("--to", metavar="PLACE", help="End before it; by default where it was read up to.")]
_AcceptLoss = Annotated[
    bool, typer.Option("--accept-loss", help="Continue with what is there, and accept that the rest was never read.")
]


def pull(
    table: Annotated[str, typer.Argument(help="raw.<table>.")],
    verify: Annotated[bool, typer.Option("--verify", help="Compare with the source; read again what drifted.")] = False,
    days: Days = None,
    limit: Annotated[int, typer.Option(min=0, help="With --verify: most keys to name.")] = 20,
    dry_run: DryRun = False,
    first: _From = "",
    upto: _To = "",
    accept_loss: _AcceptLoss = False,
    reason: Reason = None,
    by: By = None,
) -> Report:
    """Read new rows of a source into files of the landing folder; `refresh` does this too, and ingests them.

    With --days it asks a source for these days again, ingests the answer, and shows what came out different by day.
    With --from it reads again what was read before. --days, --from and --accept-loss need a --reason, which is kept in
    the files' names.

    With --verify it compares each day of raw with the source by count and checksum, and reads again what drifted,
    deletes as voids; exit code 1 if anything drifted.
    """
    if verify:
        return _verify(table, days, limit, dry_run=dry_run)
    if dry_run:
        raise UsageError("--dry-run is about --verify.", "Add it, or leave it out.")
    if days is not None:
        if first or upto or accept_loss:
            raise UsageError("--days say what to read, and so do --from, --to and --accept-loss.", "Give one of them.")
        return _read_days_again(table, days, decided_by(reason, by))
    asked = None
    if first or upto or accept_loss:
        if accept_loss == bool(first):
            raise UsageError("Either --from or --accept-loss says what to read.", "Give one of them.")
        author = decided_by(reason, by)
        asked = Again(f"{author.who}: {author.why}" if by else author.why, first, upto, accept_loss)
    with opened_platform() as platform, telling("source") as progress:
        contract = platform.catalogue[table]
        with meanwhile(progress, "reading the source"):
            files = pull_alone(platform, contract, asked)
    if files:
        said = f"{counted(files, 'file')} of {table} wait for `platform-assets refresh`."
        return Report([Note("green", "read", said)], {"table": table, "files": files})
    return Report([Note("green", "nothing new", f"for {table}.")], {"table": table, "files": 0})


def _read_days_again(table: str, days: str, author: Author) -> Report:
    from platform_assets.operations.read_again import read_again

    with opened_platform() as platform:
        contract = platform.catalogue[table]
        chosen = parse_days(days, platform.settings)
        with computing(platform.settings, "read again", brief=True) as (spark, progress):
            done = read_again(platform, spark, contract, chosen, author, progress)
    refused = [arrival for arrival in done.taken.arrivals if arrival.reason is not None]
    late = sum(arrival.late for arrival in done.taken.arrivals)
    rows = sum(arrival.refused for arrival in done.taken.arrivals)
    data = {"table": table, "files": done.files, "days": done.days, "refused_rows": rows, "late": late}
    data |= {"refused_files": [{"path": file.path, "reason": file.reason} for file in refused]}

    def parts() -> Iterator[Part]:
        if not done.files:
            yield Note("green", "nothing different", f"{table} has what its source has on these days.")
        else:
            yield Note("green", "read again", f"{counted(done.files, 'file')} of {table}")
            kinds = ("changed", "new", "gone", "same")
            shown = [(str(day), *(f"{found.get(kind, 0):,}" for kind in kinds)) for day, found in done.days.items()]
            yield Table("Keys by day, against what raw had", ("day", *kinds), shown, kinds, ("day",))
            yield "`platform-assets refresh` computes what follows from it."
        yield from (Note("red", "refused", f"{file.path} {file.reason}") for file in refused)
        if rows:
            yield Note("yellow", "refused", f"{counted(rows, 'row')}: platform-assets status quarantine {table}")
        if late:
            yield Note("yellow", "late", f"{counted(late, 'row', 'wait')} for a decision: platform-assets status late")

    return Report(parts(), data, bool(refused or rows or late))


def _verify(table: str, days: str | None, limit: int, *, dry_run: bool) -> Report:
    with opened_platform() as platform, telling("source") as progress:
        chosen = None if days is None else parse_days(days, platform.settings)
        contract = platform.catalogue[table]
        with meanwhile(progress, "comparing with the source"):
            found = verify_source(platform, contract, chosen, limit, repair=not dry_run)
    data = {
        "table": table,
        "days": found.days,
        "differing": found.differing,
        "drifted": found.keys,
        "keys": [one._asdict() for one in found.examples],
        "waiting": found.waiting,
        "undated": found.undated,
        "read_again": bool(found.repair) and not dry_run,
    }
    return Report(_drift_parts(table, found, dry_run=dry_run), data, bool(found))


def _drift_parts(table: str, found: Drift, *, dry_run: bool) -> Iterator[Part]:
    days = counted(found.days, "day")
    if not found:
        yield Note("green", "no drift", f"{table} has what its source has, on {days}.")
    else:
        kinds = ", ".join(f"{number:,} {what}" for what, number in found.keys.items())
        yield Note("red", "drifted", f"{kinds}; {which(found.differing)} of {days} differ")
        yield Points([f"{one.day} {one.key}: {one.what}" for one in found.examples], quoted=True)
        rest = sum(found.keys.values()) - len(found.examples)
        if rest > 0:
            yield f"and {rest:,} more: --limit"
        yield "Nothing was read again." if dry_run else "They were read again; `platform-assets refresh` takes them."
    if found.waiting:
        yield f"{counted(found.waiting, 'key')} differ because they were not read yet, or were refused."
    if found.undated:
        yield f"{counted(found.undated, 'row')} of the source have no day of the years 1 to 9999."
