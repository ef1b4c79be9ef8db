"""The public face: connect, the verbs, what an administrator does."""
