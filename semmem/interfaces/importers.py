"""The former address of semmem.importers, which stays importable."""

from semmem.importers import FORMATS, BadRow, Item, owned, reader

__all__ = ["FORMATS", "BadRow", "Item", "owned", "reader"]
