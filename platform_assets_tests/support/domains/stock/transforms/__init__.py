"""Pure transforms of the stock."""
