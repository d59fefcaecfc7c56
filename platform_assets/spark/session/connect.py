"""A session of a Spark Connect server: with what packages, how long it is waited for, and what is looked at first."""

from __future__ import annotations

import warnings
from typing import Any, cast

from pydantic import SecretStr
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from platform_assets.settings import Settings
from platform_assets.spark.session.hidden import without_secrets
from platform_assets.spark.session.jvm import SessionError
from platform_assets.spark.session.reasons import cause_of, reason_of
from platform_assets.sql_settings import CODECS, OF_HADOOP, REQUIRED

_RETRIES, _LONGEST_PAUSE_MS = 8, 10_000
"""With these a server is waited for three quarters of a minute, as while a network is gone; a client by itself waits
ten minutes, also for one that never was there."""


def connect(settings: Settings, remote: SecretStr, app_name: str) -> SparkSession:
    """A session of the server at an address.

    Args:
        settings: extra configuration, and the secrets that no message shows.
        remote: the address, `sc://host:port` with what follows it.
        app_name: shown on the server's pages.

    Raises:
        SessionError: packages are missing, the server does not answer, or it has another language.
    """
    configs = {"spark.app.name": app_name, **REQUIRED, **OF_HADOOP, **CODECS, **settings.spark_conf}
    try:
        from pyspark.sql.connect.client.retries import DefaultPolicy

        session = SparkSession.builder.remote(remote.get_secret_value()).getOrCreate()
    except ImportError as error:
        raise SessionError(
            f"Spark Connect needs packages that are not installed: {reason_of(error)}.",
            "Install them: uv sync --inexact --extra connect.",
        ) from error
    warnings.filterwarnings("ignore", r"\[RETRIES_EXCEEDED\]")  # it is told as what it means
    try:
        patience = DefaultPolicy(max_retries=_RETRIES, max_backoff=_LONGEST_PAUSE_MS)
        cast("Any", session).client.set_retry_policies([patience])
        # What only the server's owner can set is left as it is; what changes results is looked at before work.
        cast("Any", session.conf)._set_all(configs=configs, silent=True)
        _refuse_other_language(session)
        return session
    except PySparkException as error:
        close(session)
        reason = without_secrets(reason_of(error), settings)
        raise SessionError(
            f"The Spark Connect server of PLATFORM_SPARK_REMOTE does not answer: {reason}.",
            "Check that it runs and that the address and port are right.",
        ) from cause_of(error, settings)


def close(session: SparkSession) -> None:
    """Close a session, the server goes on; one that is gone is not waited for to say good-bye."""
    cast("Any", session).client.set_retry_policies([])
    session.stop()


def _refuse_other_language(session: SparkSession) -> None:
    """Texts come out otherwise in some languages, which whoever starts a server decides, for its executors, too."""
    of_an_executor = session.range(1).selectExpr("upper(concat('ié', id)) AS text").collect()
    if of_an_executor[0].text != "IÉ0":
        close(session)
        raise SessionError(
            "The Spark Connect server of PLATFORM_SPARK_REMOTE has a language in which `upper('ié')` is not 'IÉ'.",
            "Start it, and its executors, with `-Duser.language=en` among the options of Java.",
        )
