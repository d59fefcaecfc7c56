"""What was found by looking: at all days, and at the rows of reference data; so that planning need not look again.

Only an index: a look counts while the ledger shows the publication at whose release it was had, and what was changed in
the ledger otherwise than by publishing does away with it. Where there is none, all days are looked at.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping
from datetime import date
from typing import Any

from sqlalchemy import Connection, Select, delete, func, insert, select, text, update

from platform_assets.ledger.counts import Counts
from platform_assets.ledger.database import Database
from platform_assets.ledger.queries import insert_new, is_current
from platform_assets.ledger.schema import arrivals, days, looks, publications, views
from platform_assets.planning.fingerprints import View
from platform_assets.planning.last_look import Look, Since
from platform_assets.planning.windows import Calendar
from platform_assets.records.history import RELOAD, DayMark

_OLDEST = 1_000
"""Releases after which a look for what nobody looks for any more is thrown away."""
_SALTED = 16
"""Letters at the start of a look's checksum."""


class Looks:
    """The last look of each kind, what happened since, and views of reference data.

    Args:
        database: of the ledger.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def since(self, look_for: str, *, at: int, calendar: Calendar, today: date) -> Since | None:
        """The last look, and what happened since; None where all days have to be looked at.

        Args:
            look_for: what it is of, as `planning.last_look.look_for` has it.
            today: the date in UTC.
        """
        rows = self._database.rows(_shown(look_for).where(looks.c.release <= at))
        if not rows or not _is_whole(rows[0]):
            return None
        look, release = Look.parse(rows[0]["found"]), rows[0]["release"]
        if look.last > calendar.last or look.today > today:
            return None
        if self._database.rows(_reloads_between(release, at)):
            return None  # what was loaded may be so no more
        published = Counts(self._database).published_between(release, at)
        return Since(look, published, calendar, rows[0]["checksum"])

    def begin(self, look_for: str, at: int) -> str:
        """Make a place for a look at all days, before anything is read for it: what does away with looks empties it.

        Args:
            at: the release that is to be looked at.

        Returns:
            The mark with which the look can be kept; empty where it cannot be.

        Raises:
            LedgerError: the ledger cannot be written, or not soon.
        """
        if self._database.read_only:
            return ""
        with self._database.writing_soon() as connection:
            _wait_for_writers(connection)
            shown = connection.execute(select(publications.c.publication).where(publications.c.release == at)).scalar()
            there = connection.execute(_shown(look_for)).mappings().first()
            if shown is None or (there and there["release"] > at):
                return ""  # nobody needs a look that is older than the one there is
            if there and there["release"] == at and not there["found"]:
                return str(there["checksum"])  # of another process that looks, too: who is first keeps it
            row, mark = {"look_for": look_for, "release": at, "publication": shown, "found": ""}, _salt()
            connection.execute(delete(looks).where((looks.c.look_for == look_for) | (looks.c.release < at - _OLDEST)))
            connection.execute(insert(looks).values(**row, checksum=mark))
            return mark

    def keep(self, look_for: str, at: int, look: Look, mark: str) -> None:
        """Remember a look, in place of the one that it began with, or of nothing; else it is not kept.

        If that is gone, so is perhaps what was looked at: the ledger was written otherwise than by publishing, or made
        anew, while somebody looked. A ledger opened for reading stays as it is.

        Args:
            mark: of the look before, or of the place that was made for it.

        Raises:
            LedgerError: as for `begin`.
        """
        if self._database.read_only or not mark:
            return
        with self._database.writing_soon() as connection:
            shown = connection.execute(select(publications.c.publication).where(publications.c.release == at)).scalar()
            if shown is None:
                return
            row = {"look_for": look_for, "release": at, "publication": shown, "found": look.text}
            # In place: on a server whoever deletes the row meanwhile is waited for, or waits and deletes the new one.
            place = update(looks).where(looks.c.look_for == look_for, looks.c.checksum == mark)
            connection.execute(place.values(**row, checksum=_checksum(row, _salt())))

    def forget(self) -> None:
        """Do away with all looks: every day is looked at once more."""
        with self._database.writing() as connection:
            forget_looks(connection, None)

    def view(self, table: str, content: str) -> View | None:
        """What of a table's content is valid on which day; None before anybody has looked at its rows."""
        query = select(views.c.digests).where(views.c.table == table, views.c.content == content)
        rows = self._database.rows(query)
        return {date.fromisoformat(day): digest for day, digest in rows[0]["digests"].items()} if rows else None

    def keep_view(self, table: str, content: str, view: View) -> None:
        """Remember a view, unless somebody has; a ledger opened for reading stays as it is."""
        if not self._database.read_only:
            digests = {str(day): digest for day, digest in view.items()}
            with self._database.writing() as connection:
                insert_new(connection, views, {"table": table, "content": content, "digests": digests})

    def marks(self, table: str, first: date, last: date, *, at: int) -> dict[date, DayMark]:
        """As `Ledger.marks`, of the days of one table from one to another."""
        with self._database.reading() as connection:
            rows = connection.execute(_marks_between(table, first, last, at)).all()
        return {row[0]: DayMark(*row) for row in rows}

    def newest_release(self, table: str, until: date, *, at: int) -> int:
        """The newest release, up to one, that published any of the days of a table up to a day; -1 without any."""
        newest: int | None = self._database.rows(_newest_release(table, until, at))[0]["release"]
        return -1 if newest is None else newest


