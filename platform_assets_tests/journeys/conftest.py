"""A browser, for whoever looks at Dagster as a person does."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from platform_assets_tests.support.orchestration.up import CHROMIUM, WINDOW

# A name of somebody who lets it lead to this machine.
EVIL = "--host-resolver-rules=MAP evil.example 127.0.0.1"


@pytest.fixture
def browser() -> Iterator[Browser]:
    """Chromium, without a window yet."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", EVIL])
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Browser) -> Page:
    """A browser window."""
    return browser.new_page(viewport=WINDOW)
