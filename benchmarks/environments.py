"""Environments of their own for what the platform is compared with, installed from PyPI."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.harness import BenchmarkError


def environment(folder: Path, pins: Sequence[str]) -> Path:
    """The programs of a virtual environment with these packages, installed unless they are there already."""
    programs, noted = folder / "bin", folder / "pins.json"
    if noted.is_file() and json.loads(noted.read_text(encoding="utf-8")) == list(pins):
        return programs
    shutil.rmtree(folder, ignore_errors=True)
    _uv("venv", "--quiet", "--python", sys.executable, str(folder))
    _uv("pip", "install", "--quiet", "--python", str(programs / "python"), *pins)
    noted.write_text(json.dumps(list(pins)), encoding="utf-8")
    return programs


def _uv(*arguments: str) -> None:
    uv = shutil.which("uv")
    if uv is None:
        raise BenchmarkError("There is no uv on PATH to install with: python -m pip install uv.")
    # Not from within the project, whose pins are not the others'
    done = subprocess.run([uv, *arguments], cwd=Path.home(), capture_output=True, text=True, check=False)
    if done.returncode:
        raise BenchmarkError(f"`uv {' '.join(arguments)}` failed:\n{done.stderr[-2000:]}")
