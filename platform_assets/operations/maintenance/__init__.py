"""Maintenance: compaction, checkpoints, and deletion of what no release, pin or open stage needs.

What may go, `planning.retention` decides.
"""
