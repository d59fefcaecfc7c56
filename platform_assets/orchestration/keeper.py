"""Keep a JVM with Spark ready and lend it: rehearsed before a process needs it, renewed when it is worn.

One process has it at a time; others start their own. It is ended and started again when its borrower died, left
something behind or filled its memory, and ended when it is unused for long; the next borrower then waits for it no
longer than for its own. `up` starts it:

python -m platform_assets.orchestration.keeper SOCKET [unrehearsed]
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Collection
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import polars as pl
import polars.selectors as cs
from pydantic import SecretStr

from platform_assets.engine.platform import Author
from platform_assets.engine.refresh import refresh
from platform_assets.errors import PlatformError
from platform_assets.operations.opening import open_platform
from platform_assets.settings import Settings, load_settings
from platform_assets.sources.apart import rest
from platform_assets.spark.session.configuration import engine_key
from platform_assets.spark.session.jvm import scratch_of_jvm
from platform_assets.spark.session.on_demand import SparkOnDemand
from platform_assets.spark.session.session import create_session
from platform_assets.spark.session.warm import DONE, LentJvm, line_of, link_to_keeper
from platform_assets.spark.tables.lost import lost_spark_explained

_FIRST = date(2017, 3, 20)
_DAYS = 31
"""So many that windows of days at both ends have a gap between them: what reads several ranges is compiled, too."""
_SALES = 4
"""Rows a day. The last one breaks a rule, as is usual."""
_TURNS = (("csv", "jsonl", "parquet"), ("csv", "jsonl"), ("parquet",), ("parquet",))
"""Formats of the deliveries: first everything, then corrections. After some of these Java has compiled most of its hot
code; each format's reader is compiled separately."""


def rehearse(folder: Path, spark: SparkOnDemand) -> None:
    """Load a month of the shipped tables, and correct its ends a few times.

    Raises:
        PlatformError: it failed; the JVM is as good as it was.
        OSError: nothing can be written there.
    """
    folder.mkdir(0o700)
    settings = load_settings(
        state=folder,
        state_mode="700",
        lake="lake",
        lake_mode="",
        landing="landing",
        ledger_url=SecretStr(""),
        domains=("platform_assets.domains.retail",),
        calendar_first=_FIRST,
        calendar_last=_FIRST + timedelta(_DAYS - 1),
        today=_FIRST + timedelta(90),
        settle_s=0,
        secret=SecretStr("of a rehearsal, which is deleted at its end"),
    )
    try:
        _land(settings, "products", _FIRST, "products", [_product(number) for number in range(3)], ("jsonl",))
        for turn, formats in enumerate(_TURNS):
            days = [_FIRST + timedelta(number) for number in range(0, _DAYS, _DAYS - 1 if turn else 1)]
            rows = [_sale(number, day, turn) for day in days for number in range(_SALES)]
            _land(settings, "transactions", days[-1] + timedelta(turn), f"turn-{turn}", rows, formats)
            with open_platform(settings) as platform:
                refresh(platform, spark, Author("rehearsal", "a rehearsal"))
    finally:
        rest()


def _land(
    settings: Settings, source: str, arrival: date, name: str, rows: list[dict[str, Any]], formats: Collection[str]
) -> None:
    """Deliver rows once in each format, of sales each time for other baskets."""
    folder = settings.landing_folder / source / str(arrival)
    folder.mkdir(parents=True, exist_ok=True)
    frame = pl.DataFrame(rows).with_columns(cs.decimal().cast(pl.Decimal(12, 2)))
    for number, kind in enumerate(formats):
        own = frame.with_columns(cs.by_name("basket_id", require_all=False) + 10_000 * number)
        file = folder / f"{name}.{kind}"
        if kind == "parquet":
            own.write_parquet(file)
            continue
        texts = own.with_columns(cs.datetime().dt.strftime("%Y-%m-%dT%H:%M:%SZ"), cs.decimal().cast(pl.String))
        texts.write_csv(file) if kind == "csv" else texts.write_ndjson(file)


