"""Holds in a transaction: renewed, brought by a rollback with its place in the index, ended by what is there now."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from datetime import UTC, date, datetime
from typing import Any

from sqlalchemy import Connection, Select, bindparam, insert, literal, select

from platform_assets.failpoints import failpoint
from platform_assets.ledger.queries import (
    Row,
    delete_each,
    insert_all,
    is_among,
    made_last_by,
    with_columns,
    without_columns,
)
from platform_assets.ledger.schema import days, ended_holds, holds
from platform_assets.planning.rollback import TableDay, back_again
from platform_assets.records.code_version import Version
from platform_assets.records.history import LASTING, ROLL_BACK, EndedHold, Hold, PublicationRecord
from platform_assets.records.refused import UNTIL_LIFTED, Attempt

_KEY = [column.name for column in holds.primary_key]


def end(connection: Connection, keys: Sequence[Row]) -> None:
    """Lift the holds that have the values of one of the keys, all of which name the same columns.

    What ended stays on record of its day, and holds nothing.
    """
    if not keys:
        return
    matches = [holds.c[name] == bindparam(f"key_{name}") for name in keys[0]]
    names = [column.name for column in holds.columns]
    now = literal(datetime.now(UTC), ended_holds.c.ended_at.type)
    kept = select(*(holds.c[name] for name in names), now).where(*matches)
    bound = [{f"key_{name}": value for name, value in key.items()} for key in keys]
    connection.execute(insert(ended_holds).from_select([*names, "ended_at"], kept), bound)
    delete_each(connection, holds, keys)


def lift_read(connection: Connection, read: Iterable[Hold]) -> None:
    """Lift exactly these holds, as somebody read them."""
    key = [*_KEY, "created_at"]
    end(connection, [{name: row[name] for name in key} for row in map(with_columns, read)])


def ended_of_day(table: str, day: date) -> Select[Any]:
    """Return the holds of a day that ended, in the order in which they did."""
    ended = ended_holds.c
    asked = select(*(ended[column.name] for column in holds.columns), ended.ended_at)
    return asked.where(ended.table == table, ended.day == day).order_by(ended.id)


def to_ended(row: Mapping[Any, Any]) -> EndedHold:
    """Return what one of its rows is of."""
    fields = without_columns(row)
    return EndedHold(ended_at=fields.pop("ended_at"), hold=Hold(**fields))


def renew(connection: Connection, given: Iterable[Hold]) -> None:
    """Hold days; what refused the same already is replaced."""
    newest = {tuple(row[name] for name in _KEY): row for row in map(with_columns, given)}
    delete_each(connection, holds, [_key(row) for row in newest.values()])
    failpoint("ledger.holding")
    insert_all(connection, holds, list(newest.values()))


def hold_put_back(connection: Connection, rollback: PublicationRecord, among: Collection[TableDay]) -> None:
    """Hold the days that a rollback put back, except those of which something else was made since.

    What earlier rollbacks refused of them may be what came back now, and is refused no more. What gates refused stays
    so, unless nothing has to keep the day.

    Args:
        connection: to the ledger, in the transaction that indexes the rollback.
        among: only these of its days.
    """
    last = {(row.table, row.day) for row in connection.execute(made_last_by(rollback.publication)).all()}
    # Whoever lifts a rollback publishes nothing of its days.
    kept = {k: refused for k, refused in rollback.refuses.items() if k in among and (k in last or not rollback.days)}
    asked_for = select(holds).where(holds.c.table.in_({table for table, _ in kept})).order_by(holds.c.created_at)
    there = [row for row in connection.execute(asked_for).mappings() if (row["table"], row["day"]) in kept]
    # A day that nothing has to keep is held by nobody any more.
    end(connection, [_key(row) for row in there if row["gate"] == ROLL_BACK or not kept[row["table"], row["day"]]])
    reason = f"rolled back by {rollback.who}: {rollback.why}"
    if rollback.decides == LASTING:
        reason = f"rolled back by {rollback.who}, until it is lifted: {rollback.why}"
        kept = dict.fromkeys(kept, (UNTIL_LIFTED,))
    renew(
        connection,
        [
            Hold(table, day, attempt, ROLL_BACK, reason, rollback.run, rollback.created_at)
            for (table, day), refused in kept.items()
            for attempt in refused
        ],
    )


def drop_contradicted(connection: Connection, touched: Set[TableDay], published: Set[TableDay]) -> tuple[Hold, ...]:
    """Drop the holds that refuse exactly what days are now.

    Args:
        connection: to the ledger, in the transaction that changes the index.
        touched: days that are something else now: what people refused of them may be there again.
        published: those of them that were computed and indexed for the first time: who published them knew what gates
            refused, and may die before saying so.

    Returns:
        The holds of people among those that ended.
    """
    asked_for = select(holds).where(holds.c.table.in_({table for table, _ in touched}))
    refused: dict[tuple[TableDay, bool], list[Hold]] = {}
    for row in connection.execute(asked_for).mappings():
        if (row["table"], row["day"]) in touched:
            hold = Hold(**without_columns(row))
            by_person = hold.is_of_good_content
            if by_person or (hold.table, hold.day) in published:
                refused.setdefault(((hold.table, hold.day), by_person), []).append(hold)
    now = _made_from(connection, {day for day, _ in refused})
    gone: list[Hold] = []
    for (day, _), of_it in refused.items():
        fingerprint, made_by = now.get(day, ("", Version()))
        tried = [hold.refused for hold in of_it if isinstance(hold.refused, Attempt)]
        again = back_again(tried, fingerprint, made_by) if fingerprint else ()
        gone += [hold for hold in of_it if hold.refused in again]
    end(connection, [_key(with_columns(hold)) for hold in gone])
    return tuple(hold for hold in gone if hold.is_of_good_content)


def _made_from(connection: Connection, held: Set[TableDay]) -> dict[TableDay, tuple[str, Version]]:
    """Return what some days are made from now, and by what."""
    made: dict[TableDay, tuple[str, Version]] = {}
    for table in {table for table, _ in held}:
        asked_for = select(days.c.day, days.c.fingerprint, days.c.code_version, days.c.configuration)
        among = {day for of_table, day in held if of_table == table}
        of_table = asked_for.where(days.c.table == table, days.c.replaced_at.is_(None), *is_among(among))
        for day, fingerprint, *made_by in connection.execute(of_table).all():
            made[table, day] = (fingerprint, Version(*made_by))
    return made


def _key(row: Mapping[Any, Any]) -> Row:
    return {name: row[name] for name in _KEY}
