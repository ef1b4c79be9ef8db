"""A language model's names and relationships, against a real server on this machine that misbehaves in every way."""

from __future__ import annotations

import json
import socket
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from semmem.concepts.rules import extract
from semmem.extractors import load
from semmem.extractors.llm import LLM, PATIENCE, SCHEMA
from semmem.model.errors import InvalidInput
from semmem.model.exchange import Extraction, Kind
from semmem.text.tokens import key
from tests.misbehaving import Behaviour, Server, closes, hangs, raw, serving, status, trickles

TEXT = "ada lovelace wrote the first program for babbage's engine."
RULES = extract(TEXT)
GOOD: dict[str, Any] = {
    "names": ["ada lovelace", "Babbage"],
    "relationships": [{"subject": "ada lovelace", "relation": "wrote", "object": "the first program"}],
}
ADA, BABBAGE, PROGRAM = (key(Kind.NAME, parts) for parts in (("ada", "lovelace"), ("babbage",), ("first", "program")))


def chat(content: Any, **choice: Any) -> bytes:
    message = choice.pop("message", {"role": "assistant", "content": content})
    return json.dumps({"choices": [{"index": 0, "finish_reason": "stop", "message": message, **choice}]}).encode()


def says(answer: Any, **choice: Any) -> Behaviour:
    return lambda h: h.reply(chat(answer if isinstance(answer, str) else json.dumps(answer), **choice))


@pytest.fixture
def server() -> Iterator[Server]:
    with serving(says(GOOD)) as server:
        yield server


def llm(server: Server, **options: Any) -> LLM:
    return LLM(server.url, "tiny", **{"timeout_s": 60.0, "wait": lambda seconds: None, **options})


def names(extraction: Extraction) -> dict[int, float]:
    columns = zip(extraction.keys, extraction.kinds, extraction.mentions, strict=True)
    return {at: mention for at, kind, mention in columns if kind == Kind.NAME}


def test_names_and_relationships_of_the_answer_join_what_the_rules_find(server: Server) -> None:
    extraction = llm(server).extract(TEXT)
    assert names(RULES) == {}  # all in lower case: the rules see no name
    assert names(extraction) == {ADA: 1.0, BABBAGE: 1.0, PROGRAM: 0.6}
    assert extraction.relationships == ((ADA, "wrote", PROGRAM),)
    stems = [(k, c) for k, c in zip(extraction.keys, extraction.counts, strict=True) if c]
    assert stems == [(k, c) for k, c in zip(RULES.keys, RULES.counts, strict=True) if c]
    assert extraction.length == RULES.length


def test_the_request_asks_for_structured_output_and_carries_key_and_text(server: Server) -> None:
    llm(server, key="secret").extract(TEXT, "Notes")
    path, headers, sent = server.received[0]
    assert path == "/v1/chat/completions"
    assert headers["Authorization"] == "Bearer secret"
    assert (sent["model"], sent["temperature"]) == ("tiny", 0)
    assert sent["response_format"]["json_schema"] == {"name": "concepts", "strict": True, "schema": SCHEMA}
    assert json.loads(sent["messages"][1]["content"]) == {"title": "Notes", "text": TEXT}


