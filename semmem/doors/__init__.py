"""The ways in: one file or folder each."""
