"""Which engine may compute a table, as it was found by comparing: evidence, which ends with what it was found of."""

from __future__ import annotations

from datetime import date, datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict

EngineName = Literal["spark", "sail"]


class Admission(BaseModel):
    """What was found out about a table on another engine than Spark.

    Args:
        code_version: of the table, as it was computed.
        configuration: what its contract said about its content.
        software: versions that computed it, by name.
        days: that came out alike on both engines, oldest first.
        refused: why it is not admitted; empty if it is.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    code_version: str
    configuration: str
    software: dict[str, str]
    days: tuple[date, ...] = ()
    rows: int = 0
    refused: str = ""
    who: str = ""
    at: datetime
