"""Roll back: exactly the days of some publications put back as they were before, as metadata, and held there.

No row is read or written: the files of before are still in the table's folder, and the log refers to them again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime

from platform_assets.contracts import Contract
from platform_assets.engine.basis import Basis
from platform_assets.engine.changes import Files, files_at
from platform_assets.engine.planner import standing_of
from platform_assets.engine.platform import Author, Platform
from platform_assets.engine.publishing import publish_changes
from platform_assets.engine.ties import moves_undone
from platform_assets.errors import PlatformError
from platform_assets.lakehouse.log import snapshot
from platform_assets.lakehouse.manifest import DayContent, TableChange, change_of, new_publication
from platform_assets.lakehouse.releases import Release, current_release, manifest_of, release
from platform_assets.ledger.records import ROLL_BACK, DayRecord, Hold, PublicationRecord
from platform_assets.planning.fingerprints import attempt
from platform_assets.planning.rollback import Restoration, TableDay, restoration
from platform_assets.planning.standing import unchanged
from platform_assets.planning.windows import union_reached


class RollbackError(PlatformError):
    """It cannot be rolled back; nothing was changed."""


@dataclass(frozen=True)
class Rollback:
    """What a rollback does, or would do.

    Args:
        publications: that are rolled back, oldest first.
        records: for every day that changes, what it is and what it becomes, None if as if never computed.
        raw: raw tables among the publications, which stay as they are.
        stale: days of other tables that read these and will be stale, by table; each as a range.
        release: the new one; None before it is done.
    """

    publications: tuple[PublicationRecord, ...]
    records: Mapping[TableDay, tuple[DayRecord, DayRecord | None]]
    raw: tuple[str, ...]
    stale: Mapping[str, tuple[tuple[date, date], ...]]
    release: int | None = None

    @property
    def days(self) -> dict[str, tuple[date, ...]]:
        """The days that change, by table."""
        found: defaultdict[str, list[date]] = defaultdict(list)
        for table, day in sorted(self.records):
            found[table].append(day)
        return {table: tuple(days) for table, days in found.items()}


def chosen_publications(
    platform: Platform, publication: str | None = None, run: str | None = None, to: int | None = None
) -> tuple[PublicationRecord, ...]:
    """The publications that a person names: one, those of a run, or all since a release; oldest first.

    Raises:
        RollbackError: there is none.
    """
    indexed = platform.ledger.indexed()
    if publication is not None:
        if publication not in indexed:
            raise RollbackError(
                f"There is no publication {publication!r}.",
                "`platform-assets releases` lists them; `platform-assets why TABLE DAY` names those of a day.",
            )
        names = [publication]
    elif to is not None:
        newest = max(indexed.values(), default=-1)
        if not 0 <= to < newest:
            raise RollbackError(
                f"Nothing was published after release {to}; the newest is {newest}.",
                "`platform-assets releases` lists them.",
            )
        names = [name for name, number in indexed.items() if number > to]
    else:
        names = [name for name in indexed if (head := platform.ledger.head(name)) and head.run == run]
        if not names:
            raise RollbackError(f"No run {run!r} published anything.", "`platform-assets releases` names the runs.")
    return tuple(found for name in names if (found := platform.ledger.publication(name)))


def rollback(
    platform: Platform,
    publications: tuple[PublicationRecord, ...],
    author: Author,
    *,
    days: Collection[date] | None = None,
    cascade: bool = False,
    dry_run: bool = False,
) -> Rollback:
    """Put the days of publications back as they were before, in one release, and hold them there.

    A day is held where its inputs would make of it what was rolled back; it is computed again as soon as its input or
    its code is another one, or by force. Days that read what changes are stale afterwards and taken up by the next
    refresh. Raw is append-only and stays: `withdraw` takes a bad
    delivery out.

    Args:
        platform: what to work with.
        publications: of `chosen_publications`.
        author: who rolls back, and why.
        days: only these of their days.
        cascade: also undo what later publications made of the same days.
        dry_run: change nothing.

    Raises:
        RollbackError: a later publication builds on it, records moved between a day and another that would stay, or
            there is nothing to roll back.
        Conflict: somebody published one of the days at this very moment; nothing was changed.
        StagedFileError: a file of before is gone.
    """
    platform.settle()
    now = current_release(platform.lake)
    names = {one.publication for one in publications}
    made = {
        (record.table, record.day) for one in publications for record in one.days if days is None or record.day in days
    }
    raw = tuple(sorted({table for table, _ in made if _is_raw(platform, table)}))
    touched = sorted(day for day in made if day[0] not in raw)
    if not touched:
        raise RollbackError(*_nothing(publications, raw, days))
    histories = {day: platform.ledger.history(*day) for day in touched}
    by_name = {day: {record.publication: record for record in history} for day, history in histories.items()}
    found = restoration(names, {day: tuple(known) for day, known in by_name.items()}, cascade=cascade)
    if found.in_the_way:
        raise RollbackError(*_in_the_way(platform, found))
    records = {day: (histories[day][0], _loaded(by_name[day].get(back_to))) for day, back_to in found.back_to.items()}
    _refuse_half_a_move(platform, records)
    planned = Rollback(publications, records, raw, _reached(platform, records))
    if dry_run:
        return planned
    number = _publish(platform, planned, found, histories, now, author)
    return Rollback(planned.publications, planned.records, raw, planned.stale, number)


def _loaded(record: DayRecord | None) -> DayRecord | None:
    """What a record says, unless that is that the day had never been computed."""
    return record if record and record.digest else None


def _publish(
    platform: Platform,
    planned: Rollback,
    found: Restoration,
    histories: Mapping[TableDay, tuple[DayRecord, ...]],
    now: Release,
    author: Author,
) -> int:
    changes = [_change(platform, table, planned, now) for table in planned.days]
    # Held before anybody sees the old content: a tick in between would compute it anew. What a gate refused since stays
    # refused; what an earlier rollback did not want back may be what comes back now.
    holds = list(_holds(platform, found, histories, author))
    lifted = {table: days for table, days in planned.days.items() if table in platform.catalogue.names}
    before = [hold for table, days in lifted.items() for hold in platform.ledger.holds(table) if hold.day in days]
    for table, days in lifted.items():
        platform.ledger.lift(table, days)
    platform.ledger.hold([*(hold for hold in before if not hold.is_of_good_content), *holds])
    try:
        number = publish_changes(platform, new_publication(), "roll back", changes, author)
    except Exception:
        for table, days in lifted.items():
            platform.ledger.lift(table, days)
        platform.ledger.hold(before)
        raise
    for table, days in lifted.items():
        platform.ledger.lift(table, as_they_would_be(platform, platform.catalogue[table], days))
    return number


def as_they_would_be(platform: Platform, contract: Contract, days: Collection[date]) -> tuple[date, ...]:
    """Days whose inputs went back with them, so that nothing has to keep them as they are."""
    return unchanged(
        contract, days, standing_of(Basis.now(platform), {contract.name, *(read.table for read in contract.inputs)})
    )


def _change(platform: Platform, table: str, planned: Rollback, now: Release) -> TableChange:
    version = now.versions[table]
    live = files_at(platform.lake, table, version)
    known: dict[int, Files] = {}
    shown_by = platform.ledger.indexed()
    contents: dict[date, DayContent] = {}
    for day in planned.days[table]:
        _, then = planned.records[table, day]
        base = tuple(file.path for file in live.get(day, ()))
        if then is None:
            contents[day] = DayContent(files=(), base=base, digest="", rows=0, bytes=0)
            continue
        shown = release(platform.lake, shown_by[then.publication]).versions[table]
        if shown not in known:
            known[shown] = files_at(platform.lake, table, shown)
        contents[day] = DayContent(
            files=known[shown].get(day, ()),
            base=base,
            digest=then.digest,
            fingerprint=then.fingerprint,
            rows=then.rows,
            bytes=then.bytes,
            figures=then.figures,
            restores=_computed_by(platform, then),
        )
    schema = snapshot(platform.lake.table_path(table), version).schema_string
    return TableChange(table=table, schema_string=schema, days=contents)


def _computed_by(platform: Platform, record: DayRecord) -> str:
    """The publication that computed what a record says, which may itself have been put back."""
    change = change_of(manifest_of(platform.lake, record.publication), record.table)
    return change.days[record.day].restores or record.publication


def _holds(
    platform: Platform, found: Restoration, histories: Mapping[TableDay, tuple[DayRecord, ...]], author: Author
) -> Iterator[Hold]:
    """Neither what was rolled back nor the same by today's code is published again."""
    moment = datetime.now(UTC)
    reason = f"rolled back by {author.who}: {author.why}"
    for (table, day), gone in found.undone.items():
        if table in platform.catalogue.names:
            marks = {record.fingerprint for record in histories[table, day] if record.publication in gone} - {""}
            for mark in sorted(marks):
                refused = attempt(mark, platform.version(table))
                yield Hold(table, day, refused, ROLL_BACK, reason, author.run, moment)


