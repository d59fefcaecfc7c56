"""Ctrl-C in a terminal: one sentence, the shell's exit code, and nothing left running or half done."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator

from platform_assets.lakehouse.lake import Lake
from platform_assets.lakehouse.releases import current_release
from platform_assets.settings import Settings
from platform_assets_tests.support.cli.products import SILVER

COMMAND = "from platform_assets.cli.app import main; main()"


def test_a_refresh_is_interrupted_while_spark_starts(products: Settings) -> None:
    lake = Lake(products.lake)
    before = current_release(lake)
    ours, theirs = pty.openpty()
    args = ["refresh", SILVER, "--days", "2017-01-02", "--force"]
    # The bar, which hides the cursor, is there before Spark is. Its own session, as a terminal gives one: the signal
    # goes to Java, too.
    process = subprocess.Popen(
        [sys.executable, "-c", COMMAND, *args], stdout=theirs, stderr=theirs, start_new_session=True
    )
    os.close(theirs)
    said = b""
    for text in _printed(ours):
        said += text
        if process.poll() is None and b"\x1b[?25l" in said:
            os.killpg(process.pid, signal.SIGINT)
            break
    said += b"".join(_printed(ours))
    assert process.wait(60) == 130, said.decode()
    assert b"Interrupted." in said
    assert b"Run the same command again" in said
    assert b"Traceback" not in said
    assert current_release(lake) == before
    assert not lake.locks_path.exists() or not list(lake.locks_path.glob("stage-*"))


def _printed(terminal: int) -> Iterator[bytes]:
    while True:
        try:
            text = os.read(terminal, 65536)
        except OSError:  # Linux's word for a terminal that nobody has open any more
            return
        if not text:
            return
        yield text
