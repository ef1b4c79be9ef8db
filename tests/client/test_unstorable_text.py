"""A NUL character or half a surrogate pair: every verb refuses it in every text argument, with one sentence."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import semmem
from semmem import Semmem
from semmem.model.errors import InvalidInput, NotFound

BAD = {"NUL": "a\x00b", "half a surrogate pair": "a\ud800b"}

BASE: dict[str, dict[str, Any]] = {
    "backup": {"file": ...},
    "import_items": {"items": [{"id": "new", "text": "tide"}]},
    "audit": {},
    "changes": {},
    "concepts": {},
    "configure": {"weights": {"lexical": 1}},
    "context": {"query": "tide"},
    "contradictions": {},
    "near_duplicates": {},
    "copy_namespace": {"old": "default", "new": "copied"},
    "drop_namespace": {"name": "nowhere"},
    "export": {},
    "feedback": {"recall_id": "r", "useful": ["key"]},
    "forget": {"id": "key"},
    "get": {"id": "key"},
    "graph": {},
    "graph_hash": {},
    "hashes": {},
    "history": {"id": "key"},
    "forgotten": {},
    "judgments": {},
    "leg": {"name": "lexical"},
    "link": {"id": "key", "type": "see-also", "to": "other"},
    "links": {"id": "key"},
    "list": {},
    "logged_recall": {"recall_id": "r"},
    "merge_concepts": {"a": "Ada Lovelace", "b": "Grace Hopper"},
    "namespace_limits": {"name": "default"},
    "probe": {},
    "rebuild": {},
    "recall": {"query": "tide"},
    "recalls": {},
    "register_leg": {"name": ...},
    "remember": {"text": "tide"},
    "remember_many": {"items": [{"text": "tide"}]},
    "remember_messages": {"messages": [{"role": "user", "content": "The tide is high."}], "session": "s"},
    "replay_recall": {"recall_id": "r"},
    "rename_namespace": {"old": "default", "new": "renamed"},
    "restore": {"file": ...},
    "restore_memory": {"id": "key"},
    "searched_by": {},
    "settings_of": {},
    "split_concept": {"name": "Ada Lovelace"},
    "stats": {},
    "unlink": {"id": "key", "type": "see-also", "to": "other"},
    "unset_settings": {},
    "update": {"id": "key", "text": "tide"},
}
"""Arguments with which each verb takes another argument; an ellipsis is no text."""
MADE_PLAIN = {("recall", "query"), ("context", "query")}
"""A question is text that somebody pasted: a recall takes it with a space in the place of what no store has."""
COMPARED = ("import_items", "keep")
"""Ids that are compared with those of the source, and sent to no store."""
ITEM = ("id", "text", "title", "author", "session", "source", "tags", "metadata", "created_at", "namespace")


def _values(verb: str, name: str, annotation: str, bad: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield a label and the arguments for each place of an argument where the text can stand."""
    if name == "items":
        for field in ITEM:
            given = {"tags": [bad], "metadata": {"note": bad}}.get(field, bad)
            yield f"items.{field}", {"items": [{"id": "new", "text": "tide", field: given}]}
        yield "items.metadata's key", {"items": [{"text": "tide", "metadata": {bad: 1}}]}
    elif name == "messages":
        yield "messages.content", {"messages": [{"role": "user", "content": bad}]}
        yield "messages.name", {"messages": [{"role": "user", "content": "tide", "name": bad}]}
    elif name == "filters":
        for field in ("sessions", "authors", "tags", "titles"):
            yield f"filters.{field}", {name: {field: [bad]}}
        yield "filters.metadata", {name: {"metadata": {"note": bad}}}
        yield "filters.metadata's key", {name: {"metadata": {bad: 1}}}
        yield "filters.created_after", {name: {"created_after": bad}}
    elif name == "owned":
        yield name, {name: {"tags": [bad]}}
    elif name in ("metadata", "mark"):
        yield name, {name: {"note": bad}}
        yield f"{name}'s key", {name: {bad: 1}}
    elif name == "changes" and verb == "update":
        for field in ("text", "title", "author", "session", "source"):
            yield field, {field: bad}
        yield "tags", {"tags": [bad]}
        yield "metadata", {"metadata": {"note": bad}}
    elif name == "changes":
        yield "recipe", {"recipe": bad}
        yield "a name", {bad: 1}
    elif name == "witness":
        yield name, {name: (bad, "tide")}
        yield name, {name: ("tide", bad)}
    elif "Sequence[str]" in annotation or "Collection[str]" in annotation:
        yield f"{name}'s list", {name: ["key", bad]}
        if annotation.startswith("str"):
            yield name, {name: bad}
    else:
        yield name, {name: bad}


