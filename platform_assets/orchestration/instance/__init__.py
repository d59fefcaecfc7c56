"""What a Dagster instance is made of: event storage, run launcher, pools, the locks of living runs.

Here belongs what `dagster.yaml` names, and what is the same whatever tables there are.
"""
