"""Named stages: open, fill, compare, publish, drop.

How days are computed into a stage is `engine.step`.
"""
