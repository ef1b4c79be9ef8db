"""The write pipeline: from items to stored memories, and the data derived from them."""
