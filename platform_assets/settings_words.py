"""Describe a wrong setting: its field and the expected value, without its own, which may be a secret."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches

from pydantic_core import ErrorDetails

from platform_assets.places import without_secrets

PREFIX = "PLATFORM_"
_MAY_HOLD_SECRETS = {
    "ledger_url",
    "notify",
    "secret",
    "spark_conf",
    "spark_remote",
    "ui_password",
    "webhook_secret",
    "webhook_url",
}
ONLY_AS_VARIABLES = {
    "secret": "guess masked values",
    "ui_password": "use Dagster",
    "webhook_secret": "sign messages with it",
    "webhook_url": "write to that address",
}
"""Secrets that no file may hold, and what a reader of the file could do with each."""
SHORTEST_PASSWORD = 12
"""Nothing keeps a program from trying one after the other."""
LEAST_SECRET = 32
"""Characters of a secret; a shorter one could be found by trying."""
_NEARLY = 0.85
"""Similarity from which on an unknown variable is taken for a misspelt setting."""


def misspelt(variables: Iterable[str], fields: Mapping[str, object]) -> tuple[str, str] | None:
    """Return a variable that is nearly a setting's, and the one that was meant; none where all are right.

    A misspelt setting would have no effect.
    """
    for variable in variables:
        name = variable.removeprefix(PREFIX).lower()
        if not variable.startswith(PREFIX) or name in fields:
            continue
        if close := get_close_matches(name, fields, 1, _NEARLY):
            return variable, f"{PREFIX}{close[0].upper()}"
    return None


_EXPECTED = {
    "spark_master": "must be written like local[*], spark://host:7077, k8s://https://host:443 or yarn",
    "spark_driver_memory": "must be written like 3g or 512m",
    "sail_memory": "must be written like 3g or 512m",
    "ui_url": "must be written like https://dagster.example.com",
}
"""Of fields that have to follow a pattern: what a person reads instead of it."""


def describe(problem: ErrorDetails, fields: Mapping[str, object]) -> str:
    """Return one problem: the field, the expected value, and the given one unless it may be a secret."""
    field = str(problem["loc"][0]) if problem["loc"] else ""
    name = ".".join(map(str, problem["loc"])) or "settings"
    # A name that is no setting's may have been meant for one that holds a secret.
    if field not in fields and (close := get_close_matches(field, fields, 1, _NEARLY)):
        return f"there is no {name}; did you mean {close[0]}?"
    is_shown = field in fields and field not in _MAY_HOLD_SECRETS
    shown = f" (got {without_secrets(str(problem['input']))[:80]!r})" if is_shown else ""
    expected = _EXPECTED.get(field) if problem["type"] == "string_pattern_mismatch" else None
    return f"{name}: {expected or problem['msg'].removeprefix('Value error, ')}{shown}"
