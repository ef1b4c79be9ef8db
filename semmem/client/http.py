"""A Semmem that is somewhere else: the verbs of the facade, asked of ``semmem serve`` over HTTP.

Each verb is a row of the table of routes; its arguments are those of the facade's method, its answer has the same type,
and its errors have the same classes. What works on the store itself raises LocalOnly.
"""

from __future__ import annotations

import inspect
import json
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import wraps
from typing import Any, Concatenate, Never, ParamSpec, TypeVar

from semmem.client import values
from semmem.client.http_recall import Answer, HttpSearch
from semmem.client.http_request import NAMESPACE_IN_URL, Request, lines, request_of
from semmem.client.http_transport import Transport
from semmem.client.memory import Semmem
from semmem.client.routes import ROUTES, Route, refusal
from semmem.config import Settings
from semmem.model.errors import InvalidInput, LimitExceeded, LocalOnly, StoreError, StoreUnavailable
from semmem.model.filters import several_namespaces, string, strings
from semmem.model.recipe import Recipe
from semmem.model.reports import Finding, Limits
from semmem.read.tracing import observed
from semmem.write.screening import warn

__all__ = ["HttpSemmem", "open_server"]

_LINES = "application/x-ndjson"
_BY_VERB: Mapping[str, Route] = {verb: route for route in ROUTES for verb in route.verbs}
_BY_NAME: Mapping[str, Route] = {route.name: route for route in ROUTES}

P = ParamSpec("P")
T = TypeVar("T")
Verb = Callable[Concatenate[Semmem, P], T]
Arguments = dict[str, Any]


def open_server(url: str, settings: Settings, chosen: Mapping[str, Any]) -> HttpSemmem:
    """Return a client of the server at ``url``, with the key of the settings.

    Raises InvalidInput for what is ``chosen`` where the server runs: its recipe, embedder, extractor and legs.
    """
    for name, value in chosen.items():
        if value is not None and (name, value) != ("embedder", "none"):  # nothing is embedded here
            raise InvalidInput(f"{name} is a choice of the server; leave it out, or open the store itself.")
    key = None if settings.key is None else settings.key.get_secret_value()
    return HttpSemmem(url, key=key, settings=settings)


def _verb(verb: Verb[P, T], send: Callable[[HttpSemmem, Arguments], T]) -> Callable[Concatenate[HttpSemmem, P], T]:
    """Return the method for a verb of the facade: with its name, arguments and words, answered by ``send``."""
    signature = inspect.signature(verb)
    loose = next((p.name for p in signature.parameters.values() if p.kind is p.VAR_KEYWORD), None)
    route, namespace = _BY_VERB.get(verb.__name__), signature.parameters.get("namespace")
    in_url = route is not None and (route.form == "query" or route.name in NAMESPACE_IN_URL)

    @wraps(verb)
    def method(self: HttpSemmem, /, *args: P.args, **named: P.kwargs) -> T:
        arguments = dict(signature.bind(self, *args, **named).arguments)
        arguments.pop("self")
        if in_url and namespace is not None and "namespace" in arguments:
            arguments["namespace"] = _namespace(str(namespace.annotation), arguments["namespace"])
        arguments |= arguments.pop(loose, {}) if loose else {}
        return send(self, arguments)

    return observed(method) if hasattr(verb, "__wrapped__") else method


def _namespace(takes: str, value: Any) -> str | Sequence[str] | None:
    """Return ``value`` if a verb whose namespace ``takes`` such a type has an answer for it. Raises InvalidInput.

    A URL would leave out what is None or empty, and the answer would be of the default namespace.
    """
    if value is None and "None" in takes:
        return None
    if isinstance(value, str) or "Sequence" not in takes:
        return string("namespace", value)
    return several_namespaces(value)


def _asked(verb: Verb[P, T], read: Callable[[Any], T] | None = None) -> Callable[Concatenate[HttpSemmem, P], T]:
    """Return a verb that is one request; ``read`` makes its value of the JSON, which else is the value."""
    route = _BY_VERB[verb.__name__]

    def send(self: HttpSemmem, arguments: Arguments) -> T:
        answer = self.ask(route.name, arguments)
        value: T = answer if route.under is None else answer[route.under]
        return value if read is None else read(value)

    return _verb(verb, send)


