"""History without a JVM: storage, Delta logs, publications, releases, and reading at one.

Put here everything that changes what people see, as small commits of file references through `deltalake`, and
everything that resolves a release and reads it. Rows are never computed here; neither the ledger nor any decision about
days is used.
"""
