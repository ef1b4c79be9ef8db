"""How much the verbs of the library return where a caller says nothing."""

from __future__ import annotations

import semmem


def test_a_recall_returns_10_a_context_20_a_list_100_and_concepts_50() -> None:
    with semmem.connect("sqlite::memory:", embedder="none") as mem:
        mem.remember_many({"text": f"Kestrel {n}.", "title": f"Log{n}"} for n in range(120))
        assert len(mem.recall("kestrel")) == 10
        assert len(mem.context("kestrel", token_budget=100_000).hits) == 20
        assert len(mem.list().memories) == 100
        assert len(mem.concepts()) == 50
        assert mem.list(limit=1).memories[0].importance == 0.5


def test_messages_without_positions_go_on_behind_those_of_their_session() -> None:
    with semmem.connect("sqlite::memory:", embedder="none") as mem:
        for day in ("one", "two"):
            chat = [{"role": "user", "content": f"{who} on day {day}."} for who in ("Ada sails", "Bo rows")]
            mem.remember_messages(chat, session="s")
        turns = {turn.position: turn.text for turn in mem.list().memories}
        assert turns == {
            0: "Ada sails on day one.", 1: "Bo rows on day one.", 2: "Ada sails on day two.", 3: "Bo rows on day two.",
        }  # fmt: skip