VERBS = [verb for verb, _ in inspect.getmembers(Semmem, inspect.isfunction) if not verb.startswith("_")]


def _cases(verb: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the arguments for each place of a verb where a bad text can stand, with a label."""
    for parameter in inspect.signature(getattr(Semmem, verb)).parameters.values():
        texts = "str" in str(parameter.annotation) or parameter.name == "changes"
        if not texts or BASE[verb].get(parameter.name) is ...:
            continue
        if (verb, parameter.name) in MADE_PLAIN | {COMPARED}:
            continue
        for kind, bad in BAD.items():
            for label, given in _values(verb, parameter.name, str(parameter.annotation), bad):
                more = {k: v for k, v in BASE[verb].items() if v is not ...}
                yield f"{label}: {kind}", {**more, **given}


@pytest.fixture(scope="module")
def stores(module_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Semmem]]:
    file: Path = tmp_path_factory.mktemp("text") / "notes.db"
    with (
        semmem.connect(module_url, embedder="hashing", pool_size=2) as postgres,
        semmem.connect(f"sqlite://{file}", embedder="none") as sqlite,
    ):
        for mem in (postgres, sqlite):
            mem.remember("Ada Lovelace keeps the key.", id="key")
            mem.remember("Grace Hopper keeps the other.", id="other")
        yield {"PostgreSQL": postgres, "SQLite": sqlite}


@pytest.mark.parametrize("kind", ["PostgreSQL", "SQLite"])
@pytest.mark.parametrize("verb", VERBS)
def test_a_text_that_no_store_has_is_refused_in_one_sentence(stores: dict[str, Semmem], kind: str, verb: str) -> None:
    mem = stores[kind]
    before = mem.list(), mem.namespaces(), mem.settings_of()
    for label, arguments in _cases(verb):
        sentence = _refusal(mem, verb, arguments, label)
        assert "\n" not in sentence, label
        assert "\x00" not in sentence, label
        sentence.encode()
        assert (mem.list(), mem.namespaces(), mem.settings_of()) == before, label


def _refusal(mem: Semmem, verb: str, arguments: dict[str, Any], label: str) -> str:
    """Return the sentence by which a verb refuses arguments."""
    if verb == "import_items" and not arguments.keys() & {"mark", "owned", "namespace"}:  # the others go in
        (rejected,) = mem.import_items(**arguments).rejected
        return rejected.reason
    names = [arguments["names"]] if "names" in arguments else []
    call = getattr(mem, verb)
    try:
        (list if verb == "export" else id)(call(*names, **{k: v for k, v in arguments.items() if k != "names"}))
    except (InvalidInput, NotFound) as error:
        return str(error)
    pytest.fail(f"{verb} takes {label}")


@pytest.mark.parametrize("kind", ["PostgreSQL", "SQLite"])
@pytest.mark.parametrize("bad", BAD.values())
def test_a_text_that_reaches_a_store_unchecked_is_no_lost_connection(
    stores: dict[str, Semmem], kind: str, bad: str
) -> None:
    store = stores[kind].store
    if kind == "SQLite" and bad == BAD["NUL"]:
        assert store.row_ids_of("default", bad) == ()  # SQLite compares it
        return
    with pytest.raises(InvalidInput, match=r"cannot take a value of this call|half a surrogate pair"):
        store.row_ids_of("default", bad)
