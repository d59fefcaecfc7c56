"""What days hold, and how days differ: profiles, reconciliation, examples.

Here belong aggregates over staged or released rows that gates and people look at.
"""
