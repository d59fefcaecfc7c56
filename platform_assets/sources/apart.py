"""A process of its own for what a library written in C++ does with bytes of others.

Such a library ends its process at some bytes that were made up for it, or takes all memory there is. In a process that
does nothing else, that is a problem of the file alone. It is started when it is first needed, and again where it died.
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
from typing import ParamSpec, TypeVar

_P = ParamSpec("_P")
_T = TypeVar("_T")

_MOST_MEMORY = 4 << 30
"""Bytes of addresses, of which libraries reserve far more than they use."""


class UnendurableError(Exception):
    """What was to be done ends whoever does it; the text says how."""


class _Process:
    def __init__(self) -> None:
        # A session of its own: a Ctrl-C is for whoever asks, and with it gone there is nothing more to be read.
        self._process = subprocess.Popen(
            [sys.executable, "-c", f"from {__name__} import serve; serve()"],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def ask(self, work: object) -> tuple[bool, object]:
        """What came of it, and whether that is a result; an error otherwise.

        Raises:
            EOFError, OSError: the process died.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        pickle.dump(work, self._process.stdin)
        self._process.stdin.flush()
        answer: tuple[bool, object] = pickle.load(self._process.stdout)  # noqa: S301 - of our own code
        return answer

    def end(self) -> int:
        """By which signal it ended, or what it returned, as processes say it."""
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            with suppress(OSError):  # what is left in it, nobody reads
                stream.close()
        return self._process.wait()

    def kill(self) -> None:
        """Whatever it does."""
        self._process.kill()
        self.end()


_process: _Process | None = None
_turn = Lock()


def apart(work: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """The result of a function, called in another process.

    Args:
        work: of a module; arguments, result and errors are sent, and so have to be values.

    Raises:
        UnendurableError: the process died of it, twice, or would have needed too much memory.
        OSError: the process was killed by somebody, as systems do that have no memory left.
        Exception: as the function raises it.
    """
    with _turn:
        is_result, answer = _answered(work, args, kwargs)
    if is_result:
        return answer  # type: ignore[return-value]
    assert isinstance(answer, Exception)
    raise answer


def _answered(*asked: object) -> tuple[bool, object]:
    for is_last in (False, True):
        try:
            return _started().ask(asked)
        except (EOFError, BrokenPipeError, pickle.UnpicklingError):
            code = _ended()
            if code == -signal.SIGKILL:
                raise OSError(errno.ENOMEM, "who looked into it was killed, perhaps for want of memory") from None
            if is_last:
                raise UnendurableError(f"ends the process that looks into it ({_how(code)})") from None
        except BaseException:
            # An answer that nobody waited for would be taken for that to the next question.
            _kill()
            raise
    raise AssertionError("it is asked twice at most")


def _started() -> _Process:
    global _process
    if _process is None:
        _process = _Process()
    return _process


def _ended() -> int:
    global _process
    process, _process = _process, None
    return process.end() if process else 0


def _kill() -> None:
    global _process
    process, _process = _process, None
    if process:
        process.kill()


def _how(code: int) -> str:
    with suppress(ValueError):
        return signal.Signals(-code).name
    return f"exit code {code}"


def _bound_memory() -> None:
    with suppress(ImportError, OSError, ValueError):  # a system without such a bound, or with a lower one
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))
        # Nobody looks into what is left of a process that died of a file, which may lie there in whole.
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _answer(work: Callable[..., object], args: tuple[object, ...], kwargs: dict[str, object]) -> bytes:
    try:
        return pickle.dumps((True, work(*args, **kwargs)))
    except MemoryError:
        return pickle.dumps((False, UnendurableError(f"takes more than {_MOST_MEMORY >> 30} GiB to look into")))
    except Exception as error:  # noqa: BLE001 - whoever asks knows what it means
        answer = pickle.dumps((False, error))
        try:
            pickle.loads(answer)  # noqa: S301
        except Exception:  # noqa: BLE001 - an error that cannot be sent is told
            return pickle.dumps((False, RuntimeError(f"{type(error).__name__}: {error}")))
        return answer


def serve() -> None:
    """Do what is asked for at standard input, until that ends."""
    _bound_memory()
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print is no answer
    while True:
        try:
            work, args, kwargs = pickle.load(sys.stdin.buffer)  # noqa: S301 - of our own code
        except EOFError:
            return
        answers.write(_answer(work, args, kwargs))
        answers.flush()


atexit.register(_ended)
