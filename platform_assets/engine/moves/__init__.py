"""Records that move between days: which days must be published together.

Here belongs what keeps one key one row while days are published. How tombstones come into raw is in `raw`.
"""
