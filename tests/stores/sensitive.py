"""What every store does with sensitive memories: a class of tests over a ``mem`` fixture that a subclass gives."""

from __future__ import annotations

import random
from typing import Any

import pytest

import semmem
from semmem.model.types import MASK

__all__ = ["SensitiveConformance"]

SECRET = "the door opens to zqx7 kolibri"
"""A text whose words no other memory of these tests has."""


def _rows(mem: semmem.Semmem, sql: str) -> list[Any]:
    """Return the rows of a statement, whatever the store is made of."""
    run: Any = getattr(mem.store, "run", None) or getattr(mem.store, "_run", None)
    rows: list[Any] = run(lambda c: c.execute(sql).fetchall())
    return rows


def _do(mem: semmem.Semmem, sql: str) -> None:
    run: Any = getattr(mem.store, "run", None) or getattr(mem.store, "_run", None)
    run(lambda c: c.execute(sql))


def derived(mem: semmem.Semmem) -> dict[str, int]:
    """Return how many rows each table has that is derived from texts."""
    tables = ["forward", "pending", "posting", "embedding", "embedding_next", "relationship"]
    if mem.store.kind == "SQLite":
        tables = ["lexical", "forward", "embedding", "embedding_next", "relationship"]
    return {table: _rows(mem, f"SELECT count(*) FROM {table}")[0][0] for table in tables}


