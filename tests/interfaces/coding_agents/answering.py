"""A process that answers hooks and commands, played by a thread of the test."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from semmem import Semmem
from semmem.interfaces import local_socket
from semmem.interfaces.coding_agents.listening import Listener
from semmem.interfaces.local_socket import address_of
from tests.waiting import until

__all__ = ["answering", "listens"]


def listens() -> bool:
    """Return whether a process answers at the address of the settings."""
    try:
        local_socket.connected(address_of(), 60).close()
    except OSError:
        return False
    return True


@contextmanager
def answering(memory: Semmem) -> Iterator[tuple[Listener, threading.Thread]]:
    """Answer at the address of the settings from an open store, in a thread that has ended after the block."""
    one = Listener(address_of(), memory)
    thread = threading.Thread(target=one.run)
    thread.start()
    try:
        until(listens)
        yield one, thread
    finally:
        one.stop()
        thread.join(60)