def _product(number: int) -> dict[str, Any]:
    return {
        "product_id": number,
        "effective_date": _FIRST,
        "manufacturer_id": 1,
        "department": "GROCERY",
        "brand": "National",
        "product_category": "THINGS",
        "product_type": "THING",
        "package_size": "1 OZ",
        "updated_at": datetime(*_FIRST.timetuple()[:3], tzinfo=UTC),
    }


def _sale(number: int, day: date, turn: int) -> dict[str, Any]:
    return {
        "household_id": number,
        "store_id": 7,
        "basket_id": day.day * 100 + number,
        "product_id": number % 3,
        "quantity": 1 + turn if number < _SALES - 1 else -1,
        "sales_value": Decimal("2.50"),
        "retail_disc": Decimal("0.50"),
        "coupon_disc": Decimal("0.00"),
        "coupon_match_disc": Decimal("0.00"),
        "week": 1,
        "transaction_timestamp": datetime(*day.timetuple()[:3], 10, tzinfo=UTC),
        "updated_at": datetime(*day.timetuple()[:3], 10, 10 + turn, tzinfo=UTC),
        "voided": False,
    }


_LOOK_S = 1.0
_SAYS_WITHIN_S = 1.0
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 5.0, 600.0
"""After a start that failed, or a JVM that ended by itself."""


