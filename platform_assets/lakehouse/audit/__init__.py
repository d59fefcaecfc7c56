"""Whether a lake is what its manifests say: the chain of releases, the logs, what commits changed, the files.

It only reads, needs neither a JVM nor the ledger, and goes on after what it found, so that one damage hides no other.
"""
