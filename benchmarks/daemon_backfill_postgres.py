"""The same as `daemon_backfill` with Dagster's storage on PostgreSQL.

python -m benchmarks.daemon_backfill_postgres --first 2017-01-01 --last 2017-03-31
"""

from benchmarks.daemon_backfill import main

if __name__ == "__main__":
    main(on_postgres=True)
