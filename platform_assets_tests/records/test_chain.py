"""Chains of hashes: whatever is changed in the middle is found by itself, whatever is cut off the end by an anchor."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from platform_assets.records.chain import Entry, Head, Heads, breaks, hash_of, linked

CONTENTS = st.lists(st.text(max_size=5), min_size=2, max_size=8)


def chained(contents: list[str]) -> list[Entry]:
    """A chain as it is written, entry after entry."""
    chain: list[Entry] = []
    for content in contents:
        chain.append(Entry.after(chain[-1].head if chain else Head(), content))
    return chain


def renumbered(chain: list[Entry]) -> list[Entry]:
    """As somebody leaves it who hides that there are more or fewer."""
    return [replace(entry, number=number) for number, entry in enumerate(chain, start=1)]


def is_found(tampered: list[Entry], anchor: Head) -> bool:
    """As an audit sees it: by number, with the head of before."""
    by_number = sorted(tampered, key=lambda entry: entry.number)
    return any(breaks(by_number)) or not anchor.is_in({entry.number: entry.chain for entry in by_number})


@given(CONTENTS)
def test_a_chain_as_it_was_written_is_sound_and_goes_through_every_head_it_ever_had(contents: list[str]) -> None:
    chain = chained(contents)
    assert list(breaks(chain)) == []
    hashes = {entry.number: entry.chain for entry in chain}
    assert all(head.is_in(hashes) for head in (Head(), *(entry.head for entry in chain)))


@given(CONTENTS, st.data(), st.booleans())
def test_an_entry_that_was_removed_is_found_the_last_ones_with_an_anchor(
    contents: list[str], data: st.DataObject, hides: bool
) -> None:
    chain = chained(contents)
    first = data.draw(st.integers(0, len(chain) - 1))
    last = data.draw(st.integers(first, len(chain) - 1))
    left = chain[:first] + chain[last + 1 :]
    tampered = renumbered(left) if hides else left
    assert any(breaks(tampered)) == (last < len(chain) - 1)
    assert is_found(tampered, chain[-1].head)


@given(CONTENTS, st.data(), st.booleans())
def test_entries_that_changed_places_are_found(contents: list[str], data: st.DataObject, only_content: bool) -> None:
    chain = chained(contents)
    a, b = sorted(data.draw(st.sets(st.integers(0, len(chain) - 1), min_size=2, max_size=2)))
    if only_content:
        assume(chain[a].content != chain[b].content)
        one, other = replace(chain[a], content=chain[b].content), replace(chain[b], content=chain[a].content)
    else:
        one, other = replace(chain[b], number=chain[a].number), replace(chain[a], number=chain[b].number)
    tampered = [*chain[:a], one, *chain[a + 1 : b], other, *chain[b + 1 :]]
    assert any(breaks(tampered))


@given(CONTENTS, st.data())
def test_any_edit_of_an_entry_is_found(contents: list[str], data: st.DataObject) -> None:
    """Of any of its fields; also with its own hash made again, where the next entry or an anchor shows it."""
    chain = chained(contents)
    place = data.draw(st.integers(0, len(chain) - 1))
    entry = chain[place]
    edited = replace(
        entry,
        number=data.draw(st.sampled_from([entry.number, -1, 0, len(chain) + 1])),
        content=data.draw(st.sampled_from([entry.content, entry.content + "x", ""])),
        before=data.draw(st.sampled_from([entry.before, "", hash_of(b"x")])),
    )
    if data.draw(st.booleans()):
        edited = replace(edited, chain=linked(edited.before, hash_of(edited.content.encode())))
    assume(edited != entry)
    assert is_found([*chain[:place], edited, *chain[place + 1 :]], chain[-1].head)


@given(CONTENTS, st.text(max_size=5), st.data(), st.booleans())
def test_an_entry_that_was_put_in_is_found(
    contents: list[str], content: str, data: st.DataObject, fits_the_one_before: bool
) -> None:
    """The rest is numbered anew, as somebody would; at the end it is only a decision more."""
    chain = chained(contents)
    place = data.draw(st.integers(0, len(chain) - 1))
    last = chain[place - 1].head if place and fits_the_one_before else Head()
    tampered = renumbered([*chain[:place], Entry.after(last, content), *chain[place:]])
    assert any(breaks(tampered))


@given(CONTENTS, CONTENTS)
def test_a_chain_that_was_written_anew_is_sound_and_found_with_an_anchor_alone(
    contents: list[str], others: list[str]
) -> None:
    assume(contents != others[: len(contents)])
    anew = chained(others)
    assert list(breaks(anew)) == []
    assert is_found(anew, chained(contents)[-1].head)


def test_what_was_changed_is_named() -> None:
    chain = chained(["a", "b", "c", "d"])
    assert [each.number for each in breaks([*chain[:1], replace(chain[1], content="x"), *chain[2:]])] == [2]
    [gone] = breaks([chain[0], chain[3]])
    assert (gone.number, gone.what) == (4, "does not follow the one before: 2 to 3 are gone")
    [one] = breaks(chain[1:])
    assert (one.number, one.what) == (2, "does not follow the one before: 1 is gone")


@given(st.integers(0, 10**9), st.integers(1, 10**9), st.booleans(), st.booleans())
def test_two_heads_are_one_value_that_is_read_again(release: int, decision: int, none: bool, neither: bool) -> None:
    heads = Heads(
        Head() if neither else Head(release, hash_of(b"r")),
        Head() if none or neither else Head(decision, hash_of(b"d")),
    )
    assert Heads.parse(f" {heads}\n") == heads
    assert " " not in str(heads)


@pytest.mark.parametrize(
    "text", ["", "none", "releases=1:ab,decisions=none", f"releases=1:{'a' * 64}", "releases=none;decisions=none"]
)
def test_anything_else_is_no_head(text: str) -> None:
    with pytest.raises(ValueError, match="no head"):
        Heads.parse(text)
