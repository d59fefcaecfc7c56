"""Show text of others in Dagster: errors as what they say, without calls, and metadata that is no Markdown.

Dagster prints the trace of whatever a step or a tick raises, which helps nobody whose day is held. It leaves that out
only of errors that bring along how they are to be shown, as those of its other processes do, which have private names.

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


class ExpectedError(DagsterUserCodeProcessError):
    """An expected error of the platform, which says itself what happened and what to do."""

    def __init__(self, error: PlatformError) -> None:
        shown = SerializableErrorInfo(str(error), [], type(error).__name__)
        super().__init__(str(error), user_code_process_error_infos=[shown])  # type: ignore[no-untyped-call]


class RefusedError(DagsterUserCodeProcessError, dg.Failure):
    """A step did its work, and the gates refused some of it: trying again would give the same."""

    def __init__(self, description: str, metadata: Mapping[str, dg.MetadataValue] | None = None) -> None:
        shown = SerializableErrorInfo(description, [], "Refused")
        super().__init__(  # type: ignore[no-untyped-call]
            description, metadata, False, user_code_process_error_infos=[shown]
        )


@contextmanager
def errors_without_trace(*, of_own_code: bool = False) -> Iterator[None]:
    """Raise an expected error within as what it says.

    Args:
        of_own_code: whether an error that a person's own code caused loses its trace, too. That is what they look for,
            unless the error names file and line, as where contracts are loaded.

    Raises:
        ExpectedError: in place of a `PlatformError`.
    """
    try:
        yield
    except PlatformError as error:
        if not of_own_code and error.__cause__ is not None and users_line(error.__cause__):
            raise
        raise ExpectedError(error) from None


def plain(shown: str) -> dg.MetadataValue:
    """Return a line of plain text."""
    return dg.MetadataValue.text(visible(shown))


def listed(items: Iterable[str], more: Iterable[str] = ()) -> dg.MetadataValue:
    """Return a list of what others wrote, each item as it is written; `more` is the platform's own."""
    return markdown("\n".join(f"- {line}" for line in (*map(as_code, items), *more)))


def markdown(written: str) -> dg.MetadataValue:
    """Return Markdown of the platform's own, in which what others wrote was made code by `as_code`."""
    return dg.MetadataValue.md(visible(written, breaks=True))


def table_row(row: dict[str, str | int | float | bool | None]) -> dg.TableRecord:
    """Return a row of a table."""
    return dg.TableRecord({name: visible(value) if isinstance(value, str) else value for name, value in row.items()})