def forget_looks(connection: Connection, since: int | None) -> None:
    """Forget the looks at releases of which the ledger says something new.

    Args:
        since: the first release that is new; None forgets all.
    """
    connection.execute(delete(looks) if since is None else delete(looks).where(looks.c.release >= since))


def _marks_between(table: str, first: date, last: date, at: int) -> Select[Any]:
    """As `marks`, of the days of one table from one to another, oldest first: the fields of `DayMark`."""
    named = [publications.c.release if name == "release" else days.c[name] for name in DayMark._fields]
    query = select(*named).join_from(days, publications)
    query = query.where(
        days.c.table == table, days.c.day.between(first, last), is_current(at), publications.c.release <= at
    )
    return query.order_by(days.c.day)


def _reloads_between(since: int, at: int) -> Select[Any]:
    """Reloads of raw tables by releases after one, up to another."""
    new = publications.c.release.between(since + 1, at)
    return select(arrivals.c.table).join_from(publications, arrivals).where(new, arrivals.c.kind == RELOAD)


def _newest_release(table: str, until: date, at: int) -> Select[Any]:
    """The newest release, up to one, that published any of the days of a table up to a day."""
    query = select(func.max(publications.c.release).label("release")).join_from(days, publications)
    return query.where(days.c.table == table, days.c.day <= until, publications.c.release <= at)


def _wait_for_writers(connection: Connection) -> None:
    """See to it that whoever writes has ended, or sees what is written here: on a server also who takes no lock."""
    if connection.dialect.name == "postgresql":
        tables = ", ".join(table.name for table in (arrivals, days, publications))
        connection.execute(text(f"LOCK TABLE {tables} IN SHARE MODE"))


def _shown(look_for: str) -> Select[Any]:
    """The look of one kind, if the publication at whose release it was had is indexed."""
    query = select(looks).join(publications, publications.c.publication == looks.c.publication)
    return query.where(looks.c.look_for == look_for, publications.c.release == looks.c.release)


def _is_whole(row: Mapping[str, Any]) -> bool:
    return bool(row["found"]) and row["checksum"] == _checksum(row, row["checksum"][:_SALTED])


def _checksum(row: Mapping[str, object], salt: str) -> str:
    """Of no two looks the same, so that it tells, too, whether it is still the same one."""
    kept = "|".join([salt, *(str(row[name]) for name in ("look_for", "release", "publication", "found"))])
    return salt + hashlib.sha256(kept.encode()).hexdigest()[:32]


def _salt() -> str:
    return secrets.token_hex(_SALTED // 2)
