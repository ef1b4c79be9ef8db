"""Report what verbs, legs and steps did, as OpenTelemetry spans and metrics and as JSON log lines.

Both are off by default. A verb then costs one extra comparison, and no OpenTelemetry module is imported. Span and
attribute names follow the semantic conventions for memory operations of generative AI
(https://github.com/open-telemetry/semantic-conventions-genai, ``gen_ai.memory.*``). Spans and log lines hold ids, names
and counts, but never a text, a question or the message of an error, because an error message may quote a text.
"""

from __future__ import annotations

import contextvars
import inspect
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import lru_cache, wraps
from importlib.util import find_spec
from typing import Any, ParamSpec, Protocol, TypeVar

from semmem.model.errors import MissingExtra
from semmem.model.exchange import Ranking
from semmem.model.process.clock import WATCHED
from semmem.read.json_log import JsonLog

__all__ = ["Call", "Watcher", "continued", "observed", "observed_search", "sent_along", "switch_off", "switch_on"]

P = ParamSpec("P")
T = TypeVar("T")

_OPERATIONS = {
    "remember": "create_memory", "remember_many": "upsert_memory", "remember_messages": "upsert_memory",
    "import_items": "upsert_memory", "update": "update_memory", "recall": "search_memory", "forget": "delete_memory",
    "drop_namespace": "delete_memory_store",
    "get": "get_memory", "list": "list_memories", "history": "get_memory_history", "context": "compose_memory_context",
    "link": "link_memories", "unlink": "unlink_memories", "links": "list_memory_links", "feedback": "judge_memories",
}  # fmt: skip
"""The operation name reported for a verb.

Names of the conventions are used where they exist; a verb that is not listed is reported under its own name.
"""

_REPORTED = (
    "namespace", "id", "to", "session", "limit", "offset", "token_budget", "everything", "hard", "dry_run", "on_error",
)  # fmt: skip
"""Arguments of a verb that are reported. None of them holds a text."""

_WHOLE = {"rename_namespace": "old", "copy_namespace": "old", "drop_namespace": "name", "namespace_limits": "name"}
"""For verbs about a whole namespace: the argument that names the namespace."""

_COUNTED = ("remembered", "unchanged", "replaced", "pruned", "more_rejected")


@dataclass(slots=True)
class Call:
    """One call of a verb, or of one leg or step inside the verb.

    ``facts`` are the reported arguments and results, ``remote`` says whether the verb runs on a server, and ``error``
    is the class name of the exception that ended the call, None where it succeeded.
    """

    name: str
    facts: dict[str, Any]
    remote: bool = False
    seconds: float = 0.0
    error: str | None = None
    legs: dict[str, Call] = field(default_factory=dict)
    steps: dict[str, float] = field(default_factory=dict)
    """Seconds by the name of a step; steps of the same name are added up."""
    namespaces: tuple[str, ...] = ()
    memory: Any = None
    """The Semmem whose verb is called; of a leg or a step None."""
    result: Any = None
    """What the verb returned. A span and a line of the log hold nothing of it but ``facts``."""


class Watcher(Protocol):
    """Is told of every verb, and of its legs and steps, around each of them."""

    def verb(self, call: Call) -> AbstractContextManager[None]: ...

    def leg(self, call: Call) -> AbstractContextManager[None]: ...

    def step(self, call: Call) -> AbstractContextManager[None]: ...


_NOTHING: AbstractContextManager[None] = nullcontext()
_watchers: dict[str, Watcher] = {}
_current: contextvars.ContextVar[Call | None] = contextvars.ContextVar("semmem_call", default=None)


def switch_on(*, otel: bool = False, log: str = "none", audit: Callable[[], Watcher] | None = None) -> None:
    """Watch every verb of this process from now on. Raises MissingExtra if OpenTelemetry is not installed.

    ``otel`` sends spans and metrics to the providers that the program has set up. ``log="json"`` writes one line of
    JSON for each verb to standard error. ``audit`` makes what notes verbs in their store.
    """
    if audit is not None and "audit" not in _watchers:
        _watchers["audit"] = audit()
    if otel and "otel" not in _watchers:
        if find_spec("opentelemetry") is None:
            raise MissingExtra("opentelemetry-api is not installed; install it with: pip install 'semmem[otel]'")
        _watchers["otel"] = _OpenTelemetry()
    if log == "json" and "log" not in _watchers:
        _watchers["log"] = JsonLog()


def switch_off() -> None:
    """Stop watching verbs."""
    if isinstance(log := _watchers.get("log"), JsonLog):
        log.close()
    _watchers.clear()


def observed(verb: Callable[P, T]) -> Callable[P, T]:
    """Wrap a verb so that its calls are reported while watching is switched on."""

    @wraps(verb)
    def method(*args: P.args, **named: P.kwargs) -> T:
        if not _watchers or _current.get() is not None:  # a verb called by another verb is part of the outer call
            return verb(*args, **named)
        return _watched(verb, args, named)

    return method


