"""Tables in Spark: read released days, write staged ones, schemas, what a plan reads.

Put here what raw, silver and gold share.
"""
