"""Where a hook finds and stores memories: in the store, or at the server that the settings name."""

from __future__ import annotations

import json
import socket
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from urllib.parse import urlencode, urlsplit

from semmem.model.errors import InvalidInput, NotFound, StoreUnavailable

if TYPE_CHECKING:
    from semmem.client.memory import Semmem
    from semmem.config import Settings

__all__ = ["Found", "Source", "of_memory", "source_of", "store_name"]

T = TypeVar("T")

_WITHIN_S = 5.0
_LONGEST_QUERY = 4_000
_PAGE = 400
_PINNED_BUDGET = 4_000
_HTTP = ("http://", "https://")


class Found(NamedTuple):
    """The memories of the hits, best first, or how many are withheld because ``confidence`` is below ``floor``."""

    memories: list[dict[str, Any]]
    withheld: int = 0
    confidence: float = 0.0
    floor: float = 0.0


class Source(ABC):
    """What a hook asks; what a server is not asked has an answer here."""

    name: str
    settings: Settings

    @abstractmethod
    def recall(self, question: str, namespaces: Sequence[str], limit: int) -> Found:
        """Return the memories of the hits, best first; none below the confidence of ``agent_min_confidence``."""

    @abstractmethod
    def pages(self, namespace: str) -> Iterator[list[dict[str, Any]]]:
        """Yield the memories of a namespace, newest first, a page at a time."""

    @abstractmethod
    def pinned(self, namespaces: Sequence[str]) -> list[dict[str, Any]]:
        """Return the pinned memories, the most important first."""

    def superseded(self, namespace: str, ids: Sequence[str]) -> frozenset[str]:
        """Return which memories others supersede."""
        return frozenset()

    def short_ids(self, memories: Iterable[Mapping[str, Any]]) -> Mapping[tuple[str, str], str]:
        """Return the ids to show of memories, by namespace and id."""
        return {}

    def store(self, items: Iterable[Mapping[str, Any]], namespace: str) -> list[str]:
        """Store items, and return why some were not."""
        raise NotImplementedError  # what stores takes its time, and goes through the facade

    def last_turn(self, session: str, namespace: str, before: int) -> Mapping[str, Any] | None:
        """Return the newest turn of a session whose position is below ``before``."""
        raise NotImplementedError

    def supersede(self, newer: str, older: str, namespace: str) -> None:
        """Link a memory to the one that it supersedes, where both are stored and nothing forbids it."""
        raise NotImplementedError


@contextmanager
def source_of(url: str | None, *, fast: bool) -> Iterator[Source]:
    """Yield what answers for the store of ``url``, None being that of the settings.

    That is the server that the settings name, for what has to be ``fast``; else the store, by the legs of the setting
    ``hook_legs``.
    """
    from semmem.config import Settings

    settings = Settings.load(**({} if url is None else {"url": url}))
    if fast and (settings.url or "").startswith(_HTTP):
        with closing(_Server(settings)) as server:
            yield server
        return
    import semmem

    with semmem.connect(url) as memory:
        yield of_memory(memory, lexical=settings.hook_legs == "lexical")


def of_memory(memory: Semmem, *, lexical: bool = False) -> Source:
    """Return a store that is open, asked by all legs or by the ``lexical`` one, which needs no model."""
    return _Store(store_name(memory.settings), memory, lexical)


def store_name(settings: Settings) -> str:
    """Return what a store is known by, in hexadecimal digits: the same for every way to write its URL's path.

    Raises InvalidInput for a URL that names no store.
    """
    from semmem.stores import parse_url

    if (settings.url or "").startswith(_HTTP):
        return settings.url or ""
    target = parse_url(settings.url, home=settings.home)
    place = target.dsn if target.path is None else str(target.path)
    return blake2b(f"{target.kind}\n{place}".encode(), digest_size=12).hexdigest()


