"""Give memory that is free in the heap of this process back to the system."""

from __future__ import annotations

import ctypes
from contextlib import suppress

__all__ = ["give_back"]


def give_back() -> None:
    """Give all free pages of the heap back to the system, where the C library can: glibc, not musl or macOS's.

    By itself it gives back what lies above all that is in use. So the memory of a passing piece of work stays with each
    thread that did one, for as long as anything that came later does.
    """
    with suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)
