"""The list of what both engines computed alike on odd values, with the versions that did."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from typing import NamedTuple


class EqualList(NamedTuple):
    """Versions that were compared, the forms that `shown_equal` may find in a plan, and the digest of it all."""

    spark: str
    sail: str
    expressions: frozenset[str]
    digest: str


def _read() -> EqualList:
    text = files(__package__).joinpath("shown_equal.json").read_bytes()
    listed = json.loads(text)
    forms = (f"{name}{rest}" for name, rests in listed["expressions"].items() for rest in rests)
    return EqualList(listed["spark"], listed["sail"], frozenset(forms), hashlib.sha256(text).hexdigest()[:12])


EQUAL = _read()


def other_versions() -> Iterator[str]:
    """Yield each engine that is installed in another version than the list was made with, as a sentence's end."""
    for name, package, listed in (("Spark", "pyspark", EQUAL.spark), ("Sail", "pysail", EQUAL.sail)):
        with suppress(PackageNotFoundError):  # starting it says so
            if (installed := version(package)) != listed:
                yield f"what comes out alike was shown with {name} {listed}, and {installed} is installed"
