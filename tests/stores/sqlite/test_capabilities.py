"""SQLite on the second day: what maintenance and forgetting leave, another language, what it loads."""

from __future__ import annotations

from pathlib import Path

import pytest

import semmem
from semmem.stores.sqlite.graph import SqliteGraph
from semmem.stores.sqlite.store import SqliteStore
from semmem.stores.sqlite.write import token
from semmem.text.passages import term_key
from tests.stores.sqlite.bakery import fill, fresh


def test_maintenance_joins_the_index_once_and_changes_no_answer(mem: semmem.Semmem) -> None:
    fill(mem)
    before = [(h.memory.id, h.score) for h in mem.recall("rye bakery", namespace="n")]
    first = mem.maintain()
    assert first["joined"] > 0
    assert not any(mem.maintain().values())
    assert [(h.memory.id, h.score) for h in mem.recall("rye bakery", namespace="n")] == before


def test_maintain_reads_no_small_namespace_to_count_the_names_that_more_than_thirty_memories_mention(
    mem: semmem.Semmem, monkeypatch: pytest.MonkeyPatch
) -> None:
    for namespace, count in (("small", 30), ("large", 31)):
        items = [{"text": f"Ada Lovelace met owl {n}.", "namespace": namespace} for n in range(count)]
        mem.remember_many(items)
    read: list[str] = []
    before = SqliteGraph.hubs
    monkeypatch.setattr(SqliteGraph, "hubs", lambda self, n, most: read.append(n) or before(self, n, most))
    assert mem.maintain()["hubs"] == 1
    assert read == ["large"]


def test_texts_read_anew_in_another_language_match_by_its_stems(mem: semmem.Semmem, file: Path) -> None:
    mem.remember("Die Reiher standen in den Häusern.", id="a")
    mem.remember("heron", id="b")
    with semmem.connect(f"sqlite://{file}", embedder="none", language="german") as german:
        with pytest.raises(semmem.InvalidInput, match=r"read in english and .* is german"):
            german.recall("Haus")
        assert german.store.postings(["default"], [])["default"].length == 5 + 1
        assert german.rebuild(extract=True).changed == 1  # heron is the same in both
        assert german.rebuild(extract=True).changed == 0
        assert [h.memory.id for h in german.recall("Haus")] == ["a"]
        # in English "in" is no term, so 5 of 6; in German "die" and "den" are none either; heron is 1 more
        assert german.store.postings(["default"], [])["default"].length == 3 + 1


@pytest.mark.parametrize("hard", [False, True])
def test_what_is_forgotten_is_found_no_more_and_hard_leaves_no_byte_of_it(
    mem: semmem.Semmem, file: Path, hard: bool
) -> None:
    mem.remember_many([{"id": f"m{n}", "text": f"heron {n}"} for n in range(20)])
    mem.remember("the unmistakable Quetzalcoatl", id="gone", author="Xochitl", metadata={"k": "Nezahualcoyotl"})
    mem.remember("stays", id="stays")
    secrets = [s.encode() for s in ("Quetzalcoatl", "Xochitl", "Nezahualcoyotl", token(1, term_key("quetzalcoatl")))]

    def left() -> list[bytes]:
        files = [path for path in file.parent.iterdir() if path.name.startswith(file.name)]
        content = b"".join(path.read_bytes() for path in files)
        return [s for s in secrets if s in content]

    assert mem.recall("Quetzalcoatl")[0].memory.id == "gone"
    assert len(left()) >= 3  # FTS5 may keep the token in two pieces
    assert mem.forget("gone", hard=hard) == 1
    assert len(mem.recall("Quetzalcoatl")) == 0
    assert mem.stats().memories == 21
    if hard:
        assert left() == []


def test_an_emptied_namespace_leaves_nothing_that_a_later_one_could_find(mem: semmem.Semmem) -> None:
    mem.remember("heron", id="a", namespace="one")
    mem.forget("a", namespace="one")
    mem.remember("tide", id="a", namespace="two")
    assert mem.stats(namespace="one").namespaces == 0
    assert len(mem.recall("heron", namespace=["one", "two"])) == 0
    assert list(mem.store.namespaces()) == ["two"]
    first = mem.store.row_ids_of("two", "a")
    mem.forget("a", namespace="two")
    mem.remember("tide", id="a", namespace="two")
    assert mem.store.row_ids_of("two", "a") > first  # a row id is never given twice


def test_no_driver_of_postgresql_is_loaded_and_no_model_without_a_vector_to_make(file: Path) -> None:
    program = (
        "with semmem.connect(url, embedder='none') as mem:\n    mem.remember('heron')\n    mem.recall('heron')\n"
        "found = {m.split('.')[0] for m in sys.modules}\n"
        "print(sorted(found & {'psycopg', 'psycopg_pool', 'torch', 'sentence_transformers', 'networkx', 'spacy'}))"
    )
    assert fresh(f"sqlite://{file}", program).stdout == "[]\n"


def test_a_store_says_what_it_can(mem: semmem.Semmem) -> None:
    assert isinstance(mem.store, SqliteStore)
    assert (mem.store.kind, mem.store.capabilities) == ("SQLite", frozenset({"lexical", "dense", "graph"}))
