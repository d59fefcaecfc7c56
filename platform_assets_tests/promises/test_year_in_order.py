"""The year in two halves, then all that came late, equals the oracle."""

from __future__ import annotations

from datetime import date

import pytest

from platform_assets.domains.retail.sample import Simulation
from platform_assets_tests.support.models.oracle import check, in_order
from platform_assets_tests.support.world import MakeWorld

pytestmark = pytest.mark.usefixtures("compiled")

THANKSGIVING = date(2017, 11, 26)
"""The third day with few customers within a week, for who knows only the weekends until summer."""
THURSDAY_AFTER = date(2017, 11, 30)
"""With this seed, few for who knows only Thursdays until summer; by all of the year it is none."""


@pytest.mark.proof
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("seed", "unusual"), [(1, {THANKSGIVING}), (2, {THANKSGIVING, THURSDAY_AFTER})], ids="12")
def test_the_year_in_order_equals_the_oracle_to_the_cent(make_world: MakeWorld, seed: int, unusual: set[date]) -> None:
    check(make_world, Simulation(seed=seed), in_order, unusual)
