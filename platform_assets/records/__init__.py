"""Records of days as plain values: manifests, ledger rows, digests, differences.

Here belong values that several rooms write, store and read, without behaviour beyond their own fields. Where they are
stored is the business of `lakehouse` and `ledger`; what follows from them is decided in `planning` and `quality`.
"""
