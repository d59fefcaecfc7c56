"""The normal form of a SQL statement, which is its code version and what Spark runs."""

from __future__ import annotations

import pytest

from platform_assets.planning.code.statement import UnreadableStatementError, parse_statement, place_in

AS_WRITTEN = """\
select a.end, sum ( x)+1 as n -- how many; of all
from t /* not /* nested */ only */ left join u on a<>b and c <=>d
where x = 'it''s' and y>.5 or z = -1e-3 and d < X'1F' group by 1;
"""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("select", "SELECT"),
        ("sum ( x)+1", "SUM(x) + 1"),
        ("left join u\n", "LEFT  JOIN u "),
        ("a<>b", "a <> b"),
        ("-- how many; of all", ""),
        ("/* not /* nested */ only */", "-- 'x\n"),
        ("group by 1;", "\n\tGROUP BY 1"),
        ("group by 1;", "group by 1 ; ; -- over"),
    ],
)
def test_layout_comments_and_the_case_of_keywords_and_functions_do_not_count(before: str, after: str) -> None:
    changed = AS_WRITTEN.replace(before, after)
    assert before not in AS_WRITTEN or changed != AS_WRITTEN
    assert parse_statement(changed).text == parse_statement(AS_WRITTEN).text


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("SELECT 1", "SELECT 2"),
        ("SELECT 'a'", "SELECT 'A'"),
        ("SELECT 'a  b'", "SELECT 'a b'"),
        ("SELECT 'a\nb'", "SELECT 'a b'"),
        ("SELECT 'a -- b'", "SELECT 'a '"),
        ("SELECT 'a /* b */'", "SELECT 'a '"),
        ("SELECT `a--b` FROM t", "SELECT `a` FROM t"),
        ("SELECT 1.5BD", "SELECT 1.5::DECIMAL"),
        ("SELECT 100L", "SELECT 100"),
        ("SELECT 'it''s'", "SELECT 'it' 's'"),
        ("SELECT '\\%'", "SELECT '%'"),
        ("SELECT r'\\n'", "SELECT '\\n'"),
        ("SELECT X'41'", "SELECT X '41'"),
        ("SELECT CAST(x AS TIME) FROM t", "SELECT CAST(x AS TIMESTAMP) FROM t"),
        ("SELECT CAST(x AS INT) FROM t", "SELECT TRY_CAST(x AS INT) FROM t"),
        ("SELECT nvl(x, 0) FROM t", "SELECT coalesce(x, 0) FROM t"),
        ("SELECT to_json(struct(x AS Net)) FROM t", "SELECT to_json(struct(x AS net)) FROM t"),
        ("SELECT to_json(struct(x AS end)) FROM t", "SELECT to_json(struct(x AS END)) FROM t"),
        ("SELECT v:date FROM t", "SELECT v:DATE FROM t"),
        ("SELECT a - -b FROM t", "SELECT a --b FROM t\nFROM t"),
        ("SELECT x FROM t", "SELECT DISTINCT x FROM t"),
        ("SELECT /*+ BROADCAST(t) */ x FROM t", "SELECT x FROM t"),
        ("SELECT a < b FROM t", "SELECT a <= b FROM t"),
        ("SELECT (a - b) * c FROM t", "SELECT a - b * c FROM t"),
    ],
)
def test_what_may_give_other_rows_counts(one: str, other: str) -> None:
    assert parse_statement(one).text != parse_statement(other).text


def test_the_form_stays_as_it_is_from_version_to_version() -> None:
    """Another form would make every table in SQL stale."""
    assert parse_statement(AS_WRITTEN).text == (
        "SELECT a.end , SUM ( x ) + 1 AS n FROM t LEFT JOIN u ON a <> b AND c <=> d WHERE x = 'it''s' AND y > .5 "
        "OR z = - 1e-3 AND d < X'1F' GROUP BY 1"
    )


@pytest.mark.parametrize(
    ("source", "says", "place"),
    [
        ("", "no statement", "line 1, column 1"),
        ("-- only\n", "no statement", "line 1, column 1"),
        ("SELECT 1;\nDROP TABLE t", "more than one statement", "line 1, column 9"),
        ("SELECT 1,\n  'a FROM t", "has a ' without its end", "line 2, column 3"),
        ("SELECT 1 /* /* */", "has a /* without its end", "line 1, column 10"),
        ("SELECT\n '${env:HOME}'", "has ${", "line 2, column 3"),
    ],
)
def test_what_is_no_single_statement_is_refused_with_its_place(source: str, says: str, place: str) -> None:
    with pytest.raises(UnreadableStatementError, match=r".") as refused:
        parse_statement(source)
    assert says in refused.value.what
    assert place_in(source, refused.value.offset) == place


def test_a_place_in_the_form_is_one_in_the_file() -> None:
    form = parse_statement(AS_WRITTEN)
    assert form.place_in_text(form.text.index("u ON")) == "line 2, column 46"
