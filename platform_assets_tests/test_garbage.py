"""The search for garbage is put off and comes back, whatever happens."""

from __future__ import annotations

import gc

import pytest

from platform_assets.garbage import unsearched


def test_nothing_is_searched_within_and_all_is_searched_afterwards() -> None:
    with unsearched():
        assert not gc.isenabled()
        with unsearched():
            assert not gc.isenabled()
        assert not gc.isenabled(), "who is within another one leaves it as it was"
    assert gc.isenabled()


def test_an_error_brings_it_back_too() -> None:
    with pytest.raises(KeyError), unsearched():
        raise KeyError
    assert gc.isenabled()
