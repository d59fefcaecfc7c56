"""After a crash or a loss: recovering, a ledger that catches up with its lake, backups."""
