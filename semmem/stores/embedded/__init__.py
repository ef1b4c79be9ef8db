"""The embedded PostgreSQL server: its data directory, its start, its stop when idle."""
