"""The read pipeline: a question to ranked, explained hits."""
