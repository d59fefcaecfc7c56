"""Backfills by plan files: read, explained, approved; what is decided about them is `planning.backfill`."""
