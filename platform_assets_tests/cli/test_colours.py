"""Colours are for terminals whose user wants them."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from contextlib import suppress

import pytest


def on_a_terminal(*args: str, **environment: str) -> str:
    """All that a command says where both of its streams are a terminal."""
    ours, its = pty.openpty()
    started = [sys.executable, "-c", "from platform_assets.cli import main; main()", *args]
    values = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "TERM")}
    process = subprocess.Popen(started, stdout=its, stderr=its, env=values | {"TERM": "xterm"} | environment)
    os.close(its)
    said = b""
    with suppress(OSError):  # by which Linux says that nobody writes any more
        while more := os.read(ours, 1 << 16):
            said += more
    os.close(ours)
    assert process.wait() == 2
    return said.decode()


def test_a_terminal_gets_colours(state: object) -> None:
    assert "\x1b[1;31mError:\x1b[0m" in on_a_terminal("read", "no.such")


@pytest.mark.parametrize("word", ["NO_COLOR", "TERM"])
def test_nobody_gets_codes_who_does_not_want_them(state: object, word: str) -> None:
    said = on_a_terminal("read", "no.such", **{word: "dumb"})
    assert "Error:" in said
    assert "\x1b" not in said
