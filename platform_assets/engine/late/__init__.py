"""Late rows: the queue in which they wait, and how they enter raw or leave it.

Here belong approvals, rows whose day has come, refusals and withdrawals. Which rows are late, and which of them
somebody means, `planning.rows_aside` decides.
"""
