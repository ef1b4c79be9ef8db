"""The store in one SQLite file: three legs, no server."""
