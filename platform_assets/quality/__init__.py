"""Checks of staged days, and unusual days: pure functions of plain figures.

A gate or check takes figures of days and returns what is wrong with which day. Nothing here reads rows or publishes.
"""
