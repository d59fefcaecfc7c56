"""Run tests of tables with pytest: import `pytest_collect_file` in a `conftest.py`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from platform_assets.cli.session import session_on_demand
from platform_assets.engine.catalogue import load_catalogue
from platform_assets.errors import PlatformError
from platform_assets.operations.table_tests.files import ENDING, TableTest, tests_in
from platform_assets.operations.table_tests.run import TableTests
from platform_assets.progress import no_progress
from platform_assets.settings import load_settings

_SHARED = pytest.StashKey[TableTests]()


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect the tests in a file of tests of a table."""
    return TableFile.from_parent(parent, path=file_path) if file_path.name.endswith(ENDING) else None


class TableFile(pytest.File):
    """A file of tests of a table; all files of a run share one Spark session."""

    def collect(self) -> Iterator[pytest.Item]:
        """Yield its tests."""
        try:
            if _SHARED not in self.config.stash:
                settings, opened = load_settings(), ExitStack()
                catalogue = load_catalogue(settings)
                spark = opened.enter_context(session_on_demand(settings, no_progress, brief=True))
                self.config.add_cleanup(opened.close)
                self.config.stash[_SHARED] = TableTests(settings, spark, catalogue)
            shared = self.config.stash[_SHARED]
            found = tests_in(self.path, shared.catalogue)
        except PlatformError as error:
            raise self.CollectError(str(error)) from error
        shared.tests += found
        for each in found:
            yield TableItem.from_parent(self, name=each.name, test=each)


class TableItem(pytest.Item):
    """A test of a table."""

    def __init__(self, *, test: TableTest, **of_pytest: Any) -> None:
        super().__init__(**of_pytest)
        self.test = test

    def runtest(self) -> None:
        """Compute the table, or reuse the result of an earlier test with the same given rows."""
        try:
            lines = self.config.stash[_SHARED].differences(self.test)
        except PlatformError as error:
            lines = [str(error)]
        if lines:
            pytest.fail("\n".join((self.test.place, *lines)), pytrace=False)
