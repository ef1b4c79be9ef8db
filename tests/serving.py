"""A real server for a test: uvicorn on a free port of this machine, in a thread, without keys unless some are given."""

from __future__ import annotations

import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from semmem.client.memory import Semmem
from semmem.interfaces.http.keys import Keys, ServerKeys
from semmem.interfaces.http.refusals import Refusals
from semmem.interfaces.http.server import Server
from semmem.interfaces.http.shared_rates import SharedRates
from tests.patience import PATIENCE_S

# A store that answers late is no failure: keys are read, tokens taken and refusals written all the same.
ServerKeys.WAITS_S = SharedRates.PATIENCE_S = Refusals.WAITS_S = PATIENCE_S


@contextmanager
def running(mem: Semmem, **options: Any) -> Iterator[Server]:
    """Yield a server of ``mem`` that answers; it is stopped at the end, with all its threads."""
    with tempfile.TemporaryDirectory() as folder:
        options.setdefault("keys", Keys(Path(folder) / "keys.json"))
        server = Server(mem, **{"port": 0, "grace_s": 5.0, **options})
        thread = threading.Thread(target=server.run)
        thread.start()
        try:
            until = time.monotonic() + 60
            while not server.started and thread.is_alive() and time.monotonic() < until:
                time.sleep(0.01)
            assert server.started
            yield server
        finally:
            server.stop()
            thread.join(60)
            assert not thread.is_alive(), _stacks()


@contextmanager
def serving(mem: Semmem, **options: Any) -> Iterator[str]:
    """Yield the URL of a server of ``mem``."""
    with running(mem, **options) as server:
        yield server.url


def _stacks() -> str:
    """Return where each thread is: of a server that does not stop, nobody knows otherwise what it waits for."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    frames = sys._current_frames().items()
    return "\n".join(f"{names.get(id)}:\n{''.join(traceback.format_stack(frame))}" for id, frame in frames)
