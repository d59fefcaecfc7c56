"""A command line that says which of the heavy libraries it imported, and how."""

from __future__ import annotations

import os
import subprocess
import sys

PROBE = """
import sys
from platform_assets.cli import main
sys.argv = ["platform-assets", *sys.argv[1:]]
try:
    main()
finally:
    heavy = {"dagster", "pyspark", "py4j", "pandas", "polars", "duckdb"} & set(sys.modules)
    print("imported", *sorted(heavy), file=sys.stderr)
"""

_NUMPY_PROBE = """
import os, sys
THREADS = "OPENBLAS_NUM_THREADS"
asked = []
def look(event, of):
    if event == "import" and of[0] == "numpy":
        asked.append(os.environ.get(THREADS, ""))
sys.addaudithook(look)
from platform_assets.cli import main
sys.argv = ["platform-assets", *sys.argv[1:]]
try:
    main()
finally:
    print("asked", *asked[:1], "left", os.environ.get(THREADS, ""), file=sys.stderr)
"""


def threads_asked_of_numpy(*command: str, chosen: str = "") -> str:
    """What the environment said of NumPy's threads when a command imported it, and what it says after.

    Args:
        chosen: what a person said of them.
    """
    env = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    if chosen:
        env["OPENBLAS_NUM_THREADS"] = chosen
    ended = subprocess.run(
        [sys.executable, "-c", _NUMPY_PROBE, *command], capture_output=True, text=True, env=env, timeout=120
    )
    assert ended.returncode in (0, 1), ended.stderr
    return ended.stderr.splitlines()[-1]