def _streamed(verb: Verb[P, T], read: Callable[[Any], T]) -> Callable[Concatenate[HttpSemmem, P], T]:
    """Return a verb that sends its items one a line; ``progress`` gets the counts of each batch, after the last."""
    route = _BY_VERB[verb.__name__]

    def send(self: HttpSemmem, arguments: Arguments) -> T:
        items, progress = arguments.pop("items"), arguments.pop("progress", None)
        if isinstance(items, Mapping | str | bytes) or not isinstance(items, Iterable):
            raise InvalidInput(f"{verb.__name__} takes a list or a stream of items, not one {type(items).__name__}.")
        if arguments.get("keep") is not None:  # which may still grow while the items are read, and is sent before them
            items = list(items)
        sent = {key: values.sent(key, one) for key, one in arguments.items()}
        headers = {"content-type": _LINES, "accept": _LINES if progress else "application/json"}
        content = lines(sent, items, rows=verb.__name__ == "import_items")
        request = Request(route.method, route.path, headers=headers, content=content)
        with self._transport.handle(request) as response:
            if response.status_code != 200 or progress is None:
                return read(_answer(response.status_code, response.read()))
            for message in _messages(response):
                if warning := message.get("warnings"):
                    warn(" ".join(warning))
                if "report" in message:
                    return read(message["report"])
                counts = message["progress"]  # without the lists of a report
                progress(read({"rejected": [], **({"gone": []} if "pruned" in counts else {}), **counts}))
        raise StoreError("The server ended its answer before the report; list the memories to see which are stored.")

    return _verb(verb, send)


def _refused(verb: Verb[P, T]) -> Callable[Concatenate[HttpSemmem, P], T]:
    """Return a verb that no server offers."""

    @wraps(verb)
    def method(self: HttpSemmem, /, *_: P.args, **__: P.kwargs) -> T:
        raise LocalOnly(refusal(verb.__name__))

    return method


def _recalled(self: HttpSemmem, arguments: Arguments) -> Answer:
    question = {key: values.sent(key, one) for key, one in arguments.items()}
    return Answer.of(self.ask("recall", question), self.ask, question)


def _exported(self: HttpSemmem, arguments: Arguments) -> Iterator[dict[str, Any]]:
    """Yield the rows of ``export`` as they come."""
    if arguments.get("namespace", "") is None:
        arguments["everything"] = True
    with self._transport.handle(request_of(_BY_NAME["export"], arguments)) as response:
        if response.status_code != 200:
            _answer(response.status_code, response.read())
        yield from _messages(response)


def _searched_by(self: HttpSemmem, arguments: Arguments) -> tuple[Recipe, Mapping[str, Any], str | None]:
    answer = self.ask("settings", arguments)
    return values.recipe_of(answer["recipe"]), answer["used"], answer["unused"]


def _leg(self: HttpSemmem, arguments: Arguments) -> HttpSearch:
    name = arguments.get("name")
    chosen = "recall" if name is None else string("name", name)
    if not chosen:
        raise InvalidInput("There is no leg named ''; give the name of one, or leave it out for the whole recall.")
    return HttpSearch(self.ask, chosen, list(strings("namespace", arguments.get("namespace", "default"))))


def _limits(self: HttpSemmem, arguments: Arguments) -> Limits:
    """Return the limits of a namespace; to ask for them alone, a key need not have the right to change them."""
    given = {name: value for name, value in arguments.items() if value is not None or name == "name"}
    changes = given.keys() - {"name"}
    return Limits(**self.ask("set_namespace_limits" if changes else "namespace_limits", given))


