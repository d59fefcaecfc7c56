"""An exposure is declared once, and a mistake in it is told before anything is published."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import cast

import pytest

from platform_assets.contracts import Catalogue, ContractError, Domain, Exposure
from platform_assets.planning.outbox import message_of
from platform_assets.settings import project_root
from platform_assets_tests.support.domains import sensors
from platform_assets_tests.support.domains.told import DOMAIN
from platform_assets_tests.support.ledger_records import nth, publication_record

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


@pytest.mark.parametrize(
    "page", ["javascript:alert(1)", "https://ada:s3cret@boards.example.com/", "boards", "https://"]
)
def test_a_page_that_nobody_should_follow_is_refused_and_not_shown(page: str) -> None:
    with pytest.raises(ContractError, match="no address of the web") as caught:
        Exposure("a", "A_URL", READS, page=page)
    assert "s3cret" not in str(caught.value)
    with pytest.raises(ContractError, match="no owner of one line"):
        Exposure("a", "A_URL", READS, owner="a\nb")


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


def on_the_page(fence: str) -> str:
    """The first block of a language on the page about the outbox."""
    page = (project_root() / "docs" / "outbox.md").read_text(encoding="utf-8")
    found = re.search(rf"^```{fence}\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    assert found
    return found[1]


def test_the_declaration_and_the_message_on_the_page_are_real() -> None:
    names = {"Domain": Domain, "Exposure": Exposure, "TABLES": sensors.DOMAIN.tables}
    exec(compile(on_the_page("python"), "outbox.md", "exec"), names)
    [exposure] = cast("Domain", names["DOMAIN"]).exposures
    shown = json.loads(on_the_page("json"))
    assert (shown["exposure"], shown["tables"][0]["table"]) == (exposure.name, exposure.reads[0])
    sent = message_of(publication_record(41), exposure.name, {exposure.reads[0]: [nth(1)]})
    assert sent is not None
    assert list(json.loads(sent.body)) == list(shown)
    assert list(json.loads(sent.body)["tables"][0]) == list(shown["tables"][0])
