"""Show text of others in Dagster: errors as what they say, without calls, and metadata that is no Markdown.

Dagster prints the trace of whatever a step or a tick raises, which helps nobody whose day is held. It leaves that out
only of errors that bring along how they are to be shown, as those of its other processes do: so these do, too.

Nothing else here makes metadata of text, so that whoever adds some cannot forget to make it visible.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

import dagster as dg
from dagster._core.errors import DagsterUserCodeProcessError
from dagster_shared.error import SerializableErrorInfo

from platform_assets.errors import PlatformError, users_line
from platform_assets.visible import as_code, visible


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


def plain(shown: str) -> dg.MetadataValue:
    """A line of plain text."""
    return dg.MetadataValue.text(visible(shown))


def listed(items: Iterable[str], more: Iterable[str] = ()) -> dg.MetadataValue:
    """A list of what others wrote, perhaps in part, each as it is written."""
    return markdown("\n".join(f"- {line}" for line in (*map(as_code, items), *more)))


def markdown(written: str) -> dg.MetadataValue:
    """Markdown of the platform's own, in which what others wrote was made code by `as_code`."""
    return dg.MetadataValue.md(visible(written, breaks=True))


def table_row(row: dict[str, str | int | float | bool | None]) -> dg.TableRecord:
    """A row of a table."""
    return dg.TableRecord({name: visible(value) if isinstance(value, str) else value for name, value in row.items()})
