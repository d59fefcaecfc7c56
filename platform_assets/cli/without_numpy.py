"""What a short command does without: NumPy, which Arrow imports where it is there."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

_NUMPY = "numpy"


@contextmanager
def without_numpy() -> Iterator[None]:
    """For a command that reads with Arrow and is done: of what is imported within, nothing finds NumPy.

    Arrow works without it, as the libraries do that come after it; to import it takes several times as long as Arrow
    itself, since its OpenBLAS starts a thread for each core, to multiply matrices, and each first waits busily. Who has
    imported either already goes on as before.
    """
    if {_NUMPY, "pyarrow"} & sys.modules.keys():
        yield
        return
    modules = cast("dict[str, Any]", sys.modules)
    modules[_NUMPY] = None  # Python's own way to say that there is no such module
    try:
        yield
    finally:
        del modules[_NUMPY]
