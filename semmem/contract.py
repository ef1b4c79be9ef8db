"""The former address of semmem.model.search, which stays importable."""

from semmem.model.search import *  # noqa: F403
from semmem.model.search import __all__ as __all__
