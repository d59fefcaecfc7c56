"""Domains beside the shipped one: a very different one, and small parts of the shipped one that take less time."""
