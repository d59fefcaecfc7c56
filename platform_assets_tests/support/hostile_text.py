"""Text that would do something if it were not only shown, and what is wrong with an output that lets it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from platform_assets.visible import as_code, visible

HOSTILE = "x\x1b[2J\x9b1m\u202e\u200b[red]y![p](http:e)<img src=q>`c`\r\nError: all is lost"
"""As a value, a reason or a name; without a slash, so that it can be the name of a file."""

SHOWN = visible(HOSTILE)
_BEGINS = SHOWN[: SHOWN.index("[red]")]
_ACTIVE = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b\u202e]")


def faults(output: str) -> Iterator[str]:
    """What an output for people does with hostile text but to show it whole, in one line."""
    if found := _ACTIVE.search(output):
        yield f"lets {found[0]!a} through: {output[max(found.start() - 60, 0) : found.end() + 20]!a}"
    if re.search(r"^\s*Error: all is lost", output, re.MULTILINE):
        yield "has a line that the platform did not write"
    for begins in re.finditer(re.escape(_BEGINS), output):
        if not output.startswith(SHOWN, begins.start()):
            yield f"does not show all of it: {output[begins.start() :][:120]!r}"


def faults_of_markdown(written: str) -> Iterator[str]:
    """The same of Markdown, where it must be within code besides."""
    yield from faults(written)
    for begins in re.finditer(re.escape(SHOWN), written):
        before = written[written.rfind("\n", 0, begins.start()) + 1 : begins.start()]
        fences = [run for run in re.findall("`+", before) if len(run) == 2]
        if len(fences) % 2 == 0:
            yield f"is Markdown: {written[begins.start() - 40 :][:120]!r}"


assert as_code(HOSTILE).startswith("``")
