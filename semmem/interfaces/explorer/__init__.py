"""The page in which a person looks at a memory: its files, its routes, and the command that opens it."""
