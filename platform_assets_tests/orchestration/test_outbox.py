"""The daemon delivers what was published, and its ticks say what became of it."""

from __future__ import annotations

import pytest

from platform_assets.engine.platform import Author
from platform_assets.operations.opening import open_platform
from platform_assets.settings import load_settings
from platform_assets_tests.support.orchestration.daemon import Daemon
from platform_assets_tests.support.orchestration.paper import refresh_on_paper
from platform_assets_tests.support.orchestration.readings import DAYS, land
from platform_assets_tests.support.webhook import SECRET, listening
from platform_assets_tests.support.world import World


def test_the_daemon_delivers_what_waits_and_says_what_has_nowhere_to_go(
    readings: World, daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLATFORM_DOMAINS", "platform_assets_tests.support.domains.told")
    with listening() as hook:
        monkeypatch.setenv("WEEK_REFRESH_URL", hook.url)
        monkeypatch.delenv("CACHE_REFRESH_URL", raising=False)
        daemon.reload()
        assert daemon.tick("outbox").skip_reason == "nothing is due"
        land(readings, DAYS[0], DAYS[0])
        with open_platform(load_settings()) as platform:
            refresh_on_paper(platform, None, Author("a run", "a reading came"))
        said = str(daemon.tick("outbox").skip_reason)
        assert said.startswith(f"delivered: Release 2 changed gold.sensor_week: {DAYS[0]}.")
        assert "nothing is sent to reading cache: CACHE_REFRESH_URL is not set" in said
        assert [message["exposure"] for message in hook.taken] == ["week dashboard"]
        hook.refuses, hook.status = ["reading cache"], 500
        monkeypatch.setenv("CACHE_REFRESH_URL", hook.url)
        daemon.reload()
        failed = daemon.tick("outbox", fails=True)
        assert failed.error is not None
        assert "2 of 2 messages were not delivered. reading cache answered 500." in failed.error.to_string()
        assert SECRET not in failed.error.to_string()
