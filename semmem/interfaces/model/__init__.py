"""The command line for the embedding model that runs on this machine."""
