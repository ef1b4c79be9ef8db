"""Many items in one request, one JSON object a line, and the reports on them."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

import semmem
from semmem.client.memory import Semmem
from tests.interfaces.http.test_routes import problem
from tests.serving import serving

LINES = {"content-type": "application/x-ndjson"}


def post(http: httpx.Client, *lines: Any, headers: dict[str, str] | None = None, **params: Any) -> httpx.Response:
    body = "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines)
    path = params.pop("path", "/v1/memories")
    return http.post(path, content=body.encode(), headers=LINES | (headers or {}), params=params)


def test_a_stream_is_reported_with_every_line_that_was_refused(http: httpx.Client, mem: Semmem) -> None:
    lines = [{"text": "a", "id": "a"}, "no json", "[1]", "", {"text": " "}, {"text": "b", "namespace": "n"}]
    report = post(http, *lines, on_error="skip").json()
    assert (report["remembered"], report["unchanged"]) == (2, 0)
    assert [(one["position"], one["id"]) for one in report["rejected"]] == [(1, None), (2, None), (3, None)]
    assert [one.name for one in mem.namespaces()] == ["default", "n"]
    assert post(http, {"text": "a", "id": "a"}).json()["unchanged"] == 1


def test_a_report_names_the_first_rows_that_were_refused_and_counts_the_others(
    http: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("semmem.model.types.MOST_REJECTED", 3)
    for path in ("/v1/memories", "/v1/bring-in"):
        lines: list[Any] = [{"text": path}, *({"text": ""} for _ in range(8))]
        report = post(http, *lines, path=path, on_error="skip", batch_size=2).json()
        assert [one["position"] for one in report["rejected"]] == [1, 2, 3]
        assert (report["remembered"], report["more_rejected"]) == (1, 5)


def test_a_bad_line_ends_a_stream_and_keeps_the_batches_before_it(http: httpx.Client, mem: Semmem) -> None:
    refused = post(http, *({"text": f"Note {n}."} for n in range(5)), {"txt": "x"}, {"text": "y"}, batch_size=2)
    assert problem(refused) == (422, "BadItem")
    assert (refused.json()["position"], mem.stats().memories) == (5, 4)
    assert problem(post(http, {"text": "x"}, batch_size="many")) == (422, "InvalidInput")
    assert problem(post(http, {"text": "x"}, on_error="hope")) == (422, "InvalidInput")
    assert problem(post(http, {"text": "x"}, colour="red")) == (422, "InvalidInput")
    assert problem(post(http, {"text": "x", "id": "c"}, {"text": "y", "id": "c"}))[1] in ("BadItem", "Conflict")


def test_a_line_that_is_not_json_is_told_by_its_number_counted_from_one(http: httpx.Client, mem: Semmem) -> None:
    lines: list[Any] = [{"text": "a"}, "", '{"text": "b"', {"text": "c"}]
    said = "Line 3 is not JSON: Expecting ',' delimiter; correct it, and send a JSON object a line."
    for path in ("/v1/memories", "/v1/bring-in"):
        refused = post(http, *lines, path=path, on_error="abort").json()
        assert (refused["class"], refused["position"], refused["detail"]) == ("BadItem", 1, said)
        assert mem.stats().memories == 0
    report = post(http, *lines, "Infinity}", on_error="skip").json()
    assert [(one["position"], one["reason"][:18]) for one in report["rejected"]] == [
        (1, "Line 3 is not JSON"), (3, "Line 5 is not JSON"),
    ]  # fmt: skip
    assert report["remembered"] == 2
    refused = post(http, {"text": "d"}, {"text": " "}, "no json").json()
    assert refused["detail"] == "Item 1: The text is empty; a memory needs some text."
    told = post(http, "x", headers={"accept": "application/x-ndjson"}).json()
    assert told["problem"]["detail"].startswith("Line 1 is not JSON: ")


def test_reports_come_while_items_are_stored_when_they_are_asked_for(http: httpx.Client) -> None:
    asked = {"accept": "application/x-ndjson"}
    told = post(http, *({"text": f"Note {n}."} for n in range(5)), batch_size=2, headers=asked)
    assert (told.status_code, told.headers["content-type"]) == (200, "application/x-ndjson")
    lines = [json.loads(line) for line in told.text.splitlines()]
    assert [line["progress"]["remembered"] for line in lines[:-1]] == [2, 4, 5]
    assert lines[-1]["report"]["remembered"] == 5
    told = post(http, {"text": "a"}, {"text": "b"}, {"text": ""}, batch_size=2, headers=asked)
    lines = [json.loads(line) for line in told.text.splitlines()]
    assert [list(line) for line in lines] == [["progress"], ["problem"]]
    assert (lines[1]["problem"]["class"], lines[1]["problem"]["position"]) == ("BadItem", 2)


@pytest.mark.parametrize("verb", ["remember_many", "import_items"])
def test_a_report_while_items_are_stored_counts_those_that_were_refused(mem: Semmem, verb: str) -> None:
    items = [{"text": "" if n % 3 else f"Note {n}.", "id": str(n)} for n in range(7)]
    with serving(mem) as url, semmem.connect(url) as remote:
        read: list[list[int]] = [[], []]
        for said, so_far in zip((mem, remote), read, strict=True):
            store = getattr(said, verb)
            store(items, on_error="skip", batch_size=2, progress=lambda done, so_far=so_far: so_far.append(done.read))
    assert read[0] == read[1]
    assert read[1][-1] == 7


def test_items_of_a_source_are_brought_in_replaced_and_pruned(http: httpx.Client, mem: Semmem) -> None:
    first = [{"text": "The key is red.", "id": "key"}, {"text": "The ferry leaves at noon.", "id": "ferry"}]
    owned = {"owned": {"metadata": {"source": "notes"}}, "mark": {"source": "notes"}}
    done = post(http, {"arguments": owned}, *first, path="/v1/bring-in").json()
    assert (done["remembered"], done["gone"]) == (2, [])
    again = post(http, {"arguments": owned}, *first, path="/v1/bring-in").json()
    assert (again["remembered"], again["unchanged"]) == (0, 2)
    changed = {"text": "The key is blue.", "id": "key"}
    arguments = {"arguments": {**owned, "replace": True, "prune": True}}
    done = post(http, arguments, changed, path="/v1/bring-in").json()
    assert (done["replaced"], done["pruned"], done["gone"]) == (1, 1, ["ferry"])
    assert mem.get("key").text == "The key is blue."
    params = {"mark": '{"source": "notes"}', "namespace": "n"}
    assert post(http, changed, path="/v1/bring-in", **params).json()["remembered"] == 1
    wrong = post(http, {"arguments": {"colour": "red"}}, changed, path="/v1/bring-in")
    assert problem(wrong) == (422, "InvalidInput")
    for switch in ({"prune": "false"}, {"keep": "key"}, {"replace": 1}):
        wrong = post(http, {"arguments": {**owned, **switch}}, changed, path="/v1/bring-in")
        assert problem(wrong) == (422, "InvalidInput")
    assert mem.get("key").text == "The key is blue."


@pytest.mark.parametrize("kind", ["application/x-ndjson; charset=utf-8", "APPLICATION/X-NDJSON"])
def test_the_type_of_a_stream_may_be_written_as_the_standard_allows(http: httpx.Client, kind: str) -> None:
    made = http.post("/v1/memories", content=b'{"text": "a"}\r\n{"text": "b"}', headers={"content-type": kind})
    assert made.json()["remembered"] == 2


def test_a_stream_that_is_sent_again_counts_no_more_than_the_first_time(http: httpx.Client, mem: Semmem) -> None:
    lines = [{"text": "Tea is at four."}, {"text": "Tea is at four."}, {"text": "Supper is at six."}]
    once = {"idempotency-key": "stream"}
    reports = [post(http, *lines, headers=once).json() for _ in range(2)]
    assert [(one["remembered"], one["unchanged"]) for one in reports] == [(2, 1), (0, 3)]
    assert {one.text: one.seen_count for one in mem.list()} == {"Tea is at four.": 2, "Supper is at six.": 1}


def test_what_a_stream_repeats_of_another_memory_counts_each_time_it_is_sent(http: httpx.Client, mem: Semmem) -> None:
    mem.remember("Tea is at four.")
    once = {"idempotency-key": "stream"}
    for sent in (1, 2, 3):
        report = post(http, {"text": "Tea is at four."}, {"text": "Supper is at six."}, headers=once).json()
        assert (report["remembered"], report["corroborated"]) == (int(sent == 1), 1)
        assert {one.text: one.seen_count for one in mem.list()} == {"Tea is at four.": 1 + sent, "Supper is at six.": 1}


def test_an_argument_that_stands_in_the_url_and_in_the_first_line_is_refused(http: httpx.Client, mem: Semmem) -> None:
    for path in ("/v1/memories", "/v1/bring-in"):
        for second in ("n", "other"):
            told = post(http, {"arguments": {"namespace": "n"}}, {"text": "x"}, path=path, namespace=second)
            assert problem(told) == (422, "InvalidInput")
            assert told.json()["detail"] == "namespace is in the URL and in the first line; give it once."
    assert mem.stats().memories == 0
    assert post(http, {"arguments": {"namespace": "n"}}, {"text": "x"}, on_error="skip").json()["remembered"] == 1
    assert [one.name for one in mem.namespaces()] == ["n"]


def test_the_key_of_a_stream_is_checked_as_that_of_any_request(http: httpx.Client, mem: Semmem) -> None:
    for wrong in ("", "x" * 256):
        key = {"idempotency-key": wrong}
        for told in (
            post(http, {"text": "x"}, headers=key),
            http.post("/v1/memories", json={"text": "x"}, headers=key),
        ):
            assert problem(told) == (422, "InvalidInput")
            assert told.json()["detail"] == f"An Idempotency-Key has 1 to 255 characters, not {len(wrong)}."
    assert mem.stats().memories == 0
    assert post(http, {"text": "x"}, headers={"idempotency-key": "x" * 255}).json()["remembered"] == 1
