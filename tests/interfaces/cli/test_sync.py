"""`semmem sync`: a folder of notes and its memories, kept equal in both directions."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import semmem
from semmem.client import folder_sync
from semmem.importers import told_apart
from semmem.importers.markdown import read
from semmem.importers.note_edits import write_back
from semmem.model.imported_items import Item, edited
from semmem.write.screening import redacted_note
from tests.interfaces.cli.program import Call, in_process
from tests.waiting import until

KESTREL = "---\ntags: [boat]\n---\n# Kestrel\n\nDesigned by [[Petra|her]].\nShe lies in Bergen.\n"


@pytest.fixture
def vault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SEMMEM_URL", f"sqlite:{tmp_path}/notes.db")
    monkeypatch.setenv("SEMMEM_EMBEDDER", "hashing")
    folder = tmp_path / "vault"
    folder.mkdir()
    (folder / "Kestrel.md").write_text(KESTREL, encoding="utf-8")
    (folder / "Petra.md").write_text("She grew up in Norrbeck.\n", encoding="utf-8")
    return folder


@pytest.fixture
def call(capfd: pytest.CaptureFixture[str]) -> Call:
    return in_process(capfd)


def test_new_changed_and_deleted_notes_are_followed(vault: Path, call: Call) -> None:
    assert call("sync", str(vault)) == (0, f"{vault}: 2 new.\n", "")
    assert call("sync", str(vault)) == (0, f"{vault}: 2 unchanged.\n", "")
    (vault / "Kestrel.md").write_text(KESTREL + "She is blue.\n", encoding="utf-8")
    (vault / "Petra.md").unlink()
    (vault / "Osk.md").write_text("Osk sails.\n", encoding="utf-8")
    assert call("sync", str(vault)) == (0, f"{vault}: 1 new, 1 changed, 1 forgotten.\n", "")
    done = json.loads(call("sync", str(vault), "--json")[1])
    assert done == {"remembered": 0, "replaced": 0, "forgotten": 0, "written": 0, "unchanged": 2, "bad": []}


def test_a_name_with_an_end_of_line_in_it_says_no_line_of_its_own(vault: Path, call: Call) -> None:
    (vault / "x\nImported 99 memories.md").write_bytes(b"\xff")
    said = "x\\nImported 99 memories.md: it is not UTF-8 (byte 0).\n"
    assert call("sync", str(vault)) == (0, f"{vault}: 2 new.\n", said)
    assert call("import", "markdown", str(vault))[2] == f"  {said}"


def edit(id: str, text: str) -> None:
    with semmem.connect() as mem:
        mem.update(id, text=text)


def test_an_edit_in_the_store_is_written_back_and_leaves_the_links_of_other_lines(vault: Path, call: Call) -> None:
    call("sync", str(vault))
    (vault / "Kestrel.md").chmod(0o640)
    with semmem.connect() as mem:
        text = mem.get("Kestrel.md").text
    assert "Designed by her (Petra)." in text
    edit("Kestrel.md", text.replace("Bergen", "Kiel"))
    assert call("sync", str(vault)) == (0, f"{vault}: 2 unchanged.\n", "")  # without --write it stays as it is
    assert call("sync", str(vault), "--write") == (0, f"{vault}: 1 written back, 1 unchanged.\n", "")
    assert (vault / "Kestrel.md").read_text(encoding="utf-8") == KESTREL.replace("Bergen", "Kiel")
    assert (vault / "Kestrel.md").stat().st_mode & 0o777 == 0o640
    assert call("sync", str(vault), "--write") == (0, f"{vault}: 2 unchanged.\n", "")
    (vault / "Kestrel.md").write_text(KESTREL, encoding="utf-8")  # the note goes its own way again
    assert call("sync", str(vault), "--write") == (0, f"{vault}: 1 changed, 1 unchanged.\n", "")


def test_an_edit_of_a_long_note_leaves_the_link_that_every_line_has(vault: Path, call: Call) -> None:
    lines = [f"{day}\n[[Petra|She]] sailed." for day in range(250)]
    (vault / "Log.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    call("sync", str(vault))
    with semmem.connect() as mem:
        text = mem.get("Log.md").text
    assert text.count("She (Petra) sailed.") == 250
    edit("Log.md", text.replace("249\n", "250\n"))
    assert call("sync", str(vault), "--write") == (0, f"{vault}: 1 written back, 2 unchanged.\n", "")
    kept = (vault / "Log.md").read_text(encoding="utf-8")
    assert (kept.count("[[Petra|She]] sailed."), kept.count("\n250\n")) == (250, 1)


def test_a_note_that_has_changed_too_is_not_overwritten(vault: Path, call: Call) -> None:
    call("sync", str(vault))
    edit("Petra.md", "She grew up in Kiel.")
    (vault / "Petra.md").write_text("She grew up in Oslo.\n", encoding="utf-8")
    code, out, err = call("sync", str(vault), "--write")
    assert (code, out) == (0, f"{vault}: 1 unchanged.\n")
    assert err.startswith("Petra.md: ")
    assert (vault / "Petra.md").read_text(encoding="utf-8") == "She grew up in Oslo.\n"
    with semmem.connect() as mem:
        assert mem.get("Petra.md").text == "She grew up in Kiel."


def test_ends_of_lines_and_sensitive_notes_stay_and_another_field_is_named(vault: Path, call: Call) -> None:
    (vault / "Petra.md").write_bytes(b"She grew up\r\nin Norrbeck.\r\n")
    (vault / "Secret.md").write_text("---\nsensitive: true\n---\nThe code is 7.\n", encoding="utf-8")
    call("sync", str(vault))
    edit("Petra.md", "She grew up\nin Kiel.")
    edit("Secret.md", "The code is 8.")
    with semmem.connect() as mem:
        mem.update("Kestrel.md", title="The Kestrel")
    code, out, err = call("sync", str(vault), "--write")
    assert code == 0
    assert "1 written back" in out
    assert (vault / "Petra.md").read_bytes() == b"She grew up\r\nin Kiel.\r\n"
    assert "The code is 7." in (vault / "Secret.md").read_text(encoding="utf-8")
    assert "Kestrel.md: its memory has another title, tags or metadata; only texts are written.\n" in err


def test_a_note_that_changes_or_goes_while_it_is_read_is_left_and_named(vault: Path, call: Call) -> None:
    call("sync", str(vault))
    edit("Petra.md", "She grew up in Kiel.")
    edit("Kestrel.md", "She lies in Kiel.")
    with semmem.connect() as mem:
        memories = [mem.get(id) for id in ("Kestrel.md", "Petra.md")]
        notes = {note["id"]: note for note in read(vault, **told_apart("markdown", vault, mem, "default"))}
    seen = {
        path.name: (path.stat().st_mtime_ns, path.stat().st_size) for path in vault.iterdir() if path.suffix == ".md"
    }
    (vault / "Petra.md").write_bytes(b"She grew up in Oslo.\nAnd \xff there.\n")
    (vault / "Kestrel.md").unlink()
    written, left = write_back(vault, memories, notes, seen, redacted_note)
    assert written == set()
    assert [str(row.where) for row in left] == ["Kestrel.md", "Petra.md"]
    assert (vault / "Petra.md").read_bytes() == b"She grew up in Oslo.\nAnd \xff there.\n"
    assert not (vault / "Kestrel.md").exists()


SECRET = "# Setup\nThe password is hunter2-x9!\nAsk [[Petra|her]].\nShe lies in Bergen.\n"


@pytest.mark.filterwarnings("ignore::semmem.write.screening.CredentialWarning")
def test_a_note_never_loses_the_credential_that_its_memory_is_without(
    vault: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEMMEM_CREDENTIALS", "redact")
    note = vault / "Setup.md"
    note.write_text(SECRET, encoding="utf-8")
    call("sync", str(vault))
    with semmem.connect() as mem:
        text = mem.get("Setup.md").text
    assert "The password is [removed]!\n" in text
    assert call("sync", str(vault), "--write")[:2] == (0, f"{vault}: 3 unchanged.\n")
    edit("Setup.md", text.replace("Bergen", "Kiel"))
    assert call("sync", str(vault), "--write")[:2] == (0, f"{vault}: 1 written back, 2 unchanged.\n")
    assert note.read_text(encoding="utf-8") == SECRET.replace("Bergen", "Kiel")
    for line in ("Her password is [removed]!", "The password stands in the vault.", ""):
        edit("Setup.md", text.replace("The password is [removed]!", line))
        code, out, err = call("sync", str(vault), "--write")
        assert (code, out) == (0, f"{vault}: 3 unchanged.\n")
        assert "Setup.md: its memory was edited where a credential is removed from it, so it is not written" in err
    assert note.read_text(encoding="utf-8") == SECRET.replace("Bergen", "Kiel")


@pytest.mark.filterwarnings("ignore::semmem.write.screening.CredentialWarning")
def test_a_changed_note_with_a_credential_is_read_again(
    vault: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEMMEM_CREDENTIALS", "redact")
    (vault / "Setup.md").write_text(SECRET, encoding="utf-8")
    call("sync", str(vault))
    (vault / "Setup.md").write_text(SECRET + "She is blue.\n", encoding="utf-8")
    assert call("sync", str(vault))[:2] == (0, f"{vault}: 1 changed, 2 unchanged.\n")
    with semmem.connect() as mem:
        assert mem.get("Setup.md").text.endswith("She is blue.")


@pytest.mark.filterwarnings("ignore::semmem.write.screening.CredentialWarning")
def test_a_note_that_was_read_before_its_memory_was_redacted_stays_and_is_known(
    vault: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    call("sync", str(vault))
    (vault / "Setup.md").write_text(SECRET, encoding="utf-8")
    call("sync", str(vault))
    monkeypatch.setenv("SEMMEM_CREDENTIALS", "redact")
    with semmem.connect() as mem:
        edit("Setup.md", mem.get("Setup.md").text)
        assert edited(mem.get("Setup.md"))
    assert call("sync", str(vault), "--write") == (0, f"{vault}: 1 changed, 2 unchanged.\n", "")
    assert (vault / "Setup.md").read_text(encoding="utf-8") == SECRET
    with semmem.connect() as mem:
        assert not edited(mem.get("Setup.md"))


def test_an_edited_text_that_begins_like_front_matter_stays_text(vault: Path, call: Call) -> None:
    call("sync", str(vault))
    text = "---\ntitle: Other\nexpires_at: 2020-01-01\n---\nShe grew up in Kiel."
    edit("Petra.md", text)
    call("sync", str(vault), "--write")
    with semmem.connect() as mem:
        assert (mem.get("Petra.md").text, mem.get("Petra.md").title) == (text, "Petra")
    assert call("sync", str(vault), "--write") == (0, f"{vault}: 2 unchanged.\n", "")


def test_what_is_no_folder_or_empty_is_refused(vault: Path, call: Call, tmp_path: Path) -> None:
    assert call("sync", str(tmp_path / "no")) == (2, "", f"There is no folder {tmp_path}/no.\n")
    call("sync", str(vault))
    for note in vault.iterdir():
        note.unlink()
    code, _, err = call("sync", str(vault))
    assert code == 2
    assert "The source is empty, so its 2 memories are not pruned" in err


@pytest.mark.parametrize("write", [False, True])
def test_a_note_that_another_sync_has_just_stored_is_not_forgotten(
    vault: Path, monkeypatch: pytest.MonkeyPatch, write: bool
) -> None:
    new_notes: list[str] = []

    def read_before_another(folder: Path, **options: Any) -> Iterator[Item]:
        notes = list(read(folder, **options))
        with monkeypatch.context() as other, semmem.connect() as mem:
            other.setattr(folder_sync, "read", read)
            new_notes.append(f"New {len(new_notes)}.md")
            (vault / new_notes[-1]).write_text("Osk sails.\n", encoding="utf-8")
            assert folder_sync.sync_once(mem, vault, namespace="default", write=False)["remembered"] == 1
        return iter(notes)

    with semmem.connect() as mem:
        folder_sync.sync_once(mem, vault, namespace="default", write=False)
        monkeypatch.setattr(folder_sync, "read", read_before_another)
        assert folder_sync.sync_once(mem, vault, namespace="default", write=write)["forgotten"] == 0
        assert {memory.id for memory in mem.list()} == {"Kestrel.md", "Petra.md", *new_notes}
        monkeypatch.setattr(folder_sync, "read", read)
        (vault / new_notes[0]).unlink()
        assert folder_sync.sync_once(mem, vault, namespace="default", write=write)["forgotten"] == 1


@pytest.mark.parametrize("write", [False, True])
def test_a_watched_folder_that_cannot_be_listed_for_a_look_is_told_and_followed_again(vault: Path, write: bool) -> None:
    away = vault.with_name("away")
    looks = iter(["", "away", "", "", "back", "", "end"])

    def rest(seconds: float) -> None:
        what = next(looks)
        if what == "away":
            vault.rename(away)
        elif what == "back":
            (away / "Osk.md").write_text("Osk sails.\n", encoding="utf-8")
            away.rename(vault)
        elif what == "end":
            raise KeyboardInterrupt

    said: list[Any] = []
    with semmem.connect() as mem, suppress(KeyboardInterrupt):
        for _ in folder_sync.changes(mem, vault, namespace="default", write=write, every=0.1, rest=rest):
            try:
                said.append(folder_sync.sync_once(mem, vault, namespace="default", write=write)["remembered"])
            except semmem.SemmemError as error:
                said.append(str(error))
            assert len(mem.list()) >= 2
    told = [one for one in said if isinstance(one, str)]
    assert [one for one in said if one != 0] == [2, *told, 1]  # with ``write`` the first round is a change itself
    assert len(told) == 1
    assert str(vault) in told[0]


@pytest.mark.slow
def test_a_watched_folder_is_followed_in_both_directions_until_it_is_interrupted(vault: Path) -> None:
    command = [sys.executable, "-m", "semmem", "sync", str(vault), "--watch", "--write", "--every", "0.1"]
    with subprocess.Popen(
        command, env={**os.environ}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        try:
            assert running.stdout is not None
            assert running.stdout.readline() == f"{vault}: 2 new.\n"
            (vault / "Osk.md").write_text("Osk sails.\n", encoding="utf-8")
            assert running.stdout.readline() == f"{vault}: 1 new, 2 unchanged.\n"
            edit("Osk.md", "Osk rows.")
            until(lambda: (vault / "Osk.md").read_text(encoding="utf-8") == "Osk rows.\n")
            running.send_signal(signal.SIGINT)
            _, err = running.communicate(timeout=60)
        finally:
            running.kill()
    assert running.returncode == 130
    assert err == "Stopped. Every memory that was acknowledged is stored, and none is stored in part.\n"
