"""The former home of the importers, which stays importable: see semmem.importers."""
