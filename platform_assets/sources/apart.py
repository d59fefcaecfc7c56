"""A process of its own for what a library written in C++ does with bytes of others.

Such a library ends its process at some bytes that were made up for it, or takes all memory there is. In a process that
does nothing else, that is a problem of the file alone. It is started when it is first needed, and again where it died.
The two speak in lines of JSON, of the types that functions declare: a file that took over that process could only make
it say something wrong about the file.
"""

from __future__ import annotations

import atexit
import errno
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib import import_module
from inspect import signature
from threading import Lock
from typing import IO, Any, ParamSpec, TypeVar, get_type_hints

from pydantic import TypeAdapter, ValidationError

from platform_assets.sources.landing import ChangedError, LinkError
from platform_assets.sources.limits import LimitError

_P = ParamSpec("_P")
_T = TypeVar("_T")

_SENT: dict[str, type[Exception]] = {error.__name__: error for error in (ChangedError, LinkError, LimitError)}
"""Errors that arrive with their type, beside the system's; of others only the message arrives."""
_MOST_ANSWER = 1 << 26
_MOST_MEMORY = 4 << 30
"""Bytes of address space; libraries reserve far more than they use."""


class UnendurableError(Exception):
    """The work ends its process; the text says how."""


class _Process:
    def __init__(self, imported: str = "") -> None:
        # A session of its own: a Ctrl-C is for the calling process, and without that nothing more is to be read.
        self._process = subprocess.Popen(
            [sys.executable, "-c", f"from {__name__} import serve; serve({imported!r})"],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def ask(self, question: bytes) -> bytes:
        """Return the answer to a question, both a line.

        Raises:
            EOFError, OSError: the process died.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(question)
        self._process.stdin.flush()
        return _line(self._process.stdout)

    def end(self, *, now: bool) -> int:
        """End the process and return its exit code, negative for a signal; `now` without waiting for its work."""
        if now:
            self._process.kill()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            with suppress(OSError):  # the rest of it is not read
                stream.close()
        return self._process.wait()


_process: _Process | None = None
_turn = Lock()


def apart(work: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """Return the result of a function, called in another process.

    Args:
        work: function of a module, with types that pydantic can write as JSON and read again, as its arguments have.

    Raises:
        UnendurableError: the process died of it, twice, or would have needed too much memory.
        OSError: the process was killed, for example by a system without memory, or the function raises it.
        ChangedError, LinkError, LimitError: the function raises it.
        RuntimeError: it raises anything else.
    """
    bound = signature(work).bind(*args, **kwargs).arguments
    given = {name: _type_of(work, name).dump_python(value, mode="json") for name, value in bound.items()}
    question = json.dumps([work.__module__, work.__qualname__, given]).encode() + b"\n"
    with _turn:
        answer = _answered(question)
    try:
        said = json.loads(answer)
        if "result" in said:
            result: _T = _type_of(work, "return").validate_python(said["result"], strict=False)
            return result
        name, text, number, file = said["error"]
    except (ValueError, TypeError, KeyError, ValidationError) as error:
        raise UnendurableError("has the process that looks into it say what makes no sense") from error
    if name == UnendurableError.__name__:
        raise UnendurableError(str(text))
    if number is not None:
        raise OSError(int(number), str(text), file)
    raise _SENT[name](str(text)) if name in _SENT else RuntimeError(f"{name}: {text}")


def ahead(work: Callable[..., object]) -> None:
    """Start that process unless it is there, so that it is ready once a function is called in it."""
    with _turn, suppress(OSError):  # it cannot be started now: the first call tries again and raises
        _started(work.__module__)


def rest() -> None:
    """End that process, until something is asked again."""
    with _turn:
        _ended()


def _answered(question: bytes) -> bytes:
    for is_last in (False, True):
        try:
            return _started().ask(question)
        except (EOFError, BrokenPipeError):
            code = _ended()
            if code == -signal.SIGKILL:
                raise OSError(errno.ENOMEM, "who looked into it was killed, perhaps for want of memory") from None
            if is_last:
                raise UnendurableError(f"ends the process that looks into it ({_how(code)})") from None
        except BaseException:
            # A late answer would be taken for the one to the next question.
            _ended(now=True)
            raise
    raise AssertionError("it is asked twice at most")


def _line(stream: IO[bytes]) -> bytes:
    """Return the next line, whole: half of one is what a dead process said last."""
    line = stream.readline(_MOST_ANSWER)
    if not line.endswith(b"\n"):
        raise EOFError
    return line


@cache
def _type_of(work: Callable[..., object], name: str) -> TypeAdapter[Any]:
    """Return the declared type of a parameter of a function, or of its `return`."""
    return TypeAdapter(get_type_hints(work, include_extras=True)[name])


def _started(imported: str = "") -> _Process:
    global _process
    if _process is None:
        _process = _Process(imported)
    return _process


def _ended(*, now: bool = False) -> int:
    global _process
    process, _process = _process, None
    return process.end(now=now) if process else 0


def _how(code: int) -> str:
    with suppress(ValueError):
        return signal.Signals(-code).name
    return f"exit code {code}"


def _bound_memory() -> None:
    with suppress(ImportError, OSError, ValueError):  # a system without such a bound, or with a lower one
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))
        # No core dump: it could contain all of the file.
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _answer(question: bytes) -> dict[str, object]:
    module, name, given = json.loads(question)
    work = getattr(import_module(module), name)
    try:
        result = work(**{name: _type_of(work, name).validate_python(value) for name, value in given.items()})
        return {"result": _type_of(work, "return").dump_python(result, mode="json")}
    except MemoryError:
        text = f"takes more than {_MOST_MEMORY >> 30} GiB to look into"
        return {"error": [UnendurableError.__name__, text, None, None]}
    except Exception as error:  # noqa: BLE001 - the caller knows what it means
        if isinstance(error, OSError) and error.errno is not None:
            said = [error.strerror, error.errno, error.filename and str(error.filename)]
        else:
            said = [str(error), None, None]
        return {"error": [type(error).__name__, *said]}


def serve(imported: str = "") -> None:
    """Serve requests from standard input, until that ends."""
    _bound_memory()
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print is no answer
    if imported:
        import_module(imported)
    with suppress(EOFError):
        while True:
            answers.write(json.dumps(_answer(_line(sys.stdin.buffer))).encode() + b"\n")
            answers.flush()


atexit.register(_ended)
