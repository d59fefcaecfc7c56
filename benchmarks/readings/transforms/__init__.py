"""Pure transforms, one function per contract, named after its table."""
