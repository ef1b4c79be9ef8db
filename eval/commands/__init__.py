"""The commands of ``python -m eval``: experiments, what comes of them, checks, and questions of one's own."""
