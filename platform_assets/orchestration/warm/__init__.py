"""Spark that `up` keeps ready: one JVM, started and rehearsed before anybody needs it, and lent to one at a time."""
