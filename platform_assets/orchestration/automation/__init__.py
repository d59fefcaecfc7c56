"""What Dagster starts automatically: schedules, sensors, maintenance, announcements.

Here belongs when work starts, and with which run key. What the work is, jobs and assets say.
"""
