"""Dagster's webserver as `up` starts it: who may ask it for what, and the process itself."""
