"""Tables in Spark: reading released days, writing staged ones, schemas, what a plan reads.

Here belongs what is the same for raw, silver and gold.
"""
