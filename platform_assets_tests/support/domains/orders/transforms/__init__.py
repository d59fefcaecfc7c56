"""Pure transforms of the orders."""
