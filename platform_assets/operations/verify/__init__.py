"""Reproducible, proved: published days computed again from the versions they were made from."""
