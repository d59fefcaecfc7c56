"""Delta's log and files: commits, table versions, statistics, schemas.

The only room that knows what a log looks like. It reads what commits say of their publication, and knows no
releases or locks.
"""
