"""What the platform itself wrote down: what was announced on which channel, and that the ledger had been behind."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import insert, select

from platform_assets.ledger.database import Database
from platform_assets.ledger.queries import delete_each, insert_new, with_columns, without_columns
from platform_assets.ledger.schema import catch_ups, outbox, told_heads, told_held, told_runs
from platform_assets.records.notes import AnnouncedDay, CatchUp, Channel, Told, ToldHeads
from platform_assets.records.outbox import Message


class Notes:
    """Kept beside what people decided, and through every rebuild; where they are lost, something is told twice."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def told(self, channel: Channel) -> Told:
        """What was announced on a channel."""
        of_days = [column for column in told_held.c if column.name != "channel"]
        held = self._database.rows(select(*of_days).where(told_held.c.channel == channel))
        runs = self._database.rows(select(told_runs.c.run).where(told_runs.c.channel == channel))
        heads = self._database.rows(
            select(told_heads.c.heads, told_heads.c.told_at).where(told_heads.c.channel == channel)
        )
        return Told(
            frozenset(AnnouncedDay(**without_columns(row)) for row in held),
            frozenset(row["run"] for row in runs),
            ToldHeads(**heads[0]) if heads else None,
        )

    def tell(
        self, channel: Channel, told: Told, over: Collection[AnnouncedDay] = (), by: Message | None = None
    ) -> None:
        """Write down that something was announced on a channel; again is harmless.

        Args:
            over: held days that were announced there and may be announced again.
            by: the message that tells it there: it is in the outbox exactly if this is written down.
        """
        with self._database.writing() as connection:
            for day in told.held:
                insert_new(connection, told_held, {"channel": channel, **with_columns(day)})
            for run in told.runs:
                insert_new(connection, told_runs, {"channel": channel, "run": run})
            if told.heads is not None:
                delete_each(connection, told_heads, [{"channel": channel}])
                insert_new(connection, told_heads, {"channel": channel, **vars(told.heads)})
            delete_each(connection, told_held, [{"channel": channel, **with_columns(day)} for day in over])
            if by is not None:
                insert_new(connection, outbox, vars(by))

    def catch_up(self, note: CatchUp) -> None:
        """Write down that the ledger had been behind."""
        with self._database.writing() as connection:
            connection.execute(insert(catch_ups).values(**vars(note)))

    def catch_ups(self) -> tuple[CatchUp, ...]:
        """How often it had been behind, oldest first."""
        fields = [column for column in catch_ups.c if column.name != "id"]
        return tuple(CatchUp(**row) for row in self._database.rows(select(*fields).order_by(catch_ups.c.id)))
