"""The shipped domain, and that a second, very different one is one folder."""
