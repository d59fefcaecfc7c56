"""Compare tables on disk with their contracts: changes of a contract, and what a table needs to follow it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import date

from platform_assets.contracts import DAY, Contract, ContractError
from platform_assets.engine.snapshot import LakeSnapshot
from platform_assets.lakehouse.delta.schema import schema_at, types_in
from platform_assets.lakehouse.releases import made_by
from platform_assets.planning.configuration import ContractChange, Need, column_changes, contract_changes, need_of
from platform_assets.planning.selection import Request, wanted_days
from platform_assets.planning.windows import not_known_beforehand
from platform_assets.records.history import DayMark, Marks

_CONTRACT_TYPES = {"integer": "int"}


def changes_on_disk(snapshot: LakeSnapshot, contract: Contract) -> tuple[ContractChange, ...]:
    """Return the differences between a table's columns at the release and its contract's.

    A raw table without rows, as after a reload, can take any columns.
    """
    if (version := snapshot.version(contract.name)) is None:
        return ()
    there = types_in(schema_at(snapshot.platform.lake.table_path(contract.name), version))
    declared = {name: type_ for name, type_ in there.items() if name != DAY and not name.startswith("_")}
    changes = column_changes({name: _CONTRACT_TYPES.get(type_, type_) for name, type_ in declared.items()}, contract)
    if changes and contract.source and not any(day.rows for day in snapshot.days(contract.name).values()):
        return ()
    return changes


def changes_of_contract(
    snapshot: LakeSnapshot, contract: Contract, marks: Mapping[date, DayMark]
) -> tuple[ContractChange, ...]:
    """Return changes of a contract since existing days were computed, each change once."""
    platform = snapshot.platform
    changes = {change.what: change for change in changes_on_disk(snapshot, contract)}
    now = platform.configurations[contract.name]
    if not contract.inputs:
        return tuple(changes.values())
    # Days that were up to date at the last look were computed under today's contract.
    known = not_known_beforehand(marks)
    one_of_each = {mark.configuration: day for day, mark in known.items() if mark.configuration}
    for made, day in one_of_each.items():
        if made != now.hash:
            record = platform.ledger.current_days(contract.name, at=snapshot.number, among=[day])[day]
            before = made_by(platform.lake, record.publication, contract.name, day).configuration
            for change in contract_changes(before, now.parts):
                # Columns are as the table has them: what days were computed under may be long in it.
                in_table = change.is_of_column and change.needs != "nothing"
                changes.setdefault(change.what, replace(change, needs="nothing") if in_table else change)
    return tuple(changes.values())


def changing(snapshot: LakeSnapshot, contracts: Iterable[Contract], marks: Marks) -> dict[str, Need]:
    """Return the tables whose columns or key differ from their contract, and what each needs."""
    needs = {
        contract.name: need_of(changes_of_contract(snapshot, contract, marks.get(contract.name, {})))
        for contract in contracts
    }
    return {table: need for table, need in needs.items() if need != "nothing"}


def refuse_what_tables_cannot_take(snapshot: LakeSnapshot, request: Request) -> None:
    """Compare a person's request with the tables on disk, before any work is done.

    Automatic requests are not checked: they leave such tables alone.

    Raises:
        ContractError: a table cannot follow its contract, or only with more days than requested.
    """
    if not request.by_person:
        return
    catalogue = snapshot.platform.catalogue
    wanted = {table: days for table, days in wanted_days(catalogue, request, snapshot.calendar).items() if days}
    marks = snapshot.marks(wanted)
    for table in catalogue.names:
        if table in wanted:
            _refuse(snapshot, catalogue[table], marks[table], wanted[table])


def takes_deliveries(snapshot: LakeSnapshot, contract: Contract) -> bool:
    """Return whether a raw table on disk can take its contract's rows, and its readers can order them."""
    return not _unable(snapshot, contract)


def refuse_deliveries(snapshot: LakeSnapshot, contract: Contract) -> None:
    """Refuse to ingest files for a raw table that cannot take rows of its contract."""
    for unable in _unable(snapshot, contract):
        _refuse(snapshot, unable, snapshot.marks([unable.name])[unable.name], ())


