"""Run a C++ library on foreign bytes in a process of its own.

Such a library may end its process at malicious bytes, or take all memory. In a process that does nothing else, that is
a problem of the file alone. It is started when it is first needed, and again after it died. Both sides exchange lines
of JSON, of the functions' declared types: a file that took over that process could only return a wrong result about
itself.
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
from threading import Lock
from types import GenericAlias
from typing import Any, ParamSpec, TypeVar, get_type_hints

from pydantic import TypeAdapter

from platform_assets.sources.landing import ChangedError, LinkError
from platform_assets.sources.limits import LimitError

_P = ParamSpec("_P")
_T = TypeVar("_T")

_SENT: dict[str, type[Exception]] = {error.__name__: error for error in (ChangedError, LinkError, LimitError)}
"""Errors that arrive with their type, beside the system's; of others only the message arrives."""
_MOST_ANSWER = 1 << 26
_MOST_MEMORY = 4 << 30
"""Bytes of address space; libraries reserve far more than they use."""

_process: subprocess.Popen[bytes] | None = None
_turn = Lock()


class UnendurableError(Exception):
    """The work ends its process; the text says how."""


def apart(work: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """Return the result of a function, called in another process.

    Args:
        work: function of a module, with positional parameters of types that pydantic writes as JSON and reads again.

    Raises:
        UnendurableError: the process died of it, twice, or would have needed too much memory.
        OSError: the process was killed, for example for lack of memory, or the function raises it.
        ChangedError, LinkError, LimitError: the function raises it.
        RuntimeError: it raises anything else.
    """
    given, made = _types(work)
    question = json.dumps([work.__module__, work.__qualname__, given.dump_python(args, mode="json")]).encode()
    with _turn:
        answer = _answered(question)
    try:
        said = json.loads(answer)
        if "result" in said:
            result: _T = made.validate_python(said["result"], strict=False)
            return result
        name, text, number, file = said["error"]
    except (ValueError, TypeError, KeyError) as error:
        raise UnendurableError("has the process that looks into it say what makes no sense") from error
    if name == UnendurableError.__name__:
        raise UnendurableError(str(text))
    if number is not None:
        raise OSError(int(number), str(text), file)
    raise _SENT[name](str(text)) if name in _SENT else RuntimeError(f"{name}: {text}")


def ahead(work: Callable[..., object]) -> None:
    """Start that process and import a function's module there, so that it is ready for a call."""
    with _turn, suppress(OSError):  # it cannot be started now: the first call tries again and raises
        _send(_started(), json.dumps(work.__module__).encode())


def rest() -> None:
    """End that process, until the next call."""
    with _turn:
        _ended()


@cache
def _types(work: Callable[..., object]) -> tuple[TypeAdapter[Any], TypeAdapter[Any]]:
    """Return the declared types of a function's parameters, together, and of its result."""
    *given, made = get_type_hints(work, include_extras=True).values()
    together: Any = GenericAlias(tuple, tuple(given))
    return TypeAdapter(together), TypeAdapter(made)


def _answered(question: bytes) -> bytes:
    for is_last in (False, True):
        try:
            process = _started()
            _send(process, question)
            if (answer := _line(process)).endswith(b"\n"):  # half of one is what a dead process said last
                return answer
        except BrokenPipeError:
            pass
        except BaseException:
            # A late answer would be taken for the one to the next question.
            _ended(now=True)
            raise
        code = _ended()
        if code == -signal.SIGKILL:
            raise OSError(errno.ENOMEM, "the process that inspected it was killed, perhaps for lack of memory")
        if is_last:
            how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
            raise UnendurableError(f"ends the process that looks into it ({how})")
    raise AssertionError("it is asked twice at most")


def _send(process: subprocess.Popen[bytes], question: bytes) -> None:
    assert process.stdin is not None
    process.stdin.write(question + b"\n")
    process.stdin.flush()


def _line(process: subprocess.Popen[bytes]) -> bytes:
    assert process.stdout is not None
    return process.stdout.readline(_MOST_ANSWER)


def _started() -> subprocess.Popen[bytes]:
    global _process
    if _process is None:
        # A session of its own: a Ctrl-C is for the calling process, and without that nothing more is to be read.
        _process = subprocess.Popen(
            [sys.executable, "-c", f"from {__name__} import serve; serve()"],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    return _process


def _ended(*, now: bool = False) -> int:
    """End the process and return its exit code, negative for a signal; `now` without waiting for its work."""
    global _process
    process, _process = _process, None
    if process is None:
        return 0
    if now:
        process.kill()
    with suppress(OSError), process:
        pass  # closes the pipes: the rest of an answer is not read
    return process.wait()


def _answer(module: str, name: str, given: object) -> dict[str, object]:
    work = getattr(import_module(module), name)
    types, made = _types(work)
    try:
        return {"result": made.dump_python(work(*types.validate_python(given)), mode="json")}
    except MemoryError:
        text = f"takes more than {_MOST_MEMORY >> 30} GiB to look into"
        return {"error": [UnendurableError.__name__, text, None, None]}
    except Exception as error:  # noqa: BLE001 - the caller knows what it means
        if isinstance(error, OSError) and error.errno is not None:
            said = [error.strerror, error.errno, error.filename and str(error.filename)]
        else:
            said = [str(error), None, None]
        return {"error": [type(error).__name__, *said]}


def serve() -> None:
    """Answer calls from standard input, until that ends; a text is the name of a module that will be needed."""
    with suppress(ImportError, OSError, ValueError):  # a system without such a bound, or with a lower one
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))
        # No core dump: it could contain all of the file.
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print is no answer
    for line in sys.stdin.buffer:
        match json.loads(line):
            case str(module):
                import_module(module)
            case question:
                answers.write(json.dumps(_answer(*question)).encode() + b"\n")
                answers.flush()


atexit.register(_ended)