class HttpSemmem(Semmem):
    """A memory behind a server, which is asked for each verb. Safe to share between threads."""

    def __init__(self, url: str, *, key: str | None = None, settings: Settings | None = None) -> None:
        self._transport = Transport(url, key)
        self.url = self._transport.url
        self._settings = Settings.load() if settings is None else settings

    remember = _asked(Semmem.remember, values.memory)
    remember_many = _streamed(Semmem.remember_many, values.report)
    remember_messages = _asked(Semmem.remember_messages, values.report)
    update = _asked(Semmem.update, values.memory)
    recall = _verb(Semmem.recall, _recalled)
    get = _asked(Semmem.get, values.memory)
    list = _asked(Semmem.list, values.page)
    forget = _asked(Semmem.forget, lambda value: value["matched"])
    context = _asked(Semmem.context, values.context)
    feedback = _asked(Semmem.feedback)
    judgments = _asked(Semmem.judgments, values.judgments)
    audit = _asked(Semmem.audit, values.audit)
    recalls = _asked(Semmem.recalls, values.recalls)
    logged_recall = _asked(Semmem.logged_recall, values.logged_recall)
    replay_recall = _asked(Semmem.replay_recall, values.replay)
    history = _asked(Semmem.history, values.versions)
    forgotten = _asked(Semmem.forgotten, values.versions)
    restore_memory = _asked(Semmem.restore_memory, values.memory)
    link = _asked(Semmem.link, values.link)
    unlink = _asked(Semmem.unlink)
    links = _asked(Semmem.links, values.links)
    contradictions = _asked(Semmem.contradictions, values.links)
    near_duplicates = _asked(Semmem.near_duplicates, values.links)
    stats = _asked(Semmem.stats, values.stats)
    doctor = _asked(Semmem.doctor, lambda value: [Finding(**one) for one in value])
    namespaces = _asked(Semmem.namespaces, values.namespaces)
    changes = _asked(Semmem.changes, values.changes)
    rename_namespace = _asked(Semmem.rename_namespace)
    copy_namespace = _asked(Semmem.copy_namespace)
    drop_namespace = _asked(Semmem.drop_namespace)
    namespace_limits = _verb(Semmem.namespace_limits, _limits)
    graph = _asked(Semmem.graph, values.network)
    concepts = _asked(Semmem.concepts, values.concepts)
    merge_concepts = _asked(Semmem.merge_concepts)
    split_concept = _asked(Semmem.split_concept)
    graph_hash = _asked(Semmem.graph_hash)
    probe = _asked(Semmem.probe, values.probe)
    export = _verb(Semmem.export, _exported)
    import_items = _streamed(Semmem.import_items, values.import_report)
    maintain = _asked(Semmem.maintain)
    hashes = _asked(Semmem.hashes, values.hashes)
    configure = _asked(Semmem.configure)
    unset_settings = _asked(Semmem.unset_settings)
    settings_of = _verb(Semmem.settings_of, lambda self, given: self.ask("settings", given)["settings"])
    searched_by = _verb(Semmem.searched_by, _searched_by)
    leg = _verb(Semmem.leg, _leg)
    backup = _refused(Semmem.backup)
    rebuild = _refused(Semmem.rebuild)
    register_leg = _refused(Semmem.register_leg)
    restore = _refused(Semmem.restore)

    # ------------------------------------------------------------------ what is not a verb

    @property
    def settings(self) -> Settings:
        """The settings of this process, not of the server."""
        return self._settings

    @property
    def recipe(self) -> Recipe:
        """The recipe that the server searches by, where a namespace has no settings of its own."""
        return values.recipe_of(self.ask("recipe", {}))

    @property
    def _here(self) -> Never:
        """No store is here. Raises LocalOnly."""
        raise LocalOnly("The store is behind a server; open it with its own URL to work on it.")

    @property
    def resident(self) -> Never:
        """Nothing is in memory here. Raises LocalOnly."""
        raise LocalOnly("The namespaces in memory are those of the server; its /metrics show their size.")

    def _short_ids(self, ids: Collection[str], *, namespace: str) -> Mapping[str, str]:
        return {id: id for id in ids}  # one more request would cost more than the rest of the ids

    def close(self) -> None:
        """Give the connections back."""
        self._transport.close()

    def ask(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """Ask the route ``name`` and return its JSON. Raises what the facade raises, and StoreUnavailable."""
        request = request_of(_BY_NAME[name], arguments)
        until = time.monotonic() + 30.0
        tries = 0
        while True:
            try:
                with self._transport.handle(request) as response:
                    return _answer(response.status_code, response.read(), response.headers.get("retry-after", "1"))
            except LimitExceeded as error:
                wait = error.retry_after or 0.0
                if not 0 < wait <= max(0.0, until - time.monotonic()):
                    raise
                time.sleep(wait)
            except StoreUnavailable:
                tries += 1
                if tries > 1 or not request.repeatable or self._transport.is_closed:
                    raise


def _messages(response: Any) -> Iterator[Any]:
    """Yield the values of an answer of one JSON object a line. Raises the error that the last of them tells of."""
    for line in response.iter_lines():
        value = json.loads(line)
        if "problem" in value and "text" not in value:  # which a memory has
            raise values.error_of(value["problem"], value["problem"]["status"])
        yield value


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


def _answer(status: int, content: bytes, retry_after: str = "") -> Any:
    """Return the JSON of an answer. Raises the error that it tells of."""
    if status == 204:
        return None
    value = _json(content)
    if status == 429 and retry_after:
        refused = values.error_of(value, status)
        refused.retry_after = _seconds(retry_after)
        raise refused
    if status >= 400 or value is None:
        raise values.error_of(value, status)
    return value
