"""Dagster without its processes: the daemon's own code, told when to work, and what it works on."""
