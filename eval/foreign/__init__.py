"""Measure anybody's retriever from its own output: runs, judgments and the lists of its legs, read from files."""
