"""A command that asks a source again ends with all that it started, whatever that has open."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from platform_assets.contracts import LandingFiles
from platform_assets.operations.read_again import _run
from platform_assets.sources.source import SourceError
from platform_assets_tests.support.clicks import RAW


def _is_gone(process: int) -> bool:
    for _ in range(100):
        with suppress(OSError):
            if Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
                time.sleep(0.1)
                continue
        return True
    return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks into /proc")
def test_what_a_command_leaves_behind_ends_with_it_and_long_errors_are_cut(tmp_path: Path) -> None:
    script = "sleep 60 & echo $! > left; yes no | head -c 3000000 >&2; echo the end >&2; exit 3"
    contract = replace(RAW, source=LandingFiles("orders", ask_again=("sh", "{folder}")), voided=None, updated_at=None)
    begun = time.monotonic()
    with pytest.raises(SourceError, match=r"ended with 3: .*the end") as failed:
        _run(contract, ["sh", "-c", f"cd {tmp_path}; {script}"], 1)
    assert time.monotonic() - begun < 30
    assert len(failed.value.what) < 500
    assert _is_gone(int((tmp_path / "left").read_text()))
