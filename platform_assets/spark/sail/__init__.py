"""A second engine without a JVM: Sail, a Spark Connect server in a process of our own.

Here belongs how it is started, limited and ended, and what has to be said to it otherwise than to Spark. Which tables
it may compute is decided in `engine`.
"""
