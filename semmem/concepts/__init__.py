"""The concepts of a text: where its names are, other names, what mentions them, how people write them."""
