"""Files of one table that have different columns, because its contract got other ones while they were there.

A digest covers every column that rows were published with, and no other: a file is hashed by the columns that it has.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import date

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from platform_assets.contracts import DAY
from platform_assets.lakehouse.delta.schema import names_in
from platform_assets.lakehouse.storage.location import Location
from platform_assets.records.digest import Digest
from platform_assets.spark.compare.profiles import profile
from platform_assets.spark.tables.reading import read_files


def by_columns(path: Location, files: Iterable[str], schema: StructType) -> Iterator[tuple[StructType, list[str]]]:
    """Files that have the same columns.

    Args:
        schema: types of all columns that they may have, the day included.

    Yields:
        The columns of some files in their order, then the day; and those files.

    Raises:
        StagedFileError: a file is missing or is no Parquet file.
    """
    known = set(schema.fieldNames()) - {DAY}
    groups: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
    for file in files:
        groups[tuple(name for name in names_in(path / file) if name in known)].append(file)
    for names, alike in groups.items():
        yield StructType([schema[name] for name in (*names, DAY)]), alike


def digests_in_files(
    spark: SparkSession, path: Location, files: Iterable[str], schema: StructType
) -> dict[date, Digest]:
    """The digest of what lies in some files, by day; a day without rows is left out.

    Args:
        schema: types of all columns that they may have, the day included.
    """
    digests: defaultdict[date, Digest] = defaultdict(Digest)
    for columns, alike in by_columns(path, files, schema):
        for day, of_day in profile(read_files(spark, path, alike, columns), (), ()).items():
            digests[day] += of_day.digest
    return dict(digests)
