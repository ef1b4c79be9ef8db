"""What stands beside a namespace changes nothing in it: same names, sessions, authors and texts, folded and indexed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import semmem

ASKED = (
    "What does Ada keep in the boathouse?",
    "Where does Zorvandel Kesh live?",
    "Who painted the quay?",
    "what did brannock say of the ledger",
    '"brass lantern"',
)


def items(namespace: str) -> list[dict[str, Any]]:
    """Return a chat, notes with titles, and one memory that is nobody's subject."""
    chat = [
        ("Ada", "Where is the brass lantern?"),
        ("Bram", "In the boathouse, beside the ledger."),
        ("Ada", "I keep my oars there too."),
        ("Bram", "And what do you keep on the quay?"),
    ]
    out: list[dict[str, Any]] = [
        {"id": f"t{at}", "text": text, "author": author, "session": "chat", "position": at, "tags": ["chat"]}
        for at, (author, text) in enumerate(chat)
    ]
    out.append({"id": "n0", "text": "She painted the quay and lives in Norrbeck.", "title": "Zorvandel Kesh"})
    out.append({"id": "n1", "text": "The ledger of Zorvandel Kesh is kept by Bram Olsen."})
    return [{**item, "namespace": namespace, "created_at": f"2026-01-0{at + 1}"} for at, item in enumerate(out)]


def held(mem: semmem.Semmem, namespace: str) -> Any:
    """Return what a namespace holds: its hashes, or where the store makes none all that was given."""
    return mem.hashes(namespace=namespace) if mem.store.kind == "PostgreSQL" else list(mem.export(namespace=namespace))


def beside() -> list[dict[str, Any]]:
    """Return the same for another namespace, and more: names that only it knows, authors that only it has."""
    more = [
        {
            "id": f"b{at}",
            "text": f"Brannock painted quay {at} with a brass lantern.",
            "title": "Brannock",
            "author": who,
        }
        for at, who in enumerate(["Zorvandel Kesh", "Brannock", "Ada"] * 4)
    ]
    more.append({"id": "b99", "text": "Everything of the boathouse.", "title": "Boathouse", "session": "chat"})
    return [*items("other"), *({**item, "namespace": "other"} for item in more)]


@pytest.fixture(scope="module", params=["postgres", "sqlite"])
def pair(
    request: pytest.FixtureRequest, module_store: Callable[[], str]
) -> Iterator[tuple[semmem.Semmem, semmem.Semmem]]:
    """A store with the namespace ``mine`` alone, and one where another stood, folded, before it came."""
    made = [module_store() if request.param == "postgres" else "sqlite::memory:" for _ in range(2)]
    with (
        semmem.connect(made[0], embedder="hashing", pool_size=2) as alone,
        semmem.connect(made[1], embedder="hashing", pool_size=2) as both,
    ):
        both.remember_many(beside())
        both.maintain()
        for mem in (alone, both):
            mem.remember_many(items("mine"))
            mem.maintain()
        yield alone, both


@pytest.mark.slow
@pytest.mark.parametrize("asked", ASKED)
def test_a_recall_is_the_same_to_the_last_digit(asked: str, pair: tuple[semmem.Semmem, semmem.Semmem]) -> None:
    alone, both = (mem.recall(asked, namespace="mine", limit=20) for mem in pair)
    assert [(hit.memory.id, hit.score, hit.components, hit.legs) for hit in both] == [
        (hit.memory.id, hit.score, hit.components, hit.legs) for hit in alone
    ]
    assert (both.total, both.total_is_exact, both.confidence, both.regime) == (
        alone.total, alone.total_is_exact, alone.confidence, alone.regime,
    )  # fmt: skip
    assert {leg: its.class_ for leg, its in both.reach.regimes[both.regime].legs.items()} == {
        leg: its.class_ for leg, its in alone.reach.regimes[alone.regime].legs.items()
    }


def test_what_is_derived_is_the_same_and_so_is_what_is_counted(pair: tuple[semmem.Semmem, semmem.Semmem]) -> None:
    alone, both = pair
    assert held(both, "mine") == held(alone, "mine")
    assert [memory.id for memory in both.list(namespace="mine").memories] == [
        memory.id for memory in alone.list(namespace="mine").memories
    ]
    if "graph" in alone.store.capabilities:
        assert both.graph_hash(namespace="mine") == alone.graph_hash(namespace="mine")
        assert both.concepts(namespace="mine") == alone.concepts(namespace="mine")


@pytest.mark.parametrize(
    ("filters", "count"), [({"authors": ["Ada"]}, 2), ({"sessions": ["chat"]}, 4), ({"tags": ["chat"]}, 4)]
)
def test_what_would_be_forgotten_is_counted_in_its_own_namespace(
    filters: dict[str, list[str]], count: int, pair: tuple[semmem.Semmem, semmem.Semmem]
) -> None:
    for mem in pair:
        assert mem.forget(namespace="mine", filters=filters, dry_run=True) == count
    assert pair[1].forget(namespace="other", filters={"tags": ["chat"]}, dry_run=True) == 4


def test_to_forget_here_forgets_nothing_there(pair: tuple[semmem.Semmem, semmem.Semmem]) -> None:
    _, both = pair
    there = held(both, "other")
    both.remember_many({**item, "namespace": "third"} for item in items("third"))
    assert both.forget(namespace="third", filters={"authors": ["Ada"]}) == 2
    assert both.forget("n0", namespace="third") == 1
    assert held(both, "other") == there
    both.forget(namespace="third", filters={"created_after": "2020-01-01"})
    assert both.list(namespace="third").memories == ()
