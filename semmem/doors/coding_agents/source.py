"""Where a hook finds and stores memories: at a server that runs for the store, else in the store itself."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar
from urllib.parse import urlencode, urlsplit

from semmem.doors.http.announcement import server_of, store_name
from semmem.model.errors import StoreUnavailable

if TYPE_CHECKING:
    from semmem.client.memory import Semmem
    from semmem.config import Settings

__all__ = ["Found", "ServerGone", "Source", "source_of"]

T = TypeVar("T")

_WITHIN_S = 5.0
_LONGEST_QUERY = 4_000
_HTTP = ("http://", "https://")


class ServerGone(StoreUnavailable):
    """The server that is noted for the store does not answer; the store itself may."""


class Found(NamedTuple):
    """The memories of the hits, best first, or how many are withheld because ``confidence`` is below ``floor``."""

    memories: list[dict[str, Any]]
    withheld: int = 0
    confidence: float = 0.0
    floor: float = 0.0


class Source(Protocol):
    """What a hook asks."""

    name: str

    def recall(self, question: str, namespaces: Sequence[str], limit: int) -> Found:
        """Return the memories of the hits, best first; none below the confidence of ``agent_min_confidence``."""
        ...

    def latest(self, namespace: str, limit: int) -> list[dict[str, Any]]:
        """Return the newest memories of a namespace."""
        ...

    def store(self, items: Iterable[Mapping[str, Any]], namespace: str) -> list[str]:
        """Store items, and return why some were not."""
        ...


@contextmanager
def source_of(url: str | None, *, fast: bool, direct: bool = False) -> Iterator[Source]:
    """Yield what answers for the store of ``url``, None being that of the settings.

    That is the server that the settings name; or, for what has to be ``fast``, one that is noted for the store, unless
    ``direct``; else the store itself. ``fast``, it is asked without the dense leg, whose model takes long to load.
    """
    from semmem.config import Settings

    settings = Settings.load(**({} if url is None else {"url": url}))
    store_url = settings.url or ""
    remote = store_url.startswith(_HTTP)
    name = store_url if remote else store_name(settings.url, settings.home)
    address = store_url if remote else None if direct else server_of(name)
    if fast and address is not None:
        with closing(_Server(name, address, settings, StoreUnavailable if remote else ServerGone)) as server:
            yield server
        return
    import semmem

    with semmem.connect(url) as memory:
        yield _Store(name, memory, fast)


class _Store:
    """The store itself, through the facade."""

    def __init__(self, name: str, memory: Semmem, fast: bool) -> None:
        self.name = name
        self._memory = memory
        self._fast = fast

    def recall(self, question: str, namespaces: Sequence[str], limit: int) -> Found:
        """Return the memories of the hits, best first; none below the confidence of ``agent_min_confidence``."""
        import semmem

        least = self._memory.settings.agent_min_confidence
        plan = semmem.recipe(self._memory.recipe, weights={"dense": 0.0}) if self._fast else None
        hits = self._memory.recall(question, namespace=namespaces, limit=limit, recipe=plan, min_confidence=least)
        return Found([hit.memory.as_dict() for hit in hits], hits.withheld, hits.confidence, hits.min_confidence)

    def latest(self, namespace: str, limit: int) -> list[dict[str, Any]]:
        """Return the newest memories of a namespace."""
        return [memory.as_dict() for memory in self._memory.list(namespace=namespace, limit=limit)]

    def store(self, items: Iterable[Mapping[str, Any]], namespace: str) -> list[str]:
        """Store items, and return why some were not."""
        report = self._memory.remember_many(items, namespace=namespace, on_error="skip")
        return [rejected.reason for rejected in report.rejected]


class _Server:
    """A server, asked with nothing that takes long to load."""

    def __init__(self, name: str, address: str, settings: Settings, failure: type[StoreUnavailable]) -> None:
        self.name = name
        parts = urlsplit(address)
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        self._connection = kind(parts.hostname or "", parts.port, timeout=_WITHIN_S)
        self._failure = failure
        self._least = settings.agent_min_confidence
        self._path = parts.path.rstrip("/")
        key = getattr(settings, "key", None)
        self._headers = {} if key is None else {"Authorization": f"Bearer {key.get_secret_value()}"}

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def recall(self, question: str, namespaces: Sequence[str], limit: int) -> Found:
        """Return the memories of the hits, best first; none below the confidence of ``agent_min_confidence``."""
        body: dict[str, Any] = {"query": question[:_LONGEST_QUERY], "namespace": list(namespaces), "limit": limit}
        body["min_confidence"] = self._least
        return self._request("POST", "/v1/recall", _found, body)

    def latest(self, namespace: str, limit: int) -> list[dict[str, Any]]:
        """Return the newest memories of a namespace."""
        parameters = urlencode({"namespace": namespace, "limit": limit})
        return self._request("GET", f"/v1/memories?{parameters}", _memories)

    def store(self, items: Iterable[Mapping[str, Any]], namespace: str) -> list[str]:
        """Not asked of it: what stores takes its time, and goes through the facade."""
        raise NotImplementedError

    def _request(self, method: str, path: str, read: Callable[[Any], T], body: Mapping[str, Any] | None = None) -> T:
        """Return what ``read`` makes of the answer. Raises StoreUnavailable where there is none in time, or a no."""
        headers = {**self._headers, "Accept": "application/json"}
        content = None if body is None else json.dumps(body).encode()
        cut = threading.Timer(_WITHIN_S, self._cut)  # the timeout of a socket begins anew with every byte
        cut.daemon = True
        try:
            self._connection.connect()
            cut.start()
            self._connection.request(
                method, self._path + path, content, {**headers, "Content-Type": "application/json"} if body else headers
            )
            answer = self._connection.getresponse()
            reply = json.loads(answer.read())
            if answer.status < 400:
                return read(reply)
            reason = reply.get("detail", answer.status)
        except (OSError, http.client.HTTPException) as error:
            raise self._failure(f"The server of the store does not answer: {error}") from None
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            raise self._failure("What answers at the address of the server is no server of semmem.") from None
        finally:
            cut.cancel()
            self._connection.close()
        raise self._failure(f"The server of the store says: {reason}")

    def _cut(self) -> None:
        with suppress(OSError, AttributeError):
            self._connection.sock.shutdown(socket.SHUT_RDWR)


def _found(reply: Any) -> Found:
    memories = [dict(hit["memory"]) for hit in reply["hits"]]
    return Found(memories, int(reply["withheld"]), float(reply["confidence"]), float(reply["min_confidence"]))


def _memories(reply: Any) -> list[dict[str, Any]]:
    return [dict(memory) for memory in reply["memories"]]
