"""What days were before some publications, against putting them back one by one."""

from __future__ import annotations

from datetime import date

from hypothesis import given
from hypothesis import strategies as st

from platform_assets.planning.rollback import NEVER, back_again, following, refusals, restoration
from platform_assets.records.code_version import Attempt, Version

DAY = ("gold.daily_sales", date(2017, 1, 1))
NAMES = st.sampled_from("abcdef")


def test_a_compaction_stands_in_nobodys_way_and_is_gone_back_to_like_anything_else():
    on_top = restoration({"b"}, {DAY: ["c", "b", "a"]}, {"c"})
    assert (on_top.back_to, on_top.undone, on_top.in_the_way) == ({DAY: "a"}, {DAY: ("c", "b")}, {})
    assert restoration({"c"}, {DAY: ["c", "b", "a"]}, {"b"}).back_to == {DAY: "b"}


@given(st.lists(NAMES, unique=True), st.sets(NAMES), st.booleans())
def test_a_day_goes_back_to_before_the_oldest_chosen_unless_something_else_came_after(newest_first, chosen, cascade):
    found = restoration(chosen, {DAY: newest_first}, cascade=cascade)
    if not chosen & set(newest_first):
        assert not found.back_to
        assert not found.in_the_way
        return
    # Taken off one after the other, newest first, until none of the chosen is left.
    left, gone = list(newest_first), []
    while chosen & set(left):
        gone.append(left.pop(0))
    strangers = [one for one in gone if one not in chosen]
    if strangers and not cascade:
        assert found.in_the_way == {DAY: strangers[0]}
        assert not found.back_to
    else:
        assert found.back_to == {DAY: left[0] if left else NEVER}
        assert found.undone == {DAY: tuple(gone)}
        assert not found.in_the_way


@given(st.lists(NAMES, unique=True), st.sets(NAMES), st.booleans(), st.sets(NAMES))
def test_what_is_published_with_a_day_goes_back_as_far_as_it(newest_first, chosen, cascade, of_both):
    aside = ("quarantine.sales", DAY[1])
    its = [one for one in newest_first if one in of_both]
    alone = restoration(chosen, {DAY: newest_first}, cascade=cascade)
    found = following(alone, {aside: DAY}, {DAY: newest_first, aside: its})
    gone = set(found.undone.get(DAY, ()))
    assert set(found.undone.get(aside, ())) == gone & of_both
    left = [one for one in its if one not in gone]
    assert found.back_to.get(aside) == ((left[0] if left else NEVER) if gone & of_both else None)
    assert (found.back_to.get(DAY), found.in_the_way) == (alone.back_to.get(DAY), alone.in_the_way)


MADE, TODAY, UNKNOWN = Version("code", "configuration"), Version("code, later", "configuration"), Version()


def test_what_was_rolled_back_is_refused_as_it_was_made_and_as_it_would_be_today():
    assert refusals([("f", MADE)], MADE) == {Attempt("f", MADE)}
    assert refusals([("f", MADE), ("g", UNKNOWN), ("", MADE)], TODAY) == {
        Attempt("f", MADE),
        Attempt("f", TODAY),
        Attempt("g", TODAY),
    }


def test_a_day_is_what_was_refused_if_input_and_code_are_with_all_that_was_refused_of_that_input():
    refused = {Attempt("f", MADE), Attempt("f", TODAY), Attempt("g", MADE)}
    assert back_again(refused, "f", MADE) == {Attempt("f", MADE), Attempt("f", TODAY)}
    assert back_again(refused, "f", UNKNOWN) == {Attempt("f", MADE), Attempt("f", TODAY)}
    assert back_again(refused, "f", Version("before", "configuration")) == set()
    assert back_again({Attempt("f")}, "f", MADE) == {Attempt("f")}
    assert back_again(refused, "h", MADE) == set()
