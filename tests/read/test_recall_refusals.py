"""The arguments that recall, the other verbs and connect refuse in one sentence."""

from __future__ import annotations

import threading
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

import semmem

BAD: list[tuple[dict[str, Any], str]] = [
    ({"query": ""}, "query is empty"),
    ({"query": " \n\t"}, "query is empty"),
    ({"query": "\x00\x00"}, "query is empty"),
    ({"query": None}, "query must be a string, not NoneType"),
    ({"query": b"ferry"}, "query must be a string, not bytes"),
    ({"limit": 0}, "limit must be from 1 to 1000, not 0"),
    ({"limit": 1001}, "limit must be"),
    ({"limit": 2.0}, "limit must be"),
    ({"limit": True}, "limit must be"),
    ({"limit": None}, "limit must be"),
    ({"limit": "5"}, "limit must be from 1 to 1000, not '5'"),
    ({"offset": -1}, "offset must be from 0"),
    ({"offset": "1"}, "offset must be from 0 to 10000, not '1'"),
    ({"sort_by": "score"}, 'sort_by must be "relevance", "importance", "created", "updated" or "accessed"'),
    ({"recipe": "best"}, "no recipe named 'best'"),
    ({"namespace": ""}, "namespace must be a name"),
    ({"namespace": []}, "namespace must be a name"),
    ({"namespace": 5}, "namespace must be a string or a list of strings, not int"),
    ({"namespace": ["a", None]}, "namespace must be a string, not NoneType"),
    ({"namespace": "a\x00b"}, "namespace contains a NUL"),
    ({"exclude": [5]}, "exclude must be a string, not int"),
    ({"exclude": None}, "exclude must be a string or a list"),
    ({"exclude": ["\ud800"]}, "exclude contains"),
    ({"filters": {"session": ["s"]}}, "'session' is not a filter; use sessions, authors"),
    ({"filters": ["s"]}, "filters must be a mapping, not list"),
    ({"filters": {"sessions": 5}}, "filter sessions must be a string or a list of strings"),
    ({"filters": {"tags": ["a\x00"]}}, "filter tags contains a NUL"),
    ({"filters": {"metadata": "x"}}, "filter metadata takes a mapping"),
    ({"filters": {"metadata": {"x": {1}}}}, "filter metadata takes a mapping of JSON values"),
    ({"filters": {"metadata": {"x": "\x00"}}}, "filter metadata contains a NUL"),
    ({"filters": {"created_after": "soon"}}, "created_after must be an ISO 8601 time, not 'soon'"),
    ({"filters": {"created_before": 5}}, "created_before must be a datetime"),
    ({"filters": semmem.Filters(sessions=(5,))}, "filter sessions must be a string"),  # type: ignore[arg-type]
    ({"vector": "east"}, "vector must be a flat list of numbers"),
    ({"vector": [True, False]}, "vector must be a flat list of numbers"),
    ({"vector": [True, 1.0]}, "vector must be a flat list of numbers"),
    ({"min_confidence": 1.5}, 'min_confidence must be a number from 0 to 1, or "auto", not 1.5'),
    ({"min_confidence": "high"}, "min_confidence must be a number from 0 to 1, or \"auto\", not 'high'"),
]


def test_bad_arguments_are_refused_in_one_sentence(mem: semmem.Semmem) -> None:
    mem.remember("ferry")
    for arguments, sentence in BAD:
        with pytest.raises(semmem.InvalidInput, match=sentence) as caught:
            mem.recall(arguments.get("query", "ferry"), **{k: v for k, v in arguments.items() if k != "query"})
        assert str(caught.value).endswith("."), arguments
        assert "\n" not in str(caught.value)


def test_the_other_verbs_refuse_what_no_store_can_look_for(mem: semmem.Semmem) -> None:
    for call in (
        lambda: mem.get(5),  # type: ignore[arg-type]
        lambda: mem.get("a\x00"),
        lambda: mem.get("a", namespace=None),  # type: ignore[arg-type]
        lambda: mem.list(limit=2.5),  # type: ignore[arg-type]
        lambda: mem.list(limit=0),
        lambda: mem.list(cursor=5),  # type: ignore[arg-type]
        lambda: mem.list(cursor="not one"),
        lambda: mem.forget(),
        lambda: mem.forget(5),  # type: ignore[arg-type]
        lambda: mem.forget(filters={}),
    ):
        with pytest.raises(semmem.InvalidInput):
            call()


