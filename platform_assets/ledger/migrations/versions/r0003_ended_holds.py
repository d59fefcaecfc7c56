"""Holds that ended, for the life of a day."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Add a table; what ended before is not known any more."""
    op.create_table(
        "ledger_ended_holds",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("table", sa.Text, nullable=False),
        sa.Column("day", sa.Date, nullable=False),
        sa.Column("refused_day", sa.Date, nullable=False),
        sa.Column("fingerprint", sa.Text, nullable=False),
        sa.Column("code_version", sa.Text, nullable=False),
        sa.Column("configuration", sa.Text, nullable=False),
        sa.Column("gate", sa.Text, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("run", sa.Text, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=False),
    )
    op.create_index("ix_ledger_ended_holds_table_day", "ledger_ended_holds", ["table", "day"])
