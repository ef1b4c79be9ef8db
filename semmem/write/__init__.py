"""The write pipeline: items to stored memories, and what is derived from them."""
