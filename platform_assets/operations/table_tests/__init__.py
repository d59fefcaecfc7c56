"""Tests of tables: rows in, computed by the engine in a lake of their own, rows out."""
