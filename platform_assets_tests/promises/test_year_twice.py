"""The year with every file once more under another name equals the oracle."""

from __future__ import annotations

import pytest

from platform_assets.domains.retail.sample import Simulation
from platform_assets_tests.support.models.oracle import check, twice
from platform_assets_tests.support.world import MakeWorld

pytestmark = pytest.mark.usefixtures("compiled")


@pytest.mark.proof
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", [1, 2])
def test_the_year_twice_equals_the_oracle_to_the_cent(make_world: MakeWorld, seed: int) -> None:
    check(make_world, Simulation(seed=seed), twice)
