"""Rows in the late queue, and arrivals that are people's decisions about others."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Every arrival so far was a delivery without late rows."""
    op.add_column("ledger_arrivals", sa.Column("late", sa.BigInteger, nullable=False, server_default="0"))
    op.add_column("ledger_arrivals", sa.Column("kind", sa.Text, nullable=False, server_default="delivery"))
    op.add_column("ledger_arrivals", sa.Column("origin", sa.Text))
