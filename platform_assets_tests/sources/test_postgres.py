"""PostgreSQL by watermark, on a real server and without Spark: raw is written here as ingest would write it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any, cast

import duckdb
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from platform_assets.contracts import Column, ContractError
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.releases import Release
from platform_assets.sources import postgres, postgres_rows
from platform_assets.sources.postgres import READING, PostgresTable
from platform_assets.sources.postgres_rows import load
from platform_assets.sources.postgres_server import Types
from platform_assets.sources.source import Drift, Reading, SoFar, SourceError
from platform_assets.sources.taken import scratch
from platform_assets_tests.support.postgres import PostgresServer
from platform_assets_tests.support.shop import PASSWORD, URL, Shop, open_shop
from platform_assets_tests.support.shop import RAW as WITH_MOVES

TODAY = date(2026, 1, 1)
RAW = replace(WITH_MOVES, moves_within_days=0)
_TYPES = {"long": "BIGINT", "string": "VARCHAR", "timestamp": "TIMESTAMPTZ"}


@pytest.fixture
def shop(postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> Shop:
    made = open_shop(postgres_server)
    monkeypatch.setenv(URL, made.reader)
    return made


@dataclass
class Raw:
    """The raw table, as ingest makes it of readings: all their rows, typed, by day."""

    folder: Path
    source: PostgresTable = field(default_factory=lambda: cast(PostgresTable, RAW.source))
    readings: list[Reading] = field(default_factory=list)
    version: int = -1

    @property
    def so_far(self) -> SoFar:
        versions = {"raw.orders": self.version} if self.version >= 0 else {}
        positions = [reading.position for reading in self.readings]
        newest = positions[-1] if positions else ""
        return SoFar(newest, frozenset(positions), TODAY, Lake.at(self.folder / "lake"), Release(0, versions))

    def _private(self) -> Path:
        folder = self.folder / "reading"
        rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return folder

    def read(self) -> list[dict[str, Any]]:
        """Read what is new and take it."""
        found = self.source.read(RAW, self.so_far, self._private())
        return self.take(found) if found and found.files else []

    def drift(self, **options: Any) -> Drift:
        """Compare, and take what is read again."""
        found = self.source.drift(RAW, self.so_far, self._private(), options.pop("days", None), 10, **options)
        if found.repair:
            self.take(found.repair)
        return found

    def take(self, reading: Reading) -> list[dict[str, Any]]:
        self.readings.append(reading)
        columns = ", ".join(f"CAST({c.name} AS {_TYPES.get(c.type, c.type.upper())}) AS {c.name}" for c in RAW.columns)
        taken: list[pa.Table] = []
        with duckdb.connect() as connection:
            connection.execute("SET TimeZone = 'UTC'")
            for day, files in reading.files.items():
                for file in files:
                    arrival = f"orders/{day}/{reading.position}.{file.name}"
                    taken.append(
                        connection.sql(
                            f"SELECT {columns}, '{arrival}' AS _arrival, DATE '{day}' AS _arrival_date, "
                            "CASE WHEN is_deleted = 'true' THEN 'void' ELSE 'record' END AS _kind, '' AS _file_order, "
                            "file_row_number AS _place, CAST(make_timestamp(epoch_us(CAST(ordered_at AS TIMESTAMPTZ))) "
                            f"AS DATE) AS event_date FROM read_parquet('{file}', file_row_number = true)"
                        ).to_arrow_table()
                    )
        rows = pa.concat_tables(taken)
        write_deltalake(self.folder / "lake/raw/orders", rows, mode="append", partition_by=["event_date"])
        self.version += 1
        self.rows = [*getattr(self, "rows", []), *rows.to_pylist()]
        return cast(list[dict[str, Any]], rows.to_pylist())

    def silver(self) -> dict[tuple[date, int], str]:
        """The newest version of each order within the reach of moves; here nothing moves."""
        newest: dict[tuple[date, int], dict[str, Any]] = {}
        for row in sorted(self.rows, key=lambda row: row["read_at"]):
            newest[row["event_date"], row["order_id"]] = row
        return {key: str(row["amount"]) for key, row in newest.items() if row["_kind"] == "record"}


@pytest.fixture
def raw(tmp_path: Path) -> Raw:
    return Raw(tmp_path)


def numbers(rows: list[dict[str, Any]]) -> list[int]:
    return sorted(row["order_id"] for row in rows)


def test_a_reading_has_each_change_once_and_its_values_exactly(shop: Shop, raw: Raw) -> None:
    note = 'she said "hi",\n\\. ü'
    shop.order(1, "12345678.90", note=note, tags=["a", 'b"'], updated_at="2017-01-02 23:59:59.999999Z")
    shop.order(2, "0.10", note="", updated_at="2017-01-03 00:00Z")
    shop.order(3, "NaN", updated_at="-infinity")
    found = raw.source.read(RAW, raw.so_far, raw._private())
    assert found
    assert {day: len(files) for day, files in found.files.items()} == dict.fromkeys(
        (date(2017, 1, 2), date(2017, 1, 3), TODAY), 1
    )
    shop.run("DELETE FROM orders WHERE order_id = 3")
    dated = {day: files for day, files in found.files.items() if day != TODAY}
    taken = {row["order_id"]: row for row in raw.take(replace(found, files=dated))}
    assert (taken[1]["amount"], taken[1]["note"], taken[1]["tags"]) == (Decimal("12345678.90"), note, '["a","b\\""]')
    assert (taken[2]["amount"], taken[2]["note"], taken[2]["tags"]) == (Decimal("0.10"), "", None)
    assert raw.read() == []
    shop.order(2, "0.20")
    shop.order(4)
    changed = raw.read()
    assert numbers(changed) == [2, 4]
    assert {row["_arrival_date"] for row in changed} == {TODAY}  # though the database's clock is ahead of that
    assert raw.read() == []  # though both are within the overlap
    assert not raw.drift()


def test_a_row_of_a_transaction_that_is_still_open_is_read_after_it(shop: Shop, raw: Raw) -> None:
    """One that began before and commits later: by `updated_at` alone its row would be overlooked."""
    shop.order(1)
    assert numbers(raw.read()) == [1]
    raw.source = replace(raw.source, overlap_minutes=0)
    with psycopg.connect(shop.url) as slow:
        slow.execute("INSERT INTO orders VALUES (2, 1, NULL, NULL, '2017-01-01Z', now())")
        shop.order(3)
        assert raw.read() == []  # the third is newer than what is not there yet
        waits = raw.source.waits(RAW, raw.so_far)
        assert "held back by a transaction open since" in waits.what
    assert raw.source.waits(RAW, raw.so_far).rows == 2
    assert numbers(raw.read()) == [2, 3]
    with psycopg.connect(shop.url) as hidden:
        hidden.execute("SET track_activities = off")
        hidden.execute("INSERT INTO orders VALUES (4, 1, NULL, NULL, '2017-01-01Z', now())")
        with pytest.raises(SourceError, match="track_activities"):
            raw.read()


def test_a_look_at_what_waits_is_short(shop: Shop, raw: Raw, monkeypatch: pytest.MonkeyPatch) -> None:
    """All tables wait for each tick of the sensor."""
    monkeypatch.setattr(postgres, "_LOOKS_S", 1)
    with psycopg.connect(shop.url) as busy:
        busy.execute("LOCK TABLE orders")
        with pytest.raises(SourceError, match="statement timeout"):
            raw.source.waits(RAW, raw.so_far)


def test_texts_with_line_breaks_are_read_back_in_small_buffers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More than a buffer of rows, whose texts look like rows: in parallel DuckDB refuses the file."""
    monkeypatch.setattr(postgres_rows, "_LONGEST_ROW", 1 << 20)
    types = Types({"order_id": "int8", "note": "text"}, RAW, cast(PostgresTable, RAW.source)._access)
    note = "\n".join(f'7,"""",{number},2017-01-01 00:00:00+00,2017-01-01' for number in range(50))
    csv = tmp_path / "rows.csv"
    csv.write_text("".join(f'{n},"{note}",{n},2017-01-01 00:00:00+00,2017-01-01\n' for n in range(20_000)))
    with scratch(tmp_path) as rows:
        load(rows, "arrived", csv, types, 20_000)
        found = rows.execute("SELECT count(*), count(DISTINCT order_id), count(DISTINCT note) FROM arrived")
        assert found.fetchall() == [(20_000, 20_000, 1)]


