"""A thread that sweeps expired items from time to time, as LangGraph's stores on databases have one."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future

__all__ = ["Sweeper"]

_log = logging.getLogger(__name__)


class Sweeper:
    """Calls ``sweep`` every so many minutes, in a thread of its own, from ``start`` until ``stop``."""

    def __init__(self, sweep: Callable[[], int]) -> None:
        self._sweep = sweep
        self._running: tuple[threading.Thread, threading.Event, Future[None]] | None = None

    def start(self, minutes: float) -> Future[None]:
        """Start the thread and return a future that is done when the thread has ended; cancelled, it ends the thread.

        Where it runs already, it goes on, and the future is that of the first start. One that was told to end, and is
        still at its last sweep, counts no more.
        """
        if self._running is not None and self._running[0].is_alive() and not self._running[1].is_set():
            return self._running[2]
        stopped, ended = threading.Event(), Future[None]()

        def work() -> None:
            while not stopped.wait(minutes * 60):
                try:
                    self._sweep()
                except Exception as error:  # noqa: BLE001  # the next sweep may succeed
                    _log.warning("Expired items could not be swept: %s", error)
            if ended.set_running_or_notify_cancel():
                ended.set_result(None)

        thread = threading.Thread(target=work, name="semmem-langgraph-sweeper", daemon=True)
        ended.add_done_callback(lambda _: stopped.set())
        self._running = thread, stopped, ended
        thread.start()
        return ended

    def stop(self, timeout: float | None = None) -> bool:
        """End the thread, and return whether it has ended within ``timeout`` seconds; None waits for it."""
        if self._running is None:
            return True
        thread, stopped, _ = self._running
        stopped.set()
        thread.join(timeout)
        if thread.is_alive():
            return False
        self._running = None
        return True
