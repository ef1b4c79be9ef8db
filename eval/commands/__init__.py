"""The commands of ``python -m eval``: experiments, results, checks, and questions about your own memories."""