class Keeper:
    """Lend a JVM until an exception ends it; nothing of it is left then.

    Args:
        place: path of the socket, in a folder of this user alone; it must be short.
        rehearsed: whether a JVM is lent only after Java has compiled the common code.
    """

    def __init__(self, settings: Settings, place: Path, *, rehearsed: bool = True) -> None:
        self._settings = settings
        self._key = engine_key(settings)
        self._place = place
        self._rehearsed = rehearsed
        self._jvm: LentJvm | None = None
        self._listener: socket.socket | None = None
        self._lent: socket.socket | None = None
        self._used = time.monotonic()
        self._pause_s = _FIRST_PAUSE_S
        self._due: float | None = 0.0
        self._told = ""

    def keep(self) -> None:
        """Start a JVM, and lend it to one process at a time."""
        try:
            while True:
                if self._jvm is None and self._due is not None and time.monotonic() >= self._due:
                    self._make_ready()
                asked = [each for each in (self._listener, self._lent) if each is not None]
                readable, _, _ = select.select(asked, [], [], _LOOK_S)
                if self._lent in readable:
                    self._take_back()
                if self._listener in readable:
                    self._answer()
                if self._lent is None:
                    self._look_after()
        finally:
            self._end(None)

    def _make_ready(self) -> None:
        """Start a JVM, and open the socket last: until it is ready, a borrower's own JVM would be faster."""
        self._start()
        if self._jvm is None:
            return
        problem = self._rehearse() if self._rehearsed else ""
        if not self._jvm.is_alive:
            self._tell("Spark that is kept ready is started anew: its JVM ended while it was rehearsed")
            self._end(self._later())
            return
        if problem:
            self._tell(f"Spark is kept ready, but was not rehearsed: {problem}")
        try:
            self._open()
        except OSError as error:
            self._fail(error)

    def _rehearse(self) -> str:
        """Rehearse; return why it failed, or nothing."""
        scratch = scratch_of_jvm()
        assert scratch is not None
        assert self._jvm is not None
        try:
            with lost_spark_explained(self._settings):
                rehearse(scratch / "rehearsal", self._jvm.new_session)
        except PlatformError as error:
            return error.what
        except OSError as error:
            return f"{error}."
        return ""

    def _start(self) -> None:
        self._used, self._due = time.monotonic(), None
        try:
            self._jvm = LentJvm(self._settings, partial(create_session, record_classes=False, own=True))
        except (PlatformError, OSError) as error:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        self._tell(f"Spark cannot be kept ready, so that runs start their own: {error}")
        self._end(self._later())

    def _later(self) -> float:
        due = time.monotonic() + self._pause_s
        self._pause_s = min(2 * self._pause_s, _LONGEST_PAUSE_S)
        return due

    def _answer(self) -> None:
        """Answer a request, unless its process is gone."""
        assert self._listener is not None
        connection, _ = self._listener.accept()
        connection.settimeout(_SAYS_WITHIN_S)
        try:
            asked = line_of(connection)
            if asked.get("key") != self._key:
                self._say(connection, {"no": "it was started with other settings"})
            elif self._lent is not None:
                self._say(connection, {"no": "another process works with it"})
            elif _is_there(connection):
                self._lend(connection)
                return
        except (OSError, ValueError):  # who asked hears nothing, and starts a JVM of its own
            if self._lent is connection:
                self._lent = None
                self._end(0.0)
        connection.close()

    def _lend(self, connection: socket.socket) -> None:
        if self._jvm is None:
            self._say(connection, {"starting": True})
            self._start()
        if self._jvm is None or not self._jvm.is_alive:
            raise OSError("there is none")
        self._jvm.lend()
        self._lent = connection
        self._say(connection, {"port": self._jvm.port, "secret": self._jvm.secret})

    def _take_back(self) -> None:
        assert self._lent is not None
        try:
            in_order = self._lent.recv(len(DONE)) == DONE
        except OSError:
            in_order = False
        self._lent.close()
        self._lent = None
        self._used = time.monotonic()
        why = self._jvm.take_back() if in_order and self._jvm else "the process that worked with it ended"
        if why:
            self._tell(f"Spark that is kept ready is started anew: {why}")
            self._end(0.0)
        else:
            self._pause_s = _FIRST_PAUSE_S

    def _look_after(self) -> None:
        if self._jvm is None:
            return
        if not self._jvm.is_alive:
            self._end(self._later())
        elif time.monotonic() - self._used > self._settings.warm_idle_s:
            self._end_jvm()  # the next process that asks is heard, and it is started then

    def _end(self, due: float | None) -> None:
        """Close the socket and end the JVM; the next one is due then."""
        self._close()
        self._end_jvm()
        self._due = due

    def _end_jvm(self) -> None:
        if self._jvm is not None:
            jvm, self._jvm = self._jvm, None
            jvm.end()

    def _open(self) -> None:
        self._place.unlink(missing_ok=True)
        self._listener = socket.socket(socket.AF_UNIX)
        before = os.umask(0o177)
        try:
            self._listener.bind(str(self._place))
        finally:
            os.umask(before)
        self._listener.listen()
        link = link_to_keeper(self._settings)
        link.unlink(missing_ok=True)
        link.symlink_to(self._place)

    def _close(self) -> None:
        if self._listener is None:
            return
        link = link_to_keeper(self._settings)
        with suppress(OSError):
            if link.readlink() == self._place:
                link.unlink()
        self._listener.close()
        self._listener = None
        self._place.unlink(missing_ok=True)

    @staticmethod
    def _say(connection: socket.socket, words: dict[str, Any]) -> None:
        connection.sendall(json.dumps(words).encode() + b"\n")

    def _tell(self, text: str) -> None:
        """Write to standard error, once."""
        if text != self._told:
            sys.stderr.write(f"{text}\n")
            sys.stderr.flush()
            self._told = text


def _is_there(connection: socket.socket) -> bool:
    """Return whether the requesting process still waits for the answer."""
    readable, _, _ = select.select([connection], [], [], 0)
    return not readable


def main() -> None:
    """Keep Spark ready until a signal ends it."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _stop)
    settings = load_settings()
    os.umask(settings.access.umask)
    place, *options = sys.argv[1:]
    Keeper(settings, Path(place), rehearsed="unrehearsed" not in options).keep()


def _stop(number: int, frame: FrameType | None) -> None:
    for other in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(other, signal.SIG_IGN)
    raise SystemExit(0)


if __name__ == "__main__":
    main()
