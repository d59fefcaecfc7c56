"""What days are told apart by, and what rows are ordered by."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import SparkSession

from platform_assets.records.digest import Digest
from platform_assets.spark.tables.row_hash import digest_of, digest_sums, order_hash
from platform_assets_tests.support.frames import rows_as_frame

ROWS = [(1, 2, None), (2, 1, None), (1, None, None), (None, 1, None), (1, 1, None), (None, None, None)]


def test_a_column_that_rows_have_nothing_of_changes_their_order_in_nothing(spark: SparkSession) -> None:
    frame = rows_as_frame(spark, ROWS, "a INT, b INT, added INT")
    hashed = frame.select(order_hash(["a", "b"]), order_hash(["a", "b", "added"]), order_hash(["added", "b", "a"]))
    found = [tuple(row) for row in hashed.collect()]
    assert all(len(set(hashes)) == 1 for hashes in found)
    assert len({before for before, *_ in found}) == len(ROWS), "rows of other values have another place"
    [(other,)] = (
        rows_as_frame(spark, [(1, 2, 3)], "a INT, b INT, added INT").select(order_hash(["a", "b", "added"])).collect()
    )
    assert other not in {before for before, *_ in found}


def digest(spark: SparkSession, schema: str, names: list[str], rows: Sequence[tuple[int | None, int | None]]) -> Digest:
    [row] = rows_as_frame(spark, rows, schema).agg(*digest_sums(names)).collect()
    return digest_of(row, len(rows))


def test_columns_count_by_their_names_in_whatever_order_they_come(spark: SparkSession) -> None:
    rows = [(1, 2), (2, None), (None, None)]
    found = digest(spark, "net INT, gross INT", ["net", "gross"], rows)
    assert digest(spark, "net INT, gross INT", ["gross", "net"], rows) == found
    assert digest(spark, "gross INT, net INT", ["gross", "net"], [(b, a) for a, b in rows]) == found
    others = {
        "two that change names": digest(spark, "gross INT, net INT", ["gross", "net"], rows),
        "one that is renamed": digest(spark, "net INT, total INT", ["net", "total"], rows),
        "values that change places": digest(spark, "net INT, gross INT", ["net", "gross"], [(b, a) for a, b in rows]),
        "one that is added": digest(spark, "net INT, gross INT", ["net"], rows),
    }
    assert found not in others.values()
    assert len(set(others.values())) == len(others) - 1, "the first and the third are the same rows"
