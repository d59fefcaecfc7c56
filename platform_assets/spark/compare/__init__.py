"""What days hold and how they differ: profiles, reconciliation, examples.

Here belong aggregates over staged or released rows that gates and people look at.
"""
