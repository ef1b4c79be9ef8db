"""Measure anybody's retriever from its own output: runs, judgements and the lists of its legs, read from files."""
