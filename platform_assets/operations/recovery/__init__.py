"""After a crash or a loss: recovering, and a ledger that catches up with its lake."""
