"""A plan file: what a backfill does, for whom, how far, how fast and with whose consent, as reviewed code.

Only the file itself is checked here, without the platform: `explain` finds whether its tables and days exist. Every
field has a strict type, and none is SQL. The schema for editors is made from these classes.
"""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from platform_assets.contracts.columns import IDENTIFIER
from platform_assets.words import visible

_TABLE = re.compile(rf"(silver|gold)\.{IDENTIFIER.pattern}")
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?(nan|inf|infinity)", re.IGNORECASE)
"""The last of these match here so that the check for finite numbers refuses them with a clear message."""
MOST_DAYS = 36_500
MOST = 10**18
"""Largest count or amount: more is a mistake."""
Column = Annotated[str, Field(pattern=f"^{IDENTIFIER.pattern}$")]
_RANGE, _HOURS = r"^\d{4}-\d\d-\d\d\.\.\d{4}-\d\d-\d\d$", r"^([01]\d|2[0-3]):[0-5]\d-([01]\d|2[0-3]):[0-5]\d$"
_MOMENT = r"^\d{4}-\d\d-\d\d \d\d:\d\d$"
WRITTEN_AS = {_RANGE: "2017-01-01..2017-03-31", _HOURS: '"20:00-05:30"', _MOMENT: '"2017-06-01 06:00"'}
"""What has a form of its own, by the pattern of that: an example for people."""
Share = Annotated[int, Field(ge=1, le=100)]
OF_A_COLUMN = ("sum", "nulls", "distribution")
"""Metrics that need one."""
Happening = Literal["begun", "nearly spent", "stopped", "paused", "published", "proved", "rolled back", "cancelled"]
"""What happens to a plan."""


def _in_order(text: str) -> str:
    first, _, last = text.partition("..")
    days = (date.fromisoformat(last) - date.fromisoformat(first)).days + 1
    if days < 1:
        raise ValueError("it ends before it starts: write the older day first")
    if days > MOST_DAYS:
        raise ValueError(f"it has {days:,} days, and {MOST_DAYS:,} are a century")
    return text


def days_of(text: str) -> frozenset[date]:
    """Return the days of a range, both ends included."""
    first, last = (date.fromisoformat(day) for day in text.split(".."))
    return frozenset(first + timedelta(days=number) for number in range((last - first).days + 1))


def ascending(shares: tuple[int, ...]) -> tuple[int, ...]:
    """Refuse shares of a rollout that do not increase to 100."""
    if list(shares) != sorted(set(shares)) or shares[-1] != 100:
        raise ValueError("the shares have to grow, and the last one has to be 100")
    return shares


def _computed(table: str) -> str:
    if not _TABLE.fullmatch(table):
        raise ValueError(f"{table!r} is no table that is computed: name one of silver or gold, as gold.daily_sales")
    return table


def _readable(text: str) -> str:
    if not text.strip() or visible(text, breaks=True) != text:
        raise ValueError("it is blank, or has invisible characters: write words")
    return text


def _in_digits(value: object) -> object:
    """Refuse spellings that only Python reads as a number: `1_5` is more likely a slip than fifteen."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return value
    if not _NUMBER.fullmatch(str(value)):
        raise ValueError(f"{value!r} is no number: write digits, as 1.5, with a point and nothing between them")
    return Decimal(str(value))


def never_null(schema: dict[str, Any]) -> None:
    """Let a field be absent in the schema, but not null."""
    (said,) = (one for one in schema.pop("anyOf") if one.get("type") != "null")
    del schema["default"]
    schema.update(said)


def _a_moment(text: str) -> str:
    datetime.fromisoformat(text)
    return text


def _with_an_end(hours: str) -> str:
    first, last = hours.split("-")
    if first == last:
        raise ValueError("it ends when it begins: leave service out to compute at any time, or write another end")
    return hours


Words = Annotated[str, Field(max_length=2000), AfterValidator(_readable)]
Table = Annotated[str, AfterValidator(_computed)]
KeyText = Annotated[
    str,
    Field(max_length=200),
    AfterValidator(_readable),
    WithJsonSchema({"type": ["string", "number"]}),
]
CodeVersion = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_readable)]
DayRange = Annotated[str, Field(pattern=_RANGE), AfterValidator(_in_order)]
Hours = Annotated[str, Field(pattern=_HOURS), AfterValidator(_with_an_end)]
Moment = Annotated[str, Field(pattern=_MOMENT), AfterValidator(_a_moment)]
Number = Annotated[Decimal, BeforeValidator(_in_digits)]
Percent = Annotated[Number, Field(ge=0, le=1000)]
Amount = Annotated[Number, Field(gt=0, le=MOST)]


class MisplacedError(ValueError):
    """Fields that exclude each other.

    Args:
        field: the one to look at, as a place in the file.
    """

    def __init__(self, what: str, *field: int | str) -> None:
        super().__init__(what)
        self.field = field


class _Part(BaseModel):
    """A part of a plan file: unknown fields and values of other types are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class Touched(_Part):
    """Days touched by an event; exactly one of these."""

    arrival: str | None = None
    """Path of a delivered file, as `status late` and `why` have it: the days of its raw table that it has rows of."""
    publication: str | None = None
    """Name of a publication, as `status releases` has it: the days that it published."""

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if (self.arrival is None) == (self.publication is None):
            raise ValueError("name either an arrival or a publication")
        return self


