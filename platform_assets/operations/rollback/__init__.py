"""Rollback: which publications, what their days were before, and what must not be published again."""
