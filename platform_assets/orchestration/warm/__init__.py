"""What `up` keeps ready: one JVM with Spark, rehearsed and lent to one at a time; and all that runs import."""
