"""The former address of semmem.importers, which stays importable."""

from semmem.importers import FORMATS, BadRow, owned, reader
from semmem.model.imported_items import Item

__all__ = ["FORMATS", "BadRow", "Item", "owned", "reader"]