def test_drift_is_named_key_by_key_and_read_again(shop: Shop, raw: Raw) -> None:
    raw.source = replace(raw.source, overlap_minutes=0)  # within it, readings find all of this but deletes themselves
    for number in range(1, 9):
        shop.order(number, at=f"2017-01-{number % 3 + 1:02} 10:00Z")
    raw.read()
    shop.run("UPDATE orders SET amount = 99 WHERE order_id = 1")  # and not its updated_at
    shop.run("DELETE FROM orders WHERE order_id IN (2, 3)")
    shop.order(4, "44.00", at="2017-01-02 10:00Z", updated_at="2016-01-01Z")
    shop.order(9, "9.00", at="2017-01-01 10:00Z", updated_at="2016-01-01Z")
    shop.run("UPDATE orders SET ordered_at = '2017-01-30Z' WHERE order_id = 5")
    assert raw.read() == []
    found = raw.drift(days=[date(2017, 1, 1), date(2017, 1, 2)])
    assert found.days == 2
    assert found.differing == (date(2017, 1, 1), date(2017, 1, 2))
    assert Counter(found.keys) == {"changed": 1, "deleted": 1, "back-dated": 2}
    found = raw.drift()
    assert {(one.key, one.what) for one in found.examples} == {
        ("order_id=2", "deleted"),
        ("order_id=5", "moved"),
        ("order_id=5", "back-dated"),
    }
    assert not raw.drift()
    assert raw.silver() == shop.content()
    shop.order(2, "2.00")  # once more under the number of one that was deleted
    assert numbers(raw.read()) == [2]
    assert raw.silver() == shop.content()
    shop.order(2, "3.00")
    found = raw.drift()
    assert not found
    assert found.waiting == 1  # it was not read yet


