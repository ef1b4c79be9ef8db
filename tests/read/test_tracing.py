"""Spans, metrics and logs of verbs and legs: what they tell, what they never tell, and nothing where they are off."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

import semmem
from semmem.read import tracing
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
    (span,) = first
    assert (span.name, span.kind) == ("create_memory", SpanKind.INTERNAL)
    assert told(span) == {
        "gen_ai.operation.name": "create_memory", "gen_ai.provider.name": "semmem", "gen_ai.memory.store.id": "house",
        "gen_ai.memory.record.id": "key", "gen_ai.memory.record.count": 1, "semmem.version": 1,
    }  # fmt: skip
    recall, *legs = watched.spans()
    assert recall.name == "search_memory"
    assert told(recall)["gen_ai.memory.record.count"] == 1
    assert (told(recall)["semmem.recipe"], told(recall)["semmem.degraded"]) == ("default", ())
    assert sorted(leg.name for leg in legs) == ["leg dense", "leg graph", "leg lexical"]
    assert {leg.parent and leg.parent.span_id for leg in legs} == {recall.context.span_id}
    assert {told(leg)["semmem.leg"]: told(leg)["semmem.found"] for leg in legs}["lexical"] == 1


def test_an_error_is_told_by_its_class_and_degraded_legs_by_name(watched: Watched) -> None:
    with semmem.connect("sqlite::memory:", otel=True) as mem:
        mem.remember(SECRET, id="key")
        mem.recall("heron")
        with pytest.raises(semmem.Conflict):
            mem.update("key", text="x", expected_version=7)
        with pytest.raises(TypeError):
            mem.recall()  # type: ignore[call-arg]
        assert mem.forget(everything=True) == 1
    spans = watched.spans()
    assert [span.name for span in spans if not span.name.startswith("leg")] == [
        "create_memory", "search_memory", "update_memory", "search_memory", "delete_memory_store",
    ]  # fmt: skip
    failed = next(span for span in spans if span.name == "update_memory")
    assert (failed.status.status_code, failed.status.description) == (StatusCode.ERROR, "Conflict")
    assert (told(failed)["error.type"], failed.events) == ("Conflict", ())
    assert not any("heron" in json.dumps([span.name, told(span)], default=str) for span in spans)
    found = watched.metrics()
    times = found["gen_ai.client.operation.duration"]
    assert {"update_memory": "Conflict"} in [{one["gen_ai.operation.name"]: one.get("error.type")} for one in times]
    assert sorted(point["semmem.leg"] for point in found["semmem.degraded"]) == ["dense", "graph"]
    assert {"semmem.leg": "lexical"} in found["semmem.leg.duration"]


def test_a_verb_that_calls_another_is_one_span_and_one_of_a_server_is_its_clients_too(watched: Watched) -> None:
    with semmem.connect("sqlite::memory:", otel=True) as mem, serving(mem) as url, semmem.connect(url) as far:
        mem.remember_messages([{"role": "user", "content": SECRET}], session="s")
        (span,) = watched.spans()
        assert (span.name, told(span)["gen_ai.conversation.id"]) == ("upsert_memory", "s")
        far.remember("The ferry leaves at noon.", id="ferry")
    here, there = watched.spans()
    assert [(one.name, one.kind) for one in (here, there)] == [
        ("create_memory", SpanKind.CLIENT), ("create_memory", SpanKind.INTERNAL),
    ]  # fmt: skip


def test_a_log_of_json_has_a_line_a_verb_and_no_text(capsys: pytest.CaptureFixture[str]) -> None:
    try:
        with semmem.connect("sqlite::memory:", log="json") as mem:
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
    assert (rows[1]["remembered"], rows[1]["rejected"], rows[1]["level"]) == (1, 1, "info")
    assert (rows[2]["count"], rows[2]["degraded"], rows[2]["legs"]["lexical"]["found"]) == (2, ["dense", "graph"], 2)
    assert (rows[3]["error"], rows[3]["level"], rows[3]["id"]) == ("Conflict", "warning", "key")
    assert (rows[4]["message"], rows[4]["error"]) == ("A request failed.", "ValueError")
    assert "test_tracing.py" in rows[4]["where"][0]


def test_nothing_is_watched_and_nothing_imported_unless_it_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    with semmem.connect("sqlite::memory:") as mem:
        mem.remember(SECRET)
    assert capsys.readouterr().err == ""
    program = 'import semmem\nwith semmem.connect("sqlite::memory:") as mem:\n    mem.remember("x"); mem.recall("x")'
    assert "opentelemetry" not in modules_after(program)


def test_what_cannot_be_watched_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(semmem.InvalidInput, match="The setting log "):
        semmem.connect("sqlite::memory:", log="xml")  # type: ignore[arg-type]
    monkeypatch.setattr(tracing, "find_spec", lambda name: None)
    with pytest.raises(semmem.MissingExtra, match=r"semmem\[otel\]"):
        semmem.connect("sqlite::memory:", otel=True)
