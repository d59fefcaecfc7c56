"""A SQL statement in its normal form, which has the code version and is run.

Spark gets this form and not the file, so two files with one version are the same statement. sqlglot's own form is not
used: it reads `1.5BD` as `1.5::DECIMAL`, which is 2, and `'it''s'` as `'it' 's'`, prints TIME as TIMESTAMP, changes
with its version, and takes a second to import.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

_GAP = re.compile(r"\s+|--[^\r\n]*")
_BRACKETS = re.compile(r"/\*|\*/")
_TOKEN = re.compile(
    r"""(?P<text>[rR]'[^']*'|[rR]"[^"]*"|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`)
    |(?P<word>[^\W\d]\w*)
    |(?P<number>\.?\d(?:[eE][+-](?=\d)|[\w.])*)
    |(?P<hint>/\*\+.*?\*/)
    |(?P<sign>[^\w\s'"`])""",
    re.VERBOSE | re.DOTALL,
)
_APART = frozenset("(),+-*/%=<>&|^")
"""Signs beside which a space means nothing. Two signs without one between them may be an operator."""

_WORDS = """
ALL AND ANTI AS ASC BETWEEN BY CASE CAST CROSS CURRENT DESC DISTINCT ELSE END EXCEPT EXISTS FALSE FOLLOWING FROM FULL
GROUP HAVING IN INNER INTERSECT INTERVAL IS JOIN LATERAL LEFT LIKE LIMIT NOT NULL NULLS ON OR ORDER OUTER OVER PARTITION
PRECEDING RANGE RIGHT ROW ROWS SELECT SEMI THEN TRUE UNBOUNDED UNION USING WHEN WHERE WITH
"""
_KEYWORDS = frozenset(_WORDS.split())
"""Few, so that another version of a library makes nothing stale."""


class UnreadableStatementError(ValueError):
    """A file has no single statement; `what` ends a sentence, and `offset` is the place in the file."""

    def __init__(self, what: str, offset: int) -> None:
        super().__init__(what)
        self.what, self.offset = what, offset


class Token(NamedTuple):
    """A word, number, text or sign as written, and its offset in the file."""

    kind: str
    text: str
    start: int


@dataclass(frozen=True)
class Statement:
    """One SQL statement.

    Args:
        tokens: in order, without comments and the semicolon at the end.
        text: normal form, with keywords and functions in capitals.
        starts: offset of each token in the normal form.
    """

    source: str
    tokens: tuple[Token, ...]
    text: str
    starts: tuple[int, ...]

    def place_in_text(self, offset: int) -> str:
        """Return line and column in the file of an offset in the normal form."""
        return place_in(self.source, self.tokens[max(bisect_right(self.starts, offset) - 1, 0)].start)


def place_in(source: str, offset: int) -> str:
    """Return line and column of an offset in a file, both from 1."""
    before = source[:offset]
    return f"line {before.count(chr(10)) + 1}, column {offset - before.rfind(chr(10))}"


def parse_statement(source: str) -> Statement:
    """Parse the one statement of a file.

    Names and types keep their case, which JSON and structs show; so does a keyword that is a name somewhere in it.

    Raises:
        UnreadableStatementError: a text or comment has no end; there is no statement, or more than one; or Spark would
            replace a variable in it.
    """
    if (at := source.find("${")) >= 0:
        raise UnreadableStatementError("has ${, where Spark would put in a setting or variable of the machine", at)
    tokens = list(_tokens(source))
    while tokens and tokens[-1].text == ";":
        tokens.pop()
    if not tokens:
        raise UnreadableStatementError("has no statement", 0)
    if ends := [token.start for token in tokens if token.text == ";"]:
        raise UnreadableStatementError("has more than one statement; it ends", ends[0])
    names = set(_names(tokens))
    parts, starts, length = list[str](), list[int](), 0
    for number, token in enumerate(tokens):
        before, after = tokens[number - 1] if number else None, tokens[number + 1] if number + 1 < len(tokens) else None
        text = token.text
        if token.kind == "word" and text.lower() not in names:
            is_call = after is not None and after.text == "("
            text = text.upper() if is_call or text.upper() in _KEYWORDS else text
        if before is not None and _is_apart(before, token):
            parts.append(" ")
            length += 1
        parts.append(text)
        starts.append(length)
        length += len(text)
    return Statement(source, tuple(tokens), "".join(parts), tuple(starts))


def _tokens(source: str) -> Iterator[Token]:
    at = 0
    while at < len(source):
        if gap := _GAP.match(source, at):
            at = gap.end()
        elif source.startswith("/*", at) and not source.startswith("/*+", at):
            at = _after_comment(source, at)
        elif found := _TOKEN.match(source, at):
            yield Token(str(found.lastgroup), found[0], at)
            at = found.end()
        else:
            raise UnreadableStatementError(f"has a {source[at]} without its end", at)


def _after_comment(source: str, start: int) -> int:
    """Return the end of a comment; comments may be nested."""
    depth = 0
    for bracket in _BRACKETS.finditer(source, start):
        depth += 1 if bracket[0] == "/*" else -1
        if not depth:
            return bracket.end()
    raise UnreadableStatementError("has a /* without its end", start)


def _names(tokens: list[Token]) -> Iterator[str]:
    """Yield words that are certainly names: after AS, or next to a dot or a colon."""
    for before, after in pairwise(tokens):
        if before.text in (".", ":") or before.text.upper() == "AS":
            yield after.text.lower()
        if after.text in (".", ":"):
            yield before.text.lower()


def _is_apart(before: Token, after: Token) -> bool:
    if before.start + len(before.text) < after.start:
        return True
    either = {before.text, after.text}
    both_signs = before.kind == after.kind == "sign"
    return bool(either & set("(),")) or (not both_signs and bool(either & _APART))
