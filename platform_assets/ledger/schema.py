"""The ledger's tables.

Every name starts with `ledger_`, so that a database may be shared with Dagster's own storage. A new ledger is created
from this schema; a change also needs a migration in `migrations/versions`, for existing ledgers.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Date,
    DateTime,
    Dialect,
    Double,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
)
from sqlalchemy.types import TypeEngine

from platform_assets.records.history import kept_text

versions = Table(
    "ledger_version",
    MetaData(),
    Column("version_num", String(32), nullable=False),
    PrimaryKeyConstraint("version_num", name="ledger_version_pkc"),  # as Alembic names it
)
"""Where Alembic keeps the revision; its default name is Dagster's already."""


class UtcDateTime(TypeDecorator[datetime]):
    """A moment in UTC, also on SQLite, which drops time zones."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Refuse a moment without a zone instead of guessing it."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"{value.isoformat()} has no time zone; the ledger stores UTC")
        return value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Restore the zone of SQLite's naive values."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class FreeText(TypeDecorator[str]):
    """Text written by people, or quoted from a broken file."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """Remove NUL, on every database alike."""
        return None if value is None else kept_text(value)


metadata = MetaData()


def _given(type_: TypeEngine[Any] | type[TypeEngine[Any]], *names: str) -> list[Column[Any]]:
    """Return columns of one type that every row has a value for."""
    return [Column(name, type_, nullable=False) for name in names]


publications = Table(
    "ledger_publications",
    metadata,
    Column("publication", Text, primary_key=True),
    Column("release", BigInteger, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    *_given(Text, "kind", "run"),
    *_given(FreeText, "who", "why"),
    Column("git_commit", Text),
    Column("as_user", FreeText, nullable=False, server_default=""),
    Column("on_host", FreeText, nullable=False, server_default=""),
    Column("decides", Text, nullable=False, server_default=""),
    UniqueConstraint("release", name="uq_ledger_publications_release"),
)


def _of_a_publication() -> list[Column[Any]]:
    """Return the first columns of what goes with its publication: that, and a table."""
    publication = ForeignKey("ledger_publications.publication", ondelete="CASCADE")
    return [Column("publication", publication, primary_key=True), Column("table", Text, primary_key=True)]


days = Table(
    "ledger_days",
    metadata,
    *_of_a_publication(),
    Column("day", Date, primary_key=True),
    *_given(Text, "digest", "fingerprint"),
    *_given(BigInteger, "rows", "bytes", "files"),
    Column("figures", JSON, nullable=False),
    # SQL null without warnings, so that the few days with warnings are found quickly.
    Column("warnings", JSON(none_as_null=True)),
    Column("reads", JSON, nullable=False),
    Column("code_version", Text, nullable=False),
    Column("seconds", Double, nullable=False),
    Column("configuration", Text, nullable=False),
    Column("git_commit", Text, nullable=False, server_default=""),
    # The release that made something else of the day; none while this is what readers see.
    Column("replaced_at", BigInteger),
    Index("ix_ledger_days_table_day", "table", "day"),
)

arrivals = Table(
    "ledger_arrivals",
    metadata,
    *_of_a_publication(),
    Column("path", Text, primary_key=True),
    Column("arrival_date", Date, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("sha256", Text, nullable=False),
    *_given(BigInteger, "modified_ns", "landed", "taken", "refused"),
    Column("reason", FreeText),
    Column("notes", JSON, nullable=False),
    *_given(BigInteger, "late", "erased"),
    Column("kind", Text, nullable=False),
    Column("origin", Text),
    Index("ix_ledger_arrivals_table_path", "table", "path"),
    Index("ix_ledger_arrivals_table_date", "table", "arrival_date"),
    Index("ix_ledger_arrivals_kind", "kind"),
    Index("ix_ledger_arrivals_sha256", "sha256"),
)

views = Table(
    "ledger_views",
    metadata,
    Column("table", Text, primary_key=True),
    Column("content", Text, primary_key=True),
    Column("digests", JSON, nullable=False),
)


looks = Table(
    "ledger_looks",
    metadata,
    Column("look_for", Text, primary_key=True),
    Column("release", BigInteger, nullable=False),
    *_given(Text, "publication", "found"),
    # A name for this version of it: it is replaced only by who has read that, or has begun it.
    Column("checksum", Text, nullable=False),
)


def _refused() -> list[Column[Any]]:
    """Return the columns for refused content of a day, as `ledger.queries` writes and reads them."""
    return [
        # The day itself, or the held one that records tie it to: of that one alone the rest is known, and empty here.
        Column("refused_day", Date, primary_key=True),
        Column("fingerprint", Text, primary_key=True),
        Column("code_version", Text, primary_key=True),
        Column("configuration", Text, primary_key=True),
    ]


holds = Table(
    "ledger_holds",
    metadata,
    Column("table", Text, primary_key=True),
    Column("day", Date, primary_key=True),
    *_refused(),
    Column("gate", Text, primary_key=True),
    Column("reason", FreeText, nullable=False),
    Column("run", Text, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
)

ended_holds = Table(
    "ledger_ended_holds",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    # As they were when they ended.
    *(Column(column.name, column.type, nullable=False) for column in holds.columns),
    Column("ended_at", UtcDateTime, nullable=False),
    Index("ix_ledger_ended_holds_table_day", "table", "day"),
)


verdicts = Table(
    "ledger_verdicts",
    metadata,
    # Given by hand, by one writer at a time: decisions name them.
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("table", Text, nullable=False),
    Column("at", UtcDateTime, nullable=False),
    Column("run", Text, nullable=False),
    Column("day", Date),
    *_given(Text, "fingerprint", "code_version", "configuration"),
    # SQL null without failures, so that the few verdicts with failures are found quickly.
    Column("failed", JSON(none_as_null=True)),
    Column("warned", JSON(none_as_null=True)),
    Column("publication", Text, nullable=False),
    *_given(Boolean, "is_try", "is_pending"),
    Column("tries", Integer, nullable=False, server_default="0"),
    Column("lives_by", Text, nullable=False, server_default=""),
    Index("ix_ledger_verdicts_table_number", "table", "number"),
)

decisions = Table(
    "ledger_decisions",
    metadata,
    # Given by hand, by one writer at a time: without a gap.
    Column("number", Integer, primary_key=True, autoincrement=False),
    # As it was hashed, so that no database writes it otherwise.
    *_given(Text, "content", "before", "chain"),
)

told_held = Table(
    "ledger_told_held",
    metadata,
    Column("channel", Text, primary_key=True),
    Column("table", Text, primary_key=True),
    Column("day", Date, primary_key=True),
    *_refused(),
)

told_runs = Table(
    "ledger_told_runs",
    metadata,
    Column("channel", Text, primary_key=True),
    Column("run", Text, primary_key=True),
)

told_heads = Table(
    "ledger_told_heads",
    metadata,
    Column("channel", Text, primary_key=True),
    Column("heads", Text, nullable=False),
    Column("told_at", UtcDateTime, nullable=False),
)

outbox = Table(
    "ledger_outbox",
    metadata,
    Column("key", Text, primary_key=True),
    Column("target", Text, nullable=False),
    Column("title", FreeText, nullable=False),
    # As it is sent, so that every try says the same.
    Column("body", Text, nullable=False),
    *_given(UtcDateTime, "created_at", "due_at"),
    # Not a foreign key: what was delivered stays known while the index is made anew.
    Column("publication", Text, nullable=False),
    Column("release", BigInteger),
    Column("state", Text, nullable=False),
    Column("tries", Integer, nullable=False),
    Column("problem", FreeText, nullable=False),
    Column("settled_at", UtcDateTime),
    Index("ix_ledger_outbox_state_due_at", "state", "due_at"),
)

catch_ups = Table(
    "ledger_catch_ups",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    *_given(BigInteger, "first_release", "last_release"),
    Column("text", FreeText, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
)
