"""What was found when all days were looked at, and what does away with it; what came last is found at once."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

_SAID_OF_DAYS = 'publication, "table", day, digest, fingerprint, rows, code_version, configuration'
_ALL = "DELETE FROM ledger_looks"
_ITS_RELEASE = "SELECT p.release FROM ledger_publications p WHERE p.publication = NEW.publication"
_TRIGGERS = {
    f"UPDATE OF {_SAID_OF_DAYS} ON ledger_days": _ALL,
    "UPDATE OF replaced_at ON ledger_days": f"{_ALL} WHERE release >= OLD.replaced_at OR release >= NEW.replaced_at",
    "INSERT ON ledger_days": f"{_ALL} WHERE release >= ({_ITS_RELEASE})",
    "DELETE ON ledger_days": _ALL,
    "UPDATE ON ledger_publications": _ALL,
    "DELETE ON ledger_publications": _ALL,
    "UPDATE ON ledger_arrivals": _ALL,
    "DELETE ON ledger_arrivals": _ALL,
}
"""What is written otherwise than as the newest publication, by whatever tool, and which looks it does away with."""


def upgrade() -> None:
    """Add a table, which the next plan fills, and indexes."""
    op.create_table(
        "ledger_looks",
        sa.Column("look_for", sa.Text, primary_key=True),
        sa.Column("release", sa.BigInteger, nullable=False),
        sa.Column("publication", sa.Text, nullable=False),
        sa.Column("found", sa.Text, nullable=False),
        sa.Column("checksum", sa.Text, nullable=False),
    )
    op.create_index("ix_ledger_arrivals_table_date", "ledger_arrivals", ["table", "arrival_date"])
    op.create_index("ix_ledger_arrivals_kind", "ledger_arrivals", ["kind"])
    is_server = op.get_bind().dialect.name == "postgresql"
    for number, (event, forget) in enumerate(_TRIGGERS.items()):
        name = f"ledger_looks_{number}"
        if is_server:
            op.execute(
                f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {forget}; RETURN NULL; END $$"
            )
            op.execute(f"CREATE TRIGGER {name} AFTER {event} FOR EACH ROW EXECUTE FUNCTION {name}()")
        else:
            op.execute(f"CREATE TRIGGER {name} AFTER {event} FOR EACH ROW BEGIN {forget}; END")
