"""A separate process for what Arrow does with bytes of others.

A file can be made so that reading it crashes a C++ library, or makes it take all memory. In a process of its own that
costs the file alone: it is refused by name, and the next question starts the process anew. `ProcessPoolExecutor` would
do less here: it runs a script without `if __name__ == "__main__"` once more in each process, and does not say which
signal ended one, so that a good file would be refused where the system had no memory left.
"""

from __future__ import annotations

import atexit
import errno
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from threading import Lock
from typing import Any, ParamSpec, TypeVar

_P = ParamSpec("_P")
_T = TypeVar("_T")
_MOST_MEMORY = 4 << 30
"""Bytes of addresses, of which libraries reserve far more than they use."""

_process: subprocess.Popen[bytes] | None = None
_turn = Lock()


class UnendurableError(Exception):
    """Reading a file ends the process that looks into it; the text says how."""


def apart(work: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """Call a function of a module in the other process and return its result, or raise its error.

    Raises:
        UnendurableError: the process died of it, twice, or would have needed too much memory.
        OSError: the process was killed, as systems do that have no memory left, or the function raises it.
    """
    with _turn:
        result, error = _ask(pickle.dumps((work, args, kwargs)))
    if error is not None:
        raise error
    return result  # type: ignore[no-any-return]


def ahead(work: Callable[..., object]) -> None:
    """Start the process unless it runs, and have it import a function's module meanwhile."""
    with _turn, suppress(OSError):  # `apart` tries again, and says what is wrong
        _started(work.__module__)


def rest() -> None:
    """End the process until the next question."""
    with _turn:
        _end()


def _ask(question: bytes) -> tuple[Any, Exception | None]:
    for is_last in (False, True):
        try:
            process = _started()
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(question)
            process.stdin.flush()
            answer: tuple[Any, Exception | None] = pickle.load(process.stdout)  # noqa: S301 - of our own code
            return answer
        except (EOFError, BrokenPipeError, pickle.UnpicklingError):
            code = _end()
            if code == -signal.SIGKILL:
                raise OSError(errno.ENOMEM, "who looked into it was killed, perhaps for want of memory") from None
            if is_last:
                raise UnendurableError(f"ends the process that looks into it ({_how(code)})") from None
        except BaseException:
            _end(kill=True)  # or its answer would be taken for that to the next question
            raise
    raise AssertionError("it is asked twice at most")


def _started(imported: str = __name__) -> subprocess.Popen[bytes]:
    global _process
    if _process is None:
        # A session of its own: a Ctrl-C is for this process, and when it is gone there is nothing more to read.
        _process = subprocess.Popen(
            [sys.executable, "-c", f"from {__name__} import serve; import {imported}; serve()"],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    return _process


def _end(*, kill: bool = False) -> int:
    """Wait until the process ended and return its exit code, negative for a signal."""
    global _process
    process, _process = _process, None
    if process is None:
        return 0
    if kill:
        process.kill()
    for stream in (process.stdin, process.stdout):
        assert stream is not None
        with suppress(OSError):
            stream.close()
    return process.wait()


def _how(code: int) -> str:
    with suppress(ValueError):
        return signal.Signals(-code).name
    return f"exit code {code}"


def serve() -> None:
    """Answer the questions at standard input until it ends."""
    with suppress(ImportError, OSError, ValueError):  # a system without such a limit, or with a lower one
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a core file would hold what was delivered
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print is no answer
    with suppress(EOFError):
        while True:
            answers.write(_answer(*pickle.load(sys.stdin.buffer)))  # noqa: S301 - of the process that started this one
            answers.flush()


def _answer(work: Callable[..., object], args: tuple[Any, ...], kwargs: dict[str, Any]) -> bytes:
    try:
        return pickle.dumps((work(*args, **kwargs), None))
    except MemoryError:
        return pickle.dumps((None, UnendurableError(f"takes more than {_MOST_MEMORY >> 30} GiB to look into")))
    except Exception as error:  # noqa: BLE001 - it is raised where the question came from
        try:
            content = pickle.dumps((None, error))
            pickle.loads(content)  # noqa: S301 - some errors can be written and not be read
        except Exception:  # noqa: BLE001
            return pickle.dumps((None, RuntimeError(f"{type(error).__name__}: {error}")))
        return content


atexit.register(_end)