class _Store(Source):
    """The store itself, through the facade."""

    def __init__(self, name: str, memory: Semmem, lexical: bool) -> None:
        self.name = name
        self.settings = memory.settings
        self._memory = memory
        self._lexical = lexical

    def recall(self, question: str, namespaces: Sequence[str], limit: int) -> Found:
        import semmem

        least = self._memory.settings.agent_min_confidence
        plan = semmem.recipe(self._memory.recipe, weights={"dense": 0.0, "graph": 0.0}) if self._lexical else None
        hits = self._memory.recall(question, namespace=namespaces, limit=limit, recipe=plan, min_confidence=least)
        return Found([hit.memory.as_dict() for hit in hits], hits.withheld, hits.confidence, hits.min_confidence)

    def pages(self, namespace: str) -> Iterator[list[dict[str, Any]]]:
        cursor = None
        while True:
            page = self._memory.list(namespace=namespace, limit=_PAGE, cursor=cursor)
            yield [memory.as_dict() for memory in page]
            if (cursor := page.cursor) is None:
                return

    def pinned(self, namespaces: Sequence[str]) -> list[dict[str, Any]]:
        from semmem.client.context_and_feedback import pinned

        return [memory.as_dict() for memory in pinned(self._memory._here, namespaces, (), None)]

    def superseded(self, namespace: str, ids: Sequence[str]) -> frozenset[str]:
        life = self._memory.store.life
        rows = () if life is None or not ids else life.newer((namespace,), {namespace: ids})
        return frozenset(row.old for row in rows)

    def store(self, items: Iterable[Mapping[str, Any]], namespace: str) -> list[str]:
        report = self._memory.remember_many(items, namespace=namespace, on_error="skip")
        return [rejected.reason for rejected in report.rejected]

    def last_turn(self, session: str, namespace: str, before: int) -> Mapping[str, Any] | None:
        limit, cursor = 1, None  # it is the newest memory, unless this batch of turns is stored already
        while True:
            page = self._memory.list(namespace=namespace, filters={"sessions": [session]}, limit=limit, cursor=cursor)
            for memory in page:
                if memory.position is not None and memory.position < before:
                    return memory.as_dict()
            if (cursor := page.cursor) is None:
                return None
            limit = _PAGE

    def supersede(self, newer: str, older: str, namespace: str) -> None:
        with suppress(NotFound, InvalidInput):
            self._memory.link(newer, "supersedes", older, namespace=namespace)

    def short_ids(self, memories: Iterable[Mapping[str, Any]]) -> Mapping[tuple[str, str], str]:
        return self._memory._here.short_names({(one["namespace"], one["id"]) for one in memories})


class _Server(Source):
    """A server, asked with nothing that takes long to load."""

    def __init__(self, settings: Settings) -> None:
        import http.client  # which loads ssl and email, and a store is asked without them

        self.name = settings.url or ""
        self.settings = settings
        self._unreadable = http.client.HTTPException
        parts = urlsplit(self.name)
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        self._connection = kind(parts.hostname or "", parts.port, timeout=_WITHIN_S)
        self._least = settings.agent_min_confidence
        self._path = parts.path.rstrip("/")
        key = getattr(settings, "key", None)
        self._headers = {} if key is None else {"Authorization": f"Bearer {key.get_secret_value()}"}

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def recall(self, question: str, namespaces: Sequence[str], limit: int) -> Found:
        body: dict[str, Any] = {"query": question[:_LONGEST_QUERY], "namespace": list(namespaces), "limit": limit}
        body["min_confidence"] = self._least
        return self._request("POST", "/v1/recall", _found, body)

    def pages(self, namespace: str) -> Iterator[list[dict[str, Any]]]:
        asked = {"namespace": namespace, "limit": str(_PAGE)}
        while True:
            memories, cursor = self._request("GET", f"/v1/memories?{urlencode(asked)}", _page)
            yield memories
            if cursor is None:
                return
            asked["cursor"] = cursor

    def pinned(self, namespaces: Sequence[str]) -> list[dict[str, Any]]:
        # a server gives them with every context
        body = {"query": "pinned", "namespace": list(namespaces), "limit": 1, "token_budget": _PINNED_BUDGET}
        return self._request("POST", "/v1/context", _pinned, body)

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
        except (OSError, self._unreadable) as error:
            raise StoreUnavailable(f"The server of the store does not answer: {error}") from None
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            raise StoreUnavailable("What answers at the address of the server is no server of semmem.") from None
        finally:
            cut.cancel()
            self._connection.close()
        raise StoreUnavailable(f"The server of the store says: {reason}")

    def _cut(self) -> None:
        with suppress(OSError, AttributeError):
            self._connection.sock.shutdown(socket.SHUT_RDWR)


def _found(reply: Any) -> Found:
    memories = [dict(hit["memory"]) for hit in reply["hits"]]
    return Found(memories, int(reply["withheld"]), float(reply["confidence"]), float(reply["min_confidence"]))


def _page(reply: Any) -> tuple[list[dict[str, Any]], str | None]:
    cursor = reply["cursor"]
    return [dict(memory) for memory in reply["memories"]], None if cursor is None else str(cursor)


def _pinned(reply: Any) -> list[dict[str, Any]]:
    return [dict(memory) for memory in reply["pinned"]]
