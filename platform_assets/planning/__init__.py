"""Decisions about days, as pure functions of plain values.

Here belong digests and their arithmetic, what read windows mean, and which days a change reaches. Nothing in this
room reads a file, a clock or a table.
"""
