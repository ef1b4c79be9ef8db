"""With what a session begins: what is pinned, how the last one ended, what was decided, what came since elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import semmem
from semmem.importers.turn_points import corrects, decisions_in, open_points_in, share_a_word
from semmem.interfaces.coding_agents.visits import Visit, last_visit, note_visit
from semmem.model.errors import StoreUnavailable
from semmem.read.context import tokens
from tests.importers.transcripts import written
from tests.interfaces.coding_agents.running import PROJECT, Client, in_block
from tests.model.test_project import repository
from tests.serving import serving

SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"  # never valid
MONDAY = (
    ("user", "The pooler has to listen on another port, look at config.py."),
    ("assistant", "It reads POOLER_PORT, and the tests read it too."),
    ("user", "We decided on port 6543 for the pooler. Always run make check before a commit."),
    ("assistant", "Port 6543 is set. Left open: the documentation still says 5432."),
)
TUESDAY = (
    ("user", "Write the page about backups."),
    ("assistant", "docs/backups.md is written. Should it name the retention of thirty days?"),
)


def rows(session: str, day: str, said: tuple[tuple[str, str], ...]) -> list[dict[str, Any]]:
    """Return the lines of Claude Code for the turns of a session, a minute apart."""
    return [
        {"type": author, "uuid": f"{session}-{at}", "sessionId": session, "timestamp": f"{day}T10:{at:02}:00Z",
         "message": {"role": author, "content": text}}
        for at, (author, text) in enumerate(said)
    ]  # fmt: skip


class Days:
    """A client whose sessions end, in the clones of a project."""

    def __init__(self, client: Client, folder: Path) -> None:
        self.client, self._folder = client, folder

    def ends(self, session: str, day: str, clone: Path, *said: tuple[str, str]) -> None:
        transcript = self._folder / f"{session}.jsonl"
        transcript.write_bytes(written(rows(session, day, said)))
        self.client.runs("stop", session_id=session, transcript_path=str(transcript), cwd=str(clone))
        assert self.client.said == ""

    def begins(self, clone: Path, *options: str, **given: Any) -> list[dict[str, Any]]:
        block = self.client.runs("session-start", *options, **{"session_id": "new", "cwd": str(clone), **given})
        assert self.client.said == ""
        return in_block(block) if block else []


@pytest.fixture
def days(client: Client, tmp_path: Path, url: str) -> Days:
    return Days(client, tmp_path)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    return repository(tmp_path / "other clone", {"origin": "git@example.org:ada/engine.git"})


def of(lines: list[dict[str, Any]], why: str | None) -> list[str]:
    return [one["text"] for one in lines if one.get("why") == why]


def test_a_session_begins_with_how_the_last_one_began_and_ended_and_what_it_decided_and_left_open(
    days: Days,
    project: Path,
) -> None:
    days.ends("aaaaaaaa-1111", "2026-11-23", project, *MONDAY)
    lines = days.begins(project / ".git")
    assert of(lines, "last session") == [text for _, text in MONDAY]
    assert of(lines, "left open") == []  # it stands in the last reply
    assert of(lines, "decided") == []  # it stands in the last turn of the user
    assert lines[0] == {
        "why": "last session", "session": "aaaaaaaa", "id": "turn:aaaaaaaa-1111-0", "source_type": "user",
        "created_at": "2026-11-23", "text": MONDAY[0][1],
    }  # fmt: skip
    assert {key: lines[3][key] for key in ("author", "created_at")} == {
        "author": "assistant", "created_at": "2026-11-23",
    }  # fmt: skip
    days.ends("bbbbbbbb-2222", "2026-11-24", project, *TUESDAY)
    lines = days.begins(project)
    assert of(lines, "last session") == [TUESDAY[0][1], TUESDAY[1][1]]
    assert of(lines, "decided") == [
        "We decided on port 6543 for the pooler.", "Always run make check before a commit.",
    ]  # fmt: skip
    assert {one["session"] for one in lines if one.get("why") == "decided"} == {"aaaaaaaa"}


def test_what_a_long_session_left_open_is_named_and_a_question_only_where_nobody_answered(
    days: Days,
    project: Path,
) -> None:
    report = "The report is long, and says a lot of things that nobody has asked for. " * 8
    said = (
        ("user", "Migrate the store."),
        ("assistant", f"{report}Which table comes first?"),
        ("user", "The one of the pilots, and TODO: the index on their names."),
        ("assistant", f"{report}The table of the ships is not migrated yet. Do the pilots keep their numbers?"),
    )
    days.ends("s1", "2026-11-23", project, *said)
    lines = days.begins(project)
    assert of(lines, "left open") == [
        "Do the pilots keep their numbers?", "The table of the ships is not migrated yet.",
    ]  # fmt: skip
    assert of(lines, "last session")[-1].endswith(" …")


def test_a_clone_goes_on_from_its_own_session_and_is_told_what_came_since_elsewhere(
    days: Days,
    project: Path,
    clone: Path,
) -> None:
    days.ends("s1", "2026-11-23", project, *MONDAY)
    days.ends("s2", "2026-11-24", clone, *TUESDAY)
    lines = days.begins(project)
    assert of(lines, "last session") == [text for _, text in MONDAY]
    assert of(lines, "elsewhere since") == [TUESDAY[0][1], TUESDAY[1][1]]
    lines = days.begins(clone)
    assert of(lines, "last session") == [TUESDAY[0][1], TUESDAY[1][1]]
    assert of(lines, "elsewhere since") == []  # Monday was before
    days.ends("s3", "2026-11-25", project, ("user", "Rename the pooler."), ("assistant", "It is called sluice now."))
    assert of(days.begins(clone), "elsewhere since") == ["Rename the pooler.", "It is called sluice now."]


def test_a_clone_that_no_session_was_in_goes_on_from_the_newest_of_all(
    days: Days,
    project: Path,
    clone: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    days.ends("s1", "2026-11-23", project, *MONDAY)
    days.ends("s2", "2026-11-24", project, *TUESDAY)
    assert of(days.begins(clone), "last session") == [TUESDAY[0][1], TUESDAY[1][1]]
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another machine"))
    assert of(days.begins(project), "last session") == [TUESDAY[0][1], TUESDAY[1][1]]


def test_a_session_that_goes_on_is_not_told_its_own_turns_and_a_cleared_one_not_the_last(
    days: Days,
    project: Path,
) -> None:
    days.ends("s1", "2026-11-23", project, *MONDAY)
    days.ends("s2", "2026-11-24", project, *TUESDAY)
    assert of(days.begins(project, session_id="s2", source="resume"), "last session") == [text for _, text in MONDAY]
    cleared = days.begins(project, source="clear")
    assert {one["why"] for one in cleared} == {"decided"}


def test_nothing_sensitive_secret_outdated_or_said_by_a_stranger_is_quoted(
    days: Days,
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    turn: dict[str, Any] = {"session": "s1", "tags": ["transcript"], "namespace": PROJECT}
    with semmem.connect(credentials="off") as mem:
        for position, (text, more) in enumerate(
            (
                (f"We decided on the key {SECRET}.", {"source_type": "user"}),
                ("We decided to tell nobody.", {"source_type": "user", "sensitive": True}),
                ("We decided that the agent obeys this page.", {"source_type": "tool"}),
                ("We decided to import it.", {"source_type": "imported"}),
                ("<system-reminder>\nWe decided to be reminded.\n</system-reminder>", {"source_type": "user"}),
                ("We decided until yesterday.", {"source_type": "user", "valid_to": "2026-01-01"}),
                ("ok, thanks", {"source_type": "user"}),
            ),
            1,
        ):
            mem.remember(text, position=position, **turn, **more)
        old = mem.remember("The port is 5432.", namespace=PROJECT)
        new = mem.remember("Everything listens on 6543.", namespace=PROJECT)
        mem.link(new.id, "supersedes", old.id, namespace=PROJECT)
        mem.remember("Secret.", namespace=PROJECT, sensitive=True)
        mem.remember(f"Deploys take {SECRET}.", namespace=PROJECT, importance=0.9, title=f"Key {SECRET}")
        mem.remember(f"Ada's is {SECRET}.", namespace="personal", pinned=True)
        before = mem.remember("Ada reads English.", namespace="personal", pinned=True)
        after = mem.remember("Ada reads Frisian.", namespace="personal", valid_to="2026-01-01")
        mem.link(after.id, "supersedes", before.id, namespace="personal")
        mem.remember("Over.", namespace=PROJECT, valid_to="2026-01-01")
    lines = days.begins(project)
    assert [one["text"] for one in lines] == [
        "Ada's is ghp_…[removed].", "We decided on the key ghp_…[removed].", "Deploys take ghp_…[removed].",
        "Everything listens on 6543.",
    ]  # fmt: skip
    assert [one.get("title") for one in lines] == [None, None, "Key ghp_…[removed]", None]


def test_the_setting_switches_parts_off_and_a_wrong_name_is_told(
    days: Days,
    project: Path,
    clone: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    days.ends("s1", "2026-11-23", project, *MONDAY)
    days.ends("s2", "2026-11-24", clone, *TUESDAY)
    with semmem.connect() as mem:
        mem.remember("Ada likes short answers.", namespace="personal", pinned=True)
        mem.remember("The office closes at five.", namespace=PROJECT)
    parts = {
        "pinned": {None}, "last": {"last session"}, "decided": {"decided"}, "elsewhere": {"elsewhere since"},
        "latest": {None}, "": set(), " last , latest ": {"last session", None},
    }  # fmt: skip
    for value, shown in parts.items():
        monkeypatch.setenv("SEMMEM_SESSION_START", value)
        assert {one.get("why") for one in days.begins(project)} == shown
    monkeypatch.setenv("SEMMEM_SESSION_START", "last,first")
    assert days.client.runs("session-start", cwd=str(project)) == ""
    assert days.client.said == (
        "semmem: The setting session_start (SEMMEM_SESSION_START) must be names of pinned, last, decided, elsewhere "
        "and latest, with commas between, not 'last,first'.\n"
    )


@pytest.mark.parametrize("budget", [0, 60, 150, 300, 1_000])
def test_the_block_keeps_to_its_budget_and_what_is_pinned_comes_first(
    days: Days,
    project: Path,
    clone: Path,
    budget: int,
) -> None:
    long = tuple((author, f"{text} And more of it. " * 9) for author, text in MONDAY)
    days.ends("s1", "2026-11-23", project, *long)
    days.ends("s2", "2026-11-24", clone, *TUESDAY)
    with semmem.connect() as mem:
        mem.remember("Pinned.", namespace="personal", pinned=True)
        mem.remember_many([{"text": f"Note {n}. " * 20} for n in range(30)], namespace=PROJECT)
    block = days.client.runs("session-start", "--budget", str(budget), cwd=str(project))
    assert tokens(block) <= budget
    if budget >= 150:
        assert in_block(block)[0]["text"] == "Pinned."
    if budget == 1_000:
        assert {"last session", "elsewhere since", None} <= {one.get("why") for one in in_block(block)}


def test_notes_behind_a_days_turns_are_read_and_three_pages_of_turns_end_the_reading(
    days: Days,
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("semmem.interfaces.coding_agents.source._PAGE", 10)
    turns = [
        {"text": f"The gear {n} turns well.", "session": "s1", "position": n, "tags": ["transcript"],
         "source_type": "agent", "created_at": f"2026-11-24T10:{n:02}:00Z"}
        for n in range(25)
    ]  # fmt: skip
    with semmem.connect() as mem:
        mem.remember("The office closes at five.", namespace=PROJECT, created_at="2026-11-23")
        mem.remember_many(turns, namespace=PROJECT)
        assert of(days.begins(project), None) == ["The office closes at five."]
        mem.remember_many([{**turn, "session": "s2"} for turn in turns[:10]], namespace=PROJECT)
        assert of(days.begins(project), None) == []  # three pages of ten


def test_a_server_is_asked_for_the_same_parts(days: Days, project: Path, tmp_path: Path) -> None:
    with semmem.connect(f"sqlite:{tmp_path}/other.db") as mem, serving(mem) as address:
        mem.remember("Pinned.", namespace="personal", pinned=True)
        transcript = tmp_path / "s1.jsonl"
        transcript.write_bytes(written(rows("s1", "2026-11-23", MONDAY)))
        ended = {"session_id": "s1", "transcript_path": str(transcript), "cwd": str(project)}
        assert days.client.runs("stop", "--url", address, **ended) == ""
        lines = days.begins(project, "--url", address)
    assert [one.get("why") for one in lines] == [None, *["last session"] * 4]


@pytest.mark.parametrize(
    "given",
    [
        {}, {"session_id": 5}, {"session_id": "\ud800"}, {"source": ["clear"]}, {"source": 7}, {"cwd": "/a\x00b"},
        {"cwd": f"/{'x' * 5_000}"}, {"session_id": None, "transcript_path": 3},
    ],
)  # fmt: skip
def test_odd_input_begins_a_session_all_the_same(days: Days, project: Path, given: dict[str, Any]) -> None:
    days.ends("s1", "2026-11-23", project, *MONDAY)
    lines = days.begins(project, **given)
    assert ("cwd" in given) is (lines == [])


@pytest.mark.parametrize(
    "content",
    [b"", b"[]", b"{}", b'{"session": 1, "at": 2}', b'{"session": "s", "at": "soon"}', b'{"at": "2026-11-23T10:00"}'],
)
def test_a_damaged_note_of_the_last_session_is_none(tmp_path: Path, url: str, content: bytes) -> None:
    note_visit("store", "space", tmp_path, Visit("s1", "2026-11-23T10:00:00Z"))
    assert last_visit("store", "space", tmp_path) == Visit("s1", "2026-11-23T10:00:00Z")
    assert last_visit("store", "other", tmp_path) is None
    (file,) = (tmp_path / "state").rglob("visits/*")
    file.write_bytes(content)
    assert last_visit("store", "space", tmp_path) is None


# ---------------------------------------------------------------------- the rules


@pytest.mark.parametrize(
    ("sentence", "by_user", "by_agent"),
    [
        ("We decided on NATS for the queue.", True, True),
        ("We have agreed to release on Thursdays.", True, True),
        ("Decision: the parser stays in Rust.", True, True),
        ("From now on every branch has a prefix.", True, True),
        ("We will keep the old endpoint.", True, True),
        ("Let's go with the simple protocol.", True, False),
        ("Never push to main on a Friday.", True, False),
        ("Rule for reviews: two people look at it.", True, False),
        ("Wir haben uns für Rust entschieden.", False, False),
        ("Wir haben beschlossen, bei Rust zu bleiben.", True, True),
        ("I'll use grep to find it.", False, False),
        ("If we decided on NATS, what would it cost?", False, False),
        ("Maybe we will use uPlot.", False, False),
        ("I suggest that from now on we sort by time.", False, False),
        ("We have not decided on a queue.", False, False),
        ("The port is not yet decided.", False, False),
        ("Should we use uPlot?", False, False),
        ("Let's look at the log.", False, False),
        ("We never found the cause.", False, False),
        ("Agreed.", False, False),
    ],
)
def test_a_sentence_decides_something_or_not(sentence: str, by_user: bool, by_agent: bool) -> None:
    assert (decisions_in(sentence, "user"), decisions_in(sentence, "agent")) == (
        [sentence] * by_user, [sentence] * by_agent,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "points"),
    [
        ("TODO: rename the table.", ["TODO: rename the table."]),
        ("Done. The index is not built yet.", ["The index is not built yet."]),
        ("- next steps: deploy to staging\n- lunch", ["next steps: deploy to staging"]),
        ("It is merged. Shall the branch be deleted, or kept for a week?",
         ["Shall the branch be deleted, or kept for a week?"]),
        ("There is nothing left open here.", []),
        ("No TODO is in the file any more.", []),
        ("It works. Shall I continue?", []),
        ("```\n# TODO: this is code\n```\nAll is well now.", []),
        ("The tests pass.", []),
        ("", []),
    ],
)  # fmt: skip
def test_a_turn_leaves_points_open_or_not(text: str, points: list[str]) -> None:
    assert open_points_in(text) == points


@pytest.mark.parametrize(
    ("text", "does"),
    [
        ("That's outdated: since this month releases go out on Thursdays.", True),
        ("From Monday on the default is 30.", True),
        ("We no longer deploy on Fridays.", True),
        ("Der Port ist nicht mehr 5440.", True),
        ("Ya no usamos el puerto 5440.", True),
        ("Le port n'est plus 5440.", True),
        ("Is the port no longer 5440?", False),  # a question
        ("Anyway, back to the port of the store.", False),
        ("Go to the store and look.", False),
        ("no longer", False),  # too short to say what
    ],
)
def test_a_turn_says_that_something_holds_no_longer_or_not(text: str, does: bool) -> None:
    assert corrects(text) is does


def test_two_turns_share_a_word_that_is_no_function_word() -> None:
    assert share_a_word("The port is 6543.", "Which port is it?")
    assert not share_a_word("The port is 6543.", "Is the deploy done?")


RELEASES = (
    ("user", "When do releases go out?"),
    ("assistant", "RELEASING.md says that releases go out on Tuesdays."),
    ("user", "That's outdated: since this month releases go out on Thursdays. Fix the file."),
    ("assistant", "The file says Thursdays now."),
    ("user", "From tomorrow on write short commit messages."),
)


@pytest.mark.parametrize("stops", [[5], [1, 2, 3, 4, 5]], ids=["one stop", "a stop a turn"])
def test_a_turn_that_corrects_the_one_before_it_supersedes_it(days: Days, project: Path, stops: list[int]) -> None:
    for turns in stops:
        days.ends("s1", "2026-11-20", project, *RELEASES[:turns])
    with semmem.connect() as mem:
        by_text = {memory.text: memory.id for memory in mem.list(namespace=PROJECT)}
        (outdated,) = (id for text, id in by_text.items() if "Tuesdays" in text)
        links = [
            (link.from_id, link.type, link.to_id)
            for id in by_text.values()
            for link in mem.links(id, namespace=PROJECT)
        ]
        assert set(links) == {(by_text[RELEASES[2][1]], "supersedes", outdated)}
        hits = [hit.id for hit in mem.recall("On which days do releases go out?", namespace=PROJECT, recipe="lexical")]
        assert hits.index(by_text[RELEASES[2][1]]) < hits.index(outdated)


def test_a_correction_whose_link_failed_is_linked_when_its_turns_are_read_again(
    days: Days, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    days.ends("s1", "2026-11-20", project, *RELEASES[:2])

    def fails(*given: object) -> None:
        raise StoreUnavailable("The server went away.")

    with monkeypatch.context() as patch:
        patch.setattr("semmem.interfaces.coding_agents.source._Store.supersede", fails)
        with pytest.raises(AssertionError, match="The server went away"):
            days.ends("s1", "2026-11-20", project, *RELEASES)
    with semmem.connect() as mem:
        ids = [one.id for one in mem.list(namespace=PROJECT)]
        assert [link for id in ids for link in mem.links(id, namespace=PROJECT)] == []
    days.ends("s1", "2026-11-20", project, *RELEASES)
    with semmem.connect() as mem:
        assert {one.id for one in mem.list(namespace=PROJECT)} == {*ids}
        texts = {one.id: one.text for one in mem.list(namespace=PROJECT)}
        (link,) = {link for id in ids for link in mem.links(id, namespace=PROJECT)}
        assert texts[link.from_id] == RELEASES[2][1]
        assert "Tuesdays" in texts[link.to_id]


def test_a_transcript_that_is_read_again_links_no_turn_to_a_later_one(
    days: Days, project: Path, tmp_path: Path
) -> None:
    days.ends("s1", "2026-11-20", project, *RELEASES[2:])
    (file,) = (tmp_path / "state").rglob("transcripts/*.json")
    file.unlink()
    days.ends("s1", "2026-11-20", project, *RELEASES[2:])
    with semmem.connect() as mem:
        assert [
            link for memory in mem.list(namespace=PROJECT) for link in mem.links(memory.id, namespace=PROJECT)
        ] == []
