"""What Spark needs besides to read and stage in a container of Azure's: Hadoop's ABFS, and a library that it names.

ABFS speaks Azure's protocol by itself, so nothing of Azure's own comes along.
"""

from __future__ import annotations

from platform_assets.spark.session.jar import Jar

AZURE = (
    Jar(
        "org.apache.hadoop",
        "hadoop-azure",
        "3.5.0",
        "220b5db238b82437960e4b81c7e3eefa4eff2a03ad502887497f11d0ad86e663",
    ),
    Jar(
        "org.wildfly.openssl",
        "wildfly-openssl",
        "2.2.5.Final",
        "71fb7932f99a727edb23c5a2cb8c6855ac7196fad41aa0669b3998e277165154",
    ),
)
"""For a lake whose URL begins with `abfss://`: 1 MB."""
