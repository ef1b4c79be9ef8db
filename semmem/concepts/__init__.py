"""The concepts of a text: names, aliases, keys."""
