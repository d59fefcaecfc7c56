"""The shipped platforms, one folder each.

A domain's `__init__.py` exports `DOMAIN`. Its contracts are pure; its transforms live in a package of their own
that is imported only where Spark runs.
"""
