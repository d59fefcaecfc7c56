"""The retail domain with rules of every kind, and without any rule and reconciliation: what proof costs.

What rules look into is read anyway: the inputs are the same on both sides.
"""