def _unable(snapshot: LakeSnapshot, contract: Contract) -> list[Contract]:
    """Return which of a raw table and its readers cannot follow their contract on disk."""
    readers = [c for c in snapshot.platform.catalogue if any(read.table == contract.name for read in c.inputs)]
    needs = changing(snapshot, [contract, *readers], snapshot.marks([c.name for c in readers]))
    return [c for c in (contract, *readers) if needs.get(c.name) == "another table"]


def needs_all_days(snapshot: LakeSnapshot, contract: Contract, days: Collection[date], *, at_once: bool) -> bool:
    """Return whether the days of a table can be published only all together.

    Raises:
        ContractError: they can, and some are left out; or an input waits for that.
    """
    table = contract.name
    for read in contract.inputs:
        source = snapshot.platform.catalogue[read.table]
        loaded = snapshot.platform.ledger.marks([read.table], at=snapshot.number)[read.table]
        changes = changes_of_contract(snapshot, source, loaded)
        staged = snapshot.staged.of(read.table)
        if need_of(changes) in ("all days", "another table") and loaded.keys() - staged.keys():
            raise ContractError(
                f"{table} reads {read.table}, which is not yet as its contract says: {_named(changes)}.",
                f"Run `platform-assets refresh {read.table}` first.",
            )
    there = snapshot.staged.of(table)
    return _refuse(snapshot, contract, snapshot.marks([table])[table], {*days, *there} if at_once else ()) == "all days"


def refuse_days_left(snapshot: LakeSnapshot, table: str, why: Mapping[date, str]) -> None:
    """Refuse a change that needs all days of a table if some of them did not come out good.

    Raises:
        ContractError: names the first such day and its reason; no day of the table was published.
    """
    loaded = snapshot.platform.ledger.marks([table], at=snapshot.number)[table]
    computed = snapshot.staged.of(table)
    if left := sorted(loaded.keys() - computed.keys()):
        changes = changes_of_contract(snapshot, snapshot.platform.catalogue[table], loaded)
        reason = why.get(left[0], "it was not computed")
        raise ContractError(
            f"{table} follows its contract ({_named(changes)}) only with all its {len(loaded):,} days, and "
            f"{_days(left)} did not come out good, so that none of them was published. {left[0]}: {reason}.",
            "Remove the cause, or undo the change of the contract, and refresh again.",
        )


def _refuse(snapshot: LakeSnapshot, contract: Contract, marks: Mapping[date, DayMark], days: Collection[date]) -> Need:
    """Return what a table needs to follow its contract, if these days are enough for that."""
    table, calendar = contract.name, snapshot.calendar
    changes = changes_of_contract(snapshot, contract, marks)
    need = need_of(changes)
    if need == "another table":
        raw = contract.name if contract.source else contract.inputs[0].table
        raise ContractError(
            f"{table} on disk cannot take rows of its contract: {_named(changes)}. Raw rows are kept as they were "
            "delivered.",
            "Undo the change; or ingest all deliveries again by this contract, `platform-assets admin "
            f"reload {raw} "
            "--dry-run` says what that does; or declare the table under a new name and deliver its files there.",
        )
    if need != "all days" or not (left := sorted(marks.keys() - set(days))):
        return need
    if outside := [day for day in left if day not in calendar]:
        todo = (
            f"Let the calendar include {outside[0]}, or declare the table under a new name and fill it with `refresh`."
        )
    else:
        todo = f"Run `platform-assets refresh {table}`, which publishes all days together; or undo the change."
    raise ContractError(
        f"{table} follows its contract ({_named(changes)}) only with all its {len(marks):,} days in one publication, "
        f"and {_days(left)} would be left out.",
        todo,
    )


def _named(changes: Iterable[ContractChange]) -> str:
    return "; ".join(change.what for change in changes if change.needs != "nothing")


def _days(days: Collection[date]) -> str:
    first = min(days)
    return f"{first}" if len(days) == 1 else f"{first} and {len(days) - 1:,} more"
