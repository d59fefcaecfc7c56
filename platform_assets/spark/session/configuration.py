"""Configure a session: its settings, also for its store; recognize a JVM with equal settings; inspect a session.

Credentials are not among the settings made here: Hadoop finds them in the environment, or asks the machine.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import sys
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from platform_assets.places import for_hadoop, store_of
from platform_assets.settings import Settings, project_root
from platform_assets.spark.sail.session import is_sail
from platform_assets.spark.session.jars import DELTA_VERSION, needed
from platform_assets.spark.session.java import UTF_8
from platform_assets.spark.session.jvm import OF_EVERY_COUNTRY, OPTIONS, SessionError, scratch_of_jvm
from platform_assets.spark.session.on_demand import computes_here
from platform_assets.sql_settings import OF_HADOOP, OF_PROCESSES, REQUIRED, of_hadoop, problems_of

TUNING: Mapping[str, str] = {
    # The same results on every machine
    **REQUIRED,
    **OF_PROCESSES,
    **of_hadoop(),
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # No unwanted screens and ports
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Of every query Spark keeps its plan as a text for a page that is not there; the usual form is the dearest
    "spark.sql.ui.explainMode": "simple",
    # The log of a year is some hundred files: one task reads it faster than fifty
    "spark.databricks.delta.snapshotPartitions": "1",
    # Every stage is a log that is read a few times, then never; Delta would keep 10,000 of them, each with plans of
    # several megabytes
    "spark.databricks.delta.delta.log.cacheSize": "32",
    # Thousands of small landing files: listed by the driver instead of a job, and packed into few tasks
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
    "spark.sql.files.openCostInBytes": "131072",
    "spark.sql.parquet.compression.codec": "zstd",
    # Rows that a task holds at once, each as long as a line: the default of 4,096 is no faster
    "spark.sql.parquet.columnarReaderBatchSize": "256",
    # After how many rows a writer looks for the first time how long they are; by itself it holds a hundred
    "spark.hadoop.parquet.page.size.row.check.min": "4",
    # Reading Delta logs alone compiles some hundred classes. With room for 100, every batch compiled all of its code
    # anew, and the JIT after it: two thirds of a year's time.
    "spark.sql.codegen.cache.maxEntries": "1000",
    # Java compiles no method of more bytes, and what parses and judges a file has 30,000: Spark cuts such code
    "spark.sql.codegen.hugeMethodLimit": "8000",
    # On a cluster, where Spark plans while it works, it made 200 tasks of any cached rows
    "spark.sql.optimizer.canChangeCachedPlanOutputPartitioning": "true",
}
"""Configuration of every session; `spark_conf` of the settings wins over it, where that is free to choose."""

_LOCAL: Mapping[str, str] = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # Others on this machine reach these ports, too; Spark makes a secret of its own for every session
    "spark.authenticate": "true",
    # Driver and executor are one process. After two minutes in which the machine slept, Spark took it for dead, forgot
    # its blocks for good, and ended it ten minutes later.
    "spark.storage.blockManagerHeartbeatTimeoutMs": "3650d",
    # On one machine there is little to adapt to, and planning every stage anew took a twentieth of a year's time
    "spark.sql.adaptive.enabled": "false",
    # No .crc file beside each file we write: disks and Parquet have checksums of their own. Nor a process for each,
    # only to set its permissions: a seventh of ingest.
    "spark.hadoop.fs.file.impl": "com.globalmentor.apache.hadoop.fs.NakedLocalFileSystem",
    "spark.hadoop.fs.AbstractFileSystem.file.impl": "org.apache.hadoop.fs.local.RawLocalFs",
}
"""What only holds when everything runs in one process on this machine."""

_OF_THE_JVM = (
    "spark.driver.memory",
    "spark.driver.extraClassPath",
    "spark.driver.extraJavaOptions",
)

_LISTS = ("spark.jars", "spark.sql.extensions")

_YARN_TRIED_EVERY_MS = 5000

_OF_EXECUTORS = "spark.executor.extraJavaOptions"

_OF_THE_ENVIRONMENT = (
    "JAVA_HOME",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "PYTHONHOME",
    "PYTHONPATH",
    "PYTHONSAFEPATH",
    "SPARK_LOCAL_DIRS",
    "TZ",
    "LANG",
    "LC_ALL",
)
"""Variables that a JVM, or a Python that it starts, looks at."""

_CREDENTIALS = ("AWS_", "AZURE_")
"""How the variables begin in which Hadoop finds them, and stores."""


def configuration(settings: Settings, jars: tuple[Path, ...]) -> dict[str, str]:
    """Return the session's whole configuration, without the JVM's start options."""
    conf = dict(TUNING) | {
        "spark.sql.warehouse.dir": for_hadoop(str(settings.state / "spark-warehouse")),
        "spark.log.level": settings.log_level,
        # Hadoop sets modes itself, regardless of the process's umask
        "spark.hadoop.fs.permissions.umask-mode": f"{settings.access.umask:03o}",
    }
    if computes_here(settings):
        conf |= _LOCAL
        if scratch := scratch_of_jvm():
            conf["spark.local.dir"] = str(scratch)
    else:
        conf["spark.jars"] = ",".join(map(str, jars))
        conf["spark.executorEnv.LC_ALL"] = UTF_8  # or names of files with other letters than ASCII's are not found
        conf["spark.yarn.isPython"] = "true"  # for YARN, whose executors had no PySpark for functions in Python
    if settings.spark_master == "yarn":  # for one that does not listen, Hadoop by itself waits a quarter of an hour
        within_ms = int(settings.spark_wait_s * 1000)
        conf["spark.hadoop.yarn.resourcemanager.connect.max-wait.ms"] = str(within_ms)
        conf["spark.hadoop.yarn.resourcemanager.connect.retry-interval.ms"] = str(min(within_ms, _YARN_TRIED_EVERY_MS))
        conf["spark.hadoop.ipc.client.connect.max.retries"] = "1"  # within each of these tries
    conf |= of_store(settings.lake, os.environ)
    conf |= settings.spark_conf | {name: _beside(conf[name], more) for name, more in _added(settings) if name in conf}
    if not computes_here(settings):
        options = (*OF_EVERY_COUNTRY, conf.get(_OF_EXECUTORS, ""))
        conf[_OF_EXECUTORS] = " ".join(filter(None, options))
    return {name: value for name, value in conf.items() if name not in _OF_THE_JVM}


def _added(settings: Settings) -> list[tuple[str, str]]:
    """Return required additions to the user's settings, which do not replace them."""
    return [(name, more) for name in _LISTS if (more := settings.spark_conf.get(name))]


