"""Where arrivals come from: listing what a source delivered, without reading its rows.

A source says which arrivals are new, which are not ready and which cannot be ingested; the rooms above read the rows in
Spark.
"""
