"""Queries of the ledger as SQL, and rows as records."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields
from datetime import date
from importlib import import_module
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    ScalarSelect,
    Select,
    Table,
    Text,
    and_,
    bindparam,
    case,
    cast,
    delete,
    func,
    insert,
    or_,
    select,
    union_all,
    update,
)

from platform_assets.ledger.schema import arrivals, days, publications
from platform_assets.planning.arrivals import Delivery
from platform_assets.records.code_version import Attempt, TiedTo, Version
from platform_assets.records.history import (
    COMPACTION,
    RELOAD,
    ArrivalRecord,
    DayRecord,
    Hold,
    PublicationRecord,
)
from platform_assets.records.manifest import Warned
from platform_assets.records.outbox import AnnouncedDay
from platform_assets.records.schema_drift import Noted

Row = Mapping[str, Any]

its_release = publications.c.release
DAY_COLUMNS = [days.c[field.name] for field in fields(DayRecord)]
_MOST_PARAMETERS = 500


def current_days(table: str, at: int | None, among: Collection[date] | None = None) -> Select[Any]:
    """Select each day of a table in its highest release up to `at`, oldest first."""
    up_to = [] if at is None else [its_release <= at]
    query = select(*DAY_COLUMNS).join_from(days, publications).where(days.c.table == table, is_current(at), *up_to)
    return query.where(*is_among(among)).order_by(days.c.day)


def digests(table: str, at: int, among: Collection[date]) -> Select[Any]:
    """Return the digests of some current days."""
    query = select(days.c.day, days.c.digest).join_from(days, publications)
    return query.where(days.c.table == table, is_current(at), its_release <= at, *is_among(among))


def indexed(names: Collection[str], at: Collection[int]) -> Select[Any]:
    """Select publications by names and releases, with their releases; if there are too many, all."""
    query = select(publications.c.publication, its_release)
    if len(names) + len(at) > _MOST_PARAMETERS:
        return query
    return query.where(or_(publications.c.publication.in_(sorted(names)), its_release.in_(sorted(at))))


def is_current(at: int | None) -> ColumnElement[bool]:
    """Return whether a release shows a day's content, provided that it was published by then.

    A day rolled back to before its first publication has no digest: it is as if it had never been computed.
    """
    now = days.c.replaced_at.is_(None)
    return and_(days.c.digest != "", now if at is None else or_(now, days.c.replaced_at > at))


def is_among(some: Collection[date] | None) -> list[ColumnElement[bool]]:
    """Return the days themselves or, for too many parameters, their range."""
    if some is None:
        return []
    if len(some) > _MOST_PARAMETERS:
        return [days.c.day.between(min(some), max(some))]
    return [days.c.day.in_(sorted(some))]


def all_arrivals(table: str | None, *, refused_only: bool) -> Select[Any]:
    """Select all arrivals, oldest first; or the files whose newest record is a refusal, whole or in part."""
    newest = func.row_number().over(partition_by=(arrivals.c.table, arrivals.c.path), order_by=its_release.desc())
    inner = counting(select(arrivals, its_release, newest.label("newest")))
    if table is not None:
        inner = inner.where(arrivals.c.table == table)
    ranked = inner.subquery()
    query = select(*(ranked.c[column.name] for column in arrivals.columns))
    if refused_only:
        is_refused = (ranked.c.refused > 0) | ranked.c.reason.is_not(None)
        query = query.where(ranked.c.newest == 1, ranked.c.kind != "replay", is_refused)
    return query.order_by(ranked.c.release, ranked.c.table, ranked.c.arrival_date, ranked.c.path)


def noted(table: str | None) -> Select[Any]:
    """Select equal notes of arrivals of a table once, with the first arrival that had them."""
    file, made = arrivals.c, publications.c.created_at
    alike = (file.table, cast(file.notes, Text))
    number = func.row_number().over(partition_by=alike, order_by=(its_release, file.arrival_date, file.path))
    last, count = func.max(made).over(partition_by=alike), func.count().over(partition_by=alike)
    inner = select(file.table, file.notes, file.path, file.arrival_date, made.label("since"))
    inner = inner.add_columns(last.label("last"), count.label("files"), number.label("number"))
    inner = counting(inner).where(cast(file.notes, Text) != "[]")
    ranked = (inner if table is None else inner.where(file.table == table)).subquery()
    return select(*(ranked.c[name] for name in Noted._fields)).where(ranked.c.number == 1)


def known_files(table: str) -> Select[Any]:
    """Select what identifies the files of one table's arrivals."""
    file = arrivals.c
    # Older versions gave no reason to a file whose rows were all refused.
    is_refused = or_(file.reason.is_not(None), and_(file.refused > 0, file.refused == file.landed))
    query = select(file.path, file.size, file.modified_ns, file.sha256, is_refused)
    return counting(query).where(file.table == table).order_by(its_release, file.arrival_date, file.path)


