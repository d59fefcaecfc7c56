"""What others do while a process is at work, played in one process."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import pytest


def once_at(monkeypatch: pytest.MonkeyPatch, module: ModuleType, point: str, others: Callable[[], object]) -> None:
    """Others do something the first time a module comes by a fail point; whatever they do passes it as well."""
    to_come = [others]

    def meanwhile(name: str) -> None:
        if name == point and to_come:
            to_come.pop()()

    monkeypatch.setattr(module, "failpoint", meanwhile)
