"""What a server tells of its requests: counters as Prometheus reads them, and the trace that each belongs to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from semmem.interfaces.http.guard import App, Receive, Scope, Send
from semmem.read.tracing import continued

__all__ = ["Metrics", "traced"]

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics:
    """The counters of one server, in a registry of their own."""

    def __init__(self, resident: Callable[[], Mapping[str, int]]) -> None:
        """Make them; ``resident`` returns the bytes of each namespace in memory."""
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
            ("semmem_resident_namespaces", "Namespaces in memory.", lambda: len(resident())),
            ("semmem_resident_bytes", "About how many bytes these take.", lambda: sum(resident().values())),
        ):
            Gauge(name, what, registry=self._registry).set_function(number)
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
