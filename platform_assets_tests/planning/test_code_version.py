"""The code version changes with what code does, not with how it reads."""

from __future__ import annotations

from platform_assets.planning.code_version import code_version

PLAIN = "def f(a):\n    return a + 1\n"


def test_comments_docstrings_and_formatting_do_not_count():
    dressed = '"""Module."""\n\n\ndef f(a):\n    """Adds."""\n    # one\n    return (\n        a + 1\n    )\n'
    assert code_version({"gold": dressed}) == code_version({"gold": PLAIN})


def test_another_computation_counts():
    assert code_version({"gold": PLAIN.replace("1", "2")}) != code_version({"gold": PLAIN})
    assert code_version({"silver": PLAIN}) != code_version({"gold": PLAIN})