def _refuse_half_a_move(platform: Platform, records: Mapping[TableDay, tuple[DayRecord, DayRecord | None]]) -> None:
    for contract in platform.catalogue:
        days = {day: pair for (table, day), pair in records.items() if table == contract.name}
        for one, other in sorted(moves_undone(platform, contract, days)):
            if (one in days) != (other in days):
                alone, left = (one, other) if one in days else (other, one)
                raise RollbackError(
                    f"Records of {contract.name} moved between {alone} and {left}; with {alone} alone rolled back they "
                    "would be counted twice or not at all.",
                    f"Roll back both: name {left} too, or the publication that made something of it.",
                )


def _reached(
    platform: Platform, records: Mapping[TableDay, tuple[DayRecord, DayRecord | None]]
) -> dict[str, tuple[tuple[date, date], ...]]:
    """Days that read what becomes something else, without those that are rolled back themselves."""
    changed: defaultdict[str, set[date]] = defaultdict(set)
    for (table, day), (current, then) in records.items():
        if then is None or then.digest != current.digest:
            changed[table].add(day)
    found: dict[str, tuple[tuple[date, date], ...]] = {}
    for contract in platform.catalogue:
        reached = [
            span
            for read in contract.inputs
            if changed.get(read.table)
            for span in union_reached(read.window, changed[read.table], platform.calendar)
        ]
        if reached and not any(table == contract.name for table, _ in records):
            found[contract.name] = tuple(sorted(reached))
    return found


