"""What `up` says before it is silent."""

from __future__ import annotations

from platform_assets.cli.commands.up import describe_automation
from platform_assets.settings import Settings


def test_it_says_what_runs_by_itself_and_when(settings: Settings) -> None:
    chosen = settings.model_copy(update={"daily_cron": "30 2 * * *"})
    words = describe_automation(chosen)
    assert "files that land are taken within half a minute" in words
    assert "all tables at '30 2 * * *'" in words
    assert "maintenance at '0 4 * * 0'" in words
