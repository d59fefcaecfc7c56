"""A second user of this machine, who tries to look into what is not for them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

NOBODY = 65534
NEEDS_ROOT = "needs root, to become another user"
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason=NEEDS_ROOT)

_PROGRAM = """
import encodings.idna, json, os, socket, struct
from pathlib import Path
{imports}
os.setgroups({groups})
os.setgid({gid})
os.setuid({uid})

def walk(place):
    found = []
    for folder, folders, files in os.walk(place):
        found += [folder] + [os.path.join(folder, name) for name in files]
    return found

def can(flag, path):
    try:
        os.close(os.open(path, flag))
    except OSError:
        return False
    return True

place = Path({place!r})
{code}
"""


@contextmanager
def a_place_for_all() -> Iterator[Path]:
    """A folder that every user reaches, with a file that every user reads: pytest's own are closed to them."""
    with TemporaryDirectory(prefix="for-all-", ignore_cleanup_errors=True) as name:
        place = Path(name)
        place.chmod(0o755)
        (place / "control").write_text("for all")
        (place / "control").chmod(0o644)
        yield place


def as_other_user(place: Path, code: str, *, groups: Sequence[int] = (), imports: str = "") -> Any:
    """What a program prints, as JSON, that first becomes another user.

    Args:
        place: `place` in the program.
        code: with `walk`, which lists what can be found, and `can`, which says whether a path can be opened.
        groups: besides its own; numbers.
        imports: of what the other user may not be able to read.
    """
    program = _PROGRAM.format(imports=imports, groups=list(groups), gid=NOBODY, uid=NOBODY, place=str(place), code=code)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def readable(place: Path, groups: Sequence[int] = ()) -> list[str]:
    """Files below a place that another user can read, by their path from there."""
    code = "print(json.dumps([path for path in walk(place) if os.path.isfile(path) and can(os.O_RDONLY, path)]))"
    return sorted(Path(path).relative_to(place).as_posix() for path in as_other_user(place, code, groups=groups))