def refused_rows() -> Select[Any]:
    """Count refused rows of each raw table, for the last delivery of every file.

    Rows that entered by a replay no longer count.
    """
    newest = all_arrivals(None, refused_only=True).order_by(None).subquery()
    replayed = counting(select(arrivals)).where(arrivals.c.kind == "replay", arrivals.c.reason.is_(None)).subquery()
    stand = union_all(
        select(newest.c.table, newest.c.refused.label("rows")),
        select(replayed.c.table, replayed.c.refused - replayed.c.landed),
    ).subquery()
    rows = cast(func.sum(stand.c.rows), BigInteger)  # PostgreSQL's sum of such is a decimal
    return select(stand.c.table, rows.label("rows")).group_by(stand.c.table)


def refused_by_date(table: str, since: date) -> Select[Any]:
    """Sum refused and landed rows of a raw table's files, by arrival date; for a refused file, all its rows."""
    file = arrivals.c
    refused = case((file.reason.is_(None), file.refused), else_=file.landed)
    total = (cast(func.sum(rows), BigInteger) for rows in (refused, file.landed))
    delivered = (file.table == table, file.kind == "delivery", file.arrival_date >= since)
    return (
        counting(select(file.arrival_date, *total))
        .where(*delivered)
        .group_by(file.arrival_date)
        .order_by(file.arrival_date)
    )


def deliveries(table: str, at: int, *, alike_only: bool) -> Select[Any]:
    """Select arrivals with valid rows at a release: files, and arrivals of their waiting rows."""
    its, back, made = arrivals.c, arrivals.alias("back"), publications.alias("made")
    gone = select(back.c.origin).join_from(back, made, back.c.publication == made.c.publication)
    gone = gone.where(back.c.table == table, back.c.kind == "withdrawal", made.c.release <= at)
    query = counting(select(*(its[name] for name in Delivery._fields)), at).where(
        its.table == table,
        its.kind.in_(("delivery", "approval", "due", "replay")),
        its.reason.is_(None),
        its.landed > 0,
        its_release <= at,
        its.path.not_in(gone),
    )
    if alike_only:
        same = arrivals.alias("same")
        files = select(same.c.sha256).where(same.c.table == table, same.c.kind == "delivery")
        query = query.where(its.sha256.in_(files.group_by(same.c.sha256).having(func.count() > 1)))
    return query


def counting(query: Select[Any], at: int | None = None) -> Select[Any]:
    """Join arrivals with their publications, without those before the newest reload of their table."""
    by_table = arrivals.alias("reloads")
    made = publications.alias("reloading")
    up_to = [] if at is None else [made.c.release <= at]
    newest = (
        select(by_table.c.table, func.max(made.c.release).label("release"))
        .join_from(by_table, made, by_table.c.publication == made.c.publication)
        .where(by_table.c.kind == RELOAD, *up_to)
        .group_by(by_table.c.table)
        .subquery("reloaded")
    )
    joined = arrivals.join(publications).outerjoin(newest, newest.c.table == arrivals.c.table)
    return query.select_from(joined).where(or_(newest.c.release.is_(None), its_release > newest.c.release))


def parts(publication: str) -> tuple[Select[Any], Select[Any]]:
    """Select the days and the arrivals of one publication."""
    return (
        select(*DAY_COLUMNS).where(days.c.publication == publication).order_by(days.c.table, days.c.day),
        select(arrivals).where(arrivals.c.publication == publication).order_by(arrivals.c.table, arrivals.c.path),
    )


def to_arrival(row: Row) -> ArrivalRecord:
    """Return the record of a row of arrivals."""
    return ArrivalRecord(**{**row, "notes": tuple(row["notes"])})


def to_day(row: Row) -> DayRecord:
    """Return the record of a row of days."""
    return DayRecord(**{**row, "warnings": tuple(Warned(**warned) for warned in row["warnings"] or ())})


