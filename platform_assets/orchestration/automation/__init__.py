"""What Dagster starts automatically: schedules, sensors, maintenance, announcements.

Put here when work starts, and with which run key. Jobs and assets define the work.
"""
