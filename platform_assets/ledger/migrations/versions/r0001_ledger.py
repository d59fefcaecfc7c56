"""The index of the lake, and what only the ledger knows: holds, people's decisions, the platform's own notes."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create all tables."""
    op.create_table(
        "ledger_publications",
        sa.Column("publication", sa.Text, primary_key=True),
        sa.Column("release", sa.BigInteger, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("run", sa.Text, nullable=False),
        sa.Column("who", sa.Text, nullable=False),
        sa.Column("why", sa.Text, nullable=False),
        sa.Column("git_commit", sa.Text),
        sa.Column("as_user", sa.Text, nullable=False, server_default=""),
        sa.Column("on_host", sa.Text, nullable=False, server_default=""),
        sa.Column("decides", sa.Text, nullable=False, server_default=""),
        sa.UniqueConstraint("release", name="uq_ledger_publications_release"),
    )
    op.create_table(
        "ledger_days",
        _publication(),
        sa.Column("table", sa.Text, primary_key=True),
        sa.Column("day", sa.Date, primary_key=True),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("fingerprint", sa.Text, nullable=False),
        sa.Column("rows", sa.BigInteger, nullable=False),
        sa.Column("bytes", sa.BigInteger, nullable=False),
        sa.Column("files", sa.BigInteger, nullable=False),
        sa.Column("figures", sa.JSON, nullable=False),
        sa.Column("warnings", sa.JSON),
        sa.Column("reads", sa.JSON, nullable=False),
        sa.Column("code_version", sa.Text, nullable=False),
        sa.Column("seconds", sa.Double, nullable=False),
        sa.Column("configuration", sa.Text, nullable=False),
        sa.Column("replaced_at", sa.BigInteger),
    )
    op.create_index("ix_ledger_days_table_day", "ledger_days", ["table", "day"])
    op.create_table(
        "ledger_arrivals",
        _publication(),
        sa.Column("table", sa.Text, primary_key=True),
        sa.Column("path", sa.Text, primary_key=True),
        sa.Column("arrival_date", sa.Date, nullable=False),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("sha256", sa.Text, nullable=False),
        sa.Column("modified_ns", sa.BigInteger, nullable=False),
        sa.Column("landed", sa.BigInteger, nullable=False),
        sa.Column("taken", sa.BigInteger, nullable=False),
        sa.Column("refused", sa.BigInteger, nullable=False),
        sa.Column("reason", sa.Text),
        sa.Column("notes", sa.JSON, nullable=False),
        sa.Column("late", sa.BigInteger, nullable=False),
        sa.Column("erased", sa.BigInteger, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("origin", sa.Text),
    )
    op.create_index("ix_ledger_arrivals_table_path", "ledger_arrivals", ["table", "path"])
    op.create_index("ix_ledger_arrivals_sha256", "ledger_arrivals", ["sha256"])
    op.create_table(
        "ledger_views",
        sa.Column("table", sa.Text, primary_key=True),
        sa.Column("content", sa.Text, primary_key=True),
        sa.Column("digests", sa.JSON, nullable=False),
    )
    op.create_table(
        "ledger_holds",
        sa.Column("table", sa.Text, primary_key=True),
        sa.Column("day", sa.Date, primary_key=True),
        *_refused(),
        sa.Column("gate", sa.Text, primary_key=True),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("run", sa.Text, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
    )
    op.create_table(
        "ledger_decisions",
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("content", sa.Text, nullable=False),
        sa.Column("before", sa.Text, nullable=False),
        sa.Column("chain", sa.Text, nullable=False),
    )
    op.create_table(
        "ledger_told_held",
        sa.Column("channel", sa.Text, primary_key=True),
        sa.Column("table", sa.Text, primary_key=True),
        sa.Column("day", sa.Date, primary_key=True),
        *_refused(),
    )
    op.create_table(
        "ledger_told_runs",
        sa.Column("channel", sa.Text, primary_key=True),
        sa.Column("run", sa.Text, primary_key=True),
    )
    op.create_table(
        "ledger_told_heads",
        sa.Column("channel", sa.Text, primary_key=True),
        sa.Column("heads", sa.Text, nullable=False),
        sa.Column("told_at", sa.DateTime(timezone=True), nullable=False),
    )
    op.create_table(
        "ledger_outbox",
        sa.Column("key", sa.Text, primary_key=True),
        sa.Column("target", sa.Text, nullable=False),
        sa.Column("title", sa.Text, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("due_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("publication", sa.Text, nullable=False),
        sa.Column("release", sa.BigInteger),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("tries", sa.Integer, nullable=False),
        sa.Column("problem", sa.Text, nullable=False),
        sa.Column("settled_at", sa.DateTime(timezone=True)),
    )
    op.create_index("ix_ledger_outbox_state_due_at", "ledger_outbox", ["state", "due_at"])
    op.create_table(
        "ledger_catch_ups",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("first_release", sa.BigInteger, nullable=False),
        sa.Column("last_release", sa.BigInteger, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
    )


def _refused() -> list[sa.Column[Any]]:
    return [
        sa.Column("refused_day", sa.Date, primary_key=True),
        sa.Column("fingerprint", sa.Text, primary_key=True),
        sa.Column("code_version", sa.Text, primary_key=True),
        sa.Column("configuration", sa.Text, primary_key=True),
    ]


def _publication() -> sa.Column[str]:
    parent = sa.ForeignKey("ledger_publications.publication", ondelete="CASCADE")
    return sa.Column("publication", sa.Text, parent, primary_key=True)
