"""Wait for what another thread or process brings about."""

from __future__ import annotations

import time
from collections.abc import Callable

__all__ = ["until"]


def until(holds: Callable[[], object], seconds: float = 100.0) -> None:
    """Wait until ``holds`` says yes; fail the test where it does not within ``seconds``."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)
