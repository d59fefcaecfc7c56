"""Dagster's storage on SQLite, with the event log's connections kept open."""

from __future__ import annotations

import logging
import os
from collections import OrderedDict, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import RLock
from typing import Any

from dagster import DagsterEventType, EventLogEntry
from dagster._core.event_api import EventHandlerFn
from dagster._core.storage.asset_check_execution_record import AssetCheckExecutionRecordStatus
from dagster._core.storage.event_log.polling_event_watcher import SqlPollingEventWatcher
from dagster._core.storage.event_log.schema import AssetCheckExecutionsTable, SqlEventLogStorageTable
from dagster._core.storage.event_log.sqlite.sqlite_event_log import SqliteEventLogStorage
from dagster._core.storage.sqlite import SQLITE_BUSY_TIMEOUT_SECONDS
from dagster._core.storage.sqlite_storage import DagsterSqliteStorage
from dagster._serdes import ConfigurableClassData, serialize_value
from sqlalchemy import Connection, Engine, create_engine, event

from platform_assets.access import make_folder
from platform_assets.settings import load_settings

_log = logging.getLogger(__name__)

_BATCH = 500
"""Events that Dagster hands over together."""

_OF_ASSETS = {DagsterEventType.ASSET_MATERIALIZATION, DagsterEventType.ASSET_MATERIALIZATION_PLANNED}

_KEPT = 16
"""Runs whose files stay open in one process; a webserver looks into many."""


class LocalStorage(DagsterSqliteStorage):
    """Dagster's own SQLite storage, same files and same tables, with the event log below.

    Named in `dagster.yaml`; an installation can go back to Dagster's `sqlite` at any time.
    """

    def __init__(self, base_dir: str, inst_data: ConfigurableClassData | None = None) -> None:
        super().__init__(base_dir, inst_data)
        # Dagster asks the environment whether what a range run says of its days is handed over together.
        os.environ.setdefault("DAGSTER_EVENT_BATCH_SIZE", str(_BATCH))
        self._event_log_storage = LocalEventLog(str(Path(base_dir) / "history" / "runs"))

    @classmethod
    def from_config_value(cls, inst_data: ConfigurableClassData | None, config_value: Any) -> LocalStorage:
        """Made by Dagster from `dagster.yaml`; `base_dir` is the folder of the files.

        Webserver and daemon begin here, and may have been started without `up`.
        """
        settings = load_settings()
        os.umask(settings.access.umask)
        settings.make_state()
        # A state folder that was there before may be open, and the umask as wide as a lake for readers.
        make_folder(Path(config_value["base_dir"]).absolute(), settings.access.state)
        return cls.from_local(inst_data=inst_data, **config_value)


