"""Computed from the weekly figures."""
