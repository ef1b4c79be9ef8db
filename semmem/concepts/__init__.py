"""The concepts of a text: its names, other forms of these, the memories that mention them, and their spelling."""
