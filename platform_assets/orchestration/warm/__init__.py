"""What `up` keeps ready: one Spark, lent to one run at a time, and a process with all imports."""
