"""A Semmem behind a server answers, and fails, as the store does that it serves."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import semmem
from semmem import Filters, InvalidInput, Semmem, Within
from semmem.client.http import HttpSemmem
from semmem.client.http_transport import Transport
from semmem.client.memory import StoreSemmem
from semmem.client.routes import REFUSED, ROUTES
from semmem.client.values import as_json, sent
from semmem.config import Settings
from semmem.read.overrides import settings_in
from tests.serving import serving

NOTES: list[dict[str, Any]] = [
    {"text": "The Kestrel is our logger. Petra Lindqvist designed it.", "id": "kestrel", "title": "Kestrel"},
    {"text": "Her childhood was spent above a bakery in Norrbeck.", "id": "petra", "title": "Petra Lindqvist"},
    {"text": "The ferry leaves Norrbeck at noon.", "id": "ferry", "session": "s", "tags": ["travel"], "author": "Ada"},
    {"text": "The key of Heron House hangs behind the radio.", "id": "key", "importance": 0.9, "metadata": {"n": 1}},
    {"text": "The key was copied.", "id": "a/b c%2F é", "created_at": "2026-03-01T09:00:00+01:00"},
]


class Pair:
    """The same store, spoken to directly and through a server."""

    def __init__(self, local: Semmem, remote: Semmem) -> None:
        self.local = local
        self.remote = remote


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    with semmem.connect("sqlite::memory:", embedder="none") as local:
        local.remember_many(NOTES)
        with serving(local) as url, semmem.connect(url) as remote:
            yield Pair(local, remote)


AGED = semmem.Recipe(
    "aged",
    {"lexical": 1.0, "graph": 1.0},
    {"lexical": {"named": 4, "unnamed": 60}, "graph": {"named": 4, "unnamed": 60}},
    recency_half_life=7.0,
    prior_floor=None,
)
"""A prior by age weighs by another least factor in each regime, so reach is told the lists of each."""


def hits(recall: semmem.Recall) -> Any:
    same = {n: v for n, v in recall.as_dict().items() if n != "timings"}
    return type(recall).__mro__[-5:], same, recall.hits, recall.recipe, recall.reach, recall.settings


READ: list[Callable[[Semmem], Any]] = [
    lambda mem: mem.get("kestrel"),
    lambda mem: mem.get("a/b c%2F é"),
    lambda mem: mem.list(limit=2),
    lambda mem: mem.list(limit=2, cursor=mem.list(limit=2).cursor),
    lambda mem: mem.list(filters={"tags": "travel", "metadata": {}}),
    lambda mem: mem.list(filters=Filters(authors=("Ada",), created_after=datetime(2020, 1, 1, tzinfo=UTC))),
    lambda mem: mem.list(filters={"created_before": date(2026, 3, 2)}),
    lambda mem: hits(mem.recall("where is the key?")),
    lambda mem: hits(mem.recall("where is the key?", recipe="convex")),
    lambda mem: hits(mem.recall("where is the key?", limit=1, recipe=AGED)),
    lambda mem: hits(mem.recall("where is the key?", limit=1, offset=1, exclude=["key"], recipe="seed")),
    lambda mem: hits(mem.recall("key", filters={"metadata": {"n": 1}}, sort_by="created", namespace=["default", "x"])),
    lambda mem: hits(mem.recall("key", recipe=semmem.recipe("lexical", lexical={"k1": 0.4}), min_confidence=1.0)),
    lambda mem: hits(mem.recall("nothing of the kind, of ships and shoes and sealing wax")),
    lambda mem: hits(mem.recall("where is the key?", token_budget=60)),
    lambda mem: mem.recall("where is the key?", token_budget=60).explain("key"),
    lambda mem: mem.context("where is the key?"),
    lambda mem: mem.context("where is the key?", namespace=["default", "x"], token_budget=120, limit=3),
    lambda mem: mem.recall("where is the key?").explain("key"),
    lambda mem: mem.recall("where is the key?", limit=1).explain("ferry").as_dict(),
    lambda mem: str(mem.recall("key", filters={"sessions": "s"}).explain("key", "default")),
    lambda mem: len(mem.recall("where is the key?")),
    lambda mem: mem.leg("lexical").search("key", limit=1),
    lambda mem: mem.leg().search("key", filters=Within(namespaces=("default",), exclude=("key",))),
    lambda mem: mem.stats(),
    lambda mem: mem.doctor(),
    lambda mem: mem.stats(namespace="default"),
    lambda mem: mem.namespaces(),
    lambda mem: list(mem.export()),
    lambda mem: list(mem.export(namespace=None, filters={"authors": ["Ada"]})),
    lambda mem: list(mem.export(namespace=["x", "default"])),
    lambda mem: mem.settings_of(),
    lambda mem: mem.searched_by(),
    lambda mem: settings_in(mem.recipe),
]

FAIL: list[Callable[[Any], Any]] = [
    lambda mem: mem.get("none"),
    lambda mem: mem.get(5),
    lambda mem: mem.get("kestrel", namespace="none"),
    lambda mem: mem.list(limit=0),
    lambda mem: mem.list(cursor="x"),
    lambda mem: mem.list(filters={"colour": "red"}),
    lambda mem: mem.list(namespace=None),
    lambda mem: mem.forgotten(namespace=None),
    lambda mem: mem.changes(namespace=None),
    lambda mem: mem.changes(namespace=[]),
    lambda mem: mem.concepts(namespace=[]),
    lambda mem: mem.list(namespace=["default", "x"]),
    lambda mem: mem.contradictions(namespace=[None]),
    lambda mem: mem.stats(namespace=5),
    lambda mem: list(mem.export(namespace=["default", None])),
    lambda mem: mem.settings_of(namespace=None),
    lambda mem: mem.configure(namespace=None, weights={"graph": 0.5}),
    lambda mem: mem.update("kestrel", namespace=None, text="x"),
    lambda mem: mem.recall("key", vector=[True, False]),
    lambda mem: mem.recall("key", vector=[True, 1.0]),
    lambda mem: mem.list(filters={"metadata": {"n": {"gte": 1}}}),
    lambda mem: mem.recall(""),
    lambda mem: mem.recall("key", limit=0),
    lambda mem: mem.recall("key", token_budget=0),
    lambda mem: mem.context("key", token_budget="much"),
    lambda mem: mem.context(" "),
    lambda mem: mem.recall("key", limit=True),
    lambda mem: mem.recall("key", recipe="nope"),
    lambda mem: mem.recall("key", sort_by="hope"),
    lambda mem: mem.recall("key", namespace=[]),
    lambda mem: mem.recall("key", filters={"sessions": []}),
    lambda mem: mem.recall("key", exclude=5),
    lambda mem: mem.recall("key").explain("none"),
    lambda mem: mem.leg("nope").search("key"),
    lambda mem: mem.leg("dense").search("key"),
    lambda mem: mem.remember(""),
    lambda mem: mem.remember("x", importance=2),
    lambda mem: mem.remember(date(2024, 1, 1)),
    lambda mem: mem.remember("x", title=datetime(2024, 1, 1)),
    lambda mem: mem.remember("x", author=timedelta(1)),
    lambda mem: mem.remember("x", importance=timedelta(seconds=1)),
    lambda mem: mem.remember("x", importance=np.float32(0.3)),
    lambda mem: mem.remember("x", position=np.int64(3)),
    lambda mem: mem.update("kestrel", title=date(2024, 1, 1)),
    lambda mem: mem.remember("x", position="first"),
    lambda mem: mem.remember("x", created_at="soon"),
    lambda mem: mem.remember("x", id=""),
    lambda mem: mem.remember("x", namespace=""),
    lambda mem: mem.remember("Other words.", id="kestrel"),
    lambda mem: mem.remember_many([{"text": "x"}, {"text": ""}, {"text": "y"}]),
    lambda mem: mem.remember_many([{"text": "x", "colour": "red"}]),
    lambda mem: mem.remember_many("abc"),
    lambda mem: mem.remember_many([{"text": "x"}], batch_size=0),
    lambda mem: mem.remember_many([{"text": "x"}], on_error="hope"),
    lambda mem: mem.import_items({"text": "x"}),
    lambda mem: mem.import_items([{"text": "x"}], prune=True),
    lambda mem: mem.update("none", text="x"),
    lambda mem: mem.update("kestrel", text="x", expected_version=7),
    lambda mem: mem.update("kestrel", colour="red"),
    lambda mem: mem.update("kestrel", text=""),
    lambda mem: mem.drop_namespace(""),
    lambda mem: mem.drop_namespace(None),
    lambda mem: mem.namespace_limits(""),
    lambda mem: mem.namespace_limits("", most_memories=1),
    lambda mem: mem.recalls(namespace=[]),
    lambda mem: mem.recalls(namespace=""),
    lambda mem: mem.logged_recall("none", namespace=[]),
    lambda mem: mem.leg(["lexical"]),
    lambda mem: mem.leg("lexical", namespace=5),
    lambda mem: mem.forget(),
    lambda mem: mem.forget("none"),
    lambda mem: mem.forget("kestrel", everything=True),
    lambda mem: mem.forget("kestrel", dry_run=1),
    lambda mem: mem.configure(weights={"nobody": 1}),
    lambda mem: mem.configure(colour="red"),
    lambda mem: mem.configure(depths={"lexical": -1}),
    lambda mem: mem.unset_settings("weights.lexical"),
    lambda mem: mem.hashes(),
    lambda mem: mem.merge_concepts("a", "b"),
    lambda mem: mem.split_concept("a"),
    lambda mem: mem.probe(k=0),
    lambda mem: mem.probe(recipe="nope"),
]


@pytest.mark.parametrize("call", READ, ids=lambda call: inspect.getsource(call).strip()[12:60])
def test_a_question_has_the_same_answer_on_both_sides(pair: Pair, call: Callable[[Semmem], Any]) -> None:
    here, there = call(pair.local), call(pair.remote)
    assert there == here
    assert type(there) is type(here)


@pytest.mark.parametrize("call", FAIL, ids=lambda call: inspect.getsource(call).strip()[12:60])
def test_what_fails_here_fails_there_in_the_same_words(pair: Pair, call: Callable[[Any], Any]) -> None:
    with pytest.raises(semmem.SemmemError) as here:
        call(pair.local)
    with pytest.raises(semmem.SemmemError) as there:
        call(pair.remote)
    assert (type(there.value), str(there.value)) == (type(here.value), str(here.value))
    assert {n: v for n, v in vars(there.value).items() if n != "http_status"} == vars(here.value)
    assert pair.local.stats().memories == len(NOTES)
    assert pair.local.settings_of() == {}


def test_what_is_written_there_is_stored_here(pair: Pair) -> None:
    with (
        semmem.connect("sqlite::memory:", embedder="none") as local,
        serving(local) as url,
        semmem.connect(url) as remote,
    ):
        given = {"title": "Key", "author": "Ada", "session": "s", "position": 3, "source": "a/b", "tags": ["x", "y"]}
        made = remote.remember("The key is red. é 𝄞", metadata={"n": {"deep": [1, 2.5, None]}}, importance=0.1, **given)
        assert local.get(made.id) == made
        assert isinstance(made, semmem.Memory)
        assert made.created_at is not None
        assert made.created_at.tzinfo is UTC
        at = datetime(2026, 3, 1, 9, tzinfo=UTC)
        assert remote.remember("Then.", id="then", created_at=at).created_at == at
        changed = remote.update(made.id, text="The key is blue.", tags=(), author=None, expected_version=made.tag)
        assert (changed.version, changed.tags, changed.author, local.get(made.id)) == (2, (), None, changed)
        assert remote.update(made.id, text="The key is green.", changed_by="clerk").version == 3
        assert [one.changed_by for one in local.history(made.id)] == [None, None, "clerk"]
        assert remote.history(made.id) == local.history(made.id)
        other = remote.remember("Another one.")
        link = remote.link(other.id, "supersedes", made.id, made_by="clerk")
        assert (remote.links(made.id), local.links(other.id)) == ([link], [link])
        against = remote.link(made.id, "contradicts", remote.remember("A third one.", id="third").id)
        assert remote.contradictions() == local.contradictions() == [against]
        alike = remote.link("third", "see-also", made.id, made_by="semmem")
        assert remote.near_duplicates() == local.near_duplicates() == [alike]
        with pytest.raises(semmem.InvalidInput, match="which supersedes it, directly"):
            remote.link(made.id, "supersedes", other.id)
        with pytest.raises(semmem.NotFound, match="There is no memory 'nobody'"):
            remote.links("nobody")
        assert remote.unlink(other.id, "supersedes", made.id) is True
        assert remote.unlink(other.id, "supersedes", made.id) is False
        assert remote.forget(other.id) == 1
        assert remote.copy_namespace("default", "spare") == remote.rename_namespace("spare", "there")
        assert remote.drop_namespace("there", dry_run=True) == remote.drop_namespace("there") > 0
        assert [one.kind for one in remote.changes()] == [one.kind for one in local.changes()]
        assert remote.changes().cursor == local.changes().cursor
        assert list(remote.changes("now")) == []
        assert remote.namespace_limits("n", most_bytes=9_000) == local.namespace_limits("n")
        assert remote.configure(namespace="n", weights={"lexical": 2}, recipe="hybrid") == local.settings_of(
            namespace="n"
        )
        assert remote.unset_settings("recipe", namespace="n") == {"weights.lexical": 2}
        chat = ({"role": role, "content": f"Said by {role}."} for role in ("user", "assistant"))
        assert remote.remember_messages(chat, session="chat", position=0).remembered == 2
        assert [one.position for one in local.list(filters={"sessions": "chat"})] == [1, 0]
        assert remote.forget(filters={"sessions": ["chat"]}) == 2
        assert remote.forget(filters={"sessions": ["s"]}, dry_run=True) == 1
        assert remote.forget(made.id, forgotten_by="clerk") == 1
        assert remote.history(made.id) == local.history(made.id)
        assert remote.forgotten() == local.forgotten()
        assert [(one.memory.id, one.forgotten_by) for one in remote.forgotten(limit=1)] == [(made.id, "clerk")]
        assert remote.restore_memory(made.id) == local.get(made.id)
        assert remote.forget(made.id) == 1
        assert remote.forget(everything=True) == 2
        assert local.stats().memories == 0
        assert dict(remote.maintain()).keys() == dict(local.maintain()).keys()


def test_a_time_and_a_duration_are_sent_where_they_are_meant_and_nowhere_else() -> None:
    at = datetime(2040, 1, 1, 9, tzinfo=UTC)
    link = {"type": "see-also", "to": "note", "since": at}
    given = {"created_at": date(2024, 1, 1), "valid_from": date(2024, 1, 1), "valid_to": at}
    for name, value in {**given, "as_of": at, "now": date(2024, 1, 1), "created_before": at}.items():
        assert sent(name, value) == value.isoformat()
    assert sent("filters", Filters(created_after=at))["created_after"] == at.isoformat()
    assert sent("ttl", timedelta(days=1)) == 86_400
    assert sent("An item", {**given, "links": [link]})["links"] == [{**link, "since": at.isoformat()}]
    assert sent("vector", np.array([1.0, 0.0])) == sent("vector", [np.float32(1), np.float32(0)]) == [1.0, 0.0]
    for name in ("query", "limit", "most_memories", "mark", "recipe"):
        for wrong in (date(2024, 1, 1), timedelta(1), np.float32(1)):
            with pytest.raises(InvalidInput, match=rf"^{name} holds a value of the type {type(wrong).__name__}, "):
                sent(name, wrong)
    with pytest.raises(InvalidInput, match=r"^mark holds a value of the type date"):
        sent("mark", {"created_at": date(2024, 1, 1)})


@pytest.mark.slow
def test_a_stream_of_items_is_sent_as_it_comes_and_reported(pair: Pair) -> None:
    with (
        semmem.connect("sqlite::memory:", embedder="none") as local,
        serving(local) as url,
        semmem.connect(url) as remote,
    ):
        seen: list[semmem.IngestReport] = []
        items = ({"text": f"Note {n}.", "created_at": datetime(2026, 1, 1, tzinfo=UTC)} for n in range(1_200))
        report = remote.remember_many(items, progress=seen.append)
        assert (report.remembered, [one.remembered for one in seen]) == (1_200, [500, 1_000, 1_200])
        wrong: Any = [{"text": "a"}, {"text": object()}, 5, {"text": "b", "metadata": {"x": float("nan")}}]
        skipped = remote.remember_many(wrong, on_error="skip")
        assert (skipped.remembered, [one.position for one in skipped.rejected]) == (1, [1, 2, 3])

        def breaks() -> Iterator[dict[str, Any]]:
            yield from ({"text": f"More {n}.", "id": f"m{n}"} for n in range(3))
            raise RuntimeError("the file is gone")

        before = local.stats().memories
        with pytest.raises(RuntimeError, match="the file is gone"):
            remote.remember_many(breaks())
        assert local.stats().memories == before
        rows = list(local.export(filters={"created_before": "2026-01-02"}))
        with (
            semmem.connect("sqlite::memory:", embedder="none") as other,
            serving(other) as there,
            semmem.connect(there) as copy,
        ):
            brought: list[int] = []
            done = copy.import_items(iter(rows), progress=lambda so_far: brought.append(so_far.remembered))
            assert (done.remembered, brought[-1]) == (1_200, 1_200)
            assert copy.import_items(rows).unchanged == 1_200
            assert sum(1 for _ in copy.export()) == 1_200
            page = copy.list(limit=1_000)
            assert len(page) + len(copy.list(limit=1_000, cursor=page.cursor)) == 1_200


def test_every_verb_has_the_arguments_and_the_words_of_the_facade() -> None:
    verbs = {verb for route in ROUTES for verb in route.verbs} | (set(REFUSED) - {"copy"})
    for name in verbs:
        here, there = getattr(Semmem, name), getattr(HttpSemmem, name)
        assert here is not there, name
        same = [p.replace(annotation=None) for p in inspect.signature(there).parameters.values()]
        assert same == [p.replace(annotation=None) for p in inspect.signature(here).parameters.values()], name
        assert inspect.getdoc(there) == inspect.getdoc(here), name


def test_a_memory_behind_a_server_is_a_memory_and_holds_no_store(pair: Pair) -> None:
    assert isinstance(pair.remote, Semmem)
    assert isinstance(pair.remote, HttpSemmem)
    assert not isinstance(pair.remote, StoreSemmem)
    held = {type(one) for one in vars(pair.remote).values()}
    assert held == {Transport, str, Settings}


def test_a_recall_of_a_server_says_where_the_lists_of_its_legs_are(pair: Pair) -> None:
    with pytest.raises(semmem.LocalOnly, match="at its server; open the store with its own URL"):
        _ = pair.remote.recall("ferry").candidates


@pytest.mark.parametrize("name", sorted(set(REFUSED) - {"copy"}))
def test_what_works_on_the_store_itself_is_refused_with_one_error(pair: Pair, name: str) -> None:
    with pytest.raises(semmem.LocalOnly, match=f"{name} .* call it where the store is"):
        getattr(pair.remote, name)("x")


def test_a_server_is_no_store_to_copy_or_to_hold(pair: Pair) -> None:
    url = pair.remote.url  # type: ignore[attr-defined]
    with pytest.raises(semmem.LocalOnly, match="the store's own URL"):
        semmem.copy(url, "sqlite::memory:")
    with pytest.raises(semmem.LocalOnly):
        _ = pair.remote.store


@pytest.mark.parametrize(
    "url",
    ["http://", "http://user:secret@127.0.0.1:1", "http://127.0.0.1:1/?a=b", "http://127.0.0.1:port", "https:///x"],
)
def test_a_url_that_names_no_server_is_refused(url: str) -> None:
    with pytest.raises(semmem.InvalidInput, match=r"http://127\.0\.0\.1:8765") as raised:
        semmem.connect(url)
    assert "secret" not in str(raised.value)


def test_what_the_server_decides_cannot_be_chosen_by_its_client() -> None:
    for chosen in ({"recipe": "seed"}, {"embedder": "hashing"}, {"extractor": "rules"}, {"legs": {}}):
        with pytest.raises(semmem.InvalidInput, match="is a choice of the server"):
            semmem.connect("http://127.0.0.1:1", **chosen)  # type: ignore[arg-type]


def test_a_server_on_postgresql_answers_with_all_three_legs(store_url: str) -> None:
    # nothing in memory: what is read there has cosines of more digits than the database's
    with (
        semmem.connect(store_url, embedder="hashing", resident_mb=0) as local,
        serving(local) as url,
        semmem.connect(url) as remote,
    ):
        remote.remember_many(NOTES)
        question = "In which town did the designer of the Kestrel grow up?"
        assert hits(remote.recall(question)) == hits(local.recall(question))
        found = remote.recall(question)
        assert {leg for hit in found for leg in hit.legs} == {"lexical", "dense", "graph"}
        for id in ("petra", "ferry"):
            assert found.explain(id) == local.recall(question).explain(id)
        assert found.explain("petra").paths
        here, there = local.graph(around="Kestrel"), remote.graph(around="Kestrel")
        assert dict(there.nodes(data=True)) == dict(here.nodes(data=True))
        assert [sorted(e) for e in there.edges] == [sorted(e) for e in here.edges]
        assert remote.concepts(like="Norr") == local.concepts(like="Norr")
        assert remote.merge_concepts("Kestrel", "Petra Lindqvist") is None  # type: ignore[func-returns-value]
        assert remote.split_concept("Kestrel") is None  # type: ignore[func-returns-value]
        assert remote.graph_hash() == local.graph_hash()
        assert remote.hashes() == local.hashes()
        probe = remote.probe(
            recipe="hybrid", k=3, leg="lexical", witness=("a brass lantern", "The lantern is of brass.")
        )
        assert json.dumps(probe.as_dict())
        assert [one.returned for one in probe] == [True]
        assert list(remote.export(vectors=True)) == list(local.export(vectors=True))


def test_both_sides_are_closed_by_themselves(tmp_path: Path) -> None:
    with semmem.connect(f"sqlite://{tmp_path / 'notes.db'}", embedder="none") as local, serving(local) as url:
        with semmem.connect(url) as remote:
            remote.remember("The key is red.")
        with pytest.raises(semmem.StoreClosed):
            remote.stats()
        assert local.stats().memories == 1


def test_an_export_from_a_server_is_of_the_namespace_that_is_named_and_of_all_only_for_none() -> None:
    with (
        semmem.connect("sqlite::memory:", embedder="none") as local,
        serving(local) as url,
        semmem.connect(url) as remote,
    ):
        for name in ("default", "n", "m"):
            local.remember("Tea is at four.", id=f"in {name}", namespace=name)
        assert [one["id"] for one in remote.export()] == ["in default"]
        assert [one["id"] for one in remote.export(namespace="n")] == ["in n"]
        assert [one["id"] for one in remote.export(namespace=["m", "n"])] == ["in m", "in n"]
        assert {one["id"] for one in remote.export(namespace=None)} == {"in default", "in m", "in n"}


@pytest.mark.parametrize("filters", [Filters(tags=("x",), sensitive=False), {"tags": "x", "sensitive": False}])
def test_a_forget_through_a_server_spares_what_a_filter_that_is_false_spares(filters: Filters) -> None:
    with (
        semmem.connect("sqlite::memory:", embedder="none") as local,
        serving(local) as url,
        semmem.connect(url) as remote,
    ):
        local.remember("The ferry leaves at nine.", id="plain", tags=["x"])
        local.remember("The code is 1234.", id="secret", tags=["x"], sensitive=True)
        assert [mem.forget(filters=filters, dry_run=True) for mem in (local, remote)] == [1, 1]
        assert remote.forget(filters=filters, hard=True) == 1
        assert [memory.id for memory in local.list(filters={"sensitive": True})] == ["secret"]


@pytest.mark.parametrize("value", [{1}, date(2026, 1, 1), timedelta(1)])
@pytest.mark.parametrize(
    "call",
    [
        lambda mem, value: mem.remember("x", metadata={"d": value}),
        lambda mem, value: mem.remember_many([{"text": "x", "metadata": {"d": value}}]),
        lambda mem, value: mem.recall("x", filters={"metadata": {"d": value}}),
        lambda mem, value: mem.recall("x", filters=Filters(metadata={"d": value})),
        lambda mem, value: mem.list(filters=Filters(metadata={"d": value})),
    ],
)
def test_metadata_that_are_no_json_are_refused_here_and_there(
    pair: Pair, call: Callable[[Any, Any], Any], value: Any
) -> None:
    for mem in (pair.local, pair.remote):
        with pytest.raises(InvalidInput, match=r"JSON|not str"):  # an item that cannot be sent is no mapping there
            call(mem, value)


def test_the_same_content_again_counts_through_a_server_too() -> None:
    with (
        semmem.connect("sqlite::memory:", embedder="none") as local,
        serving(local) as url,
        semmem.connect(url) as remote,
    ):
        for said in (local, remote):
            first = said.remember("Tea is at four.", author="Ada")
        assert (first.seen_count, local.stats().memories) == (2, 1)
        assert remote.remember("Tea is at four.").seen_count == 1  # by nobody
        items = [{"text": "Tea is at four.", "author": "Ada"}, {"text": "Supper is at six."}]
        report = remote.remember_many([*items, items[1]])
        assert (report.remembered, report.unchanged, report.corroborated) == (1, 2, 2)
        assert remote.get(first.id).seen_count == 3
        assert remote.remember("Tea is at four.", id="mine").seen_count == 1


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ({"a": object()}, "metadata holds a value of the type object, which cannot be sent as JSON."),
        (
            {"a": "\ud800"},
            "metadata contains a NUL character or half a surrogate pair, which no store has; remove it.",
        ),
    ],
)
def test_what_cannot_be_sent_is_refused_in_one_sentence_that_says_so_once(value: object, sentence: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        as_json("metadata", value)
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    "call",
    [
        lambda mem: mem.drop_namespace("default", dry_run=None),
        lambda mem: mem.drop_namespace("default", dry_run=[]),
        lambda mem: mem.drop_namespace("default", dry_run="false"),
        lambda mem: mem.list(limit=None),
        lambda mem: mem.list(limit="10"),
        lambda mem: mem.list(limit=[10]),
        lambda mem: mem.list(sort_by=None),
        lambda mem: mem.list(reveal="true"),
        lambda mem: mem.list(cursor=[]),
        lambda mem: mem.get("kestrel", reveal=None),
        lambda mem: mem.get("kestrel", as_of=[]),
        lambda mem: mem.history("kestrel", offset=None),
        lambda mem: mem.history("kestrel", limit=[5]),
        lambda mem: mem.unlink("kestrel", type=["see-also"], to="petra"),
        lambda mem: mem.audit(who=[]),
        lambda mem: mem.audit(who=5),
        lambda mem: mem.audit(noted_after=[]),
        lambda mem: mem.audit(limit=None),
        lambda mem: mem.recalls(memory=[]),
        lambda mem: mem.recalls(agent=["a"]),
        lambda mem: mem.recalls(limit=None),
        lambda mem: mem.replay_recall("x", then=None),
        lambda mem: mem.graph(hops=None),
        lambda mem: mem.graph(limit="5"),
        lambda mem: mem.concepts(like=[]),
        lambda mem: mem.changes(since=[]),
        lambda mem: mem.changes(limit=None),
        lambda mem: list(mem.export(sensitive=None)),
    ],
    ids=lambda call: inspect.getsource(call).strip()[12:60],
)
def test_what_a_url_would_leave_out_or_say_otherwise_is_refused_as_it_is_where_the_store_is(
    pair: Pair, call: Callable[[Any], Any]
) -> None:
    sentences: list[tuple[type[Exception], str]] = []
    for mem in (pair.local, pair.remote):
        with pytest.raises(InvalidInput) as refused:
            call(mem)
        sentences.append((type(refused.value), str(refused.value)))
    assert sentences[0] == sentences[1]
    assert pair.local.stats().memories == len(NOTES)


def test_a_switch_of_a_memory_that_is_none_is_the_same_as_none_given_here_and_there() -> None:
    with (
        semmem.connect("sqlite::memory:", embedder="none") as local,
        serving(local) as url,
        semmem.connect(url) as remote,
    ):
        none: Any = {"pinned": None, "sensitive": None}
        stored = [
            mem.remember("Tea is at four.", namespace=name, **none) for mem, name in ((local, "a"), (remote, "b"))
        ]
        assert [(one.pinned, one.sensitive) for one in stored] == [(False, False)] * 2
        for mem in (local, remote):
            with pytest.raises(InvalidInput, match=r"^fold_parts must be True or False, not None\.$"):
                mem.recall("tea", fold_parts=None)  # type: ignore[arg-type]
            with pytest.raises(InvalidInput, match=r"^prune must be True or False, not None; nothing was stored\.$"):
                mem.import_items([], prune=None)  # type: ignore[arg-type]
