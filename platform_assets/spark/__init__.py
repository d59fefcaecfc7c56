"""Spark's edge: the only room that moves rows.

Here belongs whatever is written in DataFrames and Columns, and the session that runs them. What a table promises comes
from `contracts`, what happens to staged files afterwards is `lakehouse`; both work without a JVM.
"""

from platform_assets.installed import refuse_another_pyspark

refuse_another_pyspark()
