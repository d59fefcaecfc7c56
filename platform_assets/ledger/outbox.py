"""The outbox: messages, written in the transaction that indexes their publication, and kept through every rebuild.

A sender takes a message first. That makes the message due again after a while, so that another sender retries it if the
first one dies.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

from sqlalchemy import Connection, delete, func, insert, or_, select, update

from platform_assets.contracts.domain import OPENLINEAGE
from platform_assets.ledger import queries
from platform_assets.ledger.database import Database
from platform_assets.ledger.holds import append
from platform_assets.ledger.queries import delete_each, insert_new, with_columns, without_columns
from platform_assets.ledger.schema import catch_ups, outbox, told_heads, told_held, told_runs
from platform_assets.planning.outbox import LONGEST_PAUSE, MOST_TRIES, lineage_message, message_of
from platform_assets.records.decisions import MessageDecision
from platform_assets.records.history import PublicationRecord
from platform_assets.records.outbox import (
    Announced,
    AnnouncedDay,
    AnnouncedHeads,
    CatchUp,
    Channel,
    Message,
    MessageState,
)

_LEASE = timedelta(minutes=2)
"""How long a sender has, who waits seconds for an answer, before another one takes the message."""
_OPEN: tuple[MessageState, ...] = ("waiting", "given up")
_UNKNOWN = "the sender died before it knew whether the message was received"


class Outbox:
    """Waiting messages, and the outcome of the others."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def messages(self, states: Collection[MessageState] = ()) -> tuple[Message, ...]:
        """Return the messages in some states, or all, oldest first."""
        query = select(outbox).order_by(outbox.c.created_at, outbox.c.release, outbox.c.key)
        if states:
            query = query.where(outbox.c.state.in_(sorted(states)))
        return tuple(Message(**row) for row in self._database.rows(query))

    def with_key(self, beginning: str) -> tuple[Message, ...]:
        """Return the messages whose keys have this beginning."""
        query = select(outbox).where(outbox.c.key.startswith(beginning, autoescape=True)).order_by(outbox.c.key)
        return tuple(Message(**row) for row in self._database.rows(query))

    def open_by_target(self) -> dict[str, Counter[MessageState]]:
        """Return how many messages wait, and how many are given up, by target."""
        counts: dict[str, Counter[MessageState]] = {}
        columns = (outbox.c.target, outbox.c.state)
        query = select(*columns, func.count().label("messages")).where(outbox.c.state.in_(_OPEN))
        for row in self._database.rows(query.group_by(*columns).order_by(*columns)):
            counts.setdefault(row["target"], Counter())[row["state"]] = row["messages"]
        return counts

    def take(self, targets: Collection[str], now: datetime, due_by: datetime | None = None) -> Message | None:
        """Take the oldest due message. No other sender takes it for a while.

        Args:
            due_by: take only messages due by then; now by default.

        Returns:
            The message, its try counted; None where nothing is due.
        """
        # The clock may have been ahead when it was written: what was never tried is due, and no pause is longer.
        is_due = or_(outbox.c.due_at <= (due_by or now), outbox.c.tries == 0, outbox.c.due_at > now + LONGEST_PAUSE)
        due = (outbox.c.state == "waiting", is_due, outbox.c.target.in_(sorted(targets)))
        oldest = select(outbox).where(*due).order_by(outbox.c.created_at, outbox.c.release, outbox.c.key).limit(1)
        if not self._database.rows(oldest):
            return None  # the usual outcome, which needs no write lock
        with self._database.writing() as connection:
            spent = (*due, outbox.c.tries >= MOST_TRIES)
            given_up = {"state": "given up", "settled_at": now, "problem": _UNKNOWN}
            connection.execute(update(outbox).where(*spent).values(given_up))
            found = connection.execute(oldest).mappings().first()
            if found is None:
                return None
            taken = replace(Message(**found), tries=found["tries"] + 1, due_at=now + _LEASE)
            values = {"tries": taken.tries, "due_at": taken.due_at}
            connection.execute(update(outbox).where(outbox.c.key == taken.key).values(values))
            return taken

    def delivered(self, message: Message, now: datetime) -> None:
        """Record that a message was received, even if its state changed during sending."""
        values = {"state": "delivered", "settled_at": now, "problem": ""}
        with self._database.writing() as connection:
            connection.execute(update(outbox).where(outbox.c.key == message.key).values(values))

    def failed(self, message: Message, problem: str, due_at: datetime | None, now: datetime) -> None:
        """Record a failed try, unless another sender or a person changed the message since."""
        values: dict[str, Any] = {"problem": problem}
        values |= {"due_at": due_at} if due_at else {"state": "given up", "settled_at": now}
        as_taken = (outbox.c.key == message.key, outbox.c.state == "waiting", outbox.c.tries == message.tries)
        with self._database.writing() as connection:
            connection.execute(update(outbox).where(*as_taken).values(values))

    def retry(self, messages: Iterable[Message], now: datetime) -> None:
        """Give messages all their tries again."""
        values = {"state": "waiting", "tries": 0, "due_at": now, "settled_at": None}
        with self._database.writing() as connection:
            for message in messages:
                connection.execute(update(outbox).where(outbox.c.key == message.key).values(values))

    def drop(self, decision: MessageDecision) -> bool:
        """Drop a message: it is never sent again.

        Returns:
            Whether it was open; otherwise nothing is decided.
        """
        still_open = (outbox.c.key == decision.message, outbox.c.state.in_(_OPEN))
        values = {"state": "dropped", "settled_at": decision.created_at, "problem": decision.reason}
        with self._database.writing() as connection:
            is_open = connection.execute(update(outbox).where(*still_open).values(values)).rowcount == 1
            if is_open:
                append(connection, [decision])
            return is_open


