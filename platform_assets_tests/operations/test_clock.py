"""Somebody sets the clock back by a day between two publications: what came first is told by releases. No Spark."""

from __future__ import annotations

from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any, Self

import pytest

from platform_assets.engine import publishing
from platform_assets.engine.day_contents import loaded_empty
from platform_assets.operations.audit import audit_installation
from platform_assets.operations.audit_logs import Scope
from platform_assets.operations.lineage.day_history import Published, life_of
from platform_assets.operations.opening import open_platform
from platform_assets.planning.retention import kept_releases
from platform_assets.progress import no_progress
from platform_assets.records import manifest
from platform_assets.settings import Settings, load_settings
from platform_assets_tests.support.cli.products import A_TEST, DAY, DAYS, RAW, SILVER, computed, publish_on_paper


class Yesterday(datetime):
    """A clock that is a day behind."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> Self:
        return cls.fromtimestamp((datetime.now(tz) - timedelta(days=1)).timestamp(), tz)


@pytest.fixture
def set_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Three releases, the last of which is a day older than the others by the clock."""
    settings = load_settings(state=tmp_path)
    with open_platform(settings) as platform:
        publish_on_paper(platform, RAW, loaded_empty(DAYS))
        version, parts = platform.version(SILVER), platform.configurations[SILVER].parts
        code: dict[str, Any] = {"code_version": version.code, "configuration": parts}
        publish_on_paper(platform, SILVER, computed(platform, SILVER), **code)
        again = {DAY: computed(platform, SILVER)[DAY].model_copy(update={"digest": "0-1-1-1-1"})}
        with monkeypatch.context() as patch:
            patch.setattr(publishing, "datetime", Yesterday)
            patch.setattr(manifest, "datetime", Yesterday)
            publish_on_paper(platform, SILVER, again, author=A_TEST, **code)
    return settings


def test_the_release_that_was_made_last_is_the_newest(set_back: Settings) -> None:
    with open_platform(set_back) as platform:
        names = list(platform.ledger.indexed())
        assert names != sorted(names), "by their names, the last is the first"
        assert platform.current_release().number == 2
        before = platform.ledger.current_days(SILVER)
        assert before[DAY].digest == "0-1-1-1-1"
        made = [record for name in names if (record := platform.ledger.publication(name))]
        moments = [(record.release, record.created_at) for record in made]
    assert moments[2][1] < moments[1][1]
    now = max(at for _, at in moments) + timedelta(minutes=1)
    assert kept_releases(moments, (), now, timedelta(days=90)).first == 0
    (set_back.state / "ledger.db").unlink()
    with open_platform(set_back) as platform:
        assert platform.ledger.current_days(SILVER) == before
        told = [event for _, event in life_of(platform, SILVER, DAY) if isinstance(event, Published)]
    assert [event.head.release for event in told] == [1, 2]
    assert told[1].before == told[0].after
    assert audit_installation(set_back, Scope(), no_progress).findings.faults == []
