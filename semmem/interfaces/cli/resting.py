"""Commands that go on until Ctrl-C: they are interrupted between two rounds, not in the middle of one."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["interrupted_at_rest"]


@contextmanager
def interrupted_at_rest() -> Iterator[Callable[[float], None]]:
    """Yield a function that rests for some seconds; Ctrl-C ends the command there, and the second one anywhere.

    In the middle of a round it could be lost, or leave a lock closed that the end of the command waits for.
    """
    came = resting = False

    def interrupted(*_: object) -> None:
        nonlocal came
        if came or resting:
            raise KeyboardInterrupt
        came = True

    def rest(seconds: float) -> None:
        nonlocal resting
        resting = True
        try:
            if came:
                raise KeyboardInterrupt
            time.sleep(seconds)
        finally:
            resting = False

    if threading.current_thread() is not threading.main_thread():
        yield time.sleep
        return
    before = signal.signal(signal.SIGINT, interrupted)
    try:
        yield rest
    finally:
        signal.signal(signal.SIGINT, before)
