"""A store that is opened behind the protocol, so that the first answers of a server wait neither for it nor a model."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from semmem.model.errors import StoreClosed

if TYPE_CHECKING:
    from semmem.client.memory import Semmem

__all__ = ["Opening"]

_log = logging.getLogger(__name__)


class Opening:
    """A Semmem that is opened when it is first needed, or before that by a thread of its own; safe between threads."""

    def __init__(self, opener: Callable[[], Semmem], *, warm: bool = True) -> None:
        """Take what opens the store. With ``warm``, ``begin`` loads the embedding model too."""
        self._opener = opener
        self._warm = warm
        self._lock = threading.Lock()
        self._memory: Semmem | None = None
        self._begun = False
        self._closed = False

    def begin(self) -> None:
        """Open the store in the background, once; what goes wrong is told to the call that needs the store."""
        if not self._begun:
            self._begun = True
            threading.Thread(target=self._prepare, name="semmem-opening", daemon=True).start()

    def memory(self) -> Semmem:
        """Return the open Semmem; wait for it where it is being opened.

        A store that could not be opened is tried again. Raises what ``connect`` raises, and StoreClosed.
        """
        with self._lock:
            if self._closed:
                raise StoreClosed("This server is stopping; call it again after it restarts.")
            if self._memory is None:
                self._memory = self._opener()
            return self._memory

    def close(self) -> None:
        """Give the connections back; nothing is opened after that."""
        with self._lock:
            self._closed = True
            memory, self._memory = self._memory, None
        if memory is not None:
            memory.close()

    def _prepare(self) -> None:
        from semmem.client.opening import warm_up

        try:
            memory = self.memory()
            if self._warm:
                warm_up(memory)
        except Exception as error:  # noqa: BLE001  # whoever asks for the store is told, in a sentence
            _log.info("The store or the model could not be prepared: %s", error)
