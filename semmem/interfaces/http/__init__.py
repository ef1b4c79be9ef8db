"""The HTTP API: every verb of the facade under /v1, keys, limits, and the server itself."""
