"""What a short command does without of NumPy, which comes with Arrow."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

_THREADS = "OPENBLAS_NUM_THREADS"


@contextmanager
def without_arithmetic() -> Iterator[None]:
    """For a command that reads with Arrow and is done: NumPy, if it is imported within, starts no threads.

    Its OpenBLAS starts one for each core to multiply matrices, which nobody does here, and each first waits busily. It
    asks for their number only when it is imported. What a person chose stands, and what is started later, such as
    Spark's workers, inherits nothing.
    """
    if _THREADS in os.environ:
        yield
        return
    os.environ[_THREADS] = "1"
    try:
        yield
    finally:
        os.environ.pop(_THREADS, None)
