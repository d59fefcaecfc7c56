"""A masked value is the same everywhere and shows nothing of itself."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from platform_assets.quality.masking import masked


def test_a_masked_value_never_changes():
    assert masked(4711) == masked("4711") == "#de650d61"
    assert masked(4712) != masked(4711)


@given(st.text(min_size=9))
def test_a_masked_value_does_not_show_the_value(value):
    assert value not in masked(value)
    assert len(masked(value)) == 9


def test_a_null_is_not_hidden():
    assert masked(None) == "null"
