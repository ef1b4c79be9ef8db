"""The former address of semmem.model.errors, which stays importable."""

from semmem.model.errors import *  # noqa: F403
from semmem.model.errors import __all__ as __all__
