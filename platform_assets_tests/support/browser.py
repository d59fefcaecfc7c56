"""The browser of this machine."""

from __future__ import annotations

import shutil

import pytest
from playwright.sync_api import ViewportSize

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
WINDOW: ViewportSize = {"width": 1500, "height": 1100}
NEEDS_CHROMIUM = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: apt-get install chromium")