class SensitiveConformance:
    """Subclass it, and give a fixture ``mem``: a Semmem over an empty store, with the embedder hashing."""

    def test_a_memory_stays_sensitive_unless_false_is_said(self, mem: semmem.Semmem) -> None:
        mem.remember(SECRET, id="w", sensitive=True)
        assert mem.update("w", sensitive=None, title="Door").sensitive
        mem.import_items(
            [{"id": "w", "text": SECRET, "tags": ["x"], "sensitive": None}], owned={"titles": "Door"}, replace=True
        )
        assert mem.get("w").sensitive
        assert mem.recall("kolibri").hits == ()
        assert not mem.update("w", sensitive=False).sensitive

    def test_nothing_is_derived_from_a_sensitive_text(self, mem: semmem.Semmem) -> None:
        mem.remember("Kolibri is a bird.", id="plain", title="Kolibri", author="Ana", session="s")
        before = derived(mem), mem.stats()
        mem.remember(SECRET, id="w", title="Kolibri", author="Zoe Kolibri", session="s", tags=["net"], sensitive=True)
        mem.remember_many([{"text": f"{SECRET} {i}", "title": f"Kolibri {i}", "sensitive": True} for i in range(70)])
        assert derived(mem) == before[0]
        after = mem.stats()
        assert (after.memories, after.concepts, after.mentions, after.vectors) == (
            before[1].memories + 71, before[1].concepts, before[1].mentions, before[1].vectors,
        )  # fmt: skip
        mem.maintain()
        mem.rebuild(extract=True)
        if mem.store.vectors is not None:
            assert mem.rebuild().embedded == 0
        folded = {"pending": 0, "posting": 0}
        assert derived(mem) | folded == before[0] | folded

    @pytest.mark.parametrize("question", ["zqx7", "kolibri", "Zoe Kolibri", "what did Zoe say?", f'"{SECRET}"'])
    def test_no_recall_finds_a_sensitive_memory(self, mem: semmem.Semmem, question: str) -> None:
        mem.remember(SECRET, id="w", title="Kolibri", author="Zoe", session="s", position=2, tags=["t"], sensitive=True)
        mem.remember("Kolibri before.", id="a", session="s", position=1, author="Ana", tags=["t"])
        mem.remember("Kolibri after.", id="b", session="s", position=3, author="Bo", tags=["t"])
        for filters in (None, {"tags": ["t"]}, {"titles": ["Kolibri"]}, {"sessions": ["s"]}, {"sensitive": True}):
            found = mem.recall(question, filters=filters)
            assert "w" not in [hit.id for hit in found]
            assert SECRET not in str(found.as_dict())
        with pytest.raises(semmem.InvalidInput, match="'w' is sensitive: it is in no index"):
            mem.recall(question).explain("w")

    def test_it_is_masked_unless_it_is_revealed(self, mem: semmem.Semmem) -> None:
        made = mem.remember(SECRET, id="w", title="Wifi", tags=["net"], sensitive=True)
        assert (made.text, made.sensitive) == (MASK, True)
        assert mem.get("w").text == MASK
        assert mem.get("w", reveal=True).text == SECRET
        assert [m.text for m in mem.list()] == [MASK]
        assert [m.text for m in mem.list(reveal=True)] == [SECRET]
        with pytest.raises(semmem.InvalidInput, match="reveal must be True or False, not 'yes'"):
            mem.get("w", reveal="yes")  # type: ignore[arg-type]

    @pytest.mark.parametrize(
        ("filters", "found"),
        [
            (None, True), ({"titles": "Wifi"}, True), ({"tags": ["net"]}, True), ({"sensitive": True}, True),
            ({"titles": ["Wifi", "x"], "sessions": ["s"]}, True), ({"titles": "wifi"}, False),
            ({"titles": "Wif"}, False), ({"sessions": ["s"]}, False), ({"authors": ["Ana"]}, False),
            ({"metadata": {"pin": 1}}, False), ({"created_after": "2020-01-01"}, False), ({"sensitive": False}, False),
        ],
    )  # fmt: skip
    def test_it_is_listed_by_its_exact_title_by_a_tag_or_without_filters(
        self, mem: semmem.Semmem, filters: Any, found: bool
    ) -> None:
        mem.remember(
            SECRET, id="w", title="Wifi", tags=["net"], session="s", author="Ana", metadata={"pin": 1}, sensitive=True
        )
        assert [m.id for m in mem.list(filters=filters)] == (["w"] if found else [])

    def test_the_same_again_changes_nothing_and_another_text_is_a_conflict(self, mem: semmem.Semmem) -> None:
        given: dict[str, Any] = {"id": "w", "title": "Wifi", "sensitive": True, "metadata": {"n": 1}}
        first = mem.remember(SECRET, **given)
        assert mem.remember(SECRET, **given) == first
        report = mem.remember_many([{"text": SECRET, **given}, {"text": SECRET, **given}])
        assert (report.remembered, report.unchanged) == (0, 2)
        for text, more in [("other", {}), (SECRET, {"sensitive": False}), (SECRET, {"created_at": "2026-01-01"})]:
            with pytest.raises(semmem.Conflict) as told:
                mem.remember(text, **{**given, **more})
            assert SECRET not in str(told.value)

    def test_no_stored_hash_tells_of_a_sensitive_text(self, mem: semmem.Semmem) -> None:
        for id in ("a", "b"):
            mem.remember(SECRET, id=id, sensitive=True)
        mem.remember(SECRET, id="c")
        mem.remember(SECRET, id="d")
        hashes = _rows(mem, "SELECT id, content, payload FROM memory ORDER BY id")
        assert len({bytes(content) for _, content, _ in hashes}) == 3
        assert len({bytes(payload)[:15] for _, _, payload in hashes}) == 3

    def test_an_update_takes_a_text_out_of_every_index_and_back(self, mem: semmem.Semmem) -> None:
        mem.remember("Tea at four.", id="other")
        before = derived(mem)
        mem.remember(SECRET, id="w", title="Kolibri")
        indexed = derived(mem)
        assert indexed != before
        hidden = mem.update("w", sensitive=True)
        assert (hidden.text, hidden.version, hidden.sensitive) == (MASK, 2, True)
        gone = derived(mem)
        assert gone == before
        assert "w" not in [hit.id for hit in mem.recall("zqx7")]
        changed = mem.update("w", text=f"{SECRET} again")
        assert (changed.sensitive, mem.get("w", reveal=True).text) == (True, f"{SECRET} again")
        assert "w" not in [hit.id for hit in mem.recall("zqx7")]
        mem.update("w", sensitive=False)
        assert mem.recall("zqx7")[0].text == f"{SECRET} again"
        assert derived(mem) == indexed
        assert mem.update("w", sensitive=False).version == 4

    def test_an_update_tells_nobody_whether_the_text_was_guessed(self, mem: semmem.Semmem) -> None:
        begun: dict[str, Any] = {"title": "Safe", "valid_from": "2020-01-01", "sensitive": True}
        seen = []
        for id, guess in (("right", SECRET), ("wrong", f"{SECRET}!")):
            mem.remember(SECRET, id=id, **begun)
            told = mem.update(id, text=guess, tags=["x"])
            line = [(one.version, one.changed, one.memory.valid_from, one.diff(one)) for one in mem.history(id)]
            seen.append((told.version, told.text, told.valid_from, line, mem.get(id).as_dict().keys()))
            assert mem.get(id, reveal=True).text == guess
        assert seen[0] == seen[1]
        assert (seen[0][0], seen[0][3][-1][1]) == (2, ("tags", "valid_from"))
        assert [one.changed[:1] for one in mem.history("wrong", reveal=True)] == [(), ("text",)]
        assert mem.update("right", tags=["x"]).version == 2  # another field alone is compared as ever
        assert mem.update("right", title="Vault").title == "Vault"
        assert [one.changed for one in mem.history("right")][-1] == ("title",)

    def test_earlier_versions_are_masked_from_the_update_on_that_makes_it_sensitive(self, mem: semmem.Semmem) -> None:
        mem.remember("Tea at four.", id="w")
        mem.update("w", text=SECRET)
        mem.update("w", sensitive=True)
        mem.update("w", text="open again", sensitive=False)
        assert [one.memory.text for one in mem.history("w")] == [MASK, MASK, MASK, "open again"]
        texts = [one.memory.text for one in mem.history("w", reveal=True)]
        assert texts == ["Tea at four.", SECRET, SECRET, "open again"]
        assert SECRET not in mem.history("w")[2].diff(mem.history("w")[0])
        held = _rows(mem, "SELECT version, length, entries, payload FROM history ORDER BY version")
        assert [length for _, length, _, _ in held] == [0, 0, 0]
        assert {entries for _, _, entries, _ in held} <= {None, "[]"}

    def test_a_conflict_of_versions_shows_no_sensitive_text(self, mem: semmem.Semmem) -> None:
        mem.remember(SECRET, id="w", sensitive=True)
        mem.remember("open", id="o")
        for id, changes in [("w", {"text": "mine"}), ("o", {"text": SECRET, "sensitive": True})]:
            with pytest.raises(semmem.Conflict) as told:
                mem.update(id, expected_version=7, **changes)
            assert str(told.value).endswith("is at version 1, not 7; read it again, and update what you find.")

    def test_it_is_forgotten_as_any_other(self, mem: semmem.Semmem) -> None:
        for id in "abcd":
            mem.remember(f"{SECRET} {id}", id=id, session=id, sensitive=True)
        assert mem.forget("a") == 1
        assert mem.forget(filters={"sessions": ["b"]}) == 1
        assert mem.forget(filters={"sensitive": True}, dry_run=True) == 2
        assert mem.forget(everything=True) == 2
        assert (mem.stats().memories, mem.list().memories) == (0, ())

    def test_a_hard_forget_takes_the_questions_that_found_it_and_what_was_said_of_their_hits(
        self, mem: semmem.Semmem
    ) -> None:
        mem.remember("Tea at four.", id="it's")
        mem.remember("Tea at five.", id="other")
        at = "now()" if mem.store.kind == "PostgreSQL" else "0"
        useful = '{"outcome": "given", "useful": true, "judged_at": "2026-01-01T00:00:00.000000+00:00"}'
        first = f'{{"it\'\'s": {{"outcome": "withheld"}}, "other": {useful}}}'
        for name, hits in (("r1", first), ("r2", f'{{"other": {useful}}}'), ("r3", '{"its": {}}')):
            columns = "(namespace, recall_id, at, query, hits)"
            _do(mem, f"INSERT INTO recall_log {columns} VALUES ('default', '{name}', {at}, 'tea?', '{hits}')")
        mem.forget("it's", hard=True)
        assert _rows(mem, "SELECT recall_id FROM recall_log ORDER BY 1") == [("r2",), ("r3",)]
        assert [(one.recall_id, one.id) for one in mem.judgments()] == [("r2", "other")]
        assert _rows(mem, "SELECT kind FROM change WHERE id = 'it''s'") == [("forgotten",)]

    def test_it_moves_with_its_namespace_and_stays_hidden(self, mem: semmem.Semmem) -> None:
        mem.remember(SECRET, id="w", namespace="a", sensitive=True)
        mem.remember("Tea.", id="t", namespace="a")
        mem.copy_namespace("a", "b")
        mem.rename_namespace("a", "c")
        for name in "bc":
            assert mem.get("w", namespace=name).text == MASK
            assert "w" not in [hit.id for hit in mem.recall("zqx7 kolibri", namespace=name)]
            assert mem.get("w", namespace=name, reveal=True).text == SECRET

    def test_what_was_forgotten_softly_comes_back_hidden(self, mem: semmem.Semmem) -> None:
        mem.remember(SECRET, id="w", sensitive=True)
        mem.forget("w")
        assert [one.memory.text for one in mem.history("w")] == [MASK]
        assert mem.restore_memory("w").text == MASK
        assert mem.get("w", reveal=True).text == SECRET
        assert "w" not in [hit.id for hit in mem.recall("zqx7 kolibri")]

    def test_a_namespace_of_sensitive_memories_alone_stays(self, mem: semmem.Semmem) -> None:
        mem.remember(SECRET, id="w", namespace="vault", sensitive=True)
        mem.maintain()
        assert [one.name for one in mem.namespaces()] == ["vault"]
        assert list(mem.store.namespaces()) == ["vault"]
        assert [row["id"] for row in mem.export(namespace=None, sensitive=True)] == ["w"]

    def test_an_export_leaves_it_out_unless_it_is_asked_for(self, mem: semmem.Semmem) -> None:
        mem.remember("Tea.", id="t")
        mem.remember(SECRET, id="w", sensitive=True)
        assert [row["id"] for row in mem.export()] == ["t"]
        rows = {row["id"]: row for row in mem.export(sensitive=True)}
        assert (rows["w"]["text"], rows["w"]["sensitive"], "sensitive" in rows["t"]) == (SECRET, True, False)
        mem.forget(everything=True)
        assert mem.import_items(list(rows.values())).remembered == 2
        assert (mem.get("w").text, mem.get("w", reveal=True).text) == (MASK, SECRET)
        assert mem.import_items(list(rows.values())).unchanged == 2

    def test_a_message_of_a_chat_may_be_sensitive(self, mem: semmem.Semmem) -> None:
        chat = [{"role": "user", "content": SECRET, "sensitive": True}, {"role": "assistant", "content": "Noted."}]
        mem.remember_messages(chat[:1], session="s")
        mem.remember_messages(chat[1:], session="s")
        assert [(m.position, m.text) for m in mem.list()] == [(1, "Noted."), (0, MASK)]

    def test_what_is_no_truth_value_and_a_vector_are_refused(self, mem: semmem.Semmem) -> None:
        with pytest.raises(semmem.InvalidInput, match="sensitive must be True or False, not 'yes'"):
            mem.remember("x", sensitive="yes")  # type: ignore[arg-type]
        with pytest.raises(semmem.InvalidInput, match="A sensitive memory has no vector"):
            mem.remember("x", sensitive=True, vector=[1.0, 0.0])
        with pytest.raises(semmem.InvalidInput, match="The text is the placeholder of a sensitive memory"):
            mem.remember(MASK)
        with pytest.raises(semmem.InvalidInput, match="The filter sensitive must be True or False, not 'x'"):
            mem.list(filters={"sensitive": "x"})  # type: ignore[typeddict-item]

    def test_sensitive_and_open_memories_in_one_batch_are_each_what_they_are(self, mem: semmem.Semmem) -> None:
        drawn = random.Random(7)
        items = [{"text": f"note {i} kolibri", "id": str(i), "sensitive": drawn.random() < 0.5} for i in range(40)]
        mem.remember_many(items)
        hidden = {str(item["id"]) for item in items if item["sensitive"]}
        assert {m.id for m in mem.list(filters={"sensitive": True})} == hidden
        assert {hit.id for hit in mem.recall("kolibri", limit=100)} == {str(i) for i in range(40)} - hidden
