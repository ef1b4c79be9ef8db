"""The concepts of a text: its names, their other forms, the memories that mention them, how people write them."""
