"""The store in one SQLite file: the lexical leg alone, no server."""
