"""Tables in Spark: read released days, write staged ones, schemas, what a plan reads.

Put here what is the same for raw, silver and gold.
"""
