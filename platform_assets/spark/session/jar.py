"""A jar of a registry, known by its content."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Jar:
    """One file of a registry, and the content it must have.

    Args:
        classifier: which of several files of a module; the only one by default.
    """

    organisation: str
    module: str
    revision: str
    sha256: str
    classifier: str = ""

    @property
    def file(self) -> str:
        """Its name in the folder of jars."""
        return "-".join(filter(None, (self.module, self.revision, self.classifier))) + ".jar"
