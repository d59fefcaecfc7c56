"""Decisions about days, as pure functions of plain values.

Put here what read windows mean, which days a change reaches and why, how days are batched, what is late, kept or
undone. Nothing in this room reads a file, a clock or a table.
"""
