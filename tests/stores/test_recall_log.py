"""The log of recalls: who asked what, which memories were given or not, and what a forget leaves of it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import semmem
from semmem.client import recall_log
from semmem.model.process.asker import asked_through
from semmem.model.recall_log import LoggedRecall
from semmem.model.store import Keep
from semmem.stores.postgres import write
from semmem.stores.sql_files import migrations
from semmem.stores.sqlite import connection as sqlite_connection

Opened = Callable[..., semmem.Semmem]
NOT_LOGGED = (
    "A memory of this recall was forgotten for good or became sensitive meanwhile, so the recall is not logged."
)


@pytest.fixture(params=["sqlite", "postgres"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Opened:
    """A function that opens one store with settings; it holds two memories about a ferry, and one in namespace me."""
    url = f"sqlite:{tmp_path}/log.db" if request.param == "sqlite" else request.getfixturevalue("store_url")
    with semmem.connect(url, embedder="none") as mem:
        mem.remember("The ferry leaves at nine.", id="nine")
        mem.remember("The ferry costs two crowns.", id="crowns")
        mem.remember("My ferry is late.", id="late", namespace="me")
    return lambda **settings: semmem.connect(url, embedder="none", recipe="lexical", **{"recall_log": True, **settings})


@pytest.fixture
def mem(opened: Opened) -> Iterator[semmem.Semmem]:
    with opened() as logged:
        yield logged


def fates(entry: LoggedRecall) -> list[tuple[str, Any, int | None]]:
    return [(hit.id, hit.outcome, hit.rank) for hit in entry.hits]


def test_an_entry_says_who_asked_what_when_and_what_was_given(opened: Opened) -> None:
    before = datetime.now(UTC)
    with opened(agent="ada") as mem:
        found = mem.recall("when does the ferry leave?", limit=5, filters={"created_after": "2020-01-01"})
        (entry,) = mem.recalls()
        assert entry == mem.logged_recall(found.id)
    assert (entry.id, entry.question, entry.namespaces) == (found.id, "when does the ferry leave?", ("default",))
    assert (entry.verb, entry.interface, entry.agent, entry.recipe) == ("recall", "python", "ada", "lexical")
    assert before <= entry.at <= datetime.now(UTC)
    assert fates(entry) == [("nine", "given", 1), ("crowns", "given", 2)]
    assert [hit.score for hit in entry.hits] == [hit.score for hit in found]
    assert entry.facts["arguments"] == {"limit": 5, "filters": {"created_after": "2020-01-01T00:00:00+00:00"}}
    assert (entry.facts["confidence"], entry.facts["regime"]) == (found.confidence, found.regime)
    assert entry.facts["degraded"] == dict(found.degraded)


def test_what_no_budget_had_room_for_and_what_was_withheld_is_told_apart(mem: semmem.Semmem) -> None:
    mem.recall("ferry leaves", token_budget=60)
    assert fates(mem.recalls()[0]) == [("nine", "given", 1), ("crowns", "left_out", 2)]
    mem.recall("ferry leaves", min_confidence=1.0)
    entry = mem.recalls()[0]
    assert fates(entry) == [("nine", "withheld", 1), ("crowns", "withheld", 2)]
    assert (entry.given, [hit.id for hit in entry.withheld]) == ((), ["nine", "crowns"])
    mem.recall("ferry leaves", exclude=["crowns"])
    assert fates(mem.recalls()[0]) == [("nine", "given", 1), ("crowns", "excluded", None)]


def test_a_context_is_one_entry_of_what_stood_in_its_block(mem: semmem.Semmem) -> None:
    mem.remember("Ada is a captain.", id="ada", pinned=True)
    mem.remember("The ferry is white.", id="white", pinned=True)
    block = mem.context("ferry leaves", token_budget=160)
    (entry,) = mem.recalls()
    assert (entry.id, entry.verb) == (block.recall_id, "context")
    assert {hit.id for hit in entry.given} == {hit.id for hit in block.hits} | {one.id for one in block.pinned}
    assert {hit.id for hit in entry.left_out} == {one.id for one in block.left_out}
    assert [hit.rank for hit in entry.hits if hit.id == "ada"] == [None]  # pinned, and no hit of this question
    assert [hit.rank for hit in entry.hits if hit.id == "white"] == [2]


def test_entries_are_listed_newest_first_page_by_page_and_by_conditions(mem: semmem.Semmem) -> None:
    for interface, agent, question in (("mcp", "cursor", "ferry"), ("hook", "codex", "crowns"), ("cli", None, "nine")):
        with asked_through(interface, agent):
            mem.recall(question)
    page = mem.recalls(limit=2)
    assert [one.question for one in page] == ["nine", "crowns"]
    rest = mem.recalls(limit=2, cursor=page.cursor)
    assert ([one.question for one in rest], rest.cursor) == (["ferry"], None)
    assert [one.question for one in mem.recalls(interface="mcp")] == ["ferry"]
    assert [one.question for one in mem.recalls(agent="codex")] == ["crowns"]
    assert [one.question for one in mem.recalls(memory="crowns")] == ["crowns", "ferry"]
    assert len(mem.recalls(memory="late")) == 0
    later = datetime.now(UTC) + timedelta(minutes=1)
    assert len(mem.recalls(asked_after=later)) == 0
    assert len(mem.recalls(asked_before=later, asked_after="2020-01-01")) == 3
    with pytest.raises(semmem.InvalidInput, match="limit must be"):
        mem.recalls(limit=0)
    with pytest.raises(semmem.InvalidInput, match="asked_after must be"):
        mem.recalls(asked_after="soon")
    with pytest.raises(semmem.InvalidInput, match="There is no interface 'cly'; choose one of python, cli, http, page"):
        mem.recalls(interface="cly")


def test_a_namespace_shows_its_own_hits_alone(mem: semmem.Semmem) -> None:
    found = mem.recall("ferry", namespace=["default", "me"])
    assert found.id is not None
    (mine,) = mem.recalls(namespace="me")
    assert (mine.namespaces, {hit.id for hit in mine.hits}) == (("me",), {"late"})
    (both,) = mem.recalls(namespace=["me", "default"])
    assert (both.namespaces, {hit.id for hit in both.hits}) == (("default", "me"), {"nine", "crowns", "late"})
    assert [hit.rank for hit in both.hits] == [1, 2, 3]
    with pytest.raises(semmem.NotFound, match="There is no recall"):
        mem.logged_recall(found.id, namespace="elsewhere")
    assert len(mem.recalls(namespace="elsewhere")) == 0


def test_the_beginning_of_an_id_is_enough(mem: semmem.Semmem) -> None:
    found = mem.recall("ferry")
    assert found.id is not None
    short = found.id[:23]
    assert mem.feedback(short, useful=["nine"]) == 1
    assert mem.logged_recall(short).id == mem.replay_recall(short).entry.id == found.id
    life = mem.store.life
    assert life is not None
    for end in ("1", "2"):
        entry = LoggedRecall(f"01a00000-0000-7000-8000-00000000000{end}", "Twice?", ("default",))
        life.note_recall(entry)
    with pytest.raises(semmem.InvalidInput, match="Several logged recalls begin with '01a00000-0000', such as 01a0"):
        mem.logged_recall("01a00000-0000")
    with pytest.raises(semmem.NotFound, match="There is no recall '01b00000-0000'"):
        mem.logged_recall("01b00000-0000")


def test_a_judgment_stands_with_the_hit_that_it_is_about(mem: semmem.Semmem) -> None:
    mem.remember("Coal is black.", id="coal")
    found = mem.recall("ferry")
    assert found.id is not None
    mem.feedback(found.id, useful=["nine"], not_useful=["coal"], made_by="ada")
    hits = {hit.id: (hit.outcome, hit.useful, hit.judged_by) for hit in mem.logged_recall(found.id).hits}
    assert hits == {"nine": ("given", True, "ada"), "crowns": ("given", None, None), "coal": (None, False, "ada")}


def test_a_replay_says_what_differs_now(mem: semmem.Semmem) -> None:
    found = mem.recall("ferry leaves")
    assert found.id is not None
    same = mem.replay_recall(found.id)
    assert same.is_same
    assert [(one.id, one.rank_then, one.rank_now, one.change) for one in same.memories] == [
        ("nine", 1, 1, "same"),
        ("crowns", 2, 2, "same"),
    ]
    mem.remember("The ferry leaves, and the ferry leaves again.", id="again")
    mem.forget("crowns")
    mem.update("nine", text="It sails at nine.")
    now = mem.replay_recall(found.id)
    changes = {one.id: (one.rank_then, one.rank_now, one.change) for one in now.memories}
    assert changes == {"again": (None, 1, "new"), "nine": (1, None, "gone"), "crowns": (2, None, "forgotten")}
    assert not now.is_same
    assert len(mem.recalls()) == 1  # a repetition is not logged
    assert now.as_dict()["memories"][0]["change"] == "new"


def test_a_replay_of_that_time_asks_the_versions_of_that_time(mem: semmem.Semmem) -> None:
    found = mem.recall("ferry leaves")
    assert found.id is not None
    mem.update("nine", text="It sails at ten.")
    then = mem.replay_recall(found.id, then=True)
    assert then.as_of == mem.logged_recall(found.id).at
    assert {(one.id, one.change) for one in then.memories} == {("nine", "same"), ("crowns", "same")}
    with pytest.raises(semmem.InvalidInput, match="then must be True or False"):
        mem.replay_recall(found.id, then="yes")  # type: ignore[arg-type]


def test_a_replay_asks_as_the_recall_did(mem: semmem.Semmem) -> None:
    plan = semmem.recipe("default", weights={"lexical": 2.0, "dense": 0.0, "graph": 0.0})
    found = mem.recall("ferry", recipe=plan, exclude=["crowns"], filters={"created_before": datetime(2100, 1, 1)})
    assert found.id is not None
    repeated = mem.replay_recall(found.id)
    assert [(one.id, one.score_then, one.score_now) for one in repeated.memories] == [
        ("nine", found[0].score, found[0].score)
    ]
    assert repeated.is_same


def test_a_vector_is_not_kept_so_its_recall_is_not_repeated(store_url: str) -> None:
    with semmem.connect(store_url, embedder="hashing", recall_log=True) as mem:
        mem.remember("The ferry leaves at nine.", id="nine")
        vector = [1.0] + [0.0] * (mem.store.vectors.embedder()["dimensions"] - 1)  # type: ignore[union-attr,index]
        found = mem.recall("ferry", vector=vector)
        assert found.id is not None
        assert mem.logged_recall(found.id).facts["arguments"] == {"vector": True}
        with pytest.raises(semmem.InvalidInput, match="had a vector of its own"):
            mem.replay_recall(found.id)


def test_a_credential_in_a_filter_is_not_logged(opened: Opened) -> None:
    key = "ghp_" + "a1B2" * 9
    with opened() as mem:
        mem.recall("ferry", filters={"metadata": {"token": key}})
        arguments = mem.recalls()[0].facts["arguments"]
        assert arguments == {"filters": {"metadata": {"token": "ghp_…[removed]"}}}


def test_a_credential_in_a_question_is_not_logged(opened: Opened) -> None:
    key = "ghp_" + "a1B2" * 9
    with opened() as mem:
        mem.recall(f"ferry {key}")
        assert mem.recalls()[0].question == "ferry ghp_…[removed]"
    with opened(credentials="off") as mem:
        mem.recall(f"ferry {key}")
        assert mem.recalls()[0].question == f"ferry {key}"


def test_a_question_is_logged_as_it_was_understood(mem: semmem.Semmem) -> None:
    assert mem.recall("fer\x00ry \ud800").id is not None
    assert mem.recalls()[0].question == "fer ry ?"


def test_a_sensitive_memory_leaves_no_text_in_the_log(mem: semmem.Semmem) -> None:
    mem.remember("The ferry's safe opens with 4711.", id="safe", sensitive=True)
    mem.recall("ferry safe")
    mem.context("ferry safe")
    mem.update("nine", sensitive=True)
    assert "4711" not in str([one.as_dict() for one in mem.recalls()])
    assert "leaves at nine" not in str([one.as_dict() for one in mem.recalls()])


def test_a_hard_forget_leaves_nothing_in_the_log(mem: semmem.Semmem) -> None:
    for question, how in (
        ("Is the zeppelin ferry of Zanzibar gone?", {}),
        ("zeppelin", {"min_confidence": 1.0}),
        ("zeppelin ferry", {"token_budget": 30}),
        ("ferry of Zanzibar", {"exclude": ["zeppelin"]}),
    ):
        mem.remember("The zeppelin ferry of Zanzibar is gone.", id="zeppelin")
        mem.recall(question, **how)  # type: ignore[arg-type]
    mem.recall("crowns")
    mem.forget("zeppelin", hard=True)
    assert [one.question for one in mem.recalls()] == ["crowns"]


def test_a_recall_whose_memory_is_forgotten_for_good_before_it_is_logged_is_not_logged(
    opened: Opened, mem: semmem.Semmem, monkeypatch: pytest.MonkeyPatch
) -> None:
    note = recall_log.note_recall

    def forgotten(*given: Any, **named: Any) -> str:
        monkeypatch.undo()
        with opened() as other:
            other.forget("nine", hard=True)
        return note(*given, **named)

    monkeypatch.setattr(recall_log, "note_recall", forgotten)
    found = mem.recall("nine ferry")
    assert (found.id, dict(found.degraded)) == (None, {"log": NOT_LOGGED})
    assert not mem.recalls()
    mem.forget("crowns")  # which can be brought back
    assert mem.recall("ferry of whom").id is not None


def test_a_recall_whose_memory_becomes_sensitive_before_it_is_logged_is_not_logged(
    opened: Opened, mem: semmem.Semmem, monkeypatch: pytest.MonkeyPatch
) -> None:
    note = recall_log.note_recall

    def hidden(*given: Any, **named: Any) -> str:
        monkeypatch.undo()
        with opened() as other:
            other.update("nine", sensitive=True)
        return note(*given, **named)

    monkeypatch.setattr(recall_log, "note_recall", hidden)
    found = mem.recall("nine ferry")
    assert (found.id, dict(found.degraded)) == (None, {"log": NOT_LOGGED})
    assert not mem.recalls()
    assert mem.recall("ferry", exclude=["nine"]).id is not None  # a caller may leave it out, and asks about others


def test_a_memory_that_becomes_sensitive_takes_the_questions_that_found_it_along(mem: semmem.Semmem) -> None:
    mem.recall("leaves the ferry at nine?", namespace=["default", "me"])
    mem.recall("crowns", namespace=["default", "me"])
    mem.update("crowns", importance=0.9)
    assert len(mem.recalls()) == len(mem.recalls(namespace="me")) == 2
    mem.update("nine", sensitive=True)
    assert [one.question for one in mem.recalls()] == ["crowns"]
    assert [one.question for one in mem.recalls(namespace="me")] == ["crowns"]


def test_a_change_of_a_sensitive_memory_leaves_the_questions_from_which_it_was_excluded(mem: semmem.Semmem) -> None:
    mem.update("nine", sensitive=True)
    mem.recall("ferry", exclude=["nine"])
    mem.update("nine", importance=0.9)
    assert [one.question for one in mem.recalls()] == ["ferry"]


def test_logging_a_recall_waits_for_whoever_makes_one_of_its_memories_sensitive(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with semmem.connect(store_url, embedder="none", recipe="lexical", recall_log=True) as mem:
        mem.remember("The ferry leaves at nine.", id="nine")
        forget, found = write._forget_recalls, []

        def overtaken(*given: Any) -> None:
            forget(*given)
            monkeypatch.undo()
            found.append(mem.recall("ferry at nine"))  # which still sees the memory, for the update is not committed

        monkeypatch.setattr(write, "_forget_recalls", overtaken)
        mem.update("nine", sensitive=True)
        assert [[hit.id for hit in one.hits] for one in found] == [["nine"]]
        assert [one.id for one in found] == [None]
        assert not mem.recalls()


def test_a_hard_forget_leaves_no_byte_of_a_logged_question_in_a_file(tmp_path: Path) -> None:
    with semmem.connect(f"sqlite:{tmp_path}/log.db", embedder="none", recall_log=True) as mem:
        mem.remember("The zeppelin of Zanzibar is gone.", id="zeppelin")
        mem.recall("What became of the zeppelin of Zanzibar?")
        mem.forget("zeppelin", hard=True)
        mem.maintain()
    for file in tmp_path.iterdir():
        assert b"anzibar" not in file.read_bytes(), file.name


def test_forgetting_a_namespace_takes_its_entries_and_those_of_others_that_found_a_memory_of_it(
    mem: semmem.Semmem,
) -> None:
    mem.recall("ferry late", namespace=["default", "me"])
    mem.recall("crowns", namespace=["default", "me"])
    mem.recall("nothing", namespace="never")
    mem.forget("late", namespace="me")  # no memory is left there, and its entry is
    assert len(mem.recalls(namespace="me")) == len(mem.recalls()) == 2
    mem.drop_namespace("me", dry_run=True)
    assert len(mem.recalls()) == 2
    mem.drop_namespace("me")
    assert len(mem.recalls(namespace="me")) == 0
    assert [one.question for one in mem.recalls()] == ["crowns"]
    mem.forget(everything=True, namespace="never")
    assert len(mem.recalls(namespace="never")) == 0
    mem.forget(everything=True, dry_run=True)
    assert len(mem.recalls()) == 1


def test_entries_move_with_their_namespace(mem: semmem.Semmem) -> None:
    found = mem.recall("ferry")
    assert found.id is not None
    mem.feedback(found.id, useful=["nine"])
    mem.rename_namespace("default", "harbour")
    assert len(mem.recalls()) == 0
    assert [one.id for one in mem.recalls(namespace="harbour")] == [found.id]
    assert [one.id for one in mem.judgments(namespace="harbour")] == ["nine"]


def test_maintain_keeps_entries_for_as_long_as_the_setting_says(mem: semmem.Semmem) -> None:
    judged, other = mem.recall("ferry").id, mem.recall("crowns").id
    assert judged is not None
    mem.feedback(judged, useful=["nine"])
    assert mem.store.maintain(Keep(recall_log_days=1)).get("recalls") is None
    assert {one.id for one in mem.recalls()} == {judged, other}
    assert mem.store.maintain(Keep(recall_log_days=0))["recalls"] == 1
    assert [one.id for one in mem.recalls()] == [judged]


def test_entries_and_judgments_of_an_older_file_come_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = migrations("sqlite")
    monkeypatch.setattr(sqlite_connection, "migrations", lambda backend: tuple(one for one in known if one[0] < 13))
    old = sqlite3.connect(tmp_path / "old.db", isolation_level=None)
    sqlite_connection.migrate(old, "it")
    monkeypatch.undo()
    columns = "(namespace, recall_id, at, query, recipe, hits)"
    hits = '["b", "a"]'
    old.execute(f"INSERT INTO recall_log {columns} VALUES ('default', 'r1', 1000000, 'ferry?', 'default', '{hits}')")
    old.execute(f"INSERT INTO recall_log {columns} VALUES ('default', 'r2', 2000000, 'none?', NULL, '[]')")
    old.execute("INSERT INTO judgement VALUES ('default', 'r1', 'a', 1, 'ada', 1500000)")
    old.execute("INSERT INTO judgement VALUES ('default', 'r1', 'c', 0, NULL, 1500000)")
    old.close()
    with semmem.connect(f"sqlite:{tmp_path}/old.db", embedder="none") as mem:
        newest, oldest = mem.recalls()
        assert (newest.id, newest.hits, newest.interface) == ("r2", (), "python")
        assert fates(oldest) == [("b", "given", 1), ("a", "given", 2), ("c", None, None)]
        assert [(hit.useful, hit.judged_by) for hit in oldest.hits] == [(None, None), (True, "ada"), (False, None)]
        assert oldest.hits[1].judged_at == datetime(1970, 1, 1, 0, 0, 1, 500_000, tzinfo=UTC)


def test_a_replay_asks_at_the_time_of_the_question(opened: Opened) -> None:
    soft = semmem.recipe("lexical", period_floor=0.5)
    question = "Which harbour did we reach last week?"
    with opened() as mem:
        mem.remember("We reach the harbour.", id="inside", created_at="2021-03-02T08:00:00Z")  # a Tuesday
        for when in ({"as_of": "2021-03-10"}, {"now": "2021-03-10"}, {"as_of": "2026-01-01", "now": "2021-03-10"}):
            found = mem.recall(question, recipe=soft, **when)  # type: ignore[arg-type]
            assert found.id is not None
            assert found.explain("inside").periods == ('"last week" (from 2021-03-01 to before 2021-03-08)',)
            (one,) = mem.replay_recall(found.id).memories
            assert (one.id, one.score_now) == ("inside", one.score_then)


def test_a_name_with_logged_recalls_alone_is_taken_until_it_is_dropped(mem: semmem.Semmem) -> None:
    mem.recall("owls", namespace="harbour")
    with pytest.raises(semmem.Conflict, match=r"'harbour' already holds memories, forgotten ones or logged recalls; "):
        mem.rename_namespace("default", "harbour")
    mem.drop_namespace("harbour")
    assert mem.rename_namespace("default", "harbour") == 2
