"""Publications enter and leave the index, and with them what keeps the days that a rollback put back: at once.

A rollback says in its manifest what must not be made of its days again. Whoever indexes it, be it the publisher, the
next command or a rebuild, holds the days in the same transaction, so nobody can know of the one without the other. So
do decisions of people that publications carried out enter the chain of decisions, and what exposures are to be told of
a publication the outbox.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from sqlalchemy import Connection

from platform_assets.failpoints import failpoint
from platform_assets.lakehouse.database_url import masked
from platform_assets.ledger import queries, schema
from platform_assets.ledger.decisions import append_carried_out
from platform_assets.ledger.errors import LedgerError
from platform_assets.ledger.holds import drop_contradicted, hold_put_back
from platform_assets.ledger.looks import forget_looks
from platform_assets.ledger.outbox import forget_messages, write_messages
from platform_assets.ledger.queries import delete_each, insert_all, mark_replaced
from platform_assets.ledger.verdicts import add_published
from platform_assets.records.history import COMPACTION, Hold, PublicationRecord


class Indexed(NamedTuple):
    """What became of the index: how many publications entered it, and the holds of people that ended with that."""

    new: int
    lifted: tuple[Hold, ...]


def index(connection: Connection, forget: Collection[str], records: Iterable[PublicationRecord]) -> Indexed:
    """Forget some publications and index others; those indexed already are left as they are.

    A rollback that was indexed before, and is only indexed anew, holds nothing again: who lifted its holds wanted so.
    Where what was made of a day since is forgotten for good, the day is again as the rollback left it, and held.

    Raises:
        LedgerError: one of them, or its release, is indexed otherwise, so the ledger is of another lake.
    """
    given = {record.publication: record for record in records}
    known_rows = connection.execute(queries.indexed(given, [record.release for record in given.values()])).all()
    known = {row.publication: row.release for row in known_rows}
    of_forgotten = {name: connection.execute(queries.days_of(name)).all() for name in forget}
    delete_each(connection, schema.publications, [{"publication": name} for name in forget])
    forget_messages(connection, [name for name in forget if name not in given])
    is_new_ledger = not (known.keys() & given.keys()) and not connection.execute(queries.any_publication()).first()
    new = _new(connection, given, {name: release for name, release in known.items() if name not in of_forgotten})
    insert_all(connection, schema.publications, [queries.publication_row(record) for record in new])
    failpoint("ledger.recording")
    insert_all(connection, schema.days, [queries.day_row(day) for record in new for day in record.days])
    insert_all(connection, schema.arrivals, [vars(arrival) for record in new for arrival in record.arrivals])
    since = None if forget else min((record.release for record in new), default=None)
    touched = {(row.table, row.day) for rows in of_forgotten.values() for row in rows}
    touched |= {(day.table, day.day) for record in new for day in record.days}
    mark_replaced(connection, touched, since)
    if forget or new:
        forget_looks(connection, since)
    bared = {(row.table, row.day) for name, rows in of_forgotten.items() if name not in given for row in rows}
    for record in new:
        if among := record.refuses.keys() & bared if record.publication in known else record.refuses.keys():
            hold_put_back(connection, record, among)
    computed = [record for record in new if record.publication not in known and record.kind != COMPACTION]
    published = {(day.table, day.day) for record in computed for day in record.days}
    lifted = drop_contradicted(connection, touched, published)
    append_carried_out(connection, new, lifted)
    never_indexed = [record for record in new if record.publication not in known]
    write_messages(connection, never_indexed, of_newest_alone=is_new_ledger)
    add_published(connection, never_indexed)
    return Indexed(len(new), lifted)


def _new(
    connection: Connection, given: Mapping[str, PublicationRecord], indexed: Mapping[str, int]
) -> list[PublicationRecord]:
    owners = {release: publication for publication, release in indexed.items()}
    for name, record in given.items():
        if indexed.get(name, record.release) != record.release or owners.get(record.release, name) != name:
            raise LedgerError(
                f"Release {record.release} with publication {name} contradicts the ledger "
                f"{masked(connection.engine.url)}, which was made from another lake or another state of this one.",
                "Run `platform-assets ledger rebuild`.",
            )
    return [record for name, record in given.items() if name not in indexed]
