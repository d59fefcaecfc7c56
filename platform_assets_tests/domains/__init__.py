"""Tests of the shipped domain, and a second, very different one that proves a domain is one folder."""
