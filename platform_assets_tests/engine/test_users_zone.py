"""Moments without a time zone in a user's code are UTC, in whatever time zone a machine is."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from datetime import datetime

import pytest

from platform_assets.engine.platform import described_in_utc, in_utc

MIDNIGHT = datetime(2017, 1, 1)  # noqa: DTZ001 - as users write it
IN_UTC, IN_TOKYO = 1_483_228_800, 1_483_196_400


@pytest.fixture(autouse=True)
def _in_tokyo(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def test_a_moment_without_a_time_zone_is_one_in_utc_while_a_users_function_runs() -> None:
    assert MIDNIGHT.timestamp() == IN_TOKYO
    assert described_in_utc(datetime.timestamp)(MIDNIGHT) == IN_UTC
    assert MIDNIGHT.timestamp() == IN_TOKYO
    assert os.environ["TZ"] == "Asia/Tokyo"


def test_it_is_put_back_where_the_function_raises_and_where_there_was_none(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ZeroDivisionError), in_utc():
        _ = 1 // 0
    assert MIDNIGHT.timestamp() == IN_TOKYO
    monkeypatch.delenv("TZ")
    with in_utc():
        pass
    assert "TZ" not in os.environ


def test_of_two_at_once_the_last_puts_it_back() -> None:
    first, second = in_utc(), in_utc()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert MIDNIGHT.timestamp() == IN_UTC
    second.__exit__(None, None, None)
    assert MIDNIGHT.timestamp() == IN_TOKYO
