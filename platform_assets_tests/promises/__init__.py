"""The promises of the platform, each held against something that does not share its code."""
