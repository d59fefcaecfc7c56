"""Where the rows of a key can lie follows from contracts; what cannot name a person is refused. No lake is needed."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from platform_assets.contracts import Catalogue
from platform_assets.contracts.errors import UnknownTableError
from platform_assets.engine.platform import Author
from platform_assets.engine.publishing import publish_changes
from platform_assets.errors import PlatformError
from platform_assets.operations.erasure import lift, lift_unreadable
from platform_assets.operations.erasure_places import (
    Reach,
    Request,
    is_among,
    is_told_by,
    reach,
    refuse_named_value,
    unreached,
)
from platform_assets.operations.opening import open_platform
from platform_assets.records.decisions import from_content
from platform_assets.records.differences import Digest
from platform_assets.records.manifest import DayContent, Erasure, Scope, TableChange, new_publication
from platform_assets.secret import installation_secret, name_of
from platform_assets.settings import load_settings
from platform_assets_tests.support.domains.two_raws import DOMAIN as TWO_RAWS
from platform_assets_tests.support.domains.visits import DOMAIN

CATALOGUE = Catalogue.of([DOMAIN])
SECRET = b"secret"
SCHEMA = '{"type":"struct","fields":[{"name":"event_date","type":"date","nullable":true,"metadata":{}}]}'


def tables(found: Reach) -> list[str]:
    return [place.table for place in found.places]


@pytest.mark.parametrize("named", ["raw.visits", "silver.visits", "gold.persons"])
def test_whichever_table_is_named_its_inputs_and_what_is_made_from_them_are_looked_into(named: str) -> None:
    found = reach(CATALOGUE, named, {"person": "42"})
    assert tables(found) == [
        "raw.visits",
        "late.visits",
        "refused.visits",
        "silver.visits",
        "quarantine.visits",
        "gold.persons",
    ]
    assert [contract.name for contract in found.raw] == ["raw.visits"]
    assert found.derived == ("silver.visits", "gold.persons", "gold.takings")


def test_another_field_is_named_and_has_the_value_as_its_type_writes_it() -> None:
    found = reach(CATALOGUE, "raw.visits", {"person": "042"}, [("raw.stays", "guest")])
    values = {place.table: dict(place.values) for place in found.places}
    assert values["raw.visits"] == {"person": "42"}
    assert values["raw.stays"] == values["refused.stays"] == {"guest": "042"}
    hashes = {place.table: place.hashes(SECRET) for place in found.places}
    assert hashes["raw.visits"] == hashes["quarantine.visits"]
    assert "42" not in hashes["raw.visits"].values()


def test_tables_that_get_their_rows_from_elsewhere_are_only_named() -> None:
    found = reach(Catalogue.of([TWO_RAWS]), "raw.transactions", {"household_id": "42"})
    assert not set(found.namesakes) & set(tables(found))
    assert found.namesakes != ()


def test_quarantine_keeps_rows_as_they_were_delivered_also_where_silver_drops_the_column() -> None:
    raw, stays, silver, _, takings = DOMAIN.tables
    nameless = replace(silver, columns=tuple(column for column in silver.columns if column.name != "person"))
    domain = replace(DOMAIN, tables=(raw, stays, nameless, takings))
    found = reach(Catalogue.of([domain]), "raw.visits", {"person": "42"})
    assert tables(found) == ["raw.visits", "late.visits", "refused.visits", "quarantine.visits"]
    assert found.derived == ("silver.visits", "gold.takings")


@pytest.mark.parametrize(
    ("table", "key", "says"),
    [
        ("raw.visits", {"persn": "42"}, "raw.visits has no column persn"),
        ("gold.takings", {"person": "42"}, "gold.takings has no column person"),
        ("raw.visits", {"paid": "42"}, r"paid of raw\.visits is a decimal\(8,2\), which cannot identify a person"),
        ("raw.visits", {"person": "zoe"}, "The value of person is no long"),
        ("raw.visits", {"person": ""}, "The value of person is no long"),
        ("raw.visits", {"person": "--5"}, "The value of person is no long"),
        ("raw.visits", {"person": "1e999999999"}, "The value of person is no long"),
        ("raw.stays", {"guest": ""}, "The value of guest is no string"),
        ("raw.stays", {"guest": "zoe\udcff"}, "The value of guest is no string"),
    ],
)
def test_what_names_nobody_is_refused_without_the_value(table: str, key: dict[str, str], says: str) -> None:
    with pytest.raises(PlatformError, match=says) as caught:
        reach(CATALOGUE, table, key)
    assert "zoe" not in str(caught.value)


def test_tables_that_have_the_field_and_the_one_that_was_meant_are_named() -> None:
    with pytest.raises(PlatformError, match=r"Tables that have it: raw\.visits, silver\.visits, gold\.persons"):
        reach(CATALOGUE, "gold.takings", {"person": "42"})
    with pytest.raises(PlatformError, match=r"Did you mean person\?"):
        reach(CATALOGUE, "raw.visits", {"persn": "42"})
    with pytest.raises(UnknownTableError):
        reach(CATALOGUE, "raw.visit", {"person": "42"})
    with pytest.raises(PlatformError, match="--also names one field, and the key has several"):
        reach(CATALOGUE, "raw.visits", {"person": "42", "visit": "1"}, [("raw.stays", "guest")])


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("42", "household 42 asked"),
        ("0042", "household 42 asked"),
        ("42", "household 0042 asked"),
        ("+49 30 901820", "call of +49 30 901820"),
        ("@zoe", "for @Zoe."),
        ("zoe@example.org", "zoe@example.org asked"),
        ("Zo\u00eb", "Zoe\u0308 asked"),
    ],
)
def test_a_reason_that_names_the_value_is_refused_without_it(value: str, reason: str) -> None:
    table, field = ("raw.visits", "person") if value.isdecimal() else ("raw.stays", "guest")
    request = Request(table, {field: value})
    found = reach(CATALOGUE, request.table, request.key)
    with pytest.raises(PlatformError, match=r"^The reason names the value") as caught:
        refuse_named_value(found, request, Author("erase", reason, "zoe"))
    assert value not in str(caught.value)
    with pytest.raises(PlatformError, match=r"^The author names the value"):
        refuse_named_value(found, request, Author("erase", "request 17", reason))
    refuse_named_value(found, request, Author("erase", "request 421", "data protection, desk 421"))


def test_who_lifts_an_erasure_names_no_value_either(tmp_path: Path) -> None:
    settings = load_settings(state=tmp_path, domains="platform_assets_tests.support.domains.visits")
    with open_platform(settings) as platform, pytest.raises(PlatformError, match=r"^The reason names the value"):
        lift(platform, Request("raw.visits", {"person": "42"}), Author("erase", "42 is back", "zoe"))


def test_that_an_erasure_was_lifted_is_another_decision_than_that_somebody_erased(tmp_path: Path) -> None:
    settings = load_settings(state=tmp_path, domains="platform_assets_tests.support.domains.visits")
    request, author = Request("raw.visits", {"person": "42"}), Author("erase", "request 17", "zoe")
    place, *_ = reach(CATALOGUE, request.table, request.key).places
    secret = installation_secret(settings)
    erased = Erasure(table=place.table, key=place.hashes(secret), secret=name_of(secret))
    unreadable = Erasure(table=place.table, key=place.hashes(b"another"), secret=name_of(b"another"))
    with open_platform(settings) as platform:
        publish_changes(platform, new_publication(), "erasure", [], author, erasures=[erased, unreadable])
        lift(platform, request, author)
        lift_unreadable(platform, place.table, author)
        decided = [from_content(entry.content).kind for entry in platform.ledger.decision_chain()]
        made = [record for name in platform.ledger.indexed() if (record := platform.ledger.publication(name))]
        shown = [record.what for record in made]
    assert decided == shown == ["erasure", "erasure lifted", "erasure lifted"]


LONG = "a name of more than thirty-two characters"


@pytest.mark.parametrize(
    ("bound", "value", "is_payload", "is_told"),
    [
        ("zoe", "zoe", False, True),
        ("zoe", "zo", False, False),
        (LONG[:32], LONG, False, True),
        (LONG[:32] + "\ufffd", LONG, False, True),
        (LONG[:31], LONG, False, False),
        ('{"guest": "zoe"', "zoe", True, True),
        ('{"guest": "zoe"', "zoe", False, False),
    ],
)
def test_a_value_is_told_in_statistics_also_where_they_cut_it(
    bound: str, value: str, is_payload: bool, is_told: bool
) -> None:
    assert is_told_by(bound, value, is_payload=is_payload) is is_told


@pytest.mark.parametrize(
    ("keys", "is_told"),
    [({"person": ["8", "0042"]}, True), ({"person": ["421"]}, False), ({"visit": ["42"]}, False), ({}, False)],
)
def test_a_plan_of_keys_that_names_the_value_is_told_however_it_writes_it(
    keys: dict[str, list[str]], is_told: bool
) -> None:
    assert is_among(keys, reach(CATALOGUE, "raw.visits", {"person": "42"}).places) is is_told


def test_what_a_publication_computed_for_the_value_alone_is_told_by_its_name(tmp_path: Path) -> None:
    settings = load_settings(state=tmp_path, domains="platform_assets_tests.support.domains.visits")
    where = reach(CATALOGUE, "raw.visits", {"person": "42"})
    with open_platform(settings) as platform:
        for person in ("42", "43"):
            scope = Scope(keys={"person": (person,)}, rows=0, made_from="", code_version="", reads={})
            day = DayContent(files=(), base=(), digest=str(Digest()), rows=0, bytes=0, scope=scope)
            days = {date(2017, 1, 1): day}
            change = TableChange(table="silver.visits", schema_string=SCHEMA, days=days)
            publish_changes(platform, new_publication(), "recompute", [change], Author("r", "mended", "zoe"))
        found = unreached(platform, where, installation_secret(settings))
        first, _ = platform.ledger.indexed()
    assert (found.scopes, found.plans) == ((first,), ())


@pytest.mark.parametrize("replaces", ["days", "table"])
def test_a_table_whose_arrivals_replace_days_is_refused_with_the_way_out(replaces: Any) -> None:
    raw, *others = DOMAIN.tables
    assert raw.source is not None
    replacing = replace(raw, source=replace(raw.source, replaces=replaces, resent="anew"), moves_within_days=0)
    with pytest.raises(PlatformError, match=r"raw\.visits takes arrivals that replace the days they bring"):
        reach(Catalogue.of([replace(DOMAIN, tables=(replacing, *others))]), "gold.persons", {"person": "42"})
