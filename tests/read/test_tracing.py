"""Spans, metrics and logs of verbs, legs and steps: what they tell, what they never tell, nothing where off."""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

import semmem
from semmem.model.process import clock
from semmem.read import tracing
from tests.interfaces.mcp.clients import ask, in_memory
from tests.serving import serving
from tests.test_architecture import modules_after

SECRET = "the heron's key hangs behind the radio"


class Watched:
    """What a program sees of semmem whose providers are these."""

    def __init__(self) -> None:
        self._spans, self._reader = InMemorySpanExporter(), InMemoryMetricReader()
        tracers = TracerProvider()
        tracers.add_span_processor(SimpleSpanProcessor(self._spans))
        self.providers = (tracers, MeterProvider([self._reader]))

    def spans(self) -> list[ReadableSpan]:
        """Return the spans since the last time, in the order in which they began."""
        found = sorted(self._spans.get_finished_spans(), key=lambda span: span.start_time or 0)
        self._spans.clear()
        return found

    def verbs(self) -> list[ReadableSpan]:
        """Return the spans of verbs since the last time."""
        return [span for span in self.spans() if "gen_ai.operation.name" in told(span)]

    def metrics(self) -> dict[str, list[dict[str, Any]]]:
        data: Any = self._reader.get_metrics_data()
        found = data.resource_metrics[0].scope_metrics[0].metrics
        return {one.name: [dict(point.attributes) for point in one.data.data_points] for one in found}


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Iterator[Watched]:
    seen = Watched()
    monkeypatch.setattr(trace, "get_tracer", seen.providers[0].get_tracer)
    monkeypatch.setattr(metrics, "get_meter", seen.providers[1].get_meter)
    yield seen
    tracing.switch_off()
    for provider in seen.providers:
        provider.shutdown()