def _beside(ours: str, more: str) -> str:
    return ",".join(dict.fromkeys(each.strip() for each in f"{ours},{more}".split(",")))


def engine_key(settings: Settings) -> str:
    """Return a hash of everything in which a JVM with Spark can differ from one that another process would start.

    Call it before this process has a JVM.
    """
    conf = configuration(settings, ()) | {name: settings.spark_conf.get(name, "") for name in _OF_THE_JVM}
    facts = {
        "conf": sorted(conf.items()),
        "start": [settings.spark_master, settings.spark_driver_memory, str(settings.jars), OPTIONS],
        "versions": [version("pyspark"), sys.prefix, sys.version, *(jar.sha256 for jar in needed(settings))],
        "variables": [os.environ.get(name) for name in _OF_THE_ENVIRONMENT],
        "credentials": sorted(each for each in os.environ.items() if each[0].startswith(_CREDENTIALS)),
        "modules": _place_of_modules(),
        "java": shutil.which("java"),
    }
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


def _place_of_modules() -> str:
    """Return the working folder if this process imports modules from it: a Python of its JVM would, too.

    The project's own is in the path of every process.
    """
    folder = Path.cwd()
    return str(folder) if folder != project_root() and {"", str(folder)} & set(sys.path) else ""


def of_store(lake: str, environ: Mapping[str, str]) -> dict[str, str]:
    """Return settings for the lake's store; none for a folder."""
    match store_of(lake):
        case "s3":
            return of_s3(environ)
        case "abfss":
            return of_azure(environ)
        case _:
            return {}


def of_azure(environ: Mapping[str, str]) -> dict[str, str]:
    """Return settings of Hadoop's ABFS for `abfss://`; an emulator is at deltalake's address."""
    if not environ.get("AZURE_STORAGE_ACCOUNT_KEY"):
        raise SessionError(
            "Spark has nothing to show to Azure: there is no key of the storage account.",
            "Set AZURE_STORAGE_ACCOUNT_KEY. A signature (AZURE_STORAGE_SAS_TOKEN) is enough to read and to roll back, "
            "not to compute.",
        )
    conf = {
        "spark.hadoop.fs.azure.account.auth.type": "SharedKey",
        # Hadoop looks there when it needs it: no setting, and so no log, holds the key
        "spark.hadoop.fs.azure.account.key": "${env.AZURE_STORAGE_ACCOUNT_KEY}",
        # Each file is renamed once, when its task is done; a stage is not read before its job is. Renaming folders
        # when the job is done fails where a store lists a folder beside the object that says it is one. Hadoop's own
        # committer for Azure asks for the name of a job before Spark 4.2 gives it one.
        "spark.hadoop.mapreduce.fileoutputcommitter.algorithm.version": "2",
        "spark.hadoop.fs.azure.networking.library": "JDK_HTTP_URL_CONNECTION",
    }
    if environ.get("AZURE_STORAGE_USE_EMULATOR", "").lower() in ("1", "true"):
        where = urlsplit(environ.get("AZURITE_BLOB_STORAGE_URL") or "http://127.0.0.1:10000")
        conf |= {
            # It has no folders, no names of its own for accounts, and mostly no encryption
            "spark.hadoop.fs.azure.abfs.endpoint": where.netloc,
            "spark.hadoop.fs.abfss.impl": "org.apache.hadoop.fs.azurebfs.AzureBlobFileSystem",
            "spark.hadoop.fs.azure.always.use.https": str(where.scheme == "https").lower(),
            "spark.hadoop.fs.azure.account.hns.enabled": "false",
            "spark.hadoop.fs.azure.fns.account.service.type": "BLOB",
        }
    return conf


