"""A Semmem that is somewhere else: the facade's verbs over HTTP, asked of ``semmem serve``.

Each verb is a row of the table of routes; its arguments are those of the facade's method, its answer has the same type,
and its errors have the same classes. What works on the store itself raises LocalOnly.
"""

from __future__ import annotations

import inspect
import json
import ssl
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import wraps
from typing import Any

from semmem.client import values
from semmem.client.http_recall import Answer, HttpSearch
from semmem.client.http_request import Request, lines, request_of
from semmem.client.memory import Semmem
from semmem.client.routes import NOTED, REFUSED, ROUTES, Route, refusal
from semmem.config import Settings, certificate_file
from semmem.model.errors import (
    InvalidInput,
    LimitExceeded,
    LocalOnly,
    MissingExtra,
    StoreClosed,
    StoreError,
    StoreUnavailable,
)
from semmem.model.filters import string
from semmem.model.recipe import Recipe
from semmem.read.tracing import observed, sent_along
from semmem.write.screening import warn

__all__ = ["HttpSemmem", "open_server"]

_NO_TLS = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "PACKET_LENGTH_TOO_LONG")
"""What OpenSSL says of an answer that is no TLS at all."""
_LINES = "application/x-ndjson"
_BY_VERB: Mapping[str, Route] = {verb: route for route in ROUTES for verb in route.serves}
_BY_NAME: Mapping[str, Route] = {route.name: route for route in ROUTES}


def open_server(url: str, settings: Settings, chosen: Mapping[str, Any]) -> HttpSemmem:
    """Return a client of the server at ``url``, with the key of the settings.

    Raises InvalidInput for what is ``chosen`` where the server runs: its recipe, embedder, extractor and legs.
    """
    for name, value in chosen.items():
        if value is not None and (name, value) != ("embedder", "none"):  # nothing is embedded here
            raise InvalidInput(f"{name} is a choice of the server; leave it out, or open the store itself.")
    key = None if settings.key is None else settings.key.get_secret_value()
    return HttpSemmem(url, key=key, settings=settings)


