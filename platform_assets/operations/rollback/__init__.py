"""Rolling back: which publications, what their days were before, and what must not be made of these again."""
