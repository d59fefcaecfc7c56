"""Where days come from and what became of them: provenance, the history of a day, what differs between releases."""
