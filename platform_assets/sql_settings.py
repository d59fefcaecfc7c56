"""List the Spark settings that change query results, with the one value that all days are computed with.

They cannot be changed. A day computed with another value would have other content, and no record would say why.
Settings that only make Spark faster, quieter or bigger are not here and are free.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

REQUIRED: Mapping[str, str] = {
    # Dates and times
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    # Else a filter by a date goes to executors as an instant, which those of another time zone take for the day before
    "spark.sql.datetime.java8API.enabled": "true",
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",  # as Delta has them
    "spark.sql.parquet.inferTimestampNTZ.enabled": "true",
    "spark.sql.parquet.int96AsTimestamp": "true",
    "spark.sql.parquet.int96TimestampConversion": "false",
    "spark.sql.legacy.parquet.nanosAsLong": "true",  # else a file with a column of nanoseconds cannot be read
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    # Casts, overflow and what cannot be computed
    "spark.sql.ansi.enabled": "true",
    "spark.sql.storeAssignmentPolicy": "ANSI",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.mapKeyDedupPolicy": "EXCEPTION",
    # How SQL is read
    "spark.sql.caseSensitive": "false",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.ansi.relationPrecedence": "false",
    "spark.sql.parser.quotedRegexColumnNames": "false",
    "spark.sql.groupByAliases": "true",
    "spark.sql.groupByOrdinal": "true",
    "spark.sql.orderByOrdinal": "true",
    "spark.sql.lateralColumnAlias.enableImplicitResolution": "true",
    "spark.sql.variable.substitute": "true",
    "spark.sql.analyzer.failAmbiguousSelfJoin": "true",
    # Texts, JSON and files
    "spark.sql.function.concatBinaryAsString": "false",
    "spark.sql.function.eltOutputAsString": "false",
    "spark.sql.icu.caseMappings.enabled": "true",
    "spark.sql.chunkBase64String.enabled": "true",
    "spark.sql.readSideCharPadding": "true",
    "spark.sql.preserveCharVarcharTypeInfo": "false",
    "spark.sql.charAsVarchar": "false",
    "spark.sql.columnNameOfCorruptRecord": "_corrupt_record",
    "spark.sql.json.enablePartialResults": "true",
    "spark.sql.json.enableExactStringParsing": "true",
    "spark.sql.jsonGenerator.ignoreNullFields": "true",
    "spark.sql.csv.parser.columnPruning.enabled": "true",
    "spark.sql.parquet.binaryAsString": "false",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "true",
    # What may go wrong in Spark itself
    "spark.sql.execution.sortBeforeRepartition": "true",
}
"""The value of each; but for the first, the third, and types of time stamps in files, Spark's own default."""

OF_PROCESSES: Mapping[str, str] = {
    "spark.executorEnv.TZ": "UTC",  # of functions in Python, to which moments are local time
}
"""Environment of the processes that compute for a session; the owner of a Spark Connect server sets it there."""

OF_JAVA: Mapping[str, str] = {"user.timezone": "UTC", "user.language": "en", "user.country": "US"}
"""Of every JVM that computes, the driver's and executors': in Turkish, the I of `upper('ié')` is another letter."""

_LONGEST_LINE = str((1 << 31) - 1)
_EVERY_FILE = "org.apache.hadoop.fs.GlobFilter$1"
"""Hadoop's own default filter, by name, because "no filter" has no name."""

OF_HADOOP: Mapping[str, str] = {
    "mapreduce.input.linerecordreader.line.maxlength": _LONGEST_LINE,
    "mapred.linerecordreader.maxlength": _LONGEST_LINE,
    "mapreduce.input.pathFilter.class": _EVERY_FILE,
    "mapred.input.pathFilter.class": _EVERY_FILE,
}
"""Overrides of a cluster's own settings by which longer lines, or files that a filter of another table format removes,
would be missing silently. Hadoop still takes the earlier names."""

CODECS: Mapping[str, str] = {"io.compression.codecs": "org.apache.hadoop.io.compress.GzipCodec"}
"""What a cluster's files add to those that Hadoop has by itself: where one is not there, no text can be read."""

_LEFT_ALONE = (
    "spark.sql.analyzer.lowerEmptyGroupingSet", "spark.sql.analyzer.preferColumn", "spark.sql.analyzer.singlePass",
    "spark.sql.ansi.", "spark.sql.avro.datetimeRebase", "spark.sql.collation.", "spark.sql.defaultColumn.",
    "spark.sql.execution.pandas.convertToArrowArraySafely", "spark.sql.execution.pandas.inferPandasDictAsMap",
    "spark.sql.execution.pandas.respectSessionTimeZone", "spark.sql.execution.pandas.structHandlingMode",
    "spark.sql.execution.pythonUDF.arrow.enabled", "spark.sql.execution.pythonUDF.pandas.",
    "spark.sql.execution.pythonUDTF.arrow.enabled", "spark.sql.functionResolution.", "spark.sql.jsonGenerator.",
    "spark.sql.legacy.", "spark.sql.optimizer.decorrelate", "spark.sql.optimizer.metadataOnly",
    "spark.sql.parquet.int96", "spark.sql.parser.escapedStringLiterals", "spark.sql.parser.singleCharacter",
    "spark.sql.pyspark.infer", "spark.sql.pyspark.legacy.",
    "spark.sql.variant.allowDuplicateKeys",
)  # fmt: skip
"""Prefixes of further settings, hundreds in Spark, which stay at their defaults."""

_OPTIONS_OF_JAVA = ("extraJavaOptions", "defaultJavaOptions")
_PROPERTY = re.compile(r"""-D(user\.\w+)=["']?([^\s"']*)""")

_SAME = {"etc/utc": "utc", "z": "utc"}


def as_text(conf: object) -> object:
    """Return settings whose values are truths and numbers, as Spark takes them; what else there is stays."""
    if not isinstance(conf, Mapping):
        return conf
    return {
        name: str(item).lower() if isinstance(item, bool) else str(item) if isinstance(item, int | float) else item
        for name, item in conf.items()
    }


def of_hadoop() -> dict[str, str]:
    """Return Hadoop's settings by the names under which Spark takes them before it starts."""
    return {f"spark.hadoop.{name}": value for name, value in {**OF_HADOOP, **CODECS}.items()}


def problems_of(conf: Mapping[str, str]) -> list[str]:
    """Return what contradicts the values that days are computed with, by name, a phrase each."""
    fixed = {**REQUIRED, **OF_PROCESSES}
    wrong = [
        f"{name}, which has to be {fixed[name]}"
        for name, value in conf.items()
        if name in fixed and not _same(value, fixed[name])
    ]
    wrong += [
        f"{name}, which has to be left out"
        for name, value in conf.items()
        if value != OF_HADOOP.get(name.removeprefix("spark.hadoop."), value)
    ]
    wrong += (problem for name, value in conf.items() for problem in _of_java(name, value))
    left_alone = (name for name in conf if name.startswith(_LEFT_ALONE) and name not in REQUIRED)
    return sorted([*wrong, *(f"{name}, which has to stay as Spark has it" for name in left_alone)])


def _of_java(name: str, value: str) -> Iterator[str]:
    """Options that would win over ours, which come before them."""
    if name.endswith(_OPTIONS_OF_JAVA):
        for option, given in _PROPERTY.findall(value):
            if option in OF_JAVA and not _same(given, OF_JAVA[option]):
                yield f"{option} in {name}, which has to be {OF_JAVA[option]}"


def _same(given: str, required: str) -> bool:
    given, required = given.strip().lower(), required.lower()
    return _SAME.get(given, given) == required
