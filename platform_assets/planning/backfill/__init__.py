"""What is decided about a backfill: its plan file, the days it is about, its rollout, its price, who has to approve it.

Pure, as all planning: files are read, computed and published by `operations.backfill`.
"""