def observed_search(name: str, search: Callable[[], Ranking]) -> Ranking:
    """Return the answer of the leg ``name``; its search is reported as part of the running verb."""
    return search() if not _watchers or _current.get() is None else _watched_leg(name, search)


def continued(headers: Mapping[str, str]) -> AbstractContextManager[None]:
    """Make the spans of a block part of the trace that a request names in its headers (``traceparent``).

    Nothing changes where a span is already active, as under ``opentelemetry-instrument``, or where spans are off.
    """
    watcher = _watchers.get("otel")
    return watcher.continued(headers) if isinstance(watcher, _OpenTelemetry) else _NOTHING


def sent_along() -> dict[str, str]:
    """Return the headers that tell a server which trace a request belongs to; empty where spans are off."""
    watcher = _watchers.get("otel")
    return watcher.sent_along() if isinstance(watcher, _OpenTelemetry) else {}


def _watched(verb: Callable[..., T], args: tuple[Any, ...], named: Mapping[str, Any]) -> T:
    memory = args[0] if args else None
    call = Call(verb.__name__, {}, remote=hasattr(memory, "url"), memory=memory)
    call.facts, call.namespaces = _reported_arguments(verb, args, named)
    token, steps = _current.set(call), WATCHED.set(_watched_step)
    started = time.perf_counter()
    try:
        with ExitStack() as stack:
            for watcher in tuple(_watchers.values()):
                stack.enter_context(watcher.verb(call))
            try:
                result = verb(*args, **named)
                call.facts |= _result_facts(result)
                call.result = result
                return result
            except BaseException as error:
                call.error = type(error).__name__
                raise
            finally:
                call.seconds = time.perf_counter() - started
    finally:
        WATCHED.reset(steps)
        _current.reset(token)


def _watched_leg(name: str, search: Callable[[], Ranking]) -> Ranking:
    call, whole = Call(name, {}), _current.get()
    if whole is not None:
        whole.legs[name] = call
    started = time.perf_counter()
    with ExitStack() as stack:
        for watcher in tuple(_watchers.values()):
            stack.enter_context(watcher.leg(call))
        try:
            ranking = search()
            call.facts["found"] = len(ranking.row_ids)
            return ranking
        except BaseException as error:
            call.error = type(error).__name__
            raise
        finally:
            call.seconds = time.perf_counter() - started


@contextmanager
def _watched_step(name: str) -> Iterator[None]:
    call, whole = Call(name, {}), _current.get()
    started = time.perf_counter()
    with ExitStack() as stack:
        for watcher in tuple(_watchers.values()):
            stack.enter_context(watcher.step(call))
        try:
            yield
        except BaseException as error:
            call.error = type(error).__name__
            raise
        finally:
            call.seconds = time.perf_counter() - started
            if whole is not None:
                whole.steps[name] = whole.steps.get(name, 0.0) + call.seconds


@lru_cache(maxsize=64)
def _signature(verb: Callable[..., Any]) -> inspect.Signature:
    return inspect.signature(verb)


