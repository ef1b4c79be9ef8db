"""Retrievers by name: lexical, dense, graph."""
