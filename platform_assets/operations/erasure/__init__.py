"""Erasure: removes a person's rows from all tables for good, and keeps them out."""
