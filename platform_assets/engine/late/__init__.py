"""Late rows: the queue in which they wait, and how they enter raw or leave it.

Put here approvals, rows whose day has come, refusals and withdrawals. `planning.rows_aside` decides which rows are
late, and which rows a selection includes.
"""
