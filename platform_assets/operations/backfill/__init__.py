"""Backfills by plan files: explain, approve, apply. Their decisions are in `planning.backfill`."""
