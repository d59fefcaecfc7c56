"""A query as the transform of a table: it gets its inputs as relations that no other query sees."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame

from platform_assets.planning.code.statement import Statement
from platform_assets.spark.tables.failures import TransformError, first_line
from platform_assets.spark.windows import History, Windowed, relations

_WHERE = re.compile(r"\bline (\d+),? pos (\d+)")
_STATE = re.compile(r"\s*SQLSTATE: \w{5}.*$")


class QueryError(TransformError):
    """Spark cannot make sense of a query; `place` is its file, line and column."""

    def __init__(self, what: str, place: str) -> None:
        super().__init__(what, "Correct it; no day of the table was published by it.")
        self.place = place


def query_transform(table: str, columns: Collection[str], statement: Statement, file: Path) -> Callable[..., DataFrame]:
    """Return a function of a query's inputs that describes its rows, as a transform in Python does.

    Columns of the contract are found whatever their case is, as SQL finds them.
    """

    def transform(**given: DataFrame | Windowed | History) -> DataFrame:
        frames = {name: rows for parameter, rows in given.items() for name, rows in relations(parameter, rows).items()}
        words = {token.text.strip("`").lower() for token in statement.tokens}
        used = [name for name in frames if name in words] or list(given)
        ahead = ", ".join(f"`{name}` AS (TABLE {{r{number}}})" for number, name in enumerate(used))
        query = statement.text.replace("{", "{{").replace("}", "}}")
        text = f"WITH\n{ahead}\nSELECT * FROM (\n{query}\n)"
        views: dict[str, Any] = {f"r{number}": frames[name] for number, name in enumerate(used)}
        try:
            made = frames[used[0]].sparkSession.sql(text, **views)
            names = made.columns  # over Spark Connect, this asks
        except (AnalysisException, ParseException) as error:
            raise _explained(table, statement, file, error) from error
        if twice := [name for name, count in Counter(map(str.lower, names)).items() if count > 1]:
            what = f"The query of {table} ({file}) returns more than one column {', '.join(twice)}."
            raise QueryError(what, str(file))
        declared = {name.lower(): name for name in (*columns, "event_date")}
        return made.toDF(*(declared.get(name.lower(), name) for name in names))

    return transform


def _explained(table: str, statement: Statement, file: Path, error: AnalysisException | ParseException) -> QueryError:
    """Return what Spark says, with the place in the file: it read the normal form, three lines below."""
    said, place = _STATE.sub("", first_line(error)), str(file)
    if where := _WHERE.search(str(error)):
        line, column = int(where[1]) - 4, int(where[2])
        before = statement.text.split("\n")[:line]
        place = f"{file}, {statement.place_in_text(sum(len(each) + 1 for each in before) + column)}"
    return QueryError(f"{table} cannot be computed by its query ({place}): {said}", place)
