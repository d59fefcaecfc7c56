"""Digests add up, and are written and read without loss."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from platform_assets.records.digest import Digest

parts = st.integers(0, 2**62)
digests = st.builds(Digest, st.integers(0, 2**40), st.tuples(parts, parts, parts, parts))


@given(digests)
def test_a_digest_reads_back_as_it_was_written(digest):
    assert Digest.parse(str(digest)) == digest


@given(digests, digests, digests)
def test_the_order_in_which_parts_are_added_does_not_matter(a, b, c):
    assert (a + b) + c == c + (b + a)
    assert a + Digest() == a
