"""Records of days as plain values: manifests, ledger rows, digests, differences.

Put here values that several rooms write, store and read, without behaviour beyond their own fields. `lakehouse` and
`ledger` store them; `planning` and `quality` decide on them.
"""
