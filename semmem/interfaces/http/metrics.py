"""What a server tells of its requests: counters as Prometheus reads them, and the trace that each belongs to."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from semmem.client.gauges import of_process, of_store
from semmem.interfaces.http.guard import App, Receive, Scope, Send
from semmem.read.tracing import continued

if TYPE_CHECKING:
    from semmem.client.memory import Semmem

__all__ = ["Metrics", "traced"]

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)

_EVERY_S = 60.0
"""Seconds after which the store is asked again for its backlog, which it counts row by row."""

_AGAIN_S = 10.0
"""Seconds after which a store that gave no answer is asked again."""

_PATIENCE_S = 2.0
"""Seconds for which a page waits for the store."""

_COUNTED = {
    "asked": ("semmem_resident_asked", "Namespaces that recalls asked the memory for."),
    "missed": ("semmem_resident_missed", "Namespaces that recalls did not find in memory."),
    "standby": ("semmem_recalls_from_standby", "Recalls that the standby was asked."),
    "primary": ("semmem_recalls_from_primary", "Recalls that the primary was asked where there is a standby."),
}
_MEASURED = {
    "in_use": ("semmem_pool_in_use", "Connections to the store in use."),
    "waiting": ("semmem_pool_waiting", "Calls that wait for a connection."),
    "most": ("semmem_pool_most", "Connections that there may be, the setting pool_size."),
    "up": ("semmem_store_up", "1 if the store answered when it was last asked, else 0."),
    "behind": ("semmem_memories_waiting", "Memories that wait for maintain, to be merged or compared."),
    "oldest": ("semmem_oldest_waiting_seconds", "Age of the memory that waits longest for maintain; 0 for none."),
    "without_vector": (
        "semmem_memories_without_vector",
        "Memories and parts without a vector in a store with vectors.",
    ),
    "backup": ("semmem_backup_age_seconds", "Age of the last backup by semmem backup; absent where there is none."),
}


class Watched:
    """The numbers of a store as a collector of Prometheus; a store that does not answer cannot hold up a page."""

    def __init__(self, mem: Semmem) -> None:
        self._mem = mem
        self._lock = threading.Lock()
        self._asking: threading.Thread | None = None
        self._asked_at: float | None = None
        self._is_up = False
        self._backlog: Mapping[str, float] = {}

    def collect(self) -> Iterator[Any]:
        """Yield each number that is known."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        numbers = {**of_process(self._mem), **self._of_store()}
        for table, family in ((_COUNTED, CounterMetricFamily), (_MEASURED, GaugeMetricFamily)):
            for key, (name, what) in table.items():
                if key in numbers:
                    yield family(name, what, value=numbers[key])

    def _of_store(self) -> Mapping[str, float]:
        """Return whether the store answers, and its backlog as it was when last counted."""
        with self._lock:
            wait = _EVERY_S if self._is_up else _AGAIN_S
            due = self._asked_at is None or time.monotonic() - self._asked_at >= wait
            if due and (self._asking is None or not self._asking.is_alive()):
                self._is_up = False
                self._asking = threading.Thread(target=self._ask, name="semmem-backlog", daemon=True)
                self._asking.start()
            asking = self._asking
        if asking is not None:
            asking.join(_PATIENCE_S)
        return {"up": 1, **self._backlog} if self._is_up else {"up": 0}

    def _ask(self) -> None:
        try:
            self._mem.settings_of()
            self._is_up = True
            self._backlog = of_store(self._mem)
        except Exception:  # noqa: BLE001  # nobody waits for this thread: whatever it is, the store gave no answer
            self._is_up = False
        self._asked_at = time.monotonic()


class Metrics:
    """The counters of one server, in a registry of their own."""

    def __init__(self, mem: Semmem) -> None:
        """Make those of a server of ``mem``."""
        from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

        from semmem import __version__

        self._registry = CollectorRegistry()
        self._requests = Counter("semmem_requests", "Requests answered.", ("verb", "status"), registry=self._registry)
        self._time = Histogram(
            "semmem_request_seconds", "Time of an answer.", ("verb",), buckets=_SECONDS, registry=self._registry
        )
        self._degraded = Counter(
            "semmem_degraded", "Recalls that a leg did not answer.", ("leg",), registry=self._registry
        )
        self.pending = Gauge("semmem_verbs_at_work", "Verbs at work or waiting for a thread.", registry=self._registry)
        for name, what, number in (
            ("semmem_resident_namespaces", "Namespaces in memory.", lambda: len(mem.resident)),
            ("semmem_resident_bytes", "About how many bytes these take.", lambda: sum(mem.resident.values())),
        ):
            Gauge(name, what, registry=self._registry).set_function(number)
        self._registry.register(Watched(mem))
        Gauge("semmem_info", "1, for this version.", ("version",), registry=self._registry).labels(__version__).set(1)

    def answered(self, verb: str, status: int, seconds: float) -> None:
        """Count one answer."""
        self._requests.labels(verb, str(status)).inc()
        self._time.labels(verb).observe(seconds)

    def degraded(self, legs: Iterable[str]) -> None:
        """Count the legs that did not answer one recall."""
        for leg in legs:
            self._degraded.labels(leg).inc()

    def as_text(self) -> tuple[bytes, str]:
        """Return the page that Prometheus reads, and its media type."""
        from prometheus_client import generate_latest
        from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

        return generate_latest(self._registry), CONTENT_TYPE_PLAIN_0_0_4


def traced(app: App) -> App:
    """Let the spans of each request belong to the trace of its header ``traceparent``, where spans are switched on."""

    async def answered(scope: Scope, receive: Receive, send: Send) -> None:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope.get("headers", ())}
        with continued(headers):
            await app(scope, receive, send)

    return answered
