"""Whether an installation is what its manifests say: the chain of releases, the logs, the files, the digests."""
