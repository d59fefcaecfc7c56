"""What must be there in the end, found without the engine: in plain Python or by DuckDB."""
