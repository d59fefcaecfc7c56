"""History without a JVM: Delta logs, manifests, publications, releases, readers.

Here belongs everything that changes what people see, as small commits of file references through `deltalake`, and
everything that resolves a release and reads it. Rows are never computed here.
"""
