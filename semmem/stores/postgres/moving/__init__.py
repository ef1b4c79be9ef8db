"""Move a whole PostgreSQL store: into another store, into a file, and out of it again."""
