"""Keys as people name them: whatever a value holds, it can be given, and it is shown as it would be given."""

from __future__ import annotations

import pytest

from platform_assets.cli.console import UsageError
from platform_assets.cli.options import parse_keys
from platform_assets.planning.key_scope import shown_keys


@pytest.mark.parametrize(
    ("options", "asked"),
    [
        (["store_id=330, 337"], {"store_id": ["330", "337"]}),
        (["name=a", "day=2017-01-02", "name=b"], {"name": ["a", "b"], "day": ["2017-01-02"]}),
        (['name="Smith, J",Lee'], {"name": ["Smith, J", "Lee"]}),
        (['name="Smith, J"', "name=Lee"], {"name": ["Smith, J", "Lee"]}),
        (['name="""X"", he said",5" pipe'], {"name": ['"X", he said', '5" pipe']}),
        (['name= "Smith, J" ,"a"" ,b" , Lee '], {"name": ["Smith, J", 'a" ,b', "Lee"]}),
        (['name="two\nlines","or\r,two"'], {"name": ["two\nlines", "or\r,two"]}),
        (['name="one\ntwo"'], {"name": ["one\ntwo"]}),
        (["name=a=b"], {"name": ["a=b"]}),
    ],
)
def test_every_value_can_be_given(options: list[str], asked: dict[str, list[str]]) -> None:
    assert parse_keys(options) == asked
    assert parse_keys(shown_keys(asked).split(" and ")) == asked


@pytest.mark.parametrize(
    "option", ["", "name", "name=", "=a", "name=a,", "name=,a", 'name="a', 'name="a"b', "name=a\nb"]
)
def test_what_is_no_key_is_refused_with_what_was_read(option: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_keys(["store_id=330", option])
    assert repr(option) in error.value.what
    assert "read as column" in error.value.what or "cannot be told apart" in error.value.what
