"""A masked value is the same all over an installation, shows nothing of itself, and is not found by trying."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from platform_assets.quality.masking import Masking

MASKING = Masking(b"secret")


def test_a_masked_value_never_changes():
    assert MASKING.masked(4711) == MASKING.masked("4711") == "#f53b7228"
    assert MASKING.masked(4712) != MASKING.masked(4711)


def test_another_installation_masks_otherwise_and_shows_no_secret():
    assert Masking(b"another secret").masked(4711) != MASKING.masked(4711)
    assert "secret'" not in repr(MASKING)


@given(st.text(min_size=9))
def test_a_masked_value_does_not_show_the_value(value):
    assert value not in MASKING.masked(value)
    assert len(MASKING.masked(value)) == 9


def test_a_null_is_not_hidden():
    assert MASKING.masked(None) == "null"