def write_messages(connection: Connection, new: Sequence[PublicationRecord], *, of_newest_alone: bool) -> None:
    """Put messages to exposures about publications into the outbox, unless they are in it.

    Args:
        of_newest_alone: whether the ledger knew no publication before. Which messages a lost ledger had delivered is
            unknown, so only the newest publication is announced: its process may have died before writing that.
    """
    records = [max(new, key=lambda record: record.release)] if new and of_newest_alone else new
    now = datetime.now(UTC)
    for record in records:
        for exposure, tables in sorted(record.exposures.items()):
            messages = [lineage_message(record, table) for table in tables]
            if exposure != OPENLINEAGE:
                changed = {table: _changed(connection, record, table) for table in tables}
                messages = [message for message in (message_of(record, exposure, changed),) if message]
            for message in messages:
                insert_new(connection, outbox, vars(replace(message, due_at=now)))


def forget_messages(connection: Connection, publications: Iterable[str]) -> None:
    """Remove open messages about publications that the lake does not have."""
    for publication in publications:
        gone = (outbox.c.publication == publication, outbox.c.state.in_(_OPEN))
        connection.execute(delete(outbox).where(*gone))


def _changed(connection: Connection, record: PublicationRecord, table: str) -> list[date]:
    """Return the changed days of a publication's table, without days recomputed unchanged."""
    made = {day.day: day.digest for day in record.days if day.table == table}
    rows = connection.execute(queries.digests(table, record.release - 1, made)).all() if made else ()
    before = {row.day: row.digest for row in rows}
    return [day for day, digest in made.items() if digest != before.get(day, "")]


class Notes:
    """Announcements made, kept through every rebuild. If it is lost, some are repeated."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def announced(self, channel: Channel) -> Announced:
        """Return the announcements on a channel."""
        of_days = [column for column in told_held.c if column.name != "channel"]
        held = self._database.rows(select(*of_days).where(told_held.c.channel == channel))
        runs = self._database.rows(select(told_runs.c.run).where(told_runs.c.channel == channel))
        heads = self._database.rows(
            select(told_heads.c.heads, told_heads.c.told_at).where(told_heads.c.channel == channel)
        )
        return Announced(
            frozenset(AnnouncedDay(**without_columns(row)) for row in held),
            frozenset(row["run"] for row in runs),
            AnnouncedHeads(**heads[0]) if heads else None,
        )

    def mark_announced(
        self, channel: Channel, announced: Announced, over: Collection[AnnouncedDay] = (), by: Message | None = None
    ) -> None:
        """Record an announcement on a channel; idempotent."""
        with self._database.writing() as connection:
            for day in announced.held:
                insert_new(connection, told_held, {"channel": channel, **with_columns(day)})
            for run in announced.runs:
                insert_new(connection, told_runs, {"channel": channel, "run": run})
            if announced.heads is not None:
                delete_each(connection, told_heads, [{"channel": channel}])
                insert_new(connection, told_heads, {"channel": channel, **vars(announced.heads)})
            delete_each(connection, told_held, [{"channel": channel, **with_columns(day)} for day in over])
            if by is not None:
                insert_new(connection, outbox, vars(by))

    def catch_up(self, note: CatchUp) -> None:
        """Record that the ledger had been behind."""
        with self._database.writing() as connection:
            connection.execute(insert(catch_ups).values(**vars(note)))

    def catch_ups(self) -> tuple[CatchUp, ...]:
        """Return when it had been behind, oldest first."""
        fields = [column for column in catch_ups.c if column.name != "id"]
        return tuple(CatchUp(**row) for row in self._database.rows(select(*fields).order_by(catch_ups.c.id)))
