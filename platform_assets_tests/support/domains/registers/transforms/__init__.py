"""Pure transforms of the visits."""