class Days(_Part):
    """Days of the named tables; exactly one of `range`, `list`, `stale` and `touched_by`."""

    range: DayRange | None = None
    """Both ends included: 2017-01-01..2017-03-31."""
    list: Annotated[tuple[date, ...], Field(min_length=1, max_length=MOST_DAYS)] | None = None
    """Single days."""
    stale: Literal[True] | None = None
    """Those that are stale when the plan is explained, through data, code or configuration."""
    touched_by: Touched | None = None
    """Those that an arrival or a publication touched."""
    without: tuple[date, ...] = ()
    """Days of these that are left out."""

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        named = [name for name in ("range", "list", "stale", "touched_by") if getattr(self, name) is not None]
        if len(named) != 1:
            said = " and ".join(named) or "none"
            raise ValueError(f"give exactly one of range, list, stale and touched_by; there is {said}")
        return self

    def named_days(self) -> frozenset[date] | None:
        """Return the days that the file itself names; None if the platform has to find them."""
        if self.list is not None:
            return frozenset(self.list) - frozenset(self.without)
        if self.range is None:
            return None
        return days_of(self.range) - frozenset(self.without)


class Gate(_Part):
    """By how much a figure of all staged days may differ from the same days of the release."""

    table: Table
    """Of the staged days that it looks at."""
    metric: Literal["rows", "keys", "changed", "sum", "nulls", "distribution"]
    """Figure to judge: rows, keys or changed keys of a table; the sum, nulls or distribution of a column."""
    column: Column | None = None
    """Of `sum`, `nulls` and `distribution`."""
    tolerance_percent: Percent
    """Largest difference to the release, in percent of it."""
    each_day: bool = False
    """Whether every single day has to keep it, too."""

    @model_validator(mode="after")
    def _has_its_column(self) -> Self:
        if (self.metric in OF_A_COLUMN) != (self.column is not None):
            raise ValueError(f"the metric {self.metric} {'takes no' if self.column else 'needs a'} column")
        return self


class Budget(_Part):
    """Limits of cost: at 100 % of one of these the backfill stops; it can continue once the limit is raised."""

    bytes: Annotated[int, Field(gt=0, le=MOST)] | None = None
    """Written."""
    minutes: Amount | None = None
    """Of computing, all sittings together."""
    money: Amount | None = None
    """In the currency of the price."""
    price_per_core_hour: Amount | None = None
    """Of one core of Spark."""

    @model_validator(mode="after")
    def _has_a_price(self) -> Self:
        if self.money is not None and self.price_per_core_hour is None:
            raise ValueError("a budget of money needs price_per_core_hour")
        return self


class Service(_Part):
    """Hours in which it may compute; by default always."""

    hours: Hours | None = None
    """In UTC, over midnight if need be: 20:00-05:30. It stops outside, and can be gone on with."""
    until: Moment | None = None
    """When it has to be staged, in UTC, as "2017-06-01 06:00": refused where its hours until then will not do."""


class Approvals(_Part):
    """Conditions under which the hash of `backfill explain` needs approval; never by default."""

    above_days: Annotated[int, Field(ge=0, le=MOST)] | None = None
    """Of tables, all together."""
    above_money: Annotated[Number, Field(ge=0, le=MOST)] | None = None
    """By the estimate."""
    beyond_window: bool = False
    """Where a day lies further back than the shortest restatement window of a raw table."""
    people: Annotated[int, Field(ge=1, le=10)] = 1
    """How many different people; the plan's owner does not count."""


