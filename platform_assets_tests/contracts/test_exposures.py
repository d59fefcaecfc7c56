"""An exposure is declared once, and a mistake in it is told before anything is published."""

from __future__ import annotations

from dataclasses import replace

import pytest

from platform_assets.contracts import Catalogue, ContractError, Exposure
from platform_assets_tests.support.domains import sensors
from platform_assets_tests.support.domains.told import DOMAIN

READS = ("gold.sensor_week",)


@pytest.mark.parametrize(
    ("name", "variable", "reads", "says"),
    [
        ("", "A_URL", READS, "has no name that tells it from others"),
        ("announcements", "A_URL", READS, "is taken by the platform itself"),
        ("a\nb", "A_URL", READS, "a name of one line"),
        ("a", "https://hooks.example.com/s3cret", READS, "no name of an environment variable"),
        ("a", "", READS, "no name of an environment variable"),
        ("a", "A_URL", (), "reads nothing"),
        ("a", "A_URL", "gold.sensor_week", "reads='gold.sensor_week'"),
    ],
)
def test_a_mistake_in_an_exposure_is_told(name: str, variable: str, reads: tuple[str, ...], says: str) -> None:
    with pytest.raises(ContractError) as caught:
        Exposure(name, variable, reads)
    assert says in str(caught.value)
    assert "s3cret" not in str(caught.value), "what stands in the place of the variable may be the address itself"


def test_a_table_that_nobody_declares_is_told_with_the_one_that_was_meant() -> None:
    wrong = replace(sensors.DOMAIN, exposures=(Exposure("a", "A_URL", ("gold.sensor_weak",)),))
    with pytest.raises(ContractError) as caught:
        Catalogue.of([wrong])
    assert "The exposure 'a' reads gold.sensor_weak, which no domain declares." in caught.value.what
    assert "Did you mean gold.sensor_week?" in caught.value.todo


def test_two_exposures_of_one_name_are_told() -> None:
    twice = replace(DOMAIN, exposures=(*DOMAIN.exposures, Exposure("week dashboard", "OTHER_URL", READS)))
    with pytest.raises(ContractError, match="Two exposures have the name 'week dashboard'"):
        Catalogue.of([twice])
    assert [each.name for each in Catalogue.of([DOMAIN]).exposures] == ["week dashboard", "reading cache"]
