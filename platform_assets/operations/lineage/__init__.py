"""Lineage: where a day comes from, its history, and what differs between releases."""
