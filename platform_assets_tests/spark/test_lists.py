"""Lists are in Java what they are in Python, and handed over in few calls."""

from __future__ import annotations

from typing import Any, cast

import pytest
from pyspark.sql import SparkSession


@pytest.mark.parametrize(
    "items",
    [["a"], ["a", "b"], [str(n) for n in range(10)], [str(n) for n in range(11)], [str(n) for n in range(35)]],
    ids=len,
)
def test_a_list_arrives_as_it_is(spark: SparkSession, items: list[str]) -> None:
    assert list(cast("Any", spark)._jvm.java.util.LinkedList(items)) == items


def test_nulls_and_lists_within_lists_arrive(spark: SparkSession) -> None:
    java = cast("Any", spark)._jvm.java.util
    assert list(java.LinkedList(["a", None])) == ["a", None]
    assert [list(each) for each in java.LinkedList([["a", "b"], ["c", "d"]])] == [["a", "b"], ["c", "d"]]
    assert list(java.LinkedList([1, True])) == [1, True]


def test_many_columns_are_selected_in_few_calls(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    client = cast("Any", spark.sparkContext)._gateway._gateway_client
    frame, send, asked = spark.range(1), client.send_command, list[str]()

    def counted(command: str, *more: Any) -> Any:
        asked.append(command)
        return send(command, *more)

    monkeypatch.setattr(client, "send_command", counted)
    selected = frame.selectExpr(*(f"id AS c{n}" for n in range(40)))
    assert len(asked) < 20
    monkeypatch.undo()
    assert selected.columns == [f"c{n}" for n in range(40)]
