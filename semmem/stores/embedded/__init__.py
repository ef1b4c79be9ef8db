"""The embedded PostgreSQL server: its data directory, its start, its idle stop."""
