"""How Spark reads and stages in an object store: with the environment's variables that deltalake and obstore read, too.

Credentials are not among the settings made here: Hadoop finds them in the environment, or asks the machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from platform_assets.places import store_of
from platform_assets.spark.session.jvm import SessionError


def of_store(lake: str, environ: Mapping[str, str]) -> dict[str, str]:
    """Settings for the store in which a lake lies; none for one in a folder.

    Raises:
        SessionError: the environment says too little.
    """
    match store_of(lake):
        case "s3":
            return of_s3(environ)
        case "abfss":
            return of_azure(environ)
        case _:
            return {}


def of_azure(environ: Mapping[str, str]) -> dict[str, str]:
    """Settings of Hadoop's ABFS for addresses that begin with `abfss://`.

    Args:
        environ: `AZURE_STORAGE_ACCOUNT_KEY`, and what says where an emulator is, as deltalake knows it.

    Raises:
        SessionError: there is no key.
    """
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
        # Each file is renamed once, when its task is done; nobody looks at a stage before its job is. Renaming folders
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
    """Settings of Hadoop's S3A for addresses that begin with `s3://`.

    Args:
        environ: `AWS_ENDPOINT_URL_S3` or `AWS_ENDPOINT_URL` for stores other than Amazon's, and `AWS_REGION`.
    """
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
        # What is staged has names that nobody else uses, and was never there before: nothing has to be looked up first
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
