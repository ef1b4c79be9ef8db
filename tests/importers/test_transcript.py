"""The turns in a transcript: what a person and the model said, without what the client wrote around it."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from semmem.importers import BadRow
from semmem.importers.client_blocks import words_of
from semmem.importers.transcript import Question, read, reading
from semmem.importers.turn_content import is_acknowledgement, is_answer, is_bare_question, question_in
from semmem.model.errors import InvalidInput
from semmem.text.languages import LANGUAGES
from tests.importers.transcripts import CLAUDE, CODEX, OLD_CODEX, SESSION, claude, written
from tests.interfaces.cli.program import in_process


def stored(*said: tuple[str, str], question: Question | None = None) -> list[tuple[str, str]]:
    """Return author and text of what is stored of a session."""
    return [(one.author, one.text) for one in reading(written(claude(*said)), 1, question).turns]


@pytest.mark.parametrize("rows", [CLAUDE, CODEX, OLD_CODEX], ids=["claude-code", "codex", "first codex"])
def test_the_words_of_a_person_and_the_model_are_the_turns(rows: list[dict[str, Any]]) -> None:
    found = reading(written(rows))
    assert [(one.author, one.text, one.position) for one in found.turns] == [
        ("assistant", "How are the tests run?\n\nWith make check.", 2)
    ]
    assert (found.said, found.size, found.question) == (2, len(written(rows)), None)


def test_of_a_realistic_session_the_decisions_and_facts_are_stored() -> None:
    assert [(one.author, one.text) for one in reading(written(SESSION)).turns] == [
        ("user", "We deploy from the branch release, never from main. Port 6543 is the pooler."),
        ("assistant", "The settings are read in config.py, so the pooler goes there."),
        (
            "assistant",
            "I added the pooler on port 6543 to config.py. Where should the timeout of the pooler be set?",
        ),
        (
            "user",
            "Where should the timeout of the pooler be set?\n\nIn deploy/pooler.toml, and never above 30 seconds.",
        ),
        ("assistant", "The timeout is 30 seconds in deploy/pooler.toml."),
        ("user", "Shall I delete the old file pooler.ini?\n\nyes, please"),
        (
            "assistant",
            "Why did the deployment of Tuesday fail?\n\nBecause the certificate of the pooler had expired on Monday.",
        ),
    ]


def test_a_line_that_is_no_json_is_passed_over_and_one_that_is_being_written_waits() -> None:
    whole = b"\xff\n[1]\n{}\n" + written(claude(("user", "Use tabs.")))
    found = reading(whole + b'{"type": "user", "mess', 5)
    assert [one.position for one in found.turns] == [5]
    assert found.size == len(whole)
    odd = {"type": "user", "timestamp": 3, "uuid": 4, "message": {"role": "user", "content": "a\x00b\ud800."}}
    (turn,) = reading(written([odd])).turns
    assert (turn.text, turn.at, turn.id) == ("a\ufffdb?.", None, None)


# ---------------------------------------------------------------------- blocks of the client


def test_a_reminder_in_a_block_of_its_own_takes_no_words_of_the_person_along() -> None:
    row = claude(("user", ""))[0]
    row["message"]["content"] = [
        {"type": "text", "text": "<system-reminder>\nThe file was changed.\n</system-reminder>"},
        {"type": "text", "text": "We moved to port 6543."},
    ]
    assert [one.text for one in reading(written([row])).turns] == ["We moved to port 6543."]


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("<system-reminder>x</system-reminder>Use tabs.", "Use tabs."),
        ("Use tabs.\n<system-reminder>\nx\n\ny\n</system-reminder>\n", "Use tabs."),
        ("<system-reminder>a <system-reminder> b </system-reminder> c</system-reminder>\nUse tabs.", "Use tabs."),
        ("<command-name>/clear</command-name>\n<command-message>a</command-message><command-args></command-args>", ""),
        ("<command-name>/model</command-name><command-args>opus</command-args>", ""),
        ("<command-name>/fix</command-name>\n<command-args>the port is 6543</command-args>", "the port is 6543"),
        ("<local-command-stdout>Set model to opus</local-command-stdout>", ""),
        ("<bash-input>ls</bash-input><bash-stdout>a.py</bash-stdout>", ""),
        ('<ide_selection file="a.py">x = 1</ide_selection>\nName it width.', "Name it width."),
        ("<ide_opened_file>The user opened a.py.</ide_opened_file>Name it width.", "Name it width."),
        ("<user-prompt-submit-hook>x</user-prompt-submit-hook>", ""),
        ("<semmem-memories>\n{}\n</semmem-memories>\nUse tabs.", "Use tabs."),
        ("<environment_context>\n  <cwd>/a</cwd>\n</environment_context>", ""),
        ("<environment_context>cut off", ""),
        ("# AGENTS.md instructions for /a\n\n<INSTRUCTIONS>\nBe kind.\n</INSTRUCTIONS>", ""),
        ("# Context from my IDE setup:\n\n## Open tabs:\n- a.py\n\n## My request for Codex:\nUse tabs.", "Use tabs."),
        ("<attached_files>a</attached_files>\n<user_query>\nUse tabs.\n</user_query>", "Use tabs."),
        ("<context>The date.</context>\n<reminder>x</reminder>\n<userRequest>\nUse tabs.\n</userRequest>",
         "Use tabs."),
        ("[Request interrupted by user]", ""),
        ("[Request interrupted by user for tool use]\n\nUse tabs.", "Use tabs."),
        ("Caveat: The messages below were generated by the user while running local commands. DO NOT", ""),
        ("Why is <system-reminder> in the log?", "Why is <system-reminder> in the log?"),
        ("Print `<system-reminder>x</system-reminder>` once.", "Print `<system-reminder>x</system-reminder>` once."),
        ("The page begins with\n<rules> and never ends.", "The page begins with\n<rules> and never ends."),
        ("a < b and c > d", "a < b and c > d"),
        ("<div>\n  <p>Hello</p>\n</div>", "<div>\n  <p>Hello</p>\n</div>"),
    ],
)  # fmt: skip
def test_a_block_of_the_client_is_taken_out_and_words_stay(text: str, left: str) -> None:
    assert words_of(text) == left


@pytest.mark.parametrize("mark", ["isMeta", "isSidechain", "isCompactSummary", "isApiErrorMessage"])
def test_a_line_that_nobody_said_is_no_turn(mark: str) -> None:
    (row,) = claude(("assistant", "Use tabs."))
    assert reading(written([{**row, mark: True}])).turns == []


# ---------------------------------------------------------------------- acknowledgements

EMPTY = [
    "ok", "OK!", "thanks", "Thank you so much.", "yes do it", "Yes, please go ahead.", "continue", "great, continue",
    "lgtm", "sounds good, thanks!", "👍", "...", "no", "do that then", "Let me check.", "ok, now do it again",
    "ja, mach das", "Vielen Dank!", "alles klar, weiter", "Passt, danke dir.", "nein danke",
    "sí, hazlo", "Muchas gracias", "vale, adelante", "de acuerdo, continúa",
    "oui, vas-y", "Merci beaucoup !", "d'accord, continue", "ça marche", "c’est bon",
    "Guten Abend!", "Großartig.", "Moin", "Danke sehr, passt so.", "Na klar, leg los",
    "Klingt gut. Mach weiter!", "Auf Wiedersehen",
    "Buenas tardes", "Hola, buenas", "Claro que sí, adelante", "Me parece bien. ¡Muchísimas gracias!", "Hasta mañana",
    "Bonsoir", "Coucou !", "Bien sûr, allez-y", "C’est ça, mille mercis", "Pas de souci, à demain",
]  # fmt: skip
FULL = [
    "yes, port 6543", "ok use tabs", "no, never on Friday", "thanks, Ada", "do it on main", "continue with pooler.toml",
    "3", "yes: 30s", "ja, aber erst Montag", "nein, Port 6543", "sí, en el puerto 6543", "gracias, Ana",
    "Guten Abend, Petra", "passt erst Montag", "hasta el lunes", "buenas, soy Ana", "bonsoir Anne", "à lundi",
    "oui, mais pas vendredi", "la nôtre", "go to Oslo", "great is the name of the branch", "stop the pooler",
]  # fmt: skip


@pytest.mark.parametrize("text", EMPTY)
def test_an_acknowledgement_is_no_memory(text: str) -> None:
    assert is_acknowledgement(text)
    assert stored(("user", text)) == []


@pytest.mark.parametrize("text", FULL)
def test_a_turn_with_any_other_word_is_a_memory(text: str) -> None:
    assert not is_acknowledgement(text)
    assert stored(("user", text)) == [("user", text)]


@pytest.mark.parametrize("fact", ["port 6543", "Ada", "Freitag", "nunca", "jamais", "tabs"])
@pytest.mark.parametrize("text", EMPTY)
def test_an_acknowledgement_that_carries_a_fact_is_a_memory(text: str, fact: str) -> None:
    assert not is_acknowledgement(f"{text} {fact}")


def test_the_phrases_of_each_language_are_of_the_same_kinds_and_in_small_letters() -> None:
    words = tomllib.loads(files("semmem.text").joinpath("turn_phrases.toml").read_text(encoding="utf-8"))
    assert tuple(words) == LANGUAGES
    for language, kinds in words.items():
        assert sorted(kinds) == ["answers", "behind", "courtesies", "empty", "go_on", "meanwhile", "procedure"]
        for kind, phrases in kinds.items():
            each = [phrase.strip() for phrase in phrases.split("|")]
            assert each == [" ".join(phrase.lower().split()) for phrase in each], (language, kind)
            assert "" not in each, (language, kind)


# ---------------------------------------------------------------------- questions


@pytest.mark.parametrize(
    ("text", "question", "bare"),
    [
        ("Where should it go?", "Where should it go?", True),
        ("Thanks! Where should it go? And when?", "Where should it go? And when?", True),
        ("It is in src. Where should it go?", "Where should it go?", False),
        ("Which one?\n1. tabs\n2. spaces", "Which one?\n1. tabs\n2. spaces", False),
        ("**Where should it go?**", "**Where should it go?**", True),
        ("¿Dónde va?", "¿Dónde va?", True),
        ("See https://example.org/?a=b for it.", "", False),
        ("Shall I continue?", "", False),
        ("Soll ich jetzt weitermachen?", "", False),
        ("Möchtest du, dass ich fortfahre?", "", False),
        ("¿Quieres que siga ahora?", "", False),
        ("Est-ce que je peux continuer maintenant ?", "", False),
        ("Soll ich Port 6543 nehmen?", "Soll ich Port 6543 nehmen?", True),
        ("¿Quieres que use tabs?", "¿Quieres que use tabs?", True),
        ("Veux-tu que je change le port ?", "Veux-tu que je change le port ?", True),
        ("It is done. Is there anything else I can help with?", "", False),
        ("What? No.", "", False),
    ],
)
def test_the_question_at_the_end_of_a_turn_is_found(text: str, question: str, bare: bool) -> None:
    assert (question_in(text), is_bare_question(text)) == (question, bare)


def test_a_question_is_stored_with_the_reply_and_never_alone() -> None:
    ask, reply = ("assistant", "Where should it go?"), ("user", "Into src.")
    assert stored(ask) == []
    assert stored(ask, reply) == [("user", "Where should it go?\n\nInto src.")]
    first = reading(written(claude(ask)))
    assert first.question == Question("assistant", "Where should it go?")
    assert stored(reply, question=first.question) == [("user", "Where should it go?\n\nInto src.")]


def test_a_question_that_is_answered_by_a_question_waits_for_the_answer() -> None:
    said = [("user", "Can you add a cache?"), ("assistant", "Which one should it be?"), ("user", "Redis.")]
    assert stored(*said) == [("user", "Can you add a cache?\n\nWhich one should it be?\n\nRedis.")]


def test_the_reply_to_a_person_is_the_last_turn_of_the_model() -> None:
    said = [("user", "Where is the port set?"), ("assistant", "The file config.py has some of it."),
            ("assistant", "It is set in pooler.toml."), ("user", "Set it to 6543.")]  # fmt: skip
    assert stored(*said) == [
        ("assistant", "The file config.py has some of it."),
        ("assistant", "Where is the port set?\n\nIt is set in pooler.toml."),
        ("user", "Set it to 6543."),
    ]


def test_a_bare_question_of_the_model_that_goes_on_by_itself_is_no_memory() -> None:
    meanwhile = ("assistant", "Where is the Makefile?")
    said = [("user", "How are the tests run?"), meanwhile, ("assistant", "By make check.")]
    assert stored(*said) == [("assistant", "How are the tests run?\n\nBy make check.")]


def test_a_short_answer_is_stored_with_its_question_and_one_to_nothing_is_not() -> None:
    assert stored(("assistant", "Do we keep Python 3.11?"), ("user", "yes")) == [
        ("user", "Do we keep Python 3.11?\n\nyes")
    ]
    assert stored(("assistant", "Do we keep Python 3.11?"), ("user", "thanks")) == []
    assert stored(("assistant", "Shall I go on?"), ("user", "yes, do it")) == []
    assert stored(("user", "Can you set the port to 6543?"), ("assistant", "Done.")) == [
        ("assistant", "Can you set the port to 6543?\n\nDone.")
    ]
    assert is_answer("yes please")
    assert not is_answer("thanks a lot")


def test_a_person_who_asks_and_goes_on_loses_neither() -> None:
    said = [("user", "How are the tests run?"), ("user", "In CI, I mean."), ("assistant", "With make check.")]
    assert stored(*said) == [
        ("user", "How are the tests run?\n\nIn CI, I mean."),
        ("assistant", "How are the tests run?\n\nWith make check."),
    ]


def test_old_transcripts_are_imported_as_the_hooks_store_them(tmp_path: Path) -> None:
    (tmp_path / "claude").mkdir()
    (tmp_path / "claude" / "s1.jsonl").write_bytes(written(CLAUDE))
    (tmp_path / "rollout.jsonl").write_bytes(b"\n" + written(CODEX) + b"{oops\n")
    (tmp_path / "talk.jsonl").write_bytes(b'{"role": "user", "content": "One."}\n')
    bad: list[BadRow] = []
    items = list(read(tmp_path, reject=bad.append))
    both = {
        "text": "How are the tests run?\n\nWith make check.", "author": "assistant", "source_type": "agent",
        "session": "s1", "position": 2, "tags": ["transcript"],
    }  # fmt: skip
    assert items == [
        {**both, "id": "turn:a1", "created_at": "2026-11-20T10:00:09Z", "metadata": {"agent": "claude-code"}},
        {**both, "id": "turn:s1:2", "created_at": "2026-11-20T10:00:02Z", "metadata": {"agent": "codex"}},
    ]
    assert [one.where for one in items] == ["claude/s1.jsonl, line 3", "rollout.jsonl, line 6"]
    assert [(row.where, row.reason.rpartition("/")[2]) for row in bad] == [
        ("rollout.jsonl, line 8", "it is not JSON."),
        (
            "talk.jsonl",
            "talk.jsonl is not a transcript of Claude Code or Codex; import chat reads other chats.",
        ),
    ]


def test_a_resumed_session_that_repeats_turns_is_read_once(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(written(SESSION[:3]))
    (tmp_path / "b.jsonl").write_bytes(written(SESSION))
    ids = [one["id"] for one in read(tmp_path)]
    assert len(ids) == len(set(ids))
    assert ids[:2] == ["turn:u0", "turn:u2"]


def test_the_first_codex_transcripts_have_the_session_of_their_first_line(tmp_path: Path) -> None:
    path = tmp_path / "old.jsonl"
    path.write_bytes(written(OLD_CODEX))
    assert [(one["id"], one["session"]) for one in read(path)] == [("turn:s1:2", "s1")]


def test_no_transcript_is_said_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="neither it nor a folder in it has a file"):
        list(read(tmp_path))
    (tmp_path / "talk.jsonl").write_bytes(b'{"role": "user", "content": "One."}\n')
    with pytest.raises(InvalidInput, match="is not a transcript of Claude Code or Codex"):
        list(read(tmp_path / "talk.jsonl"))


def test_a_transcript_is_imported_once_and_without_credentials(
    capfd: pytest.CaptureFixture[str], store_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SEMMEM_URL", store_url)
    monkeypatch.setenv("SEMMEM_EMBEDDER", "none")
    call = in_process(capfd)
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    rows = claude(("user", f"The token of the mirror is {secret} and it expires in May."))
    path = tmp_path / "s1.jsonl"
    path.write_bytes(written(rows))
    code, out, err = call("import", "transcript", str(tmp_path), "-n", "n")
    assert (code, "Imported 1 memory" in out, "Redacted 1 credential." in err) == (0, True, True)
    assert secret not in call("list", "-n", "n", "--json")[1]
    assert "1 was there already" in " ".join(call("import", "transcript", str(path), "-n", "n")[1].split())


def test_without_a_folder_the_sessions_of_both_agents_are_read(
    tmp_path: Path, store_url: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SEMMEM_URL", store_url)
    monkeypatch.setenv("SEMMEM_EMBEDDER", "hashing")
    program = in_process(capfd)
    code, _, err = program("import", "sessions")
    assert (code, err) == (
        2,
        "There are no sessions in ~/.claude/projects or ~/.codex/sessions; name the file or folder.\n",
    )
    for place, rows in ((".claude/projects/engine/a.jsonl", CLAUDE), (".codex/sessions/2026/b.jsonl", CODEX)):
        (tmp_path / place).parent.mkdir(parents=True)
        (tmp_path / place).write_bytes(written(rows))
    code, out, _ = program("import", "sessions")
    assert (code, out.split(" in ")[0]) == (0, "Imported 2 memories into namespace default")
    assert "2 were there already" in program("import", "sessions")[1]
    assert program("import", "csv")[2] == "import csv reads a file; name it.\n"