_NUMBERS, _AMOUNTS, _DAYS = st.integers(1, 5), st.sampled_from(["1.00", "2.00"]), st.integers(1, 3)
_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), _NUMBERS, _AMOUNTS, _DAYS),
        st.tuples(st.just("write silently"), _NUMBERS, _AMOUNTS, _DAYS),
        st.tuples(st.just("write back-dated"), _NUMBERS, _AMOUNTS, _DAYS),
        st.tuples(st.just("delete"), _NUMBERS),
        st.tuples(st.just("begin"), _NUMBERS, _AMOUNTS, _DAYS),
        st.tuples(st.just("end"), st.booleans()),
        st.tuples(st.just("read")),
        st.tuples(st.just("verify")),
    ),
    max_size=14,
)


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=_STEPS)
def test_any_changes_and_readings_end_in_what_the_database_has(
    shop: Shop, tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[Any, ...]]
) -> None:
    """Against the table itself: inserts, updates, deletes, back-dated and silent ones, open transactions, readings."""
    with ExitStack() as stack:
        shop.run("TRUNCATE orders")
        raw = Raw(tmp_path_factory.mktemp("raw"))
        raw.source = replace(raw.source, overlap_minutes=0)
        raw.rows = []
        open_: list[psycopg.Connection[Any]] = []
        busy: set[int] = set()
        for what, *values in steps:
            if what == "read":
                raw.read()
            elif what == "verify" and raw.readings:
                raw.drift()
            elif what == "end" and open_:
                (open_[-1].commit if values[0] else open_[-1].rollback)()
                open_.pop().close()
                busy.clear()
            elif what == "begin" and not open_:
                open_.append(stack.enter_context(psycopg.connect(shop.url)))
                _write(open_[-1], "now()", *values)
                busy.add(values[0])
            elif what == "delete" and values[0] not in busy:
                shop.run("DELETE FROM orders WHERE order_id = %s", values[0])
            elif what.startswith("write") and values[0] not in busy:
                marks = {"write": "now()", "write silently": "orders.updated_at", "write back-dated": "'2016-01-01'"}
                with shop.transaction() as connection:
                    _write(connection, marks[what], *values)
        for connection in open_:
            connection.commit()
        raw.read()
        if raw.readings:
            raw.drift()
            assert raw.silver() == shop.content()
            assert not raw.drift()
        else:
            assert shop.content() == {}


