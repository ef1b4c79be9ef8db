"""Processes of a load, each of which ends with the one that has begun it, however that one ends."""

from __future__ import annotations

import multiprocessing
import os
import threading

__all__ = ["SPAWN", "end_with_parent"]

SPAWN = multiprocessing.get_context("spawn")


def end_with_parent() -> None:
    """Let this process end when its parent has ended, as a killed one does: its work would go on."""
    threading.Thread(target=_wait_and_end, daemon=True).start()


def _wait_and_end() -> None:
    if (parent := multiprocessing.parent_process()) is not None:
        parent.join()
        os._exit(1)
