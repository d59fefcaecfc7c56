"""Every fail point has one place in the code and one in the list."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import platform_assets
from platform_assets.failpoints import POINTS

PACKAGE = Path(platform_assets.__file__).parent


def named_in_the_code() -> Counter[str]:
    """The names that are passed to `failpoint`, all of which are written out."""
    found: Counter[str] = Counter()
    for module in PACKAGE.rglob("*.py"):
        source = module.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(source)) if "failpoint(" in source else ():
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "failpoint":
                [name] = node.args
                assert isinstance(name, ast.Constant), f"{module}:{node.lineno}"
                found[str(name.value)] += 1
    return found


def test_every_point_is_in_the_code_once_and_in_the_list_once() -> None:
    listed = Counter(point for points in POINTS.values() for point in points)
    assert named_in_the_code() == listed
    assert set(listed.values()) == {1}
    assert len(listed) >= 40