def _is_raw(platform: Platform, table: str) -> bool:
    """Raw tables, and what ingest refused."""
    contract: Contract | None = platform.catalogue[table] if table in platform.catalogue.names else None
    return contract.source is not None if contract else table.startswith("refused.")


def _nothing(
    publications: tuple[PublicationRecord, ...], raw: tuple[str, ...], days: Collection[date] | None
) -> tuple[str, str]:
    named = publications[0].publication if len(publications) == 1 else f"{len(publications)} publications"
    if raw:
        return (
            f"{named} only took deliveries for {', '.join(raw)}, and raw is append-only.",
            "Take a bad delivery out with `platform-assets withdraw`; `why` names the files of a day.",
        )
    which = "none of these days" if days is not None else "no day"
    return f"{named} published {which}.", "`platform-assets why TABLE DAY` names the publications of a day."


def _in_the_way(platform: Platform, found: Restoration) -> tuple[str, str]:
    (table, day), later = next(iter(sorted(found.in_the_way.items())))
    others = len(found.in_the_way) - 1
    more = f", and {others:,} more days likewise" if others else ""
    head = platform.ledger.head(later)
    who = f" ({head.kind} by {head.who}: {head.why})" if head else ""
    return (
        f"{table} {day} was published again since, by {later}{who}{more}; nothing was rolled back.",
        f"Roll back {later} first, leave the day out with --days, or undo the later work of these days too: --cascade.",
    )