class Override(_Part):
    """Protected days that are computed although protected."""

    days: DayRange
    """Both ends included: 2017-01-01..2017-01-31."""
    reason: Words
    """Why closed days have to change, for auditors."""

    def named_days(self) -> frozenset[date]:
        """Return the days."""
        return days_of(self.days)


class Afterwards(_Part):
    """Verification after publication."""

    verify: Annotated[int, Field(ge=0, le=1000)] = 3
    """So many days of each table, and the newest, are computed once more and have to come out the same; none with 0."""
    roll_back_on_failure: bool = False
    """Whether all of it is rolled back at once if one does not."""


class PlanFile(_Part):
    """A backfill as reviewed code."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9._-]{0,57}$")]
    """Of the backfill: also the name of its stage, after `plan-`, and of its record."""
    reason: Words
    """Why it is needed, for the next person."""
    owner: Words
    """The person or team responsible."""
    tables: Annotated[tuple[Table, ...], Field(min_length=1, max_length=1000)]
    """That are to be computed. What they are made from is brought up to date before."""
    days: Days
    """Of these tables."""
    downstream: bool = True
    """Whether the tables made from these are computed, too, on the days that this reaches. They are stale otherwise."""
    policy: Literal["recompute", "stale", "fill_gaps"] = "recompute"
    """All named days, whatever their state; only those that are stale; or only those that were never computed."""
    only: (
        Annotated[
            dict[Column, Annotated[tuple[KeyText, ...], Field(min_length=1, max_length=1000)]],
            Field(min_length=1, max_length=10),
        ]
        | None
    ) = Field(default=None, json_schema_extra=never_null)
    """Keys, as store_id: [330, 337]: only their rows are computed, the others of a day are carried over as they are."""
    code: Annotated[dict[Table, CodeVersion], Field(min_length=1, max_length=1000)] | None = Field(
        default=None, json_schema_extra=never_null
    )
    """Versions of code, as gold.daily_sales: "3f2a9c…": it is refused where the code that is here is another one."""
    cap_days: Annotated[int, Field(ge=1, le=10_000_000)] = 10_000
    """Most days of tables, all together; a plan of more is refused whole."""
    batch_days: Annotated[int, Field(ge=1, le=1000)] | None = None
    """Days of one Spark job; the setting of the same name by default."""
    rollout: Annotated[tuple[Share, ...], Field(min_length=1, max_length=10), AfterValidator(ascending)] = (10, 100)
    """Percents of the named days that are staged before the gates are asked, one after another."""
    gates: tuple[Gate, ...] = ()
    """Besides those of the contracts, which hold for every staged day in any case."""
    budget: Budget = Budget()
    service: Service = Service()
    approvals: Approvals = Approvals()
    override_protected: Override | None = None
    """Days that contracts protect, as a closed accounting period, are computed only where this names them, and why."""
    afterwards: Afterwards = Afterwards()
    notify: Annotated[tuple[Happening, ...], Field(max_length=8)] = ()
    """Events sent to the platform's webhook by `up`, as [stopped, published]."""

    @field_validator("only")
    @classmethod
    def _stands_alone(cls, only: dict[str, tuple[str, ...]] | None, said: ValidationInfo) -> object:
        if only is not None and said.data.get("downstream", False):
            raise ValueError("rows of some keys are computed of the named tables alone: write downstream: false")
        if only is not None and said.data.get("policy", "recompute") != "recompute":
            raise ValueError("rows of some keys are computed of all named days: write policy: recompute")
        return only

    @model_validator(mode="after")
    def _is_about_its_tables(self) -> Self:
        for number, gate in enumerate(self.gates):
            if gate.table not in self.tables and not self.downstream:
                raise MisplacedError(f"{gate.table} is not among the tables", "gates", number, "table")
        if not self.downstream and (others := [table for table in self.code or {} if table not in self.tables]):
            raise MisplacedError("it is not among the tables", "code", others[0])
        if self.policy != "recompute" and self.days.touched_by:
            raise MisplacedError(f"days that were touched are recomputed, and {self.policy} says otherwise", "policy")
        return self
