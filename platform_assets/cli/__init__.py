"""The command line: thin commands over the functions that Dagster calls too.

Commands that only read import neither Dagster nor PySpark, so that they answer at once; those that compute import them
when they run. All are put together in `app`.
"""

import gc
import sys


def main() -> None:
    """Run a command; an expected failure is a message on standard error, never a traceback."""
    gc.disable()  # while modules are imported, which stay; what runs then has it again
    try:
        from platform_assets.cli.app import main as run
    except KeyboardInterrupt:
        sys.stderr.write("Interrupted.\n")
        sys.exit(130)
    run()
