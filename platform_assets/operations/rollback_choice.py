"""Choose the publications to roll back, and refuse those that cannot be."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import date

from platform_assets.engine.moves import moves_undone
from platform_assets.engine.platform import Platform
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.errors import PlatformError
from platform_assets.lakehouse.errors import BeyondWindowError
from platform_assets.lakehouse.horizon import files_going, horizon_of, require_whole
from platform_assets.planning.rollback import TableDay
from platform_assets.records.history import COMPACTION, ERASURE, RELOAD, ROLL_BACK, DayRecord, PublicationRecord
from platform_assets.records.manifest import TableChange


def chosen_publications(
    platform: Platform, publication: str | None = None, run: str | None = None, to: int | None = None
) -> tuple[PublicationRecord, ...]:
    """Return the requested publications: one, those of a run, or all since a release; oldest first."""
    indexed = platform.ledger.indexed()
    if publication is not None:
        if publication not in indexed:
            raise PlatformError(
                f"There is no publication {publication!r}.",
                "`platform-assets status releases` lists them; `platform-assets why TABLE DAY` names those of a day.",
            )
        names = [publication]
    elif to is not None:
        newest = max(indexed.values(), default=-1)
        if not 0 <= to < newest:
            raise PlatformError(
                f"Nothing was published after release {to}; the newest is {newest}.",
                "`platform-assets status releases` lists them.",
            )
        require_whole(platform.lake, to)
        names = [name for name, number in indexed.items() if number > to]
    else:
        names = [name for name in indexed if (head := platform.ledger.head(name)) and head.run == run]
        if not names:
            raise PlatformError(
                f"No run {run!r} published anything.", "`platform-assets status releases` names the runs."
            )
    return tuple(record for name in names if (record := platform.ledger.publication(name)))


def refuse_unknown_tables(platform: Platform, tables: Collection[str]) -> None:
    """Refuse silver tables without a contract here: between which days records may have moved is unknown."""
    silver = {table for table in tables if table.startswith("silver.")}
    if unknown := sorted(silver - {*platform.catalogue.names}):
        raise PlatformError(
            f"No contract declares {unknown[0]} in the domains {', '.join(platform.settings.domains)}, so it is not "
            "known which of its days belong together; nothing was rolled back.",
            "Name the package of its domain in PLATFORM_DOMAINS; where the table is declared nowhere any more, declare "
            "it again, or leave its days out with --days.",
        )


def refuse_irreversible(platform: Platform, names: Collection[str]) -> None:
    """Refuse to undo a reload or an erasure, or anything before one: raw stays different from what it was then."""
    heads = [head for name in sorted(names) if (head := platform.ledger.head(name))]
    erasures = [platform.ledger.publication(head.publication) for head in heads if head.kind == ERASURE]
    if taken_out := [record for record in erasures if record and record.days]:
        head = taken_out[-1]
        raise PlatformError(
            f"Publication {head.publication} is an erasure by {head.who} ({head.why}): what it took out of tables is "
            "deleted; nothing was rolled back.",
            f"Roll back to release {head.release} or a later one, or leave its days out with --days.",
        )
    if reloads := [head for head in heads if head.kind == RELOAD]:
        head = reloads[-1]
        raise PlatformError(
            f"Publication {head.publication} is a reload by {head.who} ({head.why}): raw was begun anew with it, so "
            "nothing of before comes back; nothing was rolled back.",
            "Undo the change of the contract and run `platform-assets admin reload` again, or roll back "
            "to release "
            f"{head.release} or a later one. `read --release {head.release - 1}` shows what was before.",
        )


def refuse_half_a_move(snapshot: LakeSnapshot, records: Mapping[TableDay, tuple[DayRecord, DayRecord | None]]) -> None:
    """Refuse days between which records have moved, unless they go back together."""
    for contract in snapshot.platform.catalogue:
        days = {day: pair for (table, day), pair in records.items() if table == contract.name}
        for day, other in sorted(moves_undone(contract, days, snapshot)) if days else ():
            if (day in days) != (other in days):
                alone, left = (day, other) if day in days else (other, day)
                if not snapshot.days(contract.name, [left]):
                    continue  # its day has yet to come, and is tied to the held one then
                raise PlatformError(
                    f"Records of {contract.name} moved between {alone} and {left}; with {alone} alone rolled back they "
                    "would be counted twice or not at all.",
                    f"Roll back both: name {left} too, or the publication that changed it.",
                )


def refuse_what_is_deleted(platform: Platform, changes: Sequence[TableChange]) -> None:
    """Refuse days whose files were deleted after the rollback window. Reading reports other missing files."""
    horizon, gone = horizon_of(platform.lake), files_going(platform.lake)
    for change in changes if horizon.before else ():
        path, of_table = platform.lake.table_path(change.table), gone.get(change.table, set())
        for day, content in change.days.items():
            if not all(file.path not in of_table and (path / file.path).exists() for file in content.files):
                raise BeyondWindowError(
                    f"What {change.table} was on {day} before is beyond the rollback window: its files were deleted "
                    f"with what only releases before {horizon.before} needed; nothing was rolled back.",
                    "Leave the day out with --days; correct the code or the delivery instead, and make the day again "
                    f"from raw: `platform-assets refresh {change.table} --days {day} --force`.",
                )


def nothing_to_undo(
    publications: tuple[PublicationRecord, ...], raw: tuple[str, ...], days: Collection[date] | None
) -> PlatformError:
    """Return why rolling some publications back changes nothing."""
    named = publications[0].publication if len(publications) == 1 else f"{len(publications)} publications"
    if raw:
        return PlatformError(
            f"{named} only took deliveries for {', '.join(raw)}, and raw is append-only.",
            "Take a bad delivery out with `platform-assets undo`; `why` names the files of a day.",
        )
    is_compaction = all(publication.kind == COMPACTION for publication in publications)
    did = "only compacted files" if is_compaction else f"published {'no day' if days is None else 'none of these days'}"
    return PlatformError(f"{named} {did}.", "`platform-assets why TABLE DAY` names the publications of a day.")


def built_upon(platform: Platform, in_the_way: Mapping[TableDay, str]) -> PlatformError:
    """Return the later publication that changed the days, and the remedy.

    If only rollbacks are in the way, undoing them is not advised: the fault would be back.
    """
    heads = {name: platform.ledger.head(name) for name in {*in_the_way.values()}}
    put_back = {name for name, head in heads.items() if head and head.kind == ROLL_BACK}
    (table, day), later = min(in_the_way.items(), key=lambda item: (item[1] in put_back, item))
    head = heads[later]
    more = f", and {len(in_the_way) - 1:,} more days likewise" if len(in_the_way) > 1 else ""
    cascade = "--cascade; or leave the day out with --days of `platform-assets undo`."
    if head and later in put_back:
        return PlatformError(
            f"{table} {day} was rolled back since, by {head.who} in release {head.release}: {head.why}{more}; nothing "
            "was rolled back.",
            f"If it is still wrong, undo the later work, too: {cascade}",
        )
    who = f" ({head.kind} by {head.who}: {head.why})" if head else ""
    return PlatformError(
        f"{table} {day} was published again since, by {later}{who}{more}; nothing was rolled back.",
        f"Roll back {later} first, or undo the later work of these days too: {cascade}",
    )
