"""What the installations of tests have in common: the jars, the first day, a Spark for a few rows."""

from __future__ import annotations

import json
from datetime import date

from platform_assets.settings import project_root

JARS = project_root() / ".platform" / "jars"
"""The project's own, so that nothing is downloaded a second time."""

FIRST = date(2017, 1, 1)
SMALL_DATA = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",
    "spark.default.parallelism": "2",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # Where in a test a column was made, asked of the JVM for each of them: half of all the calls into it
    "spark.python.sql.dataFrameDebugging.enabled": "false",
}
"""Tests work on a few rows: planning and starting tasks is all they cost."""

OWN_PROCESS = json.dumps(SMALL_DATA | {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"})
"""`PLATFORM_SPARK_CONF` of processes that tests start: they end before the JVM's better compiler would pay."""