class HttpSemmem(Semmem):
    """A memory behind a server. Safe to share between threads; a context manager that closes its connections."""

    def __init__(self, url: str, *, key: str | None = None, settings: Settings | None = None) -> None:
        httpx = _httpx()
        self.url = url.strip().rstrip("/")
        try:
            place = httpx.URL(self.url)
        except httpx.InvalidURL:
            place = httpx.URL("")
        if not place.host or place.userinfo or place.query or place.fragment:
            raise InvalidInput("The URL of a server is written as http://127.0.0.1:8765; the key goes into key=….")
        self.settings = Settings.load() if settings is None else settings
        self._headers = {"authorization": f"Bearer {_checked(key)}"} if key else {}
        self._client = httpx.Client(
            headers=self._headers,
            timeout=httpx.Timeout(120.0, connect=10.0),
            limits=httpx.Limits(max_connections=64, max_keepalive_connections=16, keepalive_expiry=30.0),
            trust_env=False,
            verify=_accepted(place.scheme),
            event_hooks={"request": [_trace]},
        )

    # ------------------------------------------------------------------ what is not a verb

    @property
    def recipe(self) -> Recipe:  # type: ignore[override]  # asked for when it is wanted
        """The recipe that the server searches by, where a namespace has no settings of its own."""
        return self.searched_by()[0]

    @property
    def store(self) -> Any:  # type: ignore[override]  # none is here
        """No store is here. Raises LocalOnly."""
        raise LocalOnly("The store is behind a server; open it with its own URL to work on it.")

    @property
    def resident(self) -> Mapping[str, int]:
        """Nothing is in memory here. Raises LocalOnly."""
        raise LocalOnly("The namespaces in memory are those of the server; its /metrics show their size.")

    def close(self) -> None:
        """Give the connections back."""
        self._client.close()

    # ---------------------------------------------------------------- verbs that are not one request; see Semmem

    def leg(self, name: str | None = None, *, namespace: str | Sequence[str] = "default") -> Any:
        chosen = "recall" if name is None else string("name", name)
        return HttpSearch(self.ask, chosen, values.sent("namespace", namespace))

    def settings_of(self, *, namespace: str = "default") -> Mapping[str, Any]:
        settings: Mapping[str, Any] = self.ask("settings", {"namespace": namespace})["settings"]
        return settings

    def searched_by(self, *, namespace: str = "default") -> tuple[Recipe, Mapping[str, Any], str | None]:
        answer = self.ask("settings", {"namespace": namespace})
        return values.recipe_of(answer["recipe"]), answer["used"], answer["unused"]

    def _short_ids(self, ids: Collection[str], *, namespace: str) -> Mapping[str, str]:
        return {id: id for id in ids}  # one more request would cost more than the rest of the ids

    # ------------------------------------------------------------------ asking

    def ask(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """Ask the route ``name`` and return its JSON. Raises what the facade raises, and StoreUnavailable."""
        request = request_of(_BY_NAME[name], arguments)
        until = time.monotonic() + 30.0
        tries = 0
        while True:
            try:
                response = self._sent(request)
                return _answer(response.status_code, response.content)
            except LimitExceeded as error:
                wait = error.retry_after or 0.0
                if not 0 < wait <= max(0.0, until - time.monotonic()):
                    raise
                time.sleep(wait)
            except StoreUnavailable:
                tries += 1
                if tries > 1 or not request.repeatable or self._client.is_closed:
                    raise

    def _open(self) -> Any:
        """Return the module that the connections are of. Raises StoreClosed where they were given back."""
        if self._client.is_closed:
            raise StoreClosed
        return _httpx()

    def _sent(self, request: Request) -> Any:
        httpx = self._open()
        try:
            response = self._client.request(
                request.method, self.url + request.path, params=list(request.query) or None,
                headers=dict(request.headers), content=request.content,
            )  # fmt: skip
        except httpx.TransportError as error:
            raise unreachable(self.url, error) from None
        except RuntimeError:
            if self._client.is_closed:  # by another thread
                raise StoreClosed from None
            raise
        if response.status_code == 429:
            refused = values.error_of(_json(response.content), 429)
            refused.retry_after = _seconds(response.headers.get("retry-after", "1"))
            raise refused
        if warning := response.headers.get(NOTED):
            warn(warning)
        return response

    def stream(
        self, name: str, items: Iterable[Any], arguments: Mapping[str, Any], progress: Callable[[Any], None] | None
    ) -> Any:
        """Send items one a line, and return the report; ``progress`` gets the counts of each batch, after the last."""
        httpx = self._open()
        route = _BY_NAME[name]
        headers = {"content-type": _LINES, "accept": _LINES if progress else "application/json"}
        content = lines(arguments, items)
        try:
            with self._client.stream(route.method, self.url + route.path, headers=headers, content=content) as response:
                if warning := response.headers.get(NOTED):
                    warn(warning)
                if response.status_code != 200 or progress is None:
                    return _answer(response.status_code, response.read())
                for line in response.iter_lines():
                    message = json.loads(line)
                    if "problem" in message:
                        raise values.error_of(message["problem"], message["problem"]["status"])
                    if warning := message.get("warnings"):
                        warn(" ".join(warning))
                    if "report" in message:
                        return message["report"]
                    progress(message["progress"])
        except httpx.TransportError as error:
            raise unreachable(self.url, error) from None
        raise StoreError("The server ended its answer before the report; list the memories to see which are stored.")

    def rows(self, arguments: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield the rows of ``export`` as they come."""
        httpx = self._open()
        request = request_of(_BY_NAME["export"], arguments)
        where = self.url + request.path
        try:
            with self._client.stream(request.method, where, params=list(request.query) or None) as response:
                if response.status_code != 200:
                    _answer(response.status_code, response.read())
                for line in response.iter_lines():
                    row = json.loads(line)
                    if "problem" in row and "text" not in row:
                        raise values.error_of(row["problem"], row["problem"]["status"])
                    yield row
        except httpx.TransportError as error:
            raise unreachable(self.url, error) from None


def _httpx() -> Any:
    try:
        import httpx
    except ImportError:
        raise MissingExtra("httpx is not installed; install it with: pip install 'semmem[http]'") from None
    return httpx


def _accepted(scheme: str) -> ssl.SSLContext:
    """Return which certificates are accepted: those of httpx and of the machine, SSL_CERT_FILE included.

    None are for plain HTTP, which has no use for them: reading them takes longer than a recall. Raises InvalidInput
    where SSL_CERT_FILE names no file of certificates.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if scheme == "https":
        context = _httpx().create_ssl_context(trust_env=False)
        context.load_default_certs()
        if file := certificate_file():
            try:
                context.load_verify_locations(file)
            except OSError:
                raise InvalidInput(f"SSL_CERT_FILE names {file!r}, in which no certificate can be read.") from None
    return context


def _without_tls(url: str, told: str) -> str:
    """Return the sentence for a connection that OpenSSL refuses; ``told`` are its own words, which httpx passes on."""
    reason = told.partition("] ")[2].partition(" (_ssl")[0].rstrip(".")
    kind, _, cause = reason.partition("certificate verify failed: ")
    if any(sign in told for sign in _NO_TLS):
        return f"What answers at {url} speaks no TLS; `semmem serve` does not by itself, so write http:// in the URL."
    if "CERTIFICATE_VERIFY_FAILED" not in told:
        return f"No TLS connection with {url} comes about ({reason}); look at the server, or the proxy before it."
    advice = "it has to be put right there"
    if cause.startswith(("self-signed", "self signed", "unable to get")):
        advice = "if it is yours, let SSL_CERT_FILE name the file of the authority that signed it"
    return f"The certificate of {url} is not accepted ({cause or kind}); {advice}."


def _trace(request: Any) -> None:
    """Let the server know the trace of a request, where there is one."""
    request.headers.update(sent_along())


def _checked(key: str) -> str:
    if not (isinstance(key, str) and key.isascii() and key.isprintable()):
        raise InvalidInput("The key is not one that `semmem keys add` has shown.")
    return key.strip()


def unreachable(url: str, error: Exception) -> StoreUnavailable:
    """Return the error for a server that does not answer."""
    if "Timeout" in type(error).__name__:
        return StoreUnavailable(f"The server at {url} did not answer in time; ask again, or for less.")
    if "[SSL" in str(error):
        return StoreUnavailable(_without_tls(url, str(error)))
    return StoreUnavailable(f"No server answers at {url}; start it with `semmem serve`, or correct the URL.")


def _json(content: bytes) -> Any:
    try:
        return json.loads(content)
    except ValueError:
        return None


def _seconds(header: str) -> float:
    """Return the seconds of a header Retry-After; 1 for a date, which only a stranger sends."""
    try:
        return float(header)
    except ValueError:
        return 1.0


def _answer(status: int, content: bytes) -> Any:
    """Return the JSON of an answer. Raises the error that it tells of."""
    if status == 204:
        return None
    value = _json(content)
    if status >= 400 or value is None:
        raise values.error_of(value, status)
    return value


# ---------------------------------------------------------------------- every verb of the table

_READERS: Mapping[str, Callable[[Any], Any]] = {
    "remember": values.memory,
    "list": values.page,
    "get": values.memory,
    "history": values.versions,
    "forgotten": values.versions,
    "restore_memory": values.memory,
    "update": values.memory,
    "forget": lambda value: value["matched"],
    "namespaces": values.namespaces,
    "rename_namespace": lambda value: value["memories"],
    "copy_namespace": lambda value: value["memories"],
    "drop_namespace": lambda value: value["memories"],
    "namespace_limits": values.limits,
    "changes": values.changes,
    "stats": values.stats,
    "hashes": values.hashes,
    "link": values.link,
    "unlink": lambda value: value["unlinked"],
    "links": values.links,
    "contradictions": values.links,
    "near_duplicates": values.links,
    "probe": values.probe,
    "graph": values.network,
    "graph_hash": lambda value: value["graph_hash"],
    "concepts": values.concepts,
    "remember_many": values.report,
    "remember_messages": values.report,
    "bring_in": values.brought_in,
    "context": values.context,
    "feedback": lambda value: value["judged"],
    "judgements": values.judgements,
    "recalls": values.recalls,
    "logged_recall": values.logged_recall,
    "replay_recall": values.replay,
}
"""How the answer of a verb is read; any other is what the JSON is."""


def _verb(name: str, route: Route) -> Callable[..., Any]:
    """Return the method of HttpSemmem for a verb: the arguments of the facade's, sent, and the answer read."""
    local: Callable[..., Any] = getattr(Semmem, name)
    signature = inspect.signature(local)
    reader = _READERS.get(name, lambda value: value)
    loose = next((p.name for p in signature.parameters.values() if p.kind is p.VAR_KEYWORD), None)

    @wraps(local)
    def method(self: HttpSemmem, *args: Any, **named: Any) -> Any:
        arguments = dict(signature.bind(self, *args, **named).arguments)
        arguments.pop("self")
        arguments |= arguments.pop(loose, {}) if loose else {}
        if route.lines:
            if "namespace" in arguments and arguments["namespace"] is None:
                arguments = {**arguments, "namespace": None, "everything": True}
            return self.rows(arguments)
        if route.form == "lines":
            items, progress = arguments.pop("items"), arguments.pop("progress", None)
            if isinstance(items, Mapping | str | bytes) or not isinstance(items, Iterable):
                raise InvalidInput(f"{name} takes a list or a stream of items, not one {type(items).__name__}.")
            sent = {key: values.sent(key, one) for key, one in arguments.items()}
            batch_progress = None if progress is None else _with_counts(reader, progress)
            return reader(self.stream(route.name, items, sent, batch_progress))
        if name == "recall":
            question = {key: values.sent(key, one) for key, one in arguments.items()}
            return Answer.of(self.ask(route.name, question), self.ask, question)
        return reader(self.ask(route.name, arguments))

    return method


def _with_counts(reader: Callable[[Any], Any], progress: Callable[[Any], None]) -> Callable[[Any], None]:
    """Return ``progress`` for the counts of a batch, which come without the lists of a report."""
    return lambda counts: progress(reader({"rejected": [], **({"gone": []} if "pruned" in counts else {}), **counts}))


def _refused(name: str) -> Callable[..., Any]:
    """Return the method of HttpSemmem for a verb that no server offers."""
    local: Callable[..., Any] = getattr(Semmem, name)

    @wraps(local)
    def method(self: HttpSemmem, *_: Any, **__: Any) -> Any:
        raise LocalOnly(refusal(name))

    return method


for _name, _route in _BY_VERB.items():
    if _name in vars(HttpSemmem):
        vars(HttpSemmem)[_name].__doc__ = getattr(Semmem, _name).__doc__
    else:
        setattr(
            HttpSemmem,
            _name,
            observed(_verb(_name, _route)) if hasattr(getattr(Semmem, _name), "__wrapped__") else _verb(_name, _route),
        )
for _name in REFUSED:
    if hasattr(Semmem, _name):
        setattr(HttpSemmem, _name, _refused(_name))