def _write(connection: psycopg.Connection[Any], mark: str, number: int, amount: str, day: int) -> None:
    then = mark if mark != "orders.updated_at" else "now()"
    connection.execute(
        f"INSERT INTO orders VALUES ({number}, {amount}, NULL, NULL, '2017-01-{day:02} 10:00Z', {then}) "
        "ON CONFLICT (order_id) DO UPDATE SET amount = excluded.amount, ordered_at = excluded.ordered_at, "
        f"updated_at = {mark}".encode()
    )


_WRONG = {
    "ALTER TABLE orders DROP COLUMN note": "has no column note",
    "ALTER TABLE orders DROP COLUMN updated_at": "has no column updated_at",
    "ALTER TABLE orders DROP CONSTRAINT orders_pkey": "no key or unique index keeps its rows apart",
    "ALTER TABLE orders DROP CONSTRAINT orders_pkey, ADD PRIMARY KEY (order_id, ordered_at)": "its key is .order_id, o",
    "ALTER TABLE orders ALTER amount TYPE bytea USING NULL": "has amount as bytea, which does not become decimal.12,2.",
    "REVOKE SELECT ON orders FROM shop_reader": "may not be read by this role",
    "DROP TABLE orders": "is not there",
    "DROP TABLE orders; CREATE FOREIGN DATA WRAPPER far; CREATE SERVER far FOREIGN DATA WRAPPER far; "
    "CREATE FOREIGN TABLE orders (order_id bigint) SERVER far; GRANT SELECT ON orders TO shop_reader": "is a foreign",
    "ALTER TABLE orders ENABLE ROW LEVEL SECURITY": "query would be affected by row-level security",
}


@pytest.mark.parametrize(("change", "says"), _WRONG.items())
def test_what_is_wrong_with_a_table_is_said_by_name(shop: Shop, raw: Raw, change: Any, says: str) -> None:
    shop.order(1)
    shop.run(change)
    with pytest.raises(SourceError, match=f"public.orders.*{says}"):
        raw.read()


def test_a_role_that_cannot_see_others_a_clock_that_runs_back_and_a_prepared_transaction_are_named(
    shop: Shop, raw: Raw, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.order(1)
    shop.run("DROP ROLE IF EXISTS blind")
    shop.run("CREATE ROLE blind LOGIN")
    shop.run("GRANT SELECT ON orders TO blind")
    monkeypatch.setenv(URL, shop.reader.replace("shop_reader:s3cret%2Freader", "blind"))
    with pytest.raises(SourceError, match="GRANT pg_read_all_stats TO blind"):
        raw.read()
    monkeypatch.setenv(URL, shop.reader)
    ahead = replace(raw.so_far, position="20990101T000000000000-20990101T000000000000")
    with pytest.raises(SourceError, match="runs back"):
        raw.source.read(RAW, replace(ahead, positions=frozenset([ahead.position])), raw._private())
    shop.run("REVOKE SELECT ON orders FROM blind")
    shop.run("DROP ROLE blind")


def test_no_message_has_the_password_and_none_is_taken_of_a_server_that_goes_away(
    shop: Shop, raw: Raw, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.run(
        "INSERT INTO orders SELECT n, 1, repeat('x', 1000), NULL, now(), now() FROM generate_series(1, 20000) AS n"
    )
    ends = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'platform-assets' "
        "AND datname = current_database()"
    )
    opened = Path.open

    def ending(file: Path, *args: Any, **kwargs: Any) -> Any:
        if file.name == "rows.csv":  # the copy has begun
            shop.run(ends)
        return opened(file, *args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", ending)
        with pytest.raises(SourceError, match=f"public.orders of PostgreSQL .{URL}. was not read"):
            raw.read()
    for url in ("postgresql://me:s3cret@127.0.0.1:1/shop", "mysql://a:s3cret@b/c", ""):
        monkeypatch.setenv(URL, url)
        with pytest.raises(SourceError) as error:
            raw.read()
        assert "s3cret" not in str(error.value)
        assert PASSWORD not in str(error.value)
        assert URL in str(error.value)
    monkeypatch.setenv(URL, shop.reader)
    assert len(raw.read()) == 20_000


def _declared(**changes: Any) -> Iterator[str]:
    try:
        replace(RAW, **changes)
    except ContractError as error:
        yield str(error)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"columns": RAW.columns[: -len(READING)], "updated_at": "updated_at", "voided": None}, "End `columns` with"),
        ({"updated_at": "updated_at"}, "the newest reading of a row counts"),
        ({"source": PostgresTable("o", table="a.b", url_env="U", watermark="note")}, "has no timestamp 'note'"),
        ({"columns": (*RAW.columns, Column("seen", "timestamp", "When.", epoch="s"))}, "a view with moments"),
        ({"columns": (*RAW.columns, Column("seen", "date", "When.", pattern="%d/%m/%Y"))}, "times come in ISO"),
    ],
)
def test_a_contract_that_a_table_cannot_feed_is_refused(changes: dict[str, Any], says: str) -> None:
    assert says in "".join(_declared(**changes))


