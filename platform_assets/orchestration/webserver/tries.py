"""How many passwords are looked at: who tries one after the other hears nothing about most of them.

All that reaches this machine's own address comes from a few addresses, so what counts is what is new: a page that was
left open, or a program that repeats an old password, guesses nothing and shuts nobody out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from secrets import token_bytes

AT_ONCE, EACH_S = 20, 10.0
"""Wrong passwords that one address may give at once, and seconds until it may give one more."""
AT_ONCE_OF_ALL, EACH_S_OF_ALL = 100, 2.0
"""The same of all together: who works on this machine has any number of addresses."""

_REMEMBERED = 1024
_ALL = ""


@dataclass
class _Left:
    """What may still be tried.

    Args:
        tries: how many, some of which are not whole yet.
        at_s: when that was.
        most: how many it can become.
        each_s: seconds until there is one more.
        is_told: whether somebody was told that there is none.
    """

    tries: float
    at_s: float
    most: int
    each_s: float
    is_told: bool = False

    def at(self, now_s: float) -> float:
        """How many there are now."""
        return min(float(self.most), self.tries + max(now_s - self.at_s, 0.0) / self.each_s)

    def take(self, now_s: float) -> None:
        self.tries, self.at_s = self.at(now_s) - 1, now_s


class Tries:
    """Wrong passwords that were given to one webserver; times are seconds of a clock that nobody sets."""

    def __init__(self) -> None:
        self._left: dict[str, _Left] = {}
        self._wrong: dict[bytes, None] = {}
        self._key = token_bytes(16)

    def wait_s(self, client: str, given: Sequence[str], now_s: float) -> float:
        """Seconds until what somebody gives is looked at; 0 where it is at once.

        Args:
            client: the address that it comes from.
            given: what it gives.
            now_s: the time.
        """
        if self._hash(given) in self._wrong:
            return 0.0
        return max([0.0, *((1 - left.at(now_s)) * left.each_s for left in self._of(client))])

    def count(self, client: str, given: Sequence[str], now_s: float) -> None:
        """Count what was looked at and is wrong; once, however often it comes."""
        if (hashed := self._hash(given)) in self._wrong:
            return
        self._wrong[hashed] = None
        if len(self._wrong) > _REMEMBERED:
            del self._wrong[next(iter(self._wrong))]
        self._left = {name: left for name, left in self._left.items() if left.at(now_s) < left.most}
        for name, most, each_s in ((client, AT_ONCE, EACH_S), (_ALL, AT_ONCE_OF_ALL, EACH_S_OF_ALL)):
            self._left.setdefault(name, _Left(most, now_s, most, each_s)).take(now_s)

    def is_news(self, client: str) -> bool:
        """Whether nobody was told yet that an address, or all, may try no more; asked once, somebody was."""
        is_news = not all(left.is_told for left in self._of(client) if left.tries < 1)
        for left in self._of(client):
            left.is_told = left.is_told or left.tries < 1
        return is_news

    def _of(self, client: str) -> list[_Left]:
        return [left for name in (client, _ALL) if (left := self._left.get(name))]

    def _hash(self, given: Sequence[str]) -> bytes:
        return blake2b("\n".join(given).encode("utf-8", "surrogatepass"), key=self._key).digest()