def _reported_arguments(
    verb: Callable[..., Any], args: tuple[Any, ...], named: Mapping[str, Any]
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the arguments of a call that are reported (see ``_REPORTED``), by name, and its namespaces."""
    try:
        bound = _signature(verb).bind_partial(*args, **named)
    except TypeError:  # the arguments do not fit the signature: the verb itself raises
        return {}, ()
    bound.apply_defaults()
    values = {name: bound.arguments[name] for name in _REPORTED if bound.arguments.get(name) not in (None, False)}
    if (whole := _WHOLE.get(verb.__name__)) in bound.arguments:
        values["namespace"] = bound.arguments[whole]
    names = values.get("namespace", ())
    several = tuple(map(str, names)) if isinstance(names, list | tuple) else (names,) if isinstance(names, str) else ()
    if "namespace" in values:
        values["namespace"] = ",".join(several) or "?"
    return {name: value for name, value in values.items() if isinstance(value, str | int | float)}, several


def _result_facts(result: Any) -> dict[str, Any]:
    """Return the reported facts about a verb's result: counts, names and ids."""
    if isinstance(result, int):
        return {"count": int(result)}
    if hasattr(result, "hits") and hasattr(result, "pinned"):
        facts = {"count": len(result.hits) + len(result.pinned), "pinned": len(result.pinned), "tokens": result.tokens}
        return {**facts, "confidence": result.confidence, "degraded": sorted(result.degraded)}
    if hasattr(result, "confidence") and hasattr(result, "hits"):
        facts = {"count": len(result.hits), "confidence": result.confidence, "regime": result.regime}
        return {**facts, "recipe": result.recipe.name, "degraded": sorted(result.degraded)}
    if hasattr(result, "from_id"):
        return {"type": result.type, "count": 1}
    if hasattr(result, "cursor") and hasattr(result, "changes"):
        return {"count": len(result.changes)}
    if hasattr(result, "remembered"):
        counts = {name: value for name in _COUNTED if (value := getattr(result, name, 0))}
        rejected = len(result.rejected) + counts.pop("more_rejected", 0)
        written = result.remembered + getattr(result, "replaced", 0)
        return {**counts, "rejected": rejected, "degraded": sorted(result.degraded), "count": written}
    if hasattr(result, "version") and hasattr(result, "namespace"):
        return {"id": result.id, "version": result.version, "count": 1}
    if isinstance(result, Sequence) and not isinstance(result, str | bytes):
        return {"count": len(result)}
    return {}


class _OpenTelemetry:
    """Spans and metrics made with the OpenTelemetry API; the program decides where they are sent."""

    def __init__(self) -> None:
        from opentelemetry import context, metrics, propagate, trace

        self._context, self._propagate = context, propagate
        version = getattr(sys.modules["semmem"], "__version__", "")
        self._trace = trace
        self._tracer = trace.get_tracer("semmem", version)
        meter = metrics.get_meter("semmem", version)
        self._time = meter.create_histogram("gen_ai.client.operation.duration", "s", "Time of an operation on memory.")
        self._leg_time = meter.create_histogram("semmem.leg.duration", "s", "Time of one leg of a recall.")
        self._step_time = meter.create_histogram("semmem.step.duration", "s", "Time of one step of a verb.")
        self._degraded = meter.create_counter("semmem.degraded", "{leg}", "Legs that could not answer a recall.")

    @contextmanager
    def verb(self, call: Call) -> Iterator[None]:
        """Open a span for a verb and record its duration in seconds."""
        operation = _OPERATIONS.get(call.name, call.name)
        if call.name == "forget" and call.facts.get("everything"):
            operation = "delete_memory_store"
        shared = {"gen_ai.operation.name": operation, "gen_ai.provider.name": "semmem"}
        store = call.facts.get("namespace")
        first = shared if store is None else {**shared, "gen_ai.memory.store.id": store}
        kind = self._trace.SpanKind.CLIENT if call.remote else self._trace.SpanKind.INTERNAL
        try:
            with self._span(operation, call, first, kind):
                yield
        finally:
            failed = {} if call.error is None else {"error.type": call.error}
            self._time.record(call.seconds, {**shared, **failed})

    @contextmanager
    def leg(self, call: Call) -> Iterator[None]:
        """Open a span for a leg and record its duration in seconds."""
        try:
            with self._span(f"leg {call.name}", call, {"semmem.leg": call.name}, self._trace.SpanKind.INTERNAL):
                yield
        finally:
            self._leg_time.record(call.seconds, {"semmem.leg": call.name})

    @contextmanager
    def step(self, call: Call) -> Iterator[None]:
        """Open a span for a step and record its duration in seconds."""
        try:
            with self._span(call.name, call, {"semmem.step": call.name}, self._trace.SpanKind.INTERNAL):
                yield
        finally:
            self._step_time.record(call.seconds, {"semmem.step": call.name})

    @contextmanager
    def continued(self, headers: Mapping[str, str]) -> Iterator[None]:
        """Take the parent of a block's spans from request headers, unless a span is already active."""
        if self._trace.get_current_span().get_span_context().is_valid:
            yield
            return
        token = self._context.attach(self._propagate.extract(dict(headers)))
        try:
            yield
        finally:
            self._context.detach(token)

    def sent_along(self) -> dict[str, str]:
        """Return headers that name the active span."""
        headers: dict[str, str] = {}
        self._propagate.inject(headers)
        return headers

    @contextmanager
    def _span(self, name: str, call: Call, first: dict[str, Any], kind: Any) -> Iterator[None]:
        """Open a span; of an error only the class name is recorded."""
        with self._tracer.start_as_current_span(
            name, kind=kind, attributes=first, record_exception=False, set_status_on_exception=False
        ) as span:
            try:
                yield
            finally:
                span.set_attributes(_attributes(call))
                for leg in call.facts.get("degraded", ()):
                    self._degraded.add(1, {"semmem.leg": leg})
                if call.error is not None:
                    span.set_attribute("error.type", call.error)
                    span.set_status(self._trace.StatusCode.ERROR, call.error)


_BY_CONVENTION = {
    "id": "gen_ai.memory.record.id",
    "count": "gen_ai.memory.record.count",
    "session": "gen_ai.conversation.id",
}


def _attributes(call: Call) -> dict[str, Any]:
    """Return the facts of a call as span attributes.

    Attribute names are those of the conventions where they exist, else ``semmem.`` and the name of the fact.
    """
    return {
        _BY_CONVENTION.get(name, f"semmem.{name}"): value for name, value in call.facts.items() if name != "namespace"
    }
