"""Tables in Spark: read released days, write staged ones, schemas, what a plan reads.

Here belongs what is the same for raw, silver and gold.
"""
