"""Pure transforms of the feeds."""
