"""Errors that Dagster shows as what they say, without the calls that led to them.

Dagster prints the trace of whatever a step or a tick raises, which helps nobody whose day is held. It leaves that out
only of errors that bring along how they are to be shown, as those of its other processes do: so these do, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import dagster as dg
from dagster._core.errors import DagsterUserCodeProcessError
from dagster_shared.error import SerializableErrorInfo

from platform_assets.errors import PlatformError, users_line


class ToldError(DagsterUserCodeProcessError):
    """An expected error of the platform, which says itself what happened and what to do.

    Args:
        error: that was raised.
    """

    def __init__(self, error: PlatformError) -> None:
        shown = [_shown(str(error), type(error).__name__)]
        super().__init__(str(error), user_code_process_error_infos=shown)  # type: ignore[no-untyped-call]


class RefusedError(DagsterUserCodeProcessError, dg.Failure):
    """A step did its work, and the gates refused some of it: trying again would give the same.

    Args:
        description: what was refused and why, and what to do.
        metadata: shown with it.
    """

    def __init__(self, description: str, metadata: Mapping[str, dg.MetadataValue] | None = None) -> None:
        shown = [_shown(description, "Refused")]
        super().__init__(  # type: ignore[no-untyped-call]
            description, metadata, False, user_code_process_error_infos=shown
        )


@contextmanager
def expected_errors_told() -> Iterator[None]:
    """Within it, an expected error leaves as what it says.

    One that a person's own code caused keeps its trace, which is what they look for then.

    Raises:
        ToldError: in place of a `PlatformError`.
    """
    try:
        yield
    except PlatformError as error:
        if error.__cause__ is not None and users_line(error.__cause__):
            raise
        raise ToldError(error) from None


@contextmanager
def mistakes_told() -> Iterator[None]:
    """Within it, an expected error leaves as what it says, also where a person's own code caused it.

    Contracts and functions are looked at as they are loaded, and what is said of them names file and line.

    Raises:
        ToldError: in place of a `PlatformError`.
    """
    try:
        yield
    except PlatformError as error:
        raise ToldError(error) from None


def _shown(message: str, name: str) -> SerializableErrorInfo:
    return SerializableErrorInfo(message, [], name)
