"""Delta's log and files: commits, table versions, statistics, schemas.

Only this room parses a log. It reads what commits say about their publication, without releases or locks.
"""