def of_s3(environ: Mapping[str, str]) -> dict[str, str]:
    """Return settings of Hadoop's S3A for `s3://`, also for stores other than Amazon's."""
    conf = {
        "spark.hadoop.fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
        "spark.hadoop.fs.AbstractFileSystem.s3.impl": "org.apache.hadoop.fs.s3a.S3A",
        # A store cannot rename: what tasks wrote would be copied twice. So uploads become visible when the job is done
        "spark.hadoop.fs.s3a.committer.name": "magic",
        "spark.hadoop.mapreduce.outputcommitter.factory.scheme.s3": (
            "org.apache.hadoop.fs.s3a.commit.S3ACommitterFactory"
        ),
        "spark.sql.sources.commitProtocolClass": "org.apache.spark.internal.io.cloud.PathOutputCommitProtocol",
        "spark.sql.parquet.output.committer.class": (
            "org.apache.spark.internal.io.cloud.BindingParquetOutputCommitter"
        ),
        # Staged files have unique new names: nothing has to be looked up first
        "spark.hadoop.fs.s3a.create.performance": "true",
        "spark.hadoop.fs.s3a.performance.flags": "create,mkdir",
        "spark.hadoop.fs.s3a.fast.upload.buffer": "bytebuffer",
        "spark.hadoop.fs.s3a.threads.max": "16",
        "spark.hadoop.fs.s3a.experimental.input.fadvise": "random",
        # The default since Hadoop 3.5 needs one more library, of Amazon's
        "spark.hadoop.fs.s3a.input.stream.type": "classic",
    }
    region = environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION")
    if region:
        conf["spark.hadoop.fs.s3a.endpoint.region"] = region
    endpoint = environ.get("AWS_ENDPOINT_URL_S3") or environ.get("AWS_ENDPOINT_URL")
    if endpoint:
        conf["spark.hadoop.fs.s3a.endpoint"] = endpoint
        conf["spark.hadoop.fs.s3a.path.style.access"] = "true"
        conf["spark.hadoop.fs.s3a.connection.ssl.enabled"] = str(endpoint.startswith("https:")).lower()
    return conf


_BESIDES = {*OF_PROCESSES, *OF_HADOOP}
_SET = re.compile(r"(?:^\{|, )(spark\.sql\.[^=,]+)=([^,}]*)")


def refuse_other_settings(spark: SparkSession) -> None:
    """Refuse a session whose settings would compute other values, a server's or one changed since its start."""
    conf = _set_in(spark)
    unset = {name: value for name in REQUIRED if name not in conf and (value := _default(spark, name)) is not None}
    if problems := problems_of(conf | unset):
        raise SessionError(
            f"The Spark session has other settings than days are computed with: it sets {'; '.join(problems)}.",
            "Take them out of the server's or cluster's configuration, or of the code that calls `spark.conf.set`; "
            "nothing was published with them.",
        )


def _set_in(spark: SparkSession) -> dict[str, str]:
    """Return the explicitly set settings among the inspected ones."""
    conf = cast("Any", spark.conf)
    if hasattr(conf, "_jconf"):
        # As one text: a map would need a call for each of its hundred entries.
        return dict(_SET.findall(conf._jconf.getAllAsJava().toString()))
    # A server's other settings are its owner's: how its JVM starts, how it reaches a store
    return {name: value for name, value in conf.getAll.items() if name.startswith("spark.sql.") or name in _BESIDES}


def _default(spark: SparkSession, name: str) -> str | None:
    try:
        return spark.conf.get(name)
    except (PySparkException, Py4JError):
        return None  # a server of another version, which does not know it and so has no other behaviour


def software_of(spark: SparkSession) -> dict[str, str]:
    """Return the version of Spark that a session computes with, and of Delta, unless a Connect server hides it.

    For Sail: its own version, and the version of Spark that it follows.
    """
    if is_sail(spark):
        return {"sail": version("pysail"), "spark": spark.version}
    own_jars = hasattr(spark, "_jsparkSession")
    return {"spark": spark.version} | ({"delta": DELTA_VERSION} if own_jars else {})
