"""How Spark reads and stages in an object store: with the environment's variables that deltalake and obstore read, too.

Credentials are not among the settings made here: Hadoop's own chain finds them in the environment, or asks the machine.
"""

from __future__ import annotations

from collections.abc import Mapping


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
