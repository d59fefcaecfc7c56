"""Whether the files that releases refer to are still there, and as long as they were."""

from __future__ import annotations

from dataclasses import dataclass, field

from platform_assets.engine.day_contents import Files, files_at
from platform_assets.lakehouse.errors import DamagedTableError
from platform_assets.lakehouse.horizon import horizon_of
from platform_assets.lakehouse.layout import Lake
from platform_assets.lakehouse.releases import release
from platform_assets.planning.windows import Ranges, days_in


@dataclass(frozen=True)
class FileCheck:
    """Looks at the files of a lake, each version of a table once."""

    lake: Lake
    _seen: dict[tuple[str, int], Files | str] = field(default_factory=dict)

    def problem(self, table: str, version: int, spans: Ranges) -> str | None:
        """Return what is wrong with the files of days of a table at a version: one that is gone, or was changed."""
        files = self._files(table, version)
        if isinstance(files, str):
            return files
        for day in days_in(sorted(files), spans):
            for file in files[day]:
                size = (self.lake.table_path(table) / file.path).size()
                if size is None and self._is_cut(table, version):
                    return f"version {version} of {table} is beyond the rollback window, and its files were deleted"
                if size is None:
                    return f"the file {file.path} of {table} on {day} is gone"
                if size != file.size:
                    return f"the file {file.path} of {table} on {day} has {size:,} bytes; {file.size:,} were published"
        return None

    def _is_cut(self, table: str, version: int) -> bool:
        """Return whether the version was replaced before the first release whose files are all kept."""
        horizon = horizon_of(self.lake)
        return horizon.before > 0 and version < release(self.lake, horizon.before).versions.get(table, 0)

    def _files(self, table: str, version: int) -> Files | str:
        if (table, version) not in self._seen:
            try:
                self._seen[table, version] = files_at(self.lake, table, version)
            except DamagedTableError as error:
                self._seen[table, version] = f"version {version} of {table} is gone: {error.what}"
        return self._seen[table, version]
