"""What rows are ordered by."""

from __future__ import annotations

from pyspark.sql import SparkSession

from platform_assets.compute.digests import order_hash
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
