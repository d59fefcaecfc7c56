"""What a Dagster instance is made of: storage, events past its public calls, run launcher, pools, locks of living runs.

Here belongs what `dagster.yaml` names, and what is the same whatever tables there are.
"""
