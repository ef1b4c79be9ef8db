"""A git repository as notes: commit messages and records of decisions, again and in another clone."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from semmem.importers import BadRow, reader
from semmem.model.errors import InvalidInput
from semmem.model.imported_items import Item
from tests.interfaces.cli.program import Call, in_process

MAY = datetime(2026, 5, 1, 9, 0, tzinfo=UTC)


def git(folder: Path, *words: str, day: int = 1) -> None:
    when = f"2026-05-{day:02}T09:00:00+00:00"
    who = {
        "GIT_AUTHOR_NAME": "Ada",
        "GIT_AUTHOR_EMAIL": "a@x",
        "GIT_COMMITTER_NAME": "Bo",
        "GIT_COMMITTER_EMAIL": "b@x",
    }
    at = {"GIT_AUTHOR_DATE": when, "GIT_COMMITTER_DATE": when, "HOME": str(folder), "PATH": "/usr/bin:/bin"}
    subprocess.run(["git", "-c", "init.defaultBranch=main", *words], cwd=folder, env={**who, **at}, check=True,
                   capture_output=True)  # fmt: skip


RECORD = "---\nstatus: accepted\n---\n# Use one server\n\nBecause two disagree.\n"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "engine"
    (folder / "docs" / "adr").mkdir(parents=True)
    git(folder, "init")
    (folder / "docs" / "adr" / "0001-one-server.md").write_text(RECORD, encoding="utf-8")
    (folder / "docs" / "adr" / "README.md").write_text("# Decisions\n", encoding="utf-8")
    git(folder, "add", ".")
    git(folder, "commit", "-m", "Decide on one server\n\nTwo disagree after a day.\n\nSigned-off-by: Ada <a@x>")
    (folder / "a.py").write_text("pass\n", encoding="utf-8")
    git(folder, "add", ".")
    git(folder, "commit", "--allow-empty-message", "-m", "", day=2)
    git(folder, "commit", "--allow-empty", "-m", "fix: the café is open, key ghp_" + "a1B2" * 9, day=3)
    return folder


def read(path: Path) -> tuple[list[Item], list[BadRow]]:
    bad: list[BadRow] = []
    return list(reader("git")(path, reject=bad.append)), bad


def test_each_commit_and_each_decision_is_a_note(repository: Path) -> None:
    (third, first, record), bad = read(repository)
    assert third["text"].startswith("fix: the café is open")
    assert (first["text"], first["author"], first["created_at"], first["tags"]) == (
        "Decide on one server\n\nTwo disagree after a day.", "Ada", MAY, ["commit"],
    )  # fmt: skip
    assert first["id"] == f"git:{first['id'][4:]}"
    assert len(first["id"]) == 44
    assert (record["text"], record["title"], record["author"], record["created_at"], record["tags"]) == (
        "# Use one server\n\nBecause two disagree.", "Use one server", "Ada", MAY, ["decision"],
    )  # fmt: skip
    assert record["source"] == "docs/adr/0001-one-server.md"
    assert record["metadata"] == first["metadata"] == {"repository": first["id"][4:16]}
    ((where, reason),) = [(row.where, row.reason) for row in bad]
    assert (where[:7], len(where), reason) == ("commit ", 19, "it has no message.")


def test_a_repository_is_imported_once_from_every_clone_and_a_changed_decision_replaces_the_old_one(
    repository: Path, store_url: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEMMEM_URL", store_url)
    monkeypatch.setenv("SEMMEM_EMBEDDER", "hashing")
    program: Call = in_process(capfd)
    code, out, err = program("import", "git", str(repository))
    assert (code, out.split(" in ")[0]) == (0, "Imported 3 memories into namespace default")
    assert "Redacted 1 credential." in err
    clone = repository.parent / "clone"
    git(repository.parent, "clone", "--quiet", str(repository), str(clone))
    code, out, _ = program("import", "git", str(clone))
    assert "3 were there already" in out
    record = clone / "docs" / "adr" / "0001-one-server.md"
    record.write_text(RECORD + "\nMeasured again in June.\n", encoding="utf-8")
    git(clone, "commit", "-am", "Measure again", day=4)
    code, out, _ = program("import", "git", str(clone))
    assert "Imported 1 memory into namespace default" in out
    assert "1 has changed, 2 were there already" in out
    git(clone, "rm", "-q", str(record))
    git(clone, "commit", "-m", "Drop the record", day=5)
    code, out, err = program("import", "git", str(clone))
    assert "1 note is deleted, but still remembered; --prune forgets them" in err
    code, out, err = program("import", "git", str(clone), "--prune")
    assert "Forgot 1 memory of deleted notes." in out
    listed = program("recall", "key of the café", "--json")[1]
    assert "ghp_…[removed]" in listed
    assert "a1B2a1B2" not in listed


def test_a_changed_decision_with_a_credential_is_imported_again_where_the_setting_redacts(
    repository: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEMMEM_URL", f"sqlite:{repository.parent}/notes.db")
    monkeypatch.setenv("SEMMEM_EMBEDDER", "none")
    monkeypatch.setenv("SEMMEM_CREDENTIALS", "redact")
    program: Call = in_process(capfd)
    record = repository / "docs" / "adr" / "0001-one-server.md"
    for day, name in enumerate(("Kestrel", "Falcon"), 4):
        record.write_text(f"{RECORD}\nThe password is hunter2-x9!\nIts name is {name}.\n", encoding="utf-8")
        git(repository, "commit", "-am", f"Call it {name}", day=day)
        code, out, err = program("import", "git", str(repository))
        assert (code, "Redacted 2 credentials." in err) == (0, True)
    assert "1 has changed" in out
    listed = program("list", "--json")[1]
    assert "The password is [removed]" in listed
    assert "Its name is Falcon." in listed
    assert "hunter2" not in listed


def test_a_name_with_the_signs_of_a_pattern_has_its_own_author_and_time(repository: Path) -> None:
    folder = repository / "docs" / "adr"
    for day, name in ((4, "a.md"), (5, "[a].md")):
        (folder / name).write_text(f"# Record {day}\n", encoding="utf-8")
        git(repository, "add", ".")
        git(repository, "commit", "-m", name, day=day)
    times = {one["source"]: one["created_at"] for one in read(repository)[0]}
    assert times["docs/adr/[a].md"] == datetime(2026, 5, 5, 9, 0, tzinfo=UTC)


def test_what_is_no_repository_is_refused_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="is no git repository with a commit: not a git repository"):
        read(tmp_path)
    git(tmp_path, "init")
    with pytest.raises(InvalidInput, match=r"commit: your current branch '\w+' does not have any commits yet$"):
        read(tmp_path)
    git(tmp_path, "init", "--bare", "bare.git")
    with pytest.raises(InvalidInput, match=r"commit: your current branch '\w+' does not have any commits yet$"):
        read(tmp_path / "bare.git")


def test_a_decision_that_is_not_utf_8_or_empty_is_told_and_the_others_are_read(repository: Path) -> None:
    folder = repository / "docs" / "adr"
    (folder / "0002-caf.md").write_bytes(b"# Caf\xe9\n")
    (folder / "0003-nothing.md").write_text("---\nstatus: draft\n---\n\n", encoding="utf-8")
    git(repository, "add", ".")
    git(repository, "commit", "-m", "Two more", day=4)
    items, bad = read(repository)
    assert [(row.where, row.reason) for row in bad[1:]] == [
        ("docs/adr/0002-caf.md", "it is not UTF-8 (byte 5)."),
        ("docs/adr/0003-nothing.md", "the record is empty."),
    ]
    assert [item["source"] for item in items if item["tags"] == ["decision"]] == ["docs/adr/0001-one-server.md"]