def test_connecting_with_something_unknown_is_refused_and_leaves_no_connection(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, start = [threading.current_thread()], threading.Thread.start

    def noted(thread: threading.Thread) -> None:
        if threading.current_thread() in own:  # and not in one that an earlier test has left
            own.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", noted)
    with pytest.raises(semmem.InvalidInput, match="no embedder named 'glove'"):
        semmem.connect(store_url, embedder="glove")
    with pytest.raises(semmem.InvalidInput, match="no extractor named 'oracle'"):
        semmem.connect(store_url, extractor="oracle")
    with pytest.raises(
        semmem.InvalidInput, match=r"^The setting language has no stemmer for 'klingon'; take one of: arabic,"
    ):
        semmem.connect(store_url, language="klingon")
    with pytest.raises(semmem.InvalidInput, match="no setting 'colour'"):
        semmem.connect(store_url, colour="red")
    with pytest.raises(semmem.UnknownRecipe, match="'best'"):
        semmem.connect(store_url, recipe="best")
    assert not [thread for thread in own if thread.is_alive() and thread.name.startswith("semmem")]


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ({"pool_size": "many"}, "The setting pool_size must be a whole number, not 'many'."),
        ({"pool_size": 0}, "The setting pool_size must be at least 1, not 0."),
        ({"idle_stop_s": -1}, "The setting idle_stop_s must be above 0, not -1."),
        ({"llm_timeout_s": 601}, "The setting llm_timeout_s must be at most 600, not 601."),
        ({"backup_before_migration": "x"}, "The setting backup_before_migration must be true or false, not 'x'."),
        ({"language": 5}, "The setting language must be a string, not 5."),
        ({"home": 5}, "The setting home must be a path, not 5."),
        ({"llm_key": 5}, "The setting llm_key must be a string."),
    ],
)  # fmt: skip
def test_a_setting_that_cannot_be_used_is_refused_in_words_of_ones_own(setting: dict[str, Any], sentence: str) -> None:
    with pytest.raises(semmem.InvalidInput) as raised:
        semmem.connect("sqlite::memory:", **setting)
    assert str(raised.value) == sentence


def test_a_url_that_is_no_string_is_refused_with_what_to_write(tmp_path: Path) -> None:
    with pytest.raises(semmem.InvalidInput) as raised:
        semmem.connect(tmp_path / "a.db")  # type: ignore[arg-type]
    kind = type(tmp_path).__name__
    assert str(raised.value) == (
        f"The url must be a string that says which store it is, not {kind}; write 'sqlite:{tmp_path}/a.db' or "
        f"'embedded:{tmp_path}/a.db'."
    )
    with pytest.raises(semmem.InvalidInput, match=r"not int; write 'sqlite:notes\.db'"):
        semmem.connect(5)  # type: ignore[arg-type]


def test_a_date_is_taken_where_a_string_of_it_is() -> None:
    with semmem.connect("sqlite::memory:", embedder="none") as mem:
        given = mem.remember("ferry", id="a", created_at=date(2026, 1, 2))
        assert given.created_at == datetime(2026, 1, 2, tzinfo=UTC)
        assert mem.remember("ferry", id="a", created_at="2026-01-02") == given  # the same again
        for after, before, count in ((date(2026, 1, 2), date(2026, 1, 3), 1), (None, date(2026, 1, 2), 0)):
            assert len(mem.recall("ferry", filters={"created_after": after, "created_before": before})) == count


def test_forgetting_an_id_that_the_filters_leave_out_says_so_and_forgets_nothing() -> None:
    with semmem.connect("sqlite::memory:", embedder="none") as mem:
        mem.remember("ferry", id="a", tags=["kept"])
        with pytest.raises(semmem.NotFound, match="'a' in namespace 'default' does not match the filters"):
            mem.forget("a", filters={"tags": ["old"]})
        with pytest.raises(semmem.NotFound, match="no memory 'b'"):
            mem.forget("b", filters={"tags": ["old"]})
        assert mem.forget("a", filters={"tags": ["kept"]}) == 1


def test_connecting_warns_once_a_leg_that_cannot_bring_in_a_memory_of_its_own(store_url: str) -> None:
    with pytest.warns(UserWarning, match="leg graph of recipe 'seed' is boost-only at k = 10") as caught:
        semmem.connect(store_url, embedder="none", recipe="seed").close()
    assert len(caught) == 1
    semmem.connect(store_url, embedder="none").close()  # a warning would be an error here


def test_a_closed_one_says_so(store_url: str) -> None:
    mem = semmem.connect(store_url, embedder="none")
    mem.close()
    with pytest.raises(semmem.StoreClosed, match="closed"):
        mem.recall("ferry")