def told(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def test_a_recall_is_one_span_with_one_span_a_leg(watched: Watched, store_url: str) -> None:
    with semmem.connect(store_url, embedder="hashing", otel=True) as mem:
        mem.remember(SECRET, id="key", title="Heron House", namespace="house")
        first = watched.spans()
        mem.recall("where is the heron's key?", namespace=["house"])
    span, *steps = first
    assert [step.name for step in steps] == ["extract", "embed", "store", "older"]
    assert {step.parent and step.parent.span_id for step in steps} == {span.context.span_id}
    assert [told(step) for step in steps] == [{"semmem.step": step.name} for step in steps]
    assert (span.name, span.kind) == ("create_memory", SpanKind.INTERNAL)
    assert told(span) == {
        "gen_ai.operation.name": "create_memory", "gen_ai.provider.name": "semmem", "gen_ai.memory.store.id": "house",
        "gen_ai.memory.record.id": "key", "gen_ai.memory.record.count": 1, "semmem.version": 1,
    }  # fmt: skip
    recall, *inner = watched.spans()
    legs = [one for one in inner if one.name.startswith("leg ")]
    assert [one.name for one in inner if one not in legs] == ["embed"]  # of the question
    assert {one.parent and one.parent.span_id for one in inner} == {recall.context.span_id}
    assert recall.name == "search_memory"
    assert told(recall)["gen_ai.memory.record.count"] == 1
    assert (told(recall)["semmem.recipe"], told(recall)["semmem.degraded"]) == ("default", ())
    assert sorted(leg.name for leg in legs) == ["leg dense", "leg graph", "leg lexical"]
    assert {told(leg)["semmem.leg"]: told(leg)["semmem.found"] for leg in legs}["lexical"] == 1


def test_an_error_is_told_by_its_class_and_degraded_legs_by_name(watched: Watched) -> None:
    with semmem.connect("sqlite::memory:", embedder="none", otel=True) as mem:
        mem.remember(SECRET, id="key")
        mem.recall("heron")
        with pytest.raises(semmem.Conflict):
            mem.update("key", text="x", expected_version=7)
        with pytest.raises(TypeError):
            mem.recall()  # type: ignore[call-arg]
        assert mem.forget(everything=True) == 1
    spans = watched.spans()
    assert [span.name for span in spans if not span.name.startswith("leg") and "semmem.step" not in told(span)] == [
        "create_memory", "search_memory", "update_memory", "search_memory", "delete_memory_store",
    ]  # fmt: skip
    failed = next(span for span in spans if span.name == "update_memory")
    assert (failed.status.status_code, failed.status.description) == (StatusCode.ERROR, "Conflict")
    assert (told(failed)["error.type"], failed.events) == ("Conflict", ())
    assert not any("heron" in json.dumps([span.name, told(span)], default=str) for span in spans)
    found = watched.metrics()
    times = found["gen_ai.client.operation.duration"]
    assert {"update_memory": "Conflict"} in [{one["gen_ai.operation.name"]: one.get("error.type")} for one in times]
    assert sorted(point["semmem.leg"] for point in found["semmem.degraded"]) == ["dense"]
    assert {"semmem.leg": "lexical"} in found["semmem.leg.duration"]
    assert {"semmem.step": "store"} in found["semmem.step.duration"]


def test_a_verb_that_calls_another_is_one_span_and_one_of_a_server_is_its_clients_too(watched: Watched) -> None:
    with (
        semmem.connect("sqlite::memory:", embedder="none", otel=True) as mem,
        serving(mem) as url,
        semmem.connect(url) as far,
    ):
        mem.remember_messages([{"role": "user", "content": SECRET}], session="s")
        (span,) = watched.verbs()
        assert (span.name, told(span)["gen_ai.conversation.id"]) == ("upsert_memory", "s")
        far.remember("The ferry leaves at noon.", id="ferry")
    here, there = watched.verbs()
    assert [(one.name, one.kind) for one in (here, there)] == [
        ("create_memory", SpanKind.CLIENT), ("create_memory", SpanKind.INTERNAL),
    ]  # fmt: skip


EACH = {
    "get": (lambda mem: mem.get("key"), "get_memory", {"gen_ai.memory.record.id": "key", "semmem.version": 1}),
    "list": (lambda mem: mem.list(limit=5), "list_memories", {"gen_ai.memory.record.count": 2, "semmem.limit": 5}),
    "link": (
        lambda mem: mem.link("key", "see-also", "ferry"),
        "link_memories",
        {"gen_ai.memory.record.id": "key", "semmem.to": "ferry", "semmem.type": "see-also"},
    ),
    "links": (lambda mem: mem.links("key"), "list_memory_links", {"gen_ai.memory.record.count": 0}),
    "unlink": (
        lambda mem: mem.unlink("key", "see-also", "ferry"), "unlink_memories", {"gen_ai.memory.record.count": 0},
    ),
    "history": (lambda mem: mem.history("key"), "get_memory_history", {"gen_ai.memory.record.count": 1}),
    "context": (
        lambda mem: mem.context("heron", token_budget=900),
        "compose_memory_context",
        {"gen_ai.memory.record.count": 1, "semmem.token_budget": 900, "semmem.degraded": ("dense",)},
    ),
    "feedback": (
        lambda mem: mem.feedback(mem.recall("heron").id, useful=["key"]),
        "judge_memories",
        {"gen_ai.memory.record.count": 1},
    ),
    "forget": (lambda mem: mem.forget("key"), "delete_memory", {"gen_ai.memory.record.count": 1}),
    "changes": (lambda mem: mem.changes(), "changes", {"gen_ai.memory.record.count": 2}),
    "rename_namespace": (
        lambda mem: mem.rename_namespace("default", "house"),
        "rename_namespace",
        {"gen_ai.memory.store.id": "default", "gen_ai.memory.record.count": 2},
    ),
    "drop_namespace": (
        lambda mem: mem.drop_namespace("default"), "delete_memory_store", {"gen_ai.memory.store.id": "default"},
    ),
    "stats": (lambda mem: mem.stats(), "stats", {}),
}  # fmt: skip


@pytest.mark.parametrize("verb", EACH)
def test_each_verb_is_a_span_with_ids_and_counts(watched: Watched, verb: str) -> None:
    call, operation, facts = EACH[verb]
    with semmem.connect("sqlite::memory:", embedder="none", otel=True, recall_log=True) as mem:
        mem.remember(SECRET, id="key")
        mem.remember("The ferry leaves at noon.", id="ferry")
        watched.spans()
        call(mem)
    span = watched.verbs()[-1]
    assert (span.name, told(span)["gen_ai.operation.name"]) == (operation, operation)
    assert facts.items() <= told(span).items()
    assert "heron" not in json.dumps(told(span), default=str)


def test_every_verb_is_watched_but_for_those_that_are_named() -> None:
    not_watched = {
        "close": "does nothing to memories",
        "leg": "gives something to ask, and register_leg something to be asked",
        "register_leg": "",
        "searched_by": "what recalls are asked by, read again and again by servers, as settings_of is",
        "settings_of": "",
    }
    verbs = {name: verb for name, verb in inspect.getmembers(semmem.Semmem, inspect.isfunction) if name[0] != "_"}
    assert {name for name, verb in verbs.items() if not hasattr(verb, "__wrapped__")} == set(not_watched)


TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


def test_a_request_belongs_to_the_trace_that_its_headers_name(watched: Watched) -> None:
    asked = {"traceparent": f"00-{TRACE}-{PARENT}-01"}
    with (
        semmem.connect("sqlite::memory:", embedder="none", otel=True) as mem,
        serving(mem) as url,
        httpx.Client(base_url=url, timeout=60) as client,
    ):
        assert client.post("/v1/memories", json={"text": SECRET}, headers=asked).status_code == 201
        rows = {"content-type": "application/x-ndjson", "accept": "application/x-ndjson", **asked}
        assert client.post("/v1/memories", content='{"text": "x"}\n', headers=rows).status_code == 200
        one, stream = watched.verbs()
        for headers in ({}, {"traceparent": "00-nonsense"}, {"traceparent": f"00-{'0' * 32}-{PARENT}-01"}):
            assert client.post("/v1/memories", json={"text": SECRET}, headers=headers).status_code == 201
        others = watched.verbs()
    for span in (one, stream):
        assert f"{span.context.trace_id:032x}" == TRACE
        assert span.parent is not None
        assert (f"{span.parent.span_id:016x}", span.parent.is_remote) == (PARENT, True)
    assert [span.parent for span in others] == [None, None, None]


def test_no_question_in_a_url_is_told_by_what_serves_it(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: watched.providers[0])
    with semmem.connect("sqlite::memory:", embedder="none", otel=True) as mem, serving(mem) as url:
        assert httpx.get(f"{url}/v1/recall?query=heron", timeout=60).status_code == 200
    spans = watched.spans()
    assert "search_memory" in [span.name for span in spans]
    assert "heron" not in json.dumps([[span.name, told(span)] for span in spans], default=str)


def test_what_a_client_does_and_what_its_server_does_are_one_trace(watched: Watched) -> None:
    with (
        semmem.connect("sqlite::memory:", embedder="none", otel=True) as mem,
        serving(mem) as url,
        semmem.connect(url) as far,
    ):
        far.remember(SECRET, id="key")
        far.remember_many([{"text": "x"}, {"text": "y"}])
        far.recall("heron")
        spans = watched.verbs()
    assert [span.kind for span in spans] == [SpanKind.CLIENT, SpanKind.INTERNAL] * 3
    for here, there in zip(spans[::2], spans[1::2], strict=True):
        assert there.context.trace_id == here.context.trace_id
        assert there.parent is not None
        assert there.parent.span_id == here.context.span_id


def test_a_call_of_a_tool_belongs_to_the_trace_of_the_agent(
    watched: Watched, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SEMMEM_OTEL", "1")

    async def day() -> None:
        async with in_memory(f"sqlite:{tmp_path}/notes.db") as client:
            with trace.get_tracer("agent").start_as_current_span("agent"):
                await ask(client, "memory_remember", text=SECRET)

    asyncio.run(day())
    spans = {span.name: span for span in watched.spans()}
    verb, agent = spans["create_memory"], spans["agent"]
    assert verb.context.trace_id == agent.context.trace_id


def test_a_span_that_is_at_work_already_stays_the_parent(watched: Watched) -> None:
    with (
        semmem.connect("sqlite::memory:", embedder="none", otel=True) as mem,
        trace.get_tracer("program").start_as_current_span("own"),
        tracing.continued({"traceparent": f"00-{TRACE}-{PARENT}-01"}),
    ):
        mem.remember(SECRET)
    own, verb = [span for span in watched.spans() if "semmem.step" not in told(span)]
    assert verb.parent is not None
    assert verb.parent.span_id == own.context.span_id


def test_a_step_that_fails_says_so_and_its_verb_too(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    with semmem.connect("sqlite::memory:", embedder="none", otel=True) as mem:
        monkeypatch.setattr(type(mem.store), "write", _broken)
        with pytest.raises(semmem.StoreError):
            mem.remember(SECRET)
    failed = [(span.name, span.status.description) for span in watched.spans() if not span.status.is_ok]
    assert failed == [("create_memory", "StoreError"), ("store", "StoreError")]


def _broken(*_: Any, **__: Any) -> None:
    raise semmem.StoreError("The disk is full.")


def test_a_log_of_json_has_a_line_a_verb_and_no_text(capsys: pytest.CaptureFixture[str]) -> None:
    try:
        with semmem.connect("sqlite::memory:", embedder="none", log="json") as mem:
            mem.remember(SECRET, id="key")
            mem.remember_many([{"text": f"{SECRET} again"}, {"text": ""}], on_error="skip")
            mem.recall("heron")
            with pytest.raises(semmem.Conflict):
                mem.remember(f"Not {SECRET}", id="key")
            try:
                raise ValueError(SECRET)
            except ValueError:
                logging.getLogger("semmem.http").exception("A request failed.")
    finally:
        tracing.switch_off()
    lines = capsys.readouterr().err
    assert "heron" not in lines
    rows = [json.loads(line) for line in lines.splitlines()]
    assert [row.get("verb") for row in rows] == ["remember", "remember_many", "recall", "remember", None]
    assert list(rows[0]["steps"]) == ["extract", "store"]
    assert (rows[1]["remembered"], rows[1]["rejected"], rows[1]["level"]) == (1, 1, "info")
    assert (rows[2]["count"], rows[2]["degraded"], rows[2]["legs"]["lexical"]["found"]) == (2, ["dense"], 2)
    assert (rows[3]["error"], rows[3]["level"], rows[3]["id"]) == ("Conflict", "warning", "key")
    assert (rows[4]["message"], rows[4]["error"]) == ("A request failed.", "ValueError")
    assert "test_tracing.py" in rows[4]["where"][0]


def test_a_log_of_json_has_its_messages_whole_and_of_an_error_only_its_class(
    capsys: pytest.CaptureFixture[str],
) -> None:
    try:
        with semmem.connect("sqlite::memory:", embedder="none", log="json"):
            log = logging.getLogger("semmem.here")
            log.info("Loading the model %s …", "minilm")
            log.info("%s cannot be read again: %s", "key", ValueError(SECRET))
            log.info("100%")
            log.info("Two of %d")
    finally:
        tracing.switch_off()
    messages = [json.loads(line)["message"] for line in capsys.readouterr().err.splitlines()]
    assert messages == ["Loading the model minilm …", "key cannot be read again: ValueError", "100%", "Two of %d"]


def test_nothing_is_watched_and_nothing_imported_unless_it_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    with semmem.connect("sqlite::memory:", embedder="none") as mem:
        mem.remember(SECRET)
        assert clock.step("store") is clock.step("extract") is not tracing.continued({"traceparent": "x"})
        assert tracing.sent_along() == {}
    assert capsys.readouterr().err == ""
    program = """if True:  # what serves it is FastAPI's matter, which imports opentelemetry where it is installed
        import semmem, semmem.interfaces.cli.app
        for url in ("sqlite::memory:", {url!r}):
            with semmem.connect(url) as mem:
                mem.remember("x", id="x"); mem.recall("x"); mem.context("x"); mem.update("x", text="y"); mem.forget("x")
    """
    with semmem.connect("sqlite::memory:", embedder="none") as mem, serving(mem) as url:
        assert "opentelemetry" not in modules_after(program.format(url=url))


def test_what_cannot_be_watched_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(semmem.InvalidInput, match="The setting log "):
        semmem.connect("sqlite::memory:", embedder="none", log="xml")  # type: ignore[arg-type]
    monkeypatch.setattr(tracing, "find_spec", lambda name: None)
    with pytest.raises(semmem.MissingExtra, match=r"semmem\[otel\]"):
        semmem.connect("sqlite::memory:", embedder="none", otel=True)
