"""What Dagster starts by itself: schedules, sensors, maintenance, and what it tells people.

Here belongs when work starts, and with which run key. What the work is, jobs and assets say.
"""
