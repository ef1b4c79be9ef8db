"""Calls of a native library, which the end of a process waits for.

A process that ends while one of its threads is in ONNX Runtime is aborted: the thread cannot be stopped there. So the
end waits, ten seconds at most, and holds the other threads. The main thread goes on, for a program may store something
in an exit handler; those registered after ``import semmem`` come before this one anyway, and may recall too.
"""

from __future__ import annotations

import atexit
import os
import threading

from semmem.model.errors import EmbedderUnavailable

__all__ = ["NativeCalls", "native_calls"]

_LAST_CALLS_S = 10.0
"""Seconds that the end of a process waits for a library."""


class NativeCalls:
    """The calls in progress, each in a block of its own. Raises EmbedderUnavailable once the process ends."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Forget all calls: a child process has none of its parent's, and must not wait for a lock of these."""
        self._change = threading.Condition()
        self._running = 0
        self._ended = False

    def __enter__(self) -> None:
        with self._change:
            if self._ended and threading.current_thread() is not threading.main_thread():
                self._change.wait_for(lambda: False, _LAST_CALLS_S)  # the process ends meanwhile, and it says nothing
                raise EmbedderUnavailable("The process is about to end.")
            self._running += 1

    def __exit__(self, *_: object) -> None:
        with self._change:
            self._running -= 1
            self._change.notify_all()

    def end(self) -> None:
        """Let no call begin any more, and wait for those in progress."""
        with self._change:
            self._ended = True
            self._change.wait_for(lambda: not self._running, _LAST_CALLS_S)


native_calls = NativeCalls()
atexit.register(native_calls.end)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=native_calls.begin)
