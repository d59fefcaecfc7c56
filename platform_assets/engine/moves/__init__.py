"""Records that move between days: which days are tied by them, and which show only half of a move.

Here belongs what keeps one key one row while days are published. How tombstones come into raw is in `raw`.
"""
