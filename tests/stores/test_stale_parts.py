"""What an older splitter, likeness or extractor made is made anew by maintain, over every store there is."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest

import semmem
from semmem.client.memory import Semmem
from semmem.extractors import Rules
from semmem.model.exchange import DerivationVersion, Extraction
from semmem.model.history import Comparison
from semmem.model.store.derivations import Span
from semmem.text import passages
from semmem.write import derivations, ingest, items
from tests.stores.audit import check

LONG = " ".join(f"Sentence number {n} of the long report is here." for n in range(40))
TEXTS = [f"Grace Hopper met visitor {n} in room {n}." for n in range(7)]
Open = Callable[..., contextlib.AbstractContextManager[Semmem]]


class Read(Rules):
    """Rules of a later version, which read each text as if it went on."""

    version = "10"
    reads: ClassVar[list[str]] = []
    fails = 0

    def extract(self, text: str, title: str | None = None) -> Extraction:
        """Return the extraction of the text and of what it adds."""
        if self.fails and len(self.reads) >= self.fails:
            raise RuntimeError("Out of order.")
        self.reads.append(text)
        return super().extract(f"{text} So said Alan Turing.", title)


@pytest.fixture(params=["sqlite", "postgres"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    """Open one store as often as a test wants to, with the settings that it gives."""
    if request.param == "sqlite":
        return lambda **settings: semmem.connect(f"sqlite://{tmp_path / 'notes.db'}", embedder="none", **settings)
    url = request.getfixturevalue("store_url")
    return lambda **settings: semmem.connect(url, embedder="hashing", pool_size=2, **settings)


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> type[Read]:
    """Rules of a later version, which note what they read."""
    monkeypatch.setattr(Read, "reads", [])
    monkeypatch.setattr(Read, "fails", 0)
    monkeypatch.setattr(derivations, "AT_ONCE", 3)
    return Read


def cut_shorter(monkeypatch: pytest.MonkeyPatch, version: int) -> None:
    """Let texts be cut after 300 characters, by a later version of the splitter."""

    def split(text: str, **limits: Any) -> list[str]:
        return passages.split(text, **{**limits, "max_chars": 300})

    monkeypatch.setattr(items, "split", split)
    monkeypatch.setattr(ingest, "SPLITTER", version)


def filled(opened: Open) -> None:
    with opened() as mem:
        for n, text in enumerate(TEXTS):
            mem.remember(text, id=f"m{n}")
        mem.remember(LONG, id="long", title="Report")
        mem.remember("The code of the door is 4711.", id="door", sensitive=True)
        mem.maintain()


def test_nothing_is_stale_that_this_version_made_and_an_update_or_a_forget_leaves_nothing_stale(opened: Open) -> None:
    filled(opened)
    with opened() as mem:
        mem.update("m0", text="Grace Hopper met nobody.")
        mem.forget("m1")
        mem.restore_memory("m1")
        assert mem.stats().stale == 0
        assert not {"rebuilt", "stale"} & mem.maintain().keys()


def test_what_is_current_in_its_language_is_stale_for_no_process_of_another(opened: Open) -> None:
    with opened(language="english") as mem:
        mem.remember("An owl met Ada.")
    with opened(language="german") as mem:
        mem.remember("Eine Eule traf Ada.", namespace="de")
        assert (mem.stats().stale, mem.maintain().get("stale", 0)) == (0, 0)


def test_what_older_rules_extracted_is_extracted_again_once_and_is_then_what_the_new_ones_find(
    opened: Open, later: type[Read]
) -> None:
    filled(opened)
    with opened(extractor=later()) as mem:
        whole = mem.list(limit=20), [mem.history(f"m{n}") for n in range(7)]
        at = mem.changes("now").cursor
        assert mem.stats().stale == mem.stats(namespace="default").stale == 8  # nothing is derived of the sensitive one
        assert mem.stats(namespace="other").stale == 0
        assert not [hit for hit in mem.recall("Turing") if "lexical" in hit.legs]
        mem.remember("Grace Hopper met the cook.", id="new")
        assert mem.maintain()["rebuilt"] == 8
        assert mem.stats().stale == 0
        assert {hit.id for hit in mem.recall("Turing", limit=20)} >= {"long", "new", *(f"m{n}" for n in range(7))}
        read = len(later.reads)
        assert "rebuilt" not in mem.maintain()
        assert len(later.reads) == read
        mem.forget("new", hard=True)
        assert (mem.list(limit=20), [mem.history(f"m{n}") for n in range(7)]) == whole
        assert [(one.id, one.kind) for one in mem.changes(at)] == [("new", "forgotten")]
        if mem.store.graph is not None:
            before = mem.graph_hash()
            mem.rebuild(extract=True)
            assert mem.graph_hash() == before
        check(mem)


def test_what_an_interrupted_maintain_has_left_the_next_one_does_and_nothing_is_lost(
    opened: Open, later: type[Read], monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(opened)
    with opened(extractor=later()) as mem:
        whole = mem.list(limit=20)
        mark, left = type(mem.store.life).mark_made, [1]

        def marking(self: Any, namespace: str, span: Span) -> None:
            if not left:
                raise RuntimeError("The lights went out.")
            left.pop()
            mark(self, namespace, span)

        monkeypatch.setattr(type(mem.store.life), "mark_made", marking)
        with pytest.raises(RuntimeError, match="lights"):
            mem.maintain()
        monkeypatch.undo()
    with opened(extractor=later()) as mem:
        assert mem.stats().stale == 5  # one step of three is marked; the next is done, and done again
        assert mem.maintain()["rebuilt"] == 5
        assert mem.stats().stale == 0
        assert mem.list(limit=20) == whole
        assert {hit.id for hit in mem.recall("Turing", limit=20)} >= {"long", *(f"m{n}" for n in range(7))}


def test_what_the_extractor_cannot_read_keeps_what_it_has_and_stays_stale(opened: Open, later: type[Read]) -> None:
    filled(opened)
    later.fails = 4
    with opened(extractor=later()) as mem:
        done = mem.maintain()
        assert (done["rebuilt"], done["stale"], mem.stats().stale) == (3, 5, 5)
        assert mem.recall("visitor 6")[0].id == "m6"
        later.fails = 0
        assert mem.maintain()["rebuilt"] == 5


def test_a_later_splitter_cuts_long_texts_anew_and_they_stay_the_memories_they_were(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(opened)
    with opened() as mem:
        mem.update("long", text=f"{LONG} At last.", changed_by="Ada")
        mem.remember("See the report.", id="see")
        mem.link("see", "see-also", "long")
        mem.remember("Tea, please.")
        tea = mem.remember("Tea, please.")
        before = mem.list(limit=20), mem.history("long"), mem.links("long")
        parts, vectors, at = mem.stats().parts, mem.stats().vectors, mem.changes("now").cursor
    cut_shorter(monkeypatch, 2)
    with opened() as mem:
        asked: list[int] = []
        kind = type(mem._here.ingest)
        write = kind.make_anew
        monkeypatch.setattr(kind, "make_anew", lambda self, drafts: (asked.append(len(drafts)), write(self, drafts)))
        assert mem.stats().stale == 10
        assert mem.maintain()["rebuilt"] == 10
        assert asked == [1]  # the others are cut where they were
        assert mem.stats().stale == 0
        assert mem.stats().parts == 7 > parts
        assert mem.stats().vectors == (vectors + 7 - parts if vectors else 0)
        assert (mem.list(limit=20), mem.history("long"), mem.links("long")) == before
        assert (tea.seen_count, mem.get(tea.id).seen_count, mem.get(tea.id).last_seen) == (2, 2, tea.last_seen)
        assert list(mem.changes(at)) == []
        hit = mem.recall("sentence number 39")[0]
        assert (hit.id, hit.part, hit.passage.text[-8:]) == ("long", 7, "At last.")
        assert "rebuilt" not in mem.maintain()
        check(mem)


def test_how_often_a_long_text_was_seen_outlives_that_it_is_cut_anew(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened() as mem:
        mem.remember(LONG)
        seen = mem.remember(LONG)
    cut_shorter(monkeypatch, 2)
    with opened() as mem:
        mem.maintain()
        assert mem.get(seen.id) == seen
        assert (seen.seen_count, mem.stats().parts) == (2, 7)
        assert mem.remember(LONG).seen_count == 3


def test_a_memory_that_is_updated_meanwhile_stays_updated(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(opened)
    cut_shorter(monkeypatch, 2)
    with opened() as mem, opened() as other:
        kind = type(mem._here.ingest)
        write = kind.make_anew

        def meanwhile(self: Any, drafts: Any) -> None:
            monkeypatch.setattr(kind, "make_anew", write)
            other.update("long", text="Short now.")
            other.forget("m3")
            write(self, drafts)

        monkeypatch.setattr(kind, "make_anew", meanwhile)
        mem.maintain()
        assert (mem.get("long").text, mem.get("long").version, mem.stats().parts) == ("Short now.", 2, 0)
        assert [one.memory.text for one in mem.history("long")] == [LONG, "Short now."]
        assert mem.stats().stale == 0
        check(mem)


def test_what_an_older_process_writes_beside_a_later_one_is_stale_again(opened: Open, later: type[Read]) -> None:
    filled(opened)
    with opened() as older, opened(extractor=later()) as mem:
        mem.maintain()
        older.remember("Grace Hopper met the gardener.", id="gardener")
        mem.remember("Grace Hopper met the cook.", id="cook")
        older.remember_many([{"id": f"b{n}", "text": f"Guest {n} came."} for n in range(40)])
        assert (mem.stats().stale, older.stats().stale) == (41, 0)
        assert mem.maintain()["rebuilt"] == 41
        assert mem.stats().stale == 0
        assert "rebuilt" not in older.maintain()  # what is later is not touched by what is older


def test_another_extractor_is_a_choice_and_makes_nothing_stale_until_everything_is_extracted_again(
    opened: Open, later: type[Read]
) -> None:
    filled(opened)

    class Other(later):  # type: ignore[valid-type,misc]
        name = "other"

    with opened(extractor=Other()) as mem:
        assert mem.stats().stale == 0
        assert "rebuilt" not in mem.maintain()
        mem.rebuild(extract=True)
    Other.version = "11"
    with opened(extractor=Other()) as mem:
        assert mem.stats().stale == 8
    with opened(extractor=later()) as mem:
        assert mem.stats().stale == 0


def test_later_rules_of_likeness_compare_anew_and_leave_the_links_that_are_there(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(on_contradiction="ignore") as mem:
        mem.remember("Ana lives in Lisbon.", id="a")
        mem.remember("Ana lives in Porto.", id="b")
        mem.link("a", "see-also", "b")
    with opened() as mem:
        life = mem.store.life
        for namespace, (last, _) in life.derivations().items():
            life.compared({namespace: Comparison(range(last + 1), (), {})})
            life.similar(
                namespace, {row_id: (row_id,) for row_id in range(1, last + 1)}
            )  # keys by which nothing is alike
        assert "compared" not in mem.maintain()
        monkeypatch.setattr(ingest, "LIKENESS", 2)
        assert mem.maintain()["rebuilt"] == 2
        assert sorted((one.from_id, one.type, one.to_id) for one in mem.links("a")) == [
            ("a", "see-also", "b"), ("b", "contradicts", "a")
        ]  # fmt: skip


def test_a_renamed_or_copied_namespace_keeps_what_made_it(opened: Open, later: type[Read]) -> None:
    filled(opened)
    with opened(extractor=later()) as mem:
        mem.copy_namespace("default", "copy")
        mem.rename_namespace("default", "moved")
        assert {name: mem.stats(namespace=name).stale for name in ("default", "copy", "moved")} == {
            "default": 0, "copy": 8, "moved": 8
        }  # fmt: skip
        assert mem.maintain()["rebuilt"] == 16


def test_marks_of_too_many_makers_become_one_of_nobody_known_which_is_stale(opened: Open, later: type[Read]) -> None:
    with opened() as older, opened(extractor=later()) as mem:
        for n in range(18):
            older.remember(f"Guest {n} came.", id=f"o{n}")
            mem.remember(f"Guest {n} went.", id=f"n{n}")
        last, marks = mem.store.life.derivations()["default"]
        assert len(marks) <= 32
        assert marks[0][1] == ""
        assert mem.stats().stale >= 18
        mem.maintain()
        assert mem.stats().stale == 0
        mem.store.life.mark_made("default", Span(0, last, DerivationVersion()))
        assert mem.stats().stale == 36
