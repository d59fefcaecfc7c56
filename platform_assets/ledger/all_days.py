"""Queries over all days at once: totals, timings, and a cache of the last look at all days.

Only an index. A cached look is valid while the ledger shows the publication of its release; indexing a publication
again deletes it. Without one, all days are looked at.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from datetime import date
from secrets import token_hex
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Select,
    cast,
    delete,
    func,
    insert,
    literal,
    select,
    update,
)

from platform_assets.ledger.database import Database
from platform_assets.ledger.queries import insert_new, is_current, refused_by_date
from platform_assets.ledger.schema import arrivals, days, looks, publications, views
from platform_assets.planning.fingerprints import View
from platform_assets.planning.last_look import Look, Since
from platform_assets.planning.windows import Calendar
from platform_assets.records.history import RELOAD, DayMark, DayTotals, Timing


class Counts:
    """Queries that return a row for each table, or for each changed day."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def totals(self, tables: Collection[str], *, at: int) -> dict[str, DayTotals]:
        """Return totals over all days of each table, as `Ledger.current_days` has them."""
        rows = cast(func.sum(days.c.rows), BigInteger)  # PostgreSQL's sum of such is a decimal
        delivered = rows - _total("tombstones", "withdrawals")
        query = select(
            days.c.table, func.count(), func.max(days.c.day), delivered, _total("quarantined"), _total("ahead")
        )
        query = query.join_from(days, publications).where(days.c.table.in_(sorted(tables)))
        query = query.where(is_current(at), publications.c.release <= at).group_by(days.c.table)
        with self._database.reading() as connection:
            counted = {row[0]: DayTotals(*row[1:]) for row in connection.execute(query).all()}
        return {table: counted.get(table, DayTotals()) for table in tables}

    def refused(self, table: str, *, since: date) -> dict[date, tuple[int, int]]:
        """Count refused and delivered rows, by arrival date from one on."""
        with self._database.reading() as connection:
            rows = connection.execute(refused_by_date(table, since)).all()
        return {on: (refused, landed) for on, refused, landed in rows}

    def published_between(self, first: int, last: int) -> dict[str, set[date]]:
        """Return the days of releases after one, up to another, by table."""
        query = select(days.c.table, days.c.day).distinct().join_from(publications, days)
        by_table: defaultdict[str, set[date]] = defaultdict(set)
        for row in self._database.rows(query.where(publications.c.release.between(first + 1, last))):
            by_table[row["table"]].add(row["day"])
        return dict(by_table)

    def timings(self, tables: Collection[str]) -> tuple[Timing, ...]:
        """Return every timed recomputation of some tables, oldest first; also those replaced since."""
        seconds = func.sum(days.c.seconds)
        query = select(
            days.c.table, func.count().label("days"), seconds.label("seconds"), publications.c.run, days.c.publication
        ).join_from(days, publications)
        query = query.where(days.c.table.in_(sorted(tables)), publications.c.kind == "recompute")
        query = query.group_by(days.c.table, days.c.publication, publications.c.run).having(seconds > 0)
        return tuple(Timing(**row) for row in self._database.rows(query.order_by(days.c.publication)))


def _total(*names: str) -> ColumnElement[int]:
    """Return the sum of figures of days."""
    counted = (func.coalesce(days.c.figures[name].as_integer(), 0) for name in names)
    return cast(func.sum(sum(counted, literal(0))), BigInteger)


_WAITS_S = 1
"""How long others that write are waited for to write down a look, which may as well not be written."""
_OLDEST = 1_000
"""Releases after which an unused look is deleted."""