class LocalEventLog(SqliteEventLogStorage):
    """Writes events several times as fast.

    Dagster's opens and closes a connection for every statement, so that each one compiles its SQL anew, looks up the
    schema and waits twice for the disk; a year of seven tables has more than ten thousand events. This one keeps an
    engine per file. A commit no longer waits for the disk (`synchronous=NORMAL`): nothing stored is lost when a process
    dies, the newest events can be when the machine does. That is right for a log that only tells; what is true lies in
    the lake.
    """

    def __init__(self, base_dir: str, inst_data: ConfigurableClassData | None = None) -> None:
        self._engines: OrderedDict[str, Engine] = OrderedDict()
        self._files: dict[str, tuple[int, int]] = {}
        self._known: set[str] = set()
        self._watcher: _Watcher | None = None
        super().__init__(base_dir, inst_data)
        self._db_lock: Any = RLock()  # a batch is written to two files at once

    @contextmanager
    def _connect(self, shard: str) -> Iterator[Connection]:
        with self._db_lock:
            engine = self._engine(shard)
            if shard not in self._initialized_dbs:
                self._initdb(engine)
                self._initialized_dbs.add(shard)
                self._files[shard] = self._file(shard)
            with engine.begin() as connection:
                yield connection

    def _engine(self, shard: str) -> Engine:
        """The engine of one file; the least recently used ones are closed.

        A file that somebody removed meanwhile, or made anew, is opened again: who writes on into a removed one would
        hear of no error.
        """
        engine = self._engines.pop(shard, None)
        if shard in self._files and self._file(shard) != self._files[shard]:
            del self._files[shard]
            self._initialized_dbs.discard(shard)
            self._known.clear()
            if engine is not None:
                engine.dispose()
                engine = None
        if engine is None:
            engine = create_engine(
                self.conn_string_for_shard(shard),
                # The lock lets one thread in at a time.
                pool_size=1,
                connect_args={"timeout": SQLITE_BUSY_TIMEOUT_SECONDS},
            )
            event.listen(engine, "connect", _no_wait_for_the_disk)
        self._engines[shard] = engine
        while len(self._engines) > _KEPT:
            _, oldest = self._engines.popitem(last=False)
            oldest.dispose()
        return engine

    def _file(self, shard: str) -> tuple[int, int]:
        """Which file that is now; none has the number 0."""
        try:
            file = Path(self.path_for_shard(shard)).stat()
        except FileNotFoundError:
            return 0, 0
        return file.st_dev, file.st_ino

    def has_table(self, table_name: str) -> bool:
        """Whether a table is there; what is there once stays, and Dagster asks at every event."""
        if table_name not in self._known and super().has_table(table_name):
            self._known.add(table_name)
        return table_name in self._known

    def _has_asset_key_col_on_connection(self, conn: Connection, column_name: str) -> bool:
        name = f"asset_keys.{column_name}"
        if name not in self._known and super()._has_asset_key_col_on_connection(conn, column_name):
            self._known.add(name)
        return name in self._known

    def store_event_batch(self, events: Sequence[EventLogEntry]) -> None:
        """Store what Dagster hands over together: of each run's assets at once, then all else one by one.

        An asset's newest event is kept a second time, beside the asset; only the last one of a batch is.
        """
        by_run: defaultdict[str, list[EventLogEntry]] = defaultdict(list)
        others: list[EventLogEntry] = []
        for entry in events:
            is_of_asset = entry.get_dagster_event().event_type in _OF_ASSETS
            (by_run[entry.run_id] if is_of_asset else others).append(entry)
        for run_id, entries in by_run.items():
            rows = [self._event_to_row(entry) for entry in entries]
            # The index first: what fails there leaves nothing in the run's file, and Dagster tries it one by one.
            with self.run_connection(run_id) as of_run, self.index_connection() as of_assets:
                of_run.execute(SqlEventLogStorageTable.insert(), rows)
                numbered = SqlEventLogStorageTable.insert().returning(
                    SqlEventLogStorageTable.c.id, sort_by_parameter_order=True
                )
                ids = [int(number) for (number,) in of_assets.execute(numbered, rows)]
                self._store_asset_event_tags(of_assets, entries, ids)
                newest = {entry.get_dagster_event().asset_key: n for n, entry in enumerate(entries)}
                for n in newest.values():
                    self._store_asset_event(of_assets, entries[n], ids[n])
        for entry in others:
            self.store_event(entry)

    def _store_asset_check_evaluation_planned(self, event: EventLogEntry, event_id: int | None) -> None:
        """As Dagster's, which writes the event down as text once for each of its days."""
        planned = event.get_dagster_event().asset_check_planned_data
        row = {
            "asset_key": planned.asset_key.to_string(),
            "check_name": planned.check_name,
            "run_id": event.run_id,
            "execution_status": AssetCheckExecutionRecordStatus.PLANNED.value,
            "evaluation_event": serialize_value(event),
            "evaluation_event_timestamp": self._event_insert_timestamp(event),
            "evaluation_event_storage_id": event_id,
        }
        days = planned.partitions_subset.get_partition_keys() if planned.partitions_subset else [None]
        with self.index_connection() as connection:
            connection.execute(AssetCheckExecutionsTable.insert(), [{**row, "partition": day} for day in days])

    def watch(self, run_id: str, cursor: str | None, callback: EventHandlerFn) -> None:
        """Tell of new events by asking for them: a file that stays open changes on disk only now and then."""
        if self._watcher is None:
            self._watcher = _Watcher(self)
        self._watcher.watch_run(run_id, cursor, callback)

    def end_watch(self, run_id: str, handler: EventHandlerFn) -> None:
        """Tell no more."""
        if self._watcher is not None:
            self._watcher.unwatch_run(run_id, handler)

    def wipe(self) -> None:
        """Remove everything, files that are open included."""
        self._close()
        super().wipe()

    def dispose(self) -> None:
        """Stop telling and close the files."""
        if self._watcher is not None:
            self._watcher.close()
            self._watcher = None
        self._close()
        super().dispose()

    def _close(self) -> None:
        with self._db_lock:
            for engine in self._engines.values():
                engine.dispose()
            self._engines.clear()
            self._files.clear()


class _Watcher(SqlPollingEventWatcher):
    """Goes on where a listener fails, and watches a run anew where its thread died; Dagster's watches it no more."""

    def watch_run(self, run_id: str, cursor: str | None, callback: EventHandlerFn) -> None:
        """Tell one more listener of a run's events."""
        with self._dict_lock:
            watching = self._run_id_to_watcher_dict.get(run_id)
            if watching is not None and not watching.is_alive():
                del self._run_id_to_watcher_dict[run_id]
        super().watch_run(run_id, cursor, _Listener(callback))

    def unwatch_run(self, run_id: str, handler: EventHandlerFn) -> None:
        """Tell one listener no more."""
        super().unwatch_run(run_id, _Listener(handler))


@dataclass(frozen=True)
class _Listener:
    """Whoever is told of events; equal if the same is told."""

    callback: EventHandlerFn

    def __call__(self, entry: EventLogEntry, cursor: str) -> None:
        try:
            self.callback(entry, cursor)
        except Exception:  # noqa: BLE001 - whatever a listener does wrong, others want to hear of the next event
            _log.exception("a listener of run %s failed", entry.run_id)


def _no_wait_for_the_disk(connection: Any, _record: object) -> None:
    connection.execute("PRAGMA synchronous=NORMAL")