def day_row(record: DayRecord) -> Row:
    """Return the row of a day record."""
    return {**vars(record), "warnings": [warned.model_dump() for warned in record.warnings] or None}


def publication_row(record: PublicationRecord) -> Row:
    """Return the row of a publication, without its days and arrivals."""
    not_kept = ("days", "arrivals", "refuses", "exposures")
    return {name: value for name, value in vars(record).items() if name not in not_kept}


def days_of(publication: str) -> Select[Any]:
    """Return the days of each table in a publication."""
    return select(days.c.table, days.c.day).where(days.c.publication == publication)


def made_last_by(publication: str) -> Select[Any]:
    """Return the days of a publication that were not published again since. Compaction does not count."""
    later, its = days.alias(), publications.alias()
    since = (
        select(later.c.day)
        .join_from(later, its)
        .where(later.c.table == days.c.table, later.c.day == days.c.day)
        .where(its.c.release > its_release, its.c.kind != COMPACTION)
        .correlate(days, publications)
    )
    query = select(days.c.table, days.c.day).join_from(days, publications)
    return query.where(days.c.publication == publication, ~since.exists())


def mark_replaced(connection: Connection, touched: Collection[tuple[str, date]], since: int | None) -> None:
    """Recompute which release replaced each revision of some days."""
    if not touched:
        return
    this_day = (days.c.table == bindparam("of_table"), days.c.day == bindparam("of_day"))
    may_change = () if since is None else (or_(days.c.replaced_at.is_(None), days.c.replaced_at > since),)
    keys = [{"of_table": table, "of_day": day} for table, day in sorted(touched)]
    connection.execute(update(days).where(*this_day, *may_change).values(replaced_at=_following()), keys)


def marked_otherwise() -> Select[Any]:
    """Select revisions marked as replaced by another release than the next one that published the day."""
    is_other = days.c.replaced_at.is_distinct_from(_following())
    return select(days.c.table, days.c.day).distinct().where(is_other).order_by(days.c.table, days.c.day)


def _following() -> ScalarSelect[Any]:
    """Return the next release that published the day of a row of `days`."""
    later, its = days.alias(), publications.alias()
    own = select(its_release).where(publications.c.publication == days.c.publication).correlate(days).scalar_subquery()
    return (
        select(func.min(its.c.release))
        .join_from(later, its)
        .where(later.c.table == days.c.table, later.c.day == days.c.day, its.c.release > own)
        .correlate(days)
        .scalar_subquery()
    )


def insert_all(connection: Connection, table: Table, rows: Sequence[Row]) -> None:
    """Insert rows in bulk."""
    if rows:
        connection.execute(insert(table), rows)


def insert_new(connection: Connection, table: Table, row: Row) -> None:
    """Insert a row, unless its key exists; two writers may try at once."""
    # Only the dialect in use: to import the other takes longer than most commands
    dialect: Any = import_module(f"sqlalchemy.dialects.{connection.dialect.name}")
    connection.execute(dialect.insert(table).values(**row).on_conflict_do_nothing())


def delete_each(connection: Connection, table: Table, keys: Sequence[Row]) -> None:
    """Delete the rows with the values of one of the keys. All keys name the same columns."""
    if keys:
        matches = [table.c[name] == bindparam(f"key_{name}") for name in keys[0]]
        bound = [{f"key_{name}": value for name, value in key.items()} for key in keys]
        connection.execute(delete(table).where(*matches), bound)


_COLUMNS = ("refused_day", "fingerprint", "code_version", "configuration")


def with_columns(held: Hold | AnnouncedDay) -> Row:
    """Return a hold, or its announcement, as a row."""
    day, tried = (held.refused.day, Attempt("")) if isinstance(held.refused, TiedTo) else (held.day, held.refused)
    values = (day, tried.fingerprint, tried.made_by.code, tried.made_by.configuration)
    others = {name: value for name, value in vars(held).items() if name not in ("refused", "failed")}
    return others | dict(zip(_COLUMNS, values, strict=True))


def without_columns(row: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the fields of a row's hold, or of its announcement."""
    refused_day, fingerprint, *made_by = (row[name] for name in _COLUMNS)
    refused = Attempt(fingerprint, Version(*made_by)) if refused_day == row["day"] else TiedTo(refused_day)
    return {name: value for name, value in row.items() if name not in _COLUMNS} | {"refused": refused}
