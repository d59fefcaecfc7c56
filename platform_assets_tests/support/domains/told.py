"""The sensor readings, and what lies downstream of them."""

from dataclasses import replace

from platform_assets.contracts import Exposure
from platform_assets_tests.support.domains import sensors

DOMAIN = replace(
    sensors.DOMAIN,
    exposures=(
        Exposure(
            "week dashboard",
            url_env="WEEK_REFRESH_URL",
            reads=("gold.sensor_week",),
            owner="boards@example.com",
            page="https://boards.example.com/week",
        ),
        Exposure("reading cache", url_env="CACHE_REFRESH_URL", reads=("silver.readings", "gold.sensor_week")),
    ),
)
