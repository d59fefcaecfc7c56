"""Store Dagster's runs and events in its own SQLite files, several times as fast, and capture output of steps.

Named in `dagster.yaml`; an installation can go back to Dagster's own classes at any time. These extend them, and
Dagster has no public names for the base classes.
"""

from __future__ import annotations

import os
import signal
from collections import OrderedDict
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from dagster._core.event_api import EventHandlerFn
from dagster._core.storage.compute_log_manager import CapturedLogContext
from dagster._core.storage.event_log.polling_event_watcher import SqlPollingEventWatcher
from dagster._core.storage.event_log.sqlite.sqlite_event_log import SqliteEventLogStorage
from dagster._core.storage.local_compute_log_manager import LocalComputeLogManager
from dagster._core.storage.sqlite_storage import DagsterSqliteStorage
from dagster._serdes import ConfigurableClassData
from sqlalchemy import Connection, Engine, create_engine, event

from platform_assets.places import make_folder
from platform_assets.settings import load_settings

_KEPT = 16
"""Runs whose files stay open in one process; a webserver looks into many."""
_WAIT_S = 30
"""For another process that writes, as Dagster waits."""


class LocalStorage(DagsterSqliteStorage):
    """Dagster's own SQLite storage, with the same files and tables, and the event log below."""

    def __init__(self, base_dir: str, inst_data: ConfigurableClassData | None = None) -> None:
        super().__init__(base_dir, inst_data)
        self._event_log_storage = LocalEventLog(str(Path(base_dir) / "history" / "runs"))

    @classmethod
    def from_config_value(cls, inst_data: ConfigurableClassData | None, config_value: Any) -> LocalStorage:
        """Make it from `dagster.yaml`; `base_dir` is the folder of the files.

        Webserver and daemon begin here, and may have been started without `up`.
        """
        settings = load_settings()
        os.umask(settings.access.umask)
        settings.make_state()
        # A state folder that was there before may be open, and the umask as wide as a lake for readers.
        make_folder(Path(config_value["base_dir"]).absolute(), settings.access.state)
        return cls.from_local(inst_data=inst_data, **config_value)


class LocalEventLog(SqliteEventLogStorage):
    """Keep an engine for each file, and do not wait for the disk at every commit.

    Dagster's opens and closes a connection for every statement, compiles its SQL again, and waits twice for the disk; a
    year of seven tables has more than ten thousand events. With `synchronous=NORMAL` nothing stored is lost when a
    process dies; the newest events can be lost when the machine does. That is acceptable for a log of events: the truth
    is in the lake.
    """

    def __init__(self, base_dir: str, inst_data: ConfigurableClassData | None = None) -> None:
        self._engines: OrderedDict[tuple[str, int], Engine] = OrderedDict()
        self._tables: set[str] = set()
        self._watcher: SqlPollingEventWatcher | None = None
        super().__init__(base_dir, inst_data)

    @contextmanager
    def _connect(self, shard: str) -> Iterator[Connection]:
        with self._db_lock, self._engine(shard).begin() as connection:
            yield connection

    def _engine(self, shard: str) -> Engine:
        """Return the engine of a file, and close the least recently used ones.

        Without the check, events would be lost silently after another process removed the file, as `dagster run wipe`
        does.
        """
        engine = self._engines.pop((shard, self._inode(shard)), None)
        if engine is None:
            engine = create_engine(self.conn_string_for_shard(shard), pool_size=1, connect_args={"timeout": _WAIT_S})
            event.listen(engine, "connect", _do_not_wait_for_the_disk)
            self._initdb(engine)
        self._engines[shard, self._inode(shard)] = engine
        while len(self._engines) > _KEPT:
            _, oldest = self._engines.popitem(last=False)
            oldest.dispose()
        return engine

    def _inode(self, shard: str) -> int:
        try:
            return Path(self.path_for_shard(shard)).stat().st_ino
        except FileNotFoundError:
            return 0

    def has_table(self, table_name: str) -> bool:
        """Return whether a table exists; Dagster asks at every event, and tables stay."""
        if table_name not in self._tables and super().has_table(table_name):
            self._tables.add(table_name)
        return table_name in self._tables

    def watch(self, run_id: str, cursor: str | None, callback: EventHandlerFn) -> None:
        """Poll for new events: a file that stays open changes on disk only now and then."""
        self._watcher = self._watcher or SqlPollingEventWatcher(self)
        self._watcher.watch_run(run_id, cursor, callback)

    def end_watch(self, run_id: str, handler: EventHandlerFn) -> None:
        """Stop passing events on."""
        if self._watcher is not None:
            self._watcher.unwatch_run(run_id, handler)

    def wipe(self) -> None:
        """Remove everything, including open files."""
        self._close()
        super().wipe()

    def dispose(self) -> None:
        """Stop passing events on, and close the files."""
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
            self._tables.clear()


class UninterruptedComputeLogManager(LocalComputeLogManager):
    """Capture output as Dagster does, with helper processes that leave Ctrl-C to the run.

    Dagster's are in the terminal's process group, so that one of them would end with a trace.
    """

    @classmethod
    def from_config_value(
        cls, inst_data: ConfigurableClassData | None, config_value: Mapping[str, Any]
    ) -> UninterruptedComputeLogManager:
        """Make it from `dagster.yaml`."""
        return cls(inst_data=inst_data, **config_value)

    @contextmanager
    def capture_logs(self, log_key: Sequence[str]) -> Generator[CapturedLogContext, None, None]:
        """Capture output in this block. A Ctrl-C while the helper processes start is raised afterwards."""
        with ExitStack() as stack:
            before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            try:
                captured = stack.enter_context(super().capture_logs(log_key))
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
            yield captured


def _do_not_wait_for_the_disk(connection: Any, _record: object) -> None:
    connection.execute("PRAGMA synchronous=NORMAL")
