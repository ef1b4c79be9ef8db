"""The interfaces, one file or folder each; all of them answer with the one table of errors in ``wire``."""
