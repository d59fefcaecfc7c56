"""Pure transforms of the domains of tests."""
