"""A store may lie on several nodes: tables distributed by their namespace give the answers of one node."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

import semmem
from semmem.client.memory import Semmem
from semmem.embedders.hashing import Hashing
from semmem.stores.postgres import nearest
from tests.stores.audit import check
from tests.stores.namespaces import full, namespace_answers
from tests.stores.postgres.nodes import Cluster, wants_citus
from tests.stores.postgres.test_moving_namespaces import REFUSED, killed, moved, unseen

SPACES = tuple(f"space {n}" for n in range(5))
QUESTIONS = ("Which owl did Ada Lovelace meet?", "What did Author 2 say of the quay?", '"the quay" at 7')

pytestmark = wants_citus


class Renamed(Hashing):
    """The vectors of Hashing under another name, as of another embedder."""

    name = "hashing of another name"
    fingerprint = "another"


@pytest.fixture(scope="module")
def nodes(citus: Cluster) -> str:
    """The URL of an empty store on a coordinator and two workers."""
    return citus.database("answers", parts=8)[0]


def fill(mem: Semmem) -> None:
    for at, namespace in enumerate(SPACES):
        items = [
            {
                "id": f"m{n}", "text": f"Note {n}: Ada Lovelace met owl {n % 7} near the quay at {n}.",
                "title": f"Owl {n}" if n % 9 == 0 else None, "author": f"Author {n % 3}", "session": f"s{n % 5}",
                "position": n, "tags": [f"t{n % 4}"], "metadata": {"n": n}, "created_at": "2026-01-31",
            }
            for n in range(30 + 20 * at)
        ]  # fmt: skip
        mem.remember_many(items, namespace=namespace)
        mem.remember("Charles Babbage built the engine near the quay.", id="late", namespace=namespace, title="Engine",
                     created_at="2026-02-01")  # fmt: skip
        mem.remember("The whole text is long. " * 120, id="long", namespace=namespace, created_at="2026-02-02")
        mem.update("m3", namespace=namespace, text="Note 3: Mary Shelley met nobody.")


def answers(mem: Semmem) -> list[Any]:
    """Return what people see of a store, but for its bytes and the times of changes."""
    out: list[Any] = []
    for space in SPACES:
        narrowed: list[dict[str, Any]] = [{"filters": {"tags": ["t1"]}}, {"exclude": ["m9"]}]
        for question, how in (*((each, {}) for each in QUESTIONS), *((QUESTIONS[1], each) for each in narrowed)):
            found = mem.recall(question, namespace=space, **how)
            assert found.degraded == {}
            out.append([(hit.memory.id, hit.score, dict(hit.components)) for hit in found] + [found.total])
        page = mem.list(namespace=space, limit=20)
        out.append([(m.id, m.text, m.version) for m in page])
        stats = mem.stats(namespace=space)
        out.append((stats.memories, stats.parts, stats.concepts, stats.mentions, stats.vectors))
        out.append([(c.name, c.df) for c in mem.concepts(namespace=space)])
    both = mem.recall(QUESTIONS[0], namespace=SPACES[:3])
    out.append([(hit.memory.namespace, hit.memory.id, hit.score) for hit in both])
    out.append({name: (held.memories, held.vectors, held.vector, held.graph) for name, held in mem.hashes().items()})
    out.append(str(mem.recall(QUESTIONS[0], namespace=SPACES[1]).explain("m9")))
    return out


@pytest.fixture
def both(nodes: str, store_url: str) -> Iterator[tuple[Semmem, Semmem]]:
    """A store on one node and one on three, both empty."""
    with (
        semmem.connect(store_url, embedder="hashing", pool_size=4) as one,
        semmem.connect(nodes, embedder="hashing", pool_size=4) as three,
    ):
        for space in three.namespaces():
            three.drop_namespace(space.name)
        yield one, three


def life(mem: Semmem) -> list[Any]:
    """Do with a memory what can be done, and return what each verb says."""
    where: dict[str, Any] = {"namespace": SPACES[0]}
    out: list[Any] = [mem.update("m5", text="Note 5: a crow met owl 3.", changed_by="Ada", **where).version]
    out.append([(one.version, one.memory.text, one.changed_by) for one in mem.history("m5", **where)])
    out.append(mem.get("m5", as_of="2026-02-01", **where).text)
    out.append([hit.id for hit in mem.recall(QUESTIONS[0], as_of="2026-02-01", **where)])
    out.append(mem.link("m6", "supersedes", "m7", **where).made_by)
    out.append([(one.from_id, one.type, one.to_id) for one in mem.links("m6", **where)])
    out.append([(hit.id, hit.superseded_by) for hit in mem.recall("note 7: owl 0", **where)])
    out += [mem.unlink("m6", "supersedes", "m7", **where), mem.forget("m8", **where)]
    out.append(mem.restore_memory("m8", **where).text)
    out.append(mem.forget("m9", hard=True, **where))
    out.append(mem.forget(filters={"sessions": ["s2"]}, hard=True, dry_run=True, **where))
    out.append(mem.remember("The key is under the mat.", id="hidden", sensitive=True, **where).text)
    out.append([(one.id, one.kind) for one in mem.changes(**where) if one.kind != "dropped"])
    return out


def test_three_nodes_keep_what_becomes_of_a_memory_as_one_does(both: tuple[Semmem, Semmem]) -> None:
    for mem in both:
        fill(mem)
    one, three = map(life, both)
    assert three == one
    assert one[:3] == [2, one[1], "Note 5: Ada Lovelace met owl 5 near the quay at 5."]
    assert [answers(mem) for mem in both[1:]] == [answers(both[0])]


def test_three_nodes_copy_rename_and_drop_namespaces_as_one_does(both: tuple[Semmem, Semmem]) -> None:
    for mem in both:
        fill(mem)
        mem.namespace_limits(SPACES[0], most_memories=1_000)
        assert mem.copy_namespace(SPACES[0], "copy") == 32
        assert mem.rename_namespace("copy", "renamed") == 32
        assert [(one.name, one.memories) for one in mem.namespaces()] == [
            ("renamed", 32), ("space 0", 32), ("space 1", 52), ("space 2", 72), ("space 3", 92), ("space 4", 112),
        ]  # fmt: skip
        with pytest.raises(semmem.Conflict):
            mem.rename_namespace("renamed", SPACES[1])
        found, same = (mem.recall(QUESTIONS[0], namespace=name) for name in ("renamed", SPACES[0]))
        assert [(hit.id, hit.score) for hit in found] == [(hit.id, hit.score) for hit in same]
        mem.maintain()
        check(mem)
    assert answers(both[1]) == answers(both[0])
    for mem in both:
        assert mem.drop_namespace("renamed") == 32
        check(mem)


@pytest.mark.parametrize("step", [4, 12])
def test_three_nodes_hide_a_namespace_that_is_not_filled_and_end_a_move_that_was_killed(
    both: tuple[Semmem, Semmem], monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    _, mem = both
    full(mem, "old")
    before = namespace_answers(mem, "old")
    killed(mem, monkeypatch, step, stay=False)
    assert namespace_answers(mem, "old") == before
    unseen(mem, "new")
    assert mem.recall("owl 7", namespace="new", as_of="2030-01-01").total == 0
    assert "Owl" not in str(mem.context("owl 7", namespace="new"))
    assert len(mem.judgments(namespace="new")) == 0
    with pytest.raises(semmem.StoreUnavailable, match=REFUSED):
        mem.remember("New.", namespace="old")
    with pytest.raises(semmem.StoreUnavailable, match=REFUSED):
        mem.link("m7", "see-also", "m8", namespace="old")
    assert mem.maintain()["moves"] == 2
    assert moved(mem, stay=False) == 70
    assert namespace_answers(mem, "new") == before
    check(mem)


def test_three_nodes_get_the_vectors_of_another_embedder_as_one_does(
    both: tuple[Semmem, Semmem], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nearest, "INDEX_FROM", 100)
    for mem in both:
        fill(mem)
        mem.maintain()
    assert answers(both[1]) == answers(both[0])
    made = [mem.rebuild(embedder=Renamed()).embedded for mem in both]
    assert made[0] == made[1] == both[0].stats().vectors
    assert answers(both[1]) == answers(both[0])
    for mem in both:
        mem.remember("A heron came late.", id="heron", namespace=SPACES[0])
        mem.maintain()
        check(mem)
        assert mem.rebuild(embedder="hashing").embedded == made[0] + 1
    assert answers(both[1]) == answers(both[0])


def test_three_nodes_give_the_answers_of_one(nodes: str, both: tuple[Semmem, Semmem]) -> None:
    one, three = both
    with psycopg.connect(nodes) as connection:
        shard = "get_shard_id_for_distribution_column('semmem.memory', n)"
        placed = f"SELECT count(DISTINCT {shard}) FROM unnest(%s::text[]) AS n"
        assert connection.execute(placed, (list(SPACES),)).fetchone()[0] > 1  # type: ignore[index]
    for mem in (one, three):
        fill(mem)
    assert answers(three) == answers(one)
    for mem in (one, three):
        assert mem.forget("m4", namespace=SPACES[0]) == 1
        assert mem.forget(namespace=SPACES[1], filters={"sessions": ["s1"]}) == 10
        assert mem.store.forget_namespace(SPACES[2], dry_run=False) == 72
        mem.remember("A new beginning.", id="again", namespace=SPACES[2], created_at="2026-03-01")
        mem.store.change_settings(SPACES[3], {"weights.graph": 0.5}, [])
        mem.maintain()
    assert answers(three) == answers(one)
    assert three.rebuild(extract=True).read == one.rebuild(extract=True).read
    assert answers(three) == answers(one)
    check(one)
    check(three)
