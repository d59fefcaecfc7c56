"""Write numbers and lists in sentences, and text of others so that nothing in it acts.

Use one of these to print foreign text, such as file names, values, reasons and people's names: `visible`
for a terminal, a log or a page that shows plain text, `as_code` where Markdown is understood, `as_chat` for a message
to a chat. The command line's console and Dagster's metadata (`cli/console.py`, `orchestration/assets/events.py`) do so
by themselves. Formats for programs stay as they are.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator

_FIGURE = re.compile(r"(?<!\S)[^\s'\"]*\d[^\s'\"]*")
"""Sizes, times and hashes; not quoted text, such as names of columns."""


def counted(number: int, noun: str, does: str = "") -> str:
    """Return a number with its noun, and what it does: 1 day, 2,000 days; 1 row waits, 2 rows wait."""
    if number == 1:
        return f"1 {noun}{f' {does}s' if does else ''}"
    return f"{number:,} {noun}s{f' {does}' if does else ''}"


def size(count: int) -> str:
    """Return bytes for people."""
    value = float(count)
    for unit in ("B", "kB", "MB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:,.1f} GB"


def lasting(seconds: float) -> str:
    """Return a time for people."""
    if seconds < 120:
        return f"{seconds:,.1f} s"
    return f"{seconds / 60:,.0f} min" if seconds < 7200 else f"{seconds / 3600:,.1f} h"


def without_figures(message: str) -> str:
    """Return the common form of messages that differ only in figures."""
    return _FIGURE.sub("…", message)


def alike(files: Iterable[tuple[str, str]], most: int | None = None) -> Iterator[str]:
    """Yield one line for all files with the same message except for figures, with one of them as an example.

    Args:
        files: paths, each with its message.
        most: lines; then a last one counts the other files.
    """
    by_kind: dict[str, list[tuple[str, str]]] = {}
    for path, message in dict.fromkeys(files):  # a file of two tables is listed once
        by_kind.setdefault(without_figures(message), []).append((path, message))
    kinds = list(by_kind.values())
    for (path, message), *others in kinds[:most]:
        more = f" (and {counted(len(others), 'other file')} likewise)" if others else ""
        yield f"{path}{more} {message}"
    if rest := [] if most is None else kinds[most:]:
        yield f"{counted(sum(map(len, rest)), 'more file')}, for {counted(len(rest), 'other reason')}"


_UNSEEN = (
    r"\x00-\x1f\x7f-\x9f"  # controls: what a terminal takes for commands, and line breaks
    r"\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"  # order, breaks, no width
    r"\u115f\u1160\u3164\uffa0"  # letters that are blank
    r"\U000e0000-\U000e0fff"  # tags
    r"\ud800-\udfff"  # bytes of a file's name that are no text
)
_JOINERS = r"[\u200c\u200d]"
"""Part of how some scripts and pictures are written, and misleading elsewhere."""
_HIDDEN = re.compile(rf"[{_UNSEEN}]|(?<![^\x00-\x7f]){_JOINERS}|{_JOINERS}(?![^\x00-\x7f])")
_HIDDEN_BUT_BREAKS = re.compile(_HIDDEN.pattern.replace(r"\x00-\x1f", r"\x00-\x09\x0b-\x1f"))
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_BACKTICKS = re.compile(r"`+")
_CHAT = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "`": "'"})
"""What chats take for links, mentions and the end of code."""


def visible(text: str, *, breaks: bool = False) -> str:
    """Return text in which nothing acts: controls, overrides of direction and blank characters become hexadecimal.

    Args:
        breaks: whether the platform itself wrote its line breaks, which then stay.
    """
    hidden = _HIDDEN_BUT_BREAKS if breaks else _HIDDEN
    return hidden.sub(lambda found: _written_out(found[0]), text)


def as_code(text: str) -> str:
    """Return text within Markdown, as code: there is no link, picture or HTML in it."""
    shown = visible(text)
    fence = "`" * (max(map(len, _BACKTICKS.findall(shown)), default=0) + 1)
    room = " " if shown.startswith("`") or shown.endswith("`") or not shown.strip() else ""
    return f"{fence}{room}{shown}{room}{fence}"


def as_chat(text: str) -> str:
    """Return text within a message to a chat, as code: it can mention no user and contains no link."""
    return f"`{visible(text).translate(_CHAT)}`" if text.strip() else ""


def _written_out(character: str) -> str:
    """Return a character as a shell reads it within `$'…'`, too."""
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:  # as Python keeps a byte of a file's name
        return f"\\x{code - 0xDC00:02x}"
    if code <= 0x7F:
        return _SHORT.get(character, f"\\x{code:02x}")
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def for_shell(text: str) -> str:
    """Return text for a shell, also where it would act on a terminal: then as the escapes that shells read as well."""
    plain = text.replace("\\", "\\\\").replace("'", "\\'")
    return shlex.quote(text) if visible(text) == text else f"$'{visible(plain)}'"
