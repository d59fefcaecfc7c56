"""Verdicts about batches of tables, from which their circuits follow."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Add a table; of what failed before, circuits know nothing."""
    op.create_table(
        "ledger_verdicts",
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("table", sa.Text, nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("run", sa.Text, nullable=False),
        sa.Column("day", sa.Date),
        sa.Column("fingerprint", sa.Text, nullable=False),
        sa.Column("code_version", sa.Text, nullable=False),
        sa.Column("configuration", sa.Text, nullable=False),
        sa.Column("failed", sa.JSON),
        sa.Column("warned", sa.JSON),
        sa.Column("publication", sa.Text, nullable=False),
        sa.Column("is_try", sa.Boolean, nullable=False),
        sa.Column("is_pending", sa.Boolean, nullable=False),
    )
    op.create_index("ix_ledger_verdicts_table_number", "ledger_verdicts", ["table", "number"])
