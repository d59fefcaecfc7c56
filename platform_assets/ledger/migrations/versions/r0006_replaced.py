"""Which release replaced what a day was, so that what it is now is found without all that it has been."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Find it for every day recorded so far."""
    op.add_column("ledger_days", sa.Column("replaced_at", sa.BigInteger))
    op.execute(
        """
        UPDATE ledger_days SET replaced_at = following.release
        FROM (
            SELECT d.publication, d."table", d.day,
                   lead(p.release) OVER (PARTITION BY d."table", d.day ORDER BY p.release) AS release
            FROM ledger_days d JOIN ledger_publications p ON p.publication = d.publication
        ) AS following
        WHERE following.publication = ledger_days.publication
        AND following."table" = ledger_days."table" AND following.day = ledger_days.day
        """
    )