BAD: dict[str, tuple[Behaviour, str, int]] = {
    # name: (behaviour, reason that is counted, requests with three attempts)
    "error 500": (status(500), "status 500", 3),
    "error 503": (status(503), "status 503", 3),
    "too many requests": (status(429), "status 429", 3),
    "unauthorised": (status(401), "status 401", 1),
    "not found": (status(404), "status 404", 1),
    "redirect": (status(302, Location="http://127.0.0.1:9/"), "status 302", 1),
    "not JSON at all": (raw(b"<html>busy</html>"), "not JSON", 3),
    "JSON of another shape": (raw(b'{"answer": 1}'), "wrong shape", 3),
    "JSON that is a list": (raw(b"[]"), "wrong shape", 3),
    "a choice that is no object": (raw(b'{"choices": [7]}'), "wrong shape", 3),
    "a message that is no object": (raw(b'{"choices": [{"message": "hi"}]}'), "wrong shape", 3),
    "no choices": (raw(b'{"choices": []}'), "empty", 3),
    "no content": (raw(chat(None)), "empty", 3),
    "content of spaces": (raw(chat("  ")), "empty", 3),
    "content that is a number": (raw(chat(3)), "wrong shape", 3),
    "prose": (says("Here are the names: Ada."), "not JSON", 3),
    "JSON cut off": (says('{"names": ["ada lo'), "not JSON", 3),
    "nesting without end": (says("[" * 100_000), "not JSON", 3),
    "a list in place of an object": (says([1, 2]), "wrong shape", 3),
    "a key is missing": (says({"names": ["ada lovelace"]}), "wrong shape", 3),
    "names that are no list": (says({"names": "ada lovelace", "relationships": []}), "wrong shape", 3),
    "names that are all numbers": (says({"names": [1, None], "relationships": []}), "wrong shape", 3),
    "stopped at its length": (says(GOOD, finish_reason="length"), "cut short", 1),
    "filtered": (says(GOOD, finish_reason="content_filter"), "refusal", 1),
    "refused": (raw(chat(None, message={"content": None, "refusal": "I cannot"})), "refusal", 1),
    "names of nobody": (says({"names": ["Grace Hopper"], "relationships": []}), "nothing of it in the text", 1),
    "huge": (raw(b" " * 1_500_000), "too large", 1),
    "another content type": (raw(chat(json.dumps(GOOD)), Content_Type="text/html"), "content type", 3),
    "a body that ends early": (raw(chat(json.dumps(GOOD))[:40], declared=4000), "truncated", 3),
    "hangs up": (closes, "connection lost", 3),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_answer_falls_back_to_the_rules_and_is_counted(server: Server, case: str) -> None:
    behave, reason, requests = BAD[case]
    server.script = [behave]
    extractor = llm(server)
    assert extractor.extract(TEXT) == RULES
    counts = extractor.counts
    assert (counts["fallback"], counts[reason], counts["asked"]) == (1, 1, requests)
    assert len(server.received) == requests
    assert "answered" not in counts


@pytest.mark.parametrize("behave", [hangs, trickles], ids=["hangs", "trickles"])
def test_an_answer_that_takes_too_long_falls_back_to_the_rules(server: Server, behave: Behaviour) -> None:
    server.script = [behave]
    extractor = llm(server, timeout_s=0.3, attempts=1)
    assert extractor.extract(TEXT) == RULES
    assert extractor.counts == {"asked": 1, "fallback": 1, "timeout": 1}


def test_a_refused_connection_falls_back_to_the_rules() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: nobody else can be there
        extractor = LLM(f"http://127.0.0.1:{taken.getsockname()[1]}", "tiny", wait=lambda seconds: None)
        assert extractor.extract(TEXT) == RULES
    assert extractor.counts == {"asked": 3, "connection refused": 1, "fallback": 1, "retried": 2}


def test_another_attempt_may_succeed_after_a_growing_wait(server: Server) -> None:
    waits: list[float] = []
    server.script = [status(500), says("nonsense"), says(GOOD)]
    extractor = llm(server, wait=waits.append, backoff_s=0.5)
    assert names(extractor.extract(TEXT)) == {ADA: 1.0, BABBAGE: 1.0, PROGRAM: 0.6}
    assert waits == [0.5, 1.0]
    assert extractor.counts == {"answered": 1, "asked": 3, "retried": 2}


def test_retry_after_says_how_long_to_wait(server: Server) -> None:
    waits: list[float] = []
    server.script = [status(429, Retry_After="7"), says(GOOD)]
    extractor = llm(server, wait=waits.append)
    extractor.extract(TEXT)
    assert waits == [7.0]


def test_a_retry_after_of_hours_pauses_the_endpoint_in_place_of_the_writer(server: Server) -> None:
    waits: list[float] = []
    clock = [100.0]
    server.script = [status(429, Retry_After="3600"), says(GOOD)]
    extractor = llm(server, wait=waits.append, now=lambda: clock[0])
    assert extractor.extract(TEXT) == RULES
    assert extractor.extract(TEXT) == RULES
    assert waits == []
    assert extractor.counts == {"asked": 1, "fallback": 2, "paused": 1, "status 429": 1}
    clock[0] += 3600.0
    assert ADA in extractor.extract(TEXT).keys
    assert extractor.counts["answered"] == 1


def test_an_endpoint_that_is_down_is_left_alone_for_a_while(server: Server) -> None:
    clock = [0.0]
    server.script = [status(503)]
    extractor = llm(server, attempts=1, pause_s=30.0, now=lambda: clock[0])
    for number in range(PATIENCE + 5):
        extractor.extract(f"{TEXT} {number}")
    assert len(server.received) == PATIENCE == 3
    assert extractor.counts == {"asked": 3, "fallback": 8, "paused": 5, "status 503": 3}
    clock[0] = 30.0
    server.script = [says(GOOD)]
    assert ADA in extractor.extract(TEXT).keys


def test_an_endpoint_without_json_schema_is_asked_for_less_structure(server: Server) -> None:
    fenced = f"```json\n{json.dumps(GOOD)}\n```"
    server.script = [status(400), status(422), says(fenced)]
    extractor = llm(server)
    assert ADA in extractor.extract(TEXT).keys
    extractor.extract("babbage drew plans.")
    forms = [sent.get("response_format", {}).get("type") for _, _, sent in server.received]
    assert forms == ["json_schema", "json_object", None, None]  # what it answered to is asked for from then on


def test_a_request_that_is_bad_in_any_form_does_not_change_the_form_of_the_next(server: Server) -> None:
    server.script = [status(400), status(400), status(400), says(GOOD)]
    extractor = llm(server)
    assert extractor.extract("too long") == extract("too long")
    extractor.extract(TEXT)
    assert server.received[-1][2]["response_format"]["type"] == "json_schema"


def test_what_does_not_stand_in_the_text_is_left_out_and_counted(server: Server) -> None:
    invented = {"subject": "ada lovelace", "relation": "met", "object": "Grace Hopper"}
    answer = {"names": ["ADA LOVELACE", "Grace Hopper"], "relationships": [invented, *GOOD["relationships"]]}
    server.script = [says(answer)]
    extractor = llm(server)
    extraction = extractor.extract(TEXT)
    assert names(extraction) == {ADA: 1.0, PROGRAM: 0.6}
    assert extraction.relationships == ((ADA, "wrote", PROGRAM),)
    assert extractor.counts["invented"] == 2


def test_the_good_parts_of_a_half_bad_answer_are_kept(server: Server) -> None:
    server.script = [says({"names": [3, "ada lovelace"], "relationships": [["a", "b"], {"subject": "x"}, None]})]
    extractor = llm(server)
    assert names(extractor.extract(TEXT)) == {ADA: 1.0}
    assert extractor.counts["malformed"] == 4  # 3, the pair, the one without an object, null


def test_an_answer_that_finds_nothing_is_an_answer(server: Server) -> None:
    server.script = [says({"names": [], "relationships": []})]
    extractor = llm(server)
    assert extractor.extract(TEXT) == RULES
    assert extractor.counts == {"answered": 1, "asked": 1}


def test_the_same_text_is_sent_once(server: Server) -> None:
    extractor = llm(server)
    assert extractor.extract(TEXT) == extractor.extract(TEXT)
    assert extractor.counts == {"answered": 1, "asked": 1, "cached": 1}


def test_a_failure_is_not_kept(server: Server) -> None:
    server.script = [says("nonsense"), says(GOOD)]
    extractor = llm(server, attempts=1)
    assert extractor.extract(TEXT) == RULES
    assert ADA in extractor.extract(TEXT).keys


def test_answers_outlive_the_process_in_a_file(server: Server, tmp_path: Path) -> None:
    file = tmp_path / "deep" / "answers.db"
    first = llm(server, cache=file).extract(TEXT, "Notes")
    again = llm(server, cache=file)
    assert again.extract(TEXT, "Notes") == first
    assert again.counts == {"cached": 1}
    assert llm(server, cache=file).extract(TEXT, "Other").relationships == first.relationships
    assert len(server.received) == 2  # another title is another question
    assert file.stat().st_mode & 0o077 == 0


def test_another_model_does_not_get_the_answers_of_the_first(server: Server, tmp_path: Path) -> None:
    llm(server, cache=tmp_path / "a.db").extract(TEXT)
    LLM(server.url, "larger", cache=tmp_path / "a.db").extract(TEXT)
    assert [sent["model"] for _, _, sent in server.received] == ["tiny", "larger"]


def test_a_cache_file_that_is_no_database_costs_no_memory(server: Server, tmp_path: Path) -> None:
    file = tmp_path / "answers.db"
    file.write_bytes(b"this is no database, and long enough to be looked at as one" * 100)
    extractor = llm(server, cache=file)
    assert ADA in extractor.extract(TEXT).keys
    assert ADA in extractor.extract(TEXT).keys
    assert extractor.counts == {"answered": 1, "asked": 1, "cached": 1, "unkept": 2}  # not read once, not written once


def test_a_kept_answer_that_was_damaged_is_asked_for_again(server: Server, tmp_path: Path) -> None:
    file = tmp_path / "answers.db"
    llm(server, cache=file).extract(TEXT)
    connection = sqlite3.connect(file)
    with connection:
        connection.execute("UPDATE answers SET answer = 'rubbish'")
    connection.close()
    assert ADA in llm(server, cache=file).extract(TEXT).keys
    assert len(server.received) == 2


def test_many_can_be_asked_for_at_a_time(server: Server) -> None:
    extractor = llm(server)
    texts = [f"{TEXT} {number}" for number in range(12)]
    extractor.prepare([(text, None) for text in texts], workers=4)
    assert all(ADA in extractor.extract(text).keys for text in texts)
    assert extractor.counts == {"answered": 12, "asked": 12, "cached": 12}


def test_any_string_can_be_sent(server: Server) -> None:
    server.script = [says({"names": [], "relationships": []})]
    extractor = llm(server)
    for text in ("\ud800 lone", "nul \x00 byte", "東京 \U0001f600", "", " "):
        assert extractor.extract(text) == extract(text)
    assert extractor.counts["answered"] == 5


def test_nothing_is_sent_before_the_first_memory(server: Server) -> None:
    extractor = load("llm", llm_url=server.url, llm_model="tiny")
    assert extractor.name == "llm"
    assert server.received == []


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"llm_model": "tiny"}, "SEMMEM_LLM_URL"),
        ({"llm_url": "http://127.0.0.1:1"}, "SEMMEM_LLM_MODEL"),
        ({"llm_url": "ftp://host/v1", "llm_model": "tiny"}, "http:// or https://"),
        ({"llm_url": "http://", "llm_model": "tiny"}, "name a host"),
        ({"llm_url": "http://host:notaport/", "llm_model": "tiny"}, "cannot be read"),
        ({"llm_url": "http://host/a b", "llm_model": "tiny"}, "percent-encoded"),
        ({"llm_url": "http://me:pass@host/", "llm_model": "tiny"}, "llm_key"),
        ({"llm_url": "http://host/", "llm_model": " "}, "name of a model"),
        ({"llm_url": "http://host/", "llm_model": "tiny", "llm_key": "a\nb"}, "printable ASCII"),
    ],
)
def test_a_wrong_setting_is_refused_with_a_sentence(options: dict[str, str], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        load("llm", **options)  # type: ignore[arg-type]
