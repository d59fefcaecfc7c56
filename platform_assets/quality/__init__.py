"""What must hold before anyone sees a day: gates as pure functions of a profile.

A gate looks at figures of staged days and says what is wrong with which day. Nothing here reads rows or publishes.
"""
