"""Processes that `up` keeps going: started again when one dies, given up when one dies again and again at once."""

from __future__ import annotations

import math
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from platform_assets.cli.watchdog import LOOK_S, PATIENCE_S, is_there, signal_group
from platform_assets.errors import PlatformError

_FIRST_PAUSE_S = 1.0
_LONGEST_PAUSE_S = 60.0
_AT_ONCE_S = 60.0
"""Who lived for less died at once."""

_MOST_IN_A_ROW = 5
_IN_A_ROW = f"{_MOST_IN_A_ROW} times within {_AT_ONCE_S:.0f} seconds of its start"


class PartError(PlatformError):
    """A part cannot be kept going."""


def pause_before_restart_s(lives_s: Sequence[float]) -> float | None:
    """Seconds until a part that died is started again, twice as many each time; None where that is given up.

    Args:
        lives_s: how long it lived each time, in seconds, the last one at the end.
    """
    in_a_row = 0
    for life_s in reversed(lives_s):
        if life_s >= _AT_ONCE_S:
            break
        in_a_row += 1
    if in_a_row >= _MOST_IN_A_ROW:
        return None
    return min(_FIRST_PAUSE_S * 2.0 ** max(in_a_row - 1, 0), _LONGEST_PAUSE_S)


def describe_end(code: int) -> str:
    """How a process ended, by its return code."""
    if code >= 0:
        return f"ended with exit code {code}"
    with suppress(ValueError):
        return f"was ended by {signal.Signals(-code).name}"
    return f"was ended by signal {-code}"


@dataclass
class Part:
    """A process, and what it starts.

    Args:
        name: as people know it.
        command: to start it with.
        why: what may be wrong where it dies at once, asked for then; empty if it cannot be told.
        started: told its process group, each time it is started.
        output: descriptor for what it writes; where this process writes by default.
        secrets: variables that only it is started with.
        needed: whether the others are of no use without it; where it is not, it alone is given up.
    """

    name: str
    command: Sequence[str]
    why: Callable[[], str] = lambda: ""
    started: Callable[[int], None] = lambda group: None
    output: int | None = None
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    needed: bool = True
    _process: subprocess.Popen[bytes] | None = None
    _groups: list[int] = field(default_factory=list)
    _lives_s: list[float] = field(default_factory=list)
    _since: float = 0.0
    _due: float = 0.0

    def start(self, folder: Path, environment: Mapping[str, str]) -> bool:
        """Start it, in a session of its own: whatever it starts can be ended with it, and a Ctrl-C is not for it.

        Returns:
            Whether it had been started before.
        """
        self._process = subprocess.Popen(
            self.command,
            cwd=folder,
            env={**environment, **self.secrets},
            start_new_session=True,
            stdout=self.output,
            stderr=self.output,
        )
        self.started(self._process.pid)
        self._groups = [group for group in self._groups if is_there(group)] + [self._process.pid]
        self._since = time.monotonic()
        return bool(self._lives_s)

    def died(self) -> int | None:
        """The return code, if it died since it was started."""
        code = self._process.poll() if self._process else None
        if code is not None:
            self._lives_s.append(time.monotonic() - self._since)
            self._process = None
        return code

    def restart_in(self) -> float | None:
        """Seconds until it is to be started again; None if it is given up."""
        pause_s = pause_before_restart_s(self._lives_s)
        self._due = math.inf if pause_s is None else time.monotonic() + pause_s
        return pause_s

    @property
    def is_due(self) -> bool:
        """Whether it does not run and should be started now."""
        return self._process is None and time.monotonic() >= self._due

    def signal(self, number: int) -> None:
        """To all that it started, also before it died and was started again."""
        for group in self._groups:
            signal_group(group, number)

    def is_gone(self) -> bool:
        """Whether nothing of it is left."""
        if self._process is not None:
            self._process.poll()  # or it stays in its group for ever
        return not any(map(is_there, self._groups))


def keep_going(
    parts: Sequence[Part], folder: Path, environment: Mapping[str, str], notice: Callable[[str], None]
) -> None:
    """Start processes and keep them going, until an exception ends it.

    Args:
        parts: each of which goes on when another one dies.
        folder: to start them in.
        environment: to start them with.
        notice: told in a sentence when one died, and when it is started again.

    Raises:
        PartError: one died again and again as soon as it was started.
    """
    while True:
        for part in parts:
            if (code := part.died()) is not None:
                pause_s = part.restart_in()
                if pause_s is None:
                    given_up = f"{part.name} {describe_end(code)}, {_IN_A_ROW}, and is given up"
                    if not part.needed:
                        notice(f"{given_up}; the rest goes on without it")
                        continue
                    reason = part.why()
                    raise PartError(
                        f"{given_up}{f': {reason}' if reason else ''}.",
                        "What it wrote above says why. Mend that, and start `platform-assets up` again; what was "
                        "published stays, and the next run goes on from there.",
                    )
                notice(f"{part.name} {describe_end(code)}; it is started again in {pause_s:.0f} s, the rest goes on")
            elif part.is_due and part.start(folder, environment):
                notice(f"{part.name} is started again")
        time.sleep(LOOK_S)


def end(parts: Iterable[Part]) -> None:
    """Ask everything to stop, wait, then end what is left."""
    every = list(parts)
    for number in (signal.SIGINT, signal.SIGKILL):
        for part in every:
            part.signal(number)
        until = time.monotonic() + PATIENCE_S
        while not all(part.is_gone() for part in every) and time.monotonic() < until:
            time.sleep(LOOK_S)
