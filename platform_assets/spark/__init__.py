"""Spark's edge: the only room that moves rows.

Put here code with DataFrames and Columns, and the session that runs them. What a table promises comes from `contracts`;
what happens to staged files afterwards is `lakehouse`; both work without a JVM.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, distribution, requires
from importlib.util import find_spec
from pathlib import Path

from platform_assets.errors import PlatformError


class AnotherPySparkError(PlatformError):
    """Python finds another PySpark before the platform's."""


def refuse_another_pyspark() -> None:
    """Check where PySpark would come from, before anything of it is imported.

    Raises:
        AnotherPySparkError: from a folder that comes first, such as one in `PYTHONPATH` on machines with a Spark.
    """
    found = find_spec("pyspark")
    try:
        installed, needed = distribution("pyspark"), requires("platform-assets") or ()
    except PackageNotFoundError:  # where packages say nothing of themselves, nothing can be compared
        return
    if found is None or found.origin is None:
        return
    # Workers of Python have a copy in an archive, which lies within the package.
    is_ours = Path(found.origin).resolve().is_relative_to(Path(str(installed.locate_file("pyspark"))).resolve())
    if not is_ours:
        raise AnotherPySparkError(
            f"Python finds another PySpark before the one that the platform was installed with: {found.origin}.",
            "Take its folder out of PYTHONPATH: nothing of another Spark is needed, also to compute on its cluster.",
        )
    if needed and f"pyspark=={installed.version}" not in needed:
        raise AnotherPySparkError(
            f"The platform needs another PySpark than {installed.version}, which Python finds: {found.origin}.",
            "Where PYTHONPATH names that folder, take it out of PYTHONPATH; else install the right one, by `uv sync`.",
        )


refuse_another_pyspark()