@pytest.mark.parametrize(
    "wrong",
    [{"table": "orders"}, {"table": 'a.b"; DROP'}, {"url_env": "postgresql://me:secret@host"}, {"replaces": "days"}],
)
def test_a_source_that_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ContractError) as error:
        PostgresTable("orders", **({"table": "a.b", "url_env": "SHOP_URL"} | wrong))
    assert "secret" not in str(error.value)


def test_local_times_are_those_of_the_zone_that_the_column_declares(shop: Shop, raw: Raw) -> None:
    columns = tuple(
        replace(column, zone="America/New_York") if column.name in ("updated_at", "ordered_at") else column
        for column in RAW.columns
    )
    shop.run("ALTER TABLE orders ALTER updated_at DROP DEFAULT")
    shop.run("ALTER TABLE orders ALTER updated_at TYPE timestamp, ALTER ordered_at TYPE timestamp")
    shop.run("INSERT INTO orders VALUES (1, 1, NULL, NULL, '2017-01-01 22:00', '2017-01-02 20:00')")
    contract = replace(RAW, columns=columns)
    found = raw.source.read(contract, raw.so_far, raw._private())
    assert found
    assert list(found.files) == [date(2017, 1, 3)]
    raw.readings.append(found)
    for zone, day in ((None, 2), ("America/New_York", 1)):
        drifted = raw.source.drift(replace(contract, day_zone=zone), raw.so_far, raw._private(), None, 1)
        assert [(one.day, one.what) for one in drifted.examples] == [(date(2017, 1, day), "back-dated")]  # not in raw


def test_new_columns_are_read_into_one_or_refused_by_name(
    postgres_server: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = open_shop(postgres_server)
    monkeypatch.setenv(URL, shop.reader)
    shop.order(1)
    shop.run('ALTER TABLE orders ADD COLUMN channel text, ADD COLUMN "Shop No" numeric(9,2)')
    shop.run("UPDATE orders SET channel = 'web', \"Shop No\" = 7.10")
    more = Column("more", "string", "What the contract does not declare.", may_be_absent=True)
    source = replace(cast(PostgresTable, RAW.source), rescued_in="more")
    contract = replace(RAW, columns=(*RAW.columns, more), source=source)
    so_far = SoFar("", frozenset(), date(2030, 1, 1), Lake.at(tmp_path / "lake"), Release())

    def read() -> dict[str, Any]:
        folder = Path(mkdtemp(dir=tmp_path))
        found = source.read(contract, so_far, folder)
        assert found
        [[file]] = found.files.values()
        [row] = pq.read_table(file).to_pylist()
        return dict(row)

    row = read()
    assert json.loads(row["more"]) == {"channel": "web", "Shop No": 7.1}
    shop.run("ALTER TABLE orders ADD COLUMN colour text")  # without a value nothing of a row is other
    assert read()["row_hash"] == row["row_hash"]
    strict = replace(cast(PostgresTable, RAW.source), schema_drift="fail")
    with pytest.raises(SourceError, match="has the column channel, Shop No, colour, which"):
        strict.read(replace(RAW, source=strict), so_far, tmp_path)
    shop.run("ALTER TABLE orders ADD COLUMN more text")
    with pytest.raises(SourceError, match="with another `rescued_in` than more"):
        read()
