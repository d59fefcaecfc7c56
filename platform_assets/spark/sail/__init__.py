"""A second engine without a JVM: Sail, a Spark Connect server in a process of our own.

Put here starting, limiting and ending it, and its differences in use from Spark. `engine` decides which tables it may
compute.
"""
