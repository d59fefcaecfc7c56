"""Erasure: a person's rows taken out of all tables for good, and kept from coming back."""