class Looks:
    """The last look of each kind, what happened since, and views of reference data."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def since(self, look_for: str, *, at: int, calendar: Calendar, today: date) -> Since | None:
        """Return the last look, and what happened since; None if all days must be looked at."""
        # Only while the publication at whose release it was had is indexed.
        its = select(looks).join(publications, publications.c.publication == looks.c.publication)
        its = its.where(looks.c.look_for == look_for, publications.c.release == looks.c.release, looks.c.release <= at)
        rows = self._database.rows(its)
        if not rows or not rows[0]["found"]:
            return None
        look, release = Look.model_validate_json(rows[0]["found"]), rows[0]["release"]
        if look.last > calendar.last or look.today > today:
            return None
        reloads = select(arrivals.c.table).join_from(publications, arrivals).where(arrivals.c.kind == RELOAD)
        if self._database.rows(reloads.where(publications.c.release.between(release + 1, at))):
            return None  # what was loaded may be so no more
        published = Counts(self._database).published_between(release, at)
        return Since(look, published, calendar, rows[0]["checksum"])

    def begin(self, look_for: str, at: int) -> str:
        """Mark the beginning of a look at all days, before anything is read for it: deleting looks deletes the mark.

        Returns:
            The mark with which the look can be kept; empty where it cannot be.
        """
        if self._database.read_only:
            return ""
        with self._database.writing(_WAITS_S) as connection:
            shown = connection.execute(_shown_at(at)).scalar()
            mine = looks.c.look_for == look_for
            if shown is None or connection.execute(select(looks.c.release).where(mine, looks.c.release > at)).first():
                return ""  # a newer look is there already
            connection.execute(delete(looks).where(mine | (looks.c.release < at - _OLDEST)))
            row = {"look_for": look_for, "release": at, "publication": shown, "found": "", "checksum": token_hex(16)}
            connection.execute(insert(looks).values(row))
            return str(row["checksum"])

    def keep(self, look_for: str, at: int, look: Look, mark: str) -> None:
        """Store a look in place of its mark, or of nothing; otherwise do not store it.

        If the mark is gone, another process changed or rebuilt the ledger during the look, so the look may be outdated.
        A ledger opened for reading stays as it is.
        """
        if self._database.read_only:
            return
        with self._database.writing(_WAITS_S) as connection:
            if (shown := connection.execute(_shown_at(at)).scalar()) is not None:
                row = {"look_for": look_for, "release": at, "publication": shown, "found": look.model_dump_json()}
                # In place: on a server this waits for a process that deletes the row, or that process deletes this row.
                place = update(looks).where(looks.c.look_for == look_for, looks.c.checksum == mark)
                connection.execute(place.values(**row, checksum=token_hex(16)))

    def forget(self) -> None:
        """Delete all looks: every day is looked at again."""
        with self._database.writing() as connection:
            forget_looks(connection, None)

    def view(self, table: str, content: str) -> View | None:
        """Return the cached view of a table's valid content by day; None before the first look at its rows."""
        query = select(views.c.digests).where(views.c.table == table, views.c.content == content)
        rows = self._database.rows(query)
        return {date.fromisoformat(day): digest for day, digest in rows[0]["digests"].items()} if rows else None

    def keep_view(self, table: str, content: str, view: View) -> None:
        """Cache a view, unless it is there. A ledger opened for reading stays as it is."""
        if not self._database.read_only:
            digests = {str(day): digest for day, digest in view.items()}
            with self._database.writing() as connection:
                insert_new(connection, views, {"table": table, "content": content, "digests": digests})

    def marks(self, table: str, first: date, last: date, *, at: int) -> dict[date, DayMark]:
        """Return the same as `Ledger.marks`, for days of one table from one to another."""
        named = [publications.c.release if name == "release" else days.c[name] for name in DayMark._fields]
        query = select(*named).join_from(days, publications).where(days.c.table == table, is_current(at))
        query = query.where(days.c.day.between(first, last), publications.c.release <= at).order_by(days.c.day)
        with self._database.reading() as connection:
            return {row[0]: DayMark(*row) for row in connection.execute(query).all()}

    def newest_release(self, table: str, until: date, *, at: int) -> int:
        """Return the newest release, up to one, that published a day of a table up to a day; -1 without any."""
        query = select(func.max(publications.c.release).label("release")).join_from(days, publications)
        query = query.where(days.c.table == table, days.c.day <= until, publications.c.release <= at)
        newest: int | None = self._database.rows(query)[0]["release"]
        return -1 if newest is None else newest


def forget_looks(connection: Connection, since: int | None) -> None:
    """Delete the looks at releases about which the ledger has news."""
    connection.execute(delete(looks) if since is None else delete(looks).where(looks.c.release >= since))


def _shown_at(release: int) -> Select[Any]:
    return select(publications.c.publication).where(publications.c.release == release)
