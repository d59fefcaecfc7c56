"""Audit: whether chains, logs, files and digests are as the manifests say."""
