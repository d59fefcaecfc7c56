"""Backups of lake and ledger: taken while others publish, kept in generations, rehearsed and restored."""
