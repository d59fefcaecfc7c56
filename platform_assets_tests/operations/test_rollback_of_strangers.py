"""Tables without a contract here: silver is not rolled back by half, and no tick undoes what was. No Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from platform_assets.operations.opening import open_platform
from platform_assets.operations.rollback.selection import RollbackError
from platform_assets_tests.support.days_on_paper import publish
from platform_assets_tests.support.history import TILLS
from platform_assets_tests.support.readings import (
    DAY,
    GOLD,
    correct,
    digest,
    opened,
    publish_all,
    put_back,
    settings_in,
    taken,
)


def test_a_silver_table_without_a_contract_here_is_not_rolled_back(tmp_path: Path) -> None:
    with opened(tmp_path / "state") as platform:
        publish_all(platform)
        wrong = correct(platform)
        was = digest(platform)
    without = settings_in(tmp_path / "state").model_copy(update={"domains": (TILLS,)})
    with (
        open_platform(without) as platform,
        pytest.raises(RollbackError, match=r"(?s)no contract of silver\.readings .*PLATFORM_DOMAINS"),
    ):
        put_back(platform, wrong)
    with opened(tmp_path / "state") as platform:
        assert digest(platform) == was
        put_back(platform, wrong)
        assert digest(platform) != was
        assert not taken(platform)


def test_a_gold_table_without_a_contract_here_stays_as_it_was_put_back(tmp_path: Path) -> None:
    with opened(tmp_path / "state") as platform:
        publish_all(platform)
        good = platform.ledger.current_days(GOLD)[DAY].digest
        correct(platform)
        wrong = publish(platform, GOLD, [DAY], 2)
        assert DAY not in taken(platform, GOLD)
    without = settings_in(tmp_path / "state").model_copy(update={"domains": (TILLS,)})
    with open_platform(without) as platform:
        put_back(platform, wrong)
    with opened(tmp_path / "state") as platform:
        assert platform.ledger.current_days(GOLD)[DAY].digest == good
        assert DAY not in taken(platform, GOLD)
