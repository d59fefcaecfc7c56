"""What days hold and how they differ: profiles, reconciliation, examples.

Put here aggregates over staged or released rows for gates and people.
"""
