"""Spark's edge: the session and what it starts from, staged writes, profiles, digests, deduplication.

Here belongs whatever knows that rows are moved by Spark. What a table promises comes from `contracts`, what happens to
staged files afterwards is `lakehouse`; both work without a JVM. Finding Java, Delta's jars and the class archive
(`java`, `jars`, `cds`, `health`) imports no PySpark either, so that a check of the machine is quick.
"""
