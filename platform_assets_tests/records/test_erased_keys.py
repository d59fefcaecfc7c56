"""Whose rows these are is told from hashes: of values, and of the texts of rows that could not be read."""

from __future__ import annotations

import pickle

import pytest
from pyspark import cloudpickle

from platform_assets.records.erased_keys import BY_NAME, ErasedKeys, Written, canonical, hash_of

SECRET = b"secret"
TYPES = {"person": "long", "name": "string", "born": "date"}


def keys(written: Written = BY_NAME, /, **values: str) -> ErasedKeys:
    hashes = {field: hash_of(SECRET, field, text) for field, text in values.items()}
    return ErasedKeys(SECRET, [hashes], TYPES, written)


def in_text(erased: ErasedKeys, text: str | None) -> bool:
    """Whether a row is theirs of which nothing but a text was kept."""
    return erased.has_row(*[None] * len(erased.fields), text)


@pytest.mark.parametrize(
    ("text", "type_", "is_kept_as"),
    [
        (" 0042 ", "long", "42"),
        ("42.0", "int", "42"),
        ("42.5", "long", "42.5"),
        ("forty", "long", "forty"),
        ("inf", "long", "inf"),
        ("0" * 40 + "42", "long", "42"),
        ("1e999999999", "long", "1e999999999"),  # nobody waits until it is written out
        ("0e999999999", "long", "0e999999999"),
        (" Anna", "string", " Anna"),
        (" 2017-01-02", "date", "2017-01-02"),
    ],
)
def test_spellings_of_one_value_are_one_text(text: str, type_: str, is_kept_as: str) -> None:
    assert canonical(text, type_) == is_kept_as


def test_all_fields_of_a_key_have_to_be_the_same() -> None:
    both = keys(person="42", name="Anna")
    assert both.fields == ("name", "person")
    assert both.has("Anna", "42")
    assert not both.has("Anna", "43")
    assert not both.has("Anna", None)
    assert not keys(person="42").has(None)


@pytest.mark.parametrize(
    ("payload", "is_theirs"),
    [
        ('{"person": 42, "visit": 1}', True),
        ('{"visit": 42, "person": 1}', False),
        ('{"person": "0042"}', True),
        ('{"person": null}', False),
        ('{"person": 1, "person": 42}', True),
        ('{"other": {"person": 42}}', True),
        ('{"person": 42, "visit"', True),
        ("1,42,2017-01-01", True),
        ("1,420,2017-01-01", False),
        ('1,"42",x', True),
        ("[42]", True),
        ("", False),
        (None, False),
    ],
)
def test_a_row_that_was_set_aside_is_told_by_its_text(payload: str | None, is_theirs: bool) -> None:
    assert in_text(keys(person="42"), payload) is is_theirs


@pytest.mark.parametrize(
    ("payload", "is_theirs"),
    [
        ('{"who": {"ids": [7, {"no": "0042"}]}}', True),
        ('{"who": {"ids": [42]}, "no": 42}', False),
        ('{"who": null}', False),
        ("x^42^y", True),
        ("x^'42'^y", True),
        ("abc0042x", True),
        ("0042abcx", False),
    ],
)
def test_a_row_that_was_set_aside_is_told_by_how_its_files_are_declared(payload: str, is_theirs: bool) -> None:
    written = Written({"person": ("who", "ids", 1, "no")}, delimiter="^", quote="'", widths=(3, 4))
    assert in_text(keys(written, person="42"), payload) is is_theirs


@pytest.mark.timeout(10)
@pytest.mark.parametrize(
    "payload",
    ["1,1e999999999,x", "[" * 100_000, '{"a":' * 50_000, '"\\' * 200_000, '"\\"' * 200_000 + "\\", '"' * 200_001],
)
def test_a_line_that_was_made_to_take_hours_is_looked_through_at_once(payload: str) -> None:
    assert not in_text(keys(person="42"), payload)
    assert in_text(keys(person="42"), f"42,{payload}")


@pytest.mark.parametrize(
    "line", ['{"name": "Zo\\u00eb", broken', '{"name": "Zo\\u00eb', '{"x": "\\"", "name": "Zo\\u00eb", \\', '1,"Zoë']
)
def test_a_text_is_found_in_a_broken_line_also_where_it_is_escaped_or_not_closed(line: str) -> None:
    assert in_text(keys(name="Zoë"), line)
    assert not in_text(keys(name="Zo"), line)


@pytest.mark.parametrize("line", ['1,"Meier, Anna",x', '{"name": "Meier, Anna", ', "Meier, Anna"])
def test_a_text_with_separators_is_found_in_a_broken_line(line: str) -> None:
    assert in_text(keys(name="Meier, Anna"), line) is (line != "Meier, Anna")


def test_a_row_is_told_by_either() -> None:
    assert keys(person="42").has_row("42", None, None)
    assert keys(person="42").has_row(None, '{"person": 42}', None)
    assert not keys(person="42").has_row("1", None, None)


def test_of_a_key_of_several_fields_a_row_has_some_in_columns_and_others_in_what_no_column_took() -> None:
    both = keys(person="42", name="Anna")
    assert both.has_row("Anna", None, '{"person": 42}', None)
    assert not both.has_row("Zoë", None, '{"person": 42}', None)
    assert not both.has_row("Anna", None, '{"person": 43}', None)


def test_workers_get_them_whole_and_nobody_sees_the_secret() -> None:
    found = keys(person="42")
    assert repr(found) == "ErasedKeys(person)"
    assert pickle.loads(cloudpickle.dumps(found)).has("42")
    assert hash_of(b"another", "person", "42") != hash_of(SECRET, "person", "42")
    assert hash_of(SECRET, "visit", "42") != hash_of(SECRET, "person", "42")
