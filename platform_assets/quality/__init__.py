"""Checks of staged days, and unusual days: pure functions of plain figures.

A gate or check looks at figures of days and says what is wrong with which day. Nothing here reads rows or publishes.
"""
