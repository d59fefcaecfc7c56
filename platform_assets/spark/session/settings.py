"""Look at a session before anything is computed: its settings and versions decide how days come out."""

from __future__ import annotations

import re
from typing import Any, cast

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from platform_assets.errors import PlatformError
from platform_assets.spark.sail.session import is_sail, sail_version
from platform_assets.spark.session.jars import DELTA_VERSION
from platform_assets.sql_settings import OF_HADOOP, OF_PROCESSES, REQUIRED, problems_of

_BESIDES = {*OF_PROCESSES, *OF_HADOOP}
_SET = re.compile(r"(?:^\{|, )(spark\.sql\.[^=,]+)=([^,}]*)")


class SessionSettingsError(PlatformError):
    """Somebody gave the session settings with which days would have other content."""


def refuse_other_settings(spark: SparkSession) -> None:
    """Refuse a session whose settings would compute other values, a server's or one changed since its start."""
    conf = _set_in(spark)
    unset = {name: value for name in REQUIRED if name not in conf and (value := _default(spark, name)) is not None}
    if problems := problems_of(conf | unset):
        raise SessionSettingsError(
            f"The Spark session has other settings than days are computed with: it sets {'; '.join(problems)}.",
            "Take them out of the server's or cluster's configuration, or of the code that calls `spark.conf.set`; "
            "nothing was published with them.",
        )


def _set_in(spark: SparkSession) -> dict[str, str]:
    """Return the settings that somebody set, of those that are looked at."""
    conf = cast("Any", spark.conf)
    if hasattr(conf, "_jconf"):
        # As one text: a map would be asked for each of its entries, of which Java has a hundred.
        return dict(_SET.findall(conf._jconf.getAllAsJava().toString()))
    # A server's others are its owner's: how its JVM starts, what it tells a store
    return {name: value for name, value in conf.getAll.items() if name.startswith("spark.sql.") or name in _BESIDES}


def _default(spark: SparkSession, name: str) -> str | None:
    try:
        return spark.conf.get(name)
    except (PySparkException, Py4JError):
        return None  # a server of another version, which does not know it and so has no other behaviour


def software_of(spark: SparkSession) -> dict[str, str]:
    """Return the version of Spark that a session computes with, and of Delta, unless a Connect server hides that.

    Of Sail its own, and that of Spark which it says it is like.
    """
    if is_sail(spark):
        return {"sail": sail_version(), "spark": spark.version}
    own_jars = hasattr(spark, "_jsparkSession")
    return {"spark": spark.version} | ({"delta": DELTA_VERSION} if own_jars else {})
