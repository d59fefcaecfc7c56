"""Parts of a Dagster instance: storage, events past its public calls, run launcher, pools, locks of living runs.

This room has what `dagster.yaml` names, and what does not depend on tables.
"""
