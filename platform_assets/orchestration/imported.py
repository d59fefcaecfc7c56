"""Import once what every run imports, in a process of which runs are copies.

No user code is included: a run imports contracts and transforms itself, in their state at its start. Nothing here
starts a thread or opens a file, a database or a connection, which no copy could share.
"""

from __future__ import annotations

import gc
import os
import sys
import warnings
from contextlib import suppress
from importlib import import_module

EVERY_RUN = (
    "platform_assets.orchestration.servers",
    "platform_assets.orchestration.build",
    "platform_assets.spark.session.warm",
    # PySpark looks for NumPy at the first literal in a way that imports pandas.
    "pyspark.testing.utils",
)

for name in EVERY_RUN:
    with suppress(ImportError):
        import_module(name)
# A copy looks for the module that its server began as, and finds it here: as it is to be.
warnings.filterwarnings("ignore", message=".*found in sys.modules after import of package")
# Python's own numbers of chance are other ones in each copy. NumPy's would be the same in all.
if "numpy" in sys.modules:
    os.register_at_fork(after_in_child=lambda: sys.modules["numpy"].random.seed())
# Imported modules stay: no run need search them for garbage.
gc.collect()
gc.freeze()
