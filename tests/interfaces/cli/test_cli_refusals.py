"""What is refused on the command line leaves no file, no folder, no server and no password on the screen."""

from __future__ import annotations

from pathlib import Path

import pytest

import semmem
from semmem.interfaces.cli.app import run

READING = (
    ["recall", "owl"],
    ["get", "owl"],
    ["list"],
    ["stats"],
    ["explain", "owl", "--query", "owl"],
    ["export", "-"],
    ["forget", "owl", "--yes"],
    ["maintain"],
)


@pytest.mark.parametrize("command", READING, ids=lambda command: command[0])
def test_a_command_that_only_reads_makes_no_file_and_asks_what_was_meant(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, command: list[str]
) -> None:
    with semmem.connect(f"sqlite://{tmp_path}/notes.db", embedder="none") as mem:
        mem.remember("An owl in the oak.", id="owl")
    before = sorted(tmp_path.iterdir())
    assert run([*command, "--url", f"sqlite://{tmp_path}/ntoes.db"]) == 2
    out, err = capfd.readouterr()
    assert (out, err) == (
        "",
        f"There is no file {tmp_path}/ntoes.db; did you mean notes.db? The first memory that is remembered there makes "
        "it.\n",
    )
    assert sorted(tmp_path.iterdir()) == before


def test_a_file_that_resembles_no_other_is_asked_for_by_its_path_and_made_by_the_first_memory(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    url = f"sqlite://{tmp_path}/notes.db"
    assert run(["stats", "--url", url]) == 2
    assert capfd.readouterr().err.startswith(f"There is no file {tmp_path}/notes.db; correct the path. The first")
    assert run(["remember", "An owl in the oak.", "--url", url]) == 0
    assert run(["stats", "--url", url]) == 0


def test_a_file_in_no_folder_is_refused_alike_by_what_reads_and_what_writes(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    url = f"sqlite://{tmp_path}/absent/notes.db"
    for command in (["stats"], ["remember", "An owl in the oak."]):
        assert run([*command, "--url", url]) == 2
        assert capfd.readouterr().err == (
            f"There is no folder {tmp_path}/absent for the SQLite file; create it first, or correct the path.\n"
        )


def test_counts_of_one_namespace_name_the_others_where_it_is_empty_and_say_whose_bytes_they_show(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    url = f"sqlite://{tmp_path}/notes.db"
    with semmem.connect(url, embedder="none") as mem:
        mem.remember("An owl in the oak.", id="owl", namespace="trees")
    assert run(["stats", "-n", "trees", "--url", url]) == 0
    assert " MiB of the whole store\n" in capfd.readouterr().out
    assert run(["stats", "-n", "seas", "--url", url]) == 0
    assert " ".join(capfd.readouterr().out.split()) == (
        "No memory is in namespace seas. There are memories in namespace trees: say which with -n."
    )


@pytest.mark.parametrize("file", ["absent.semmem", "text.semmem"])
def test_a_restore_that_is_refused_starts_no_server_and_makes_no_folder(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, file: str
) -> None:
    (tmp_path / "text.semmem").write_text("This is no backup, but a text that is long enough to look at." * 3)
    assert run(["restore", str(tmp_path / file), "--url", f"embedded://{tmp_path}/new"]) == 2
    assert capfd.readouterr().err.count("\n") == 1
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ada:hunter2@[::1/db",
        "postgresql://ada:hunter2 secret@127.0.0.1:1/db",
        "postgresql://ada@h/db?password=hunter2%zz",
    ],
)
def test_debug_shows_where_a_malformed_url_failed_and_not_its_password(
    capfd: pytest.CaptureFixture[str], url: str
) -> None:
    assert run(["--debug", "stats", "--url", url]) == 2
    err = capfd.readouterr().err
    assert "Traceback" in err
    assert "The store URL cannot be used" in err
    assert "hunter2" not in err


@pytest.mark.parametrize(
    "args",
    [
        ["-n", "", "forget", "--all", "--yes"],
        ["forget", "-n", "", "--all", "--yes"],
        ["forget", "--namespace=", "--all", "--yes"],
        ["-n", "", "-n", "", "list"],
        ["recall", "owl", "-n", "", "-n", "default"],
        ["settings", "set", "weights.graph", "0", "-n", ""],
        ["settings", "-n", ""],
        ["export", "-", "-n", ""],
        ["stats", "-n", ""],
        ["import", "jsonl", "notes.jsonl", "--into", ""],
        ["remember", "A hawk.", "--id", ""],
        ["remember", "A hawk.", "--namespace", ""],
        ["--recipe", "", "recall", "owl"],
        ["--url", "", "stats"],
        ["stats", "--url", ""],
    ],
    ids=" ".join,
)
def test_an_option_that_is_empty_is_refused_and_never_means_the_default(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, args: list[str]
) -> None:
    monkeypatch.setenv("SEMMEM_URL", f"sqlite://{tmp_path}/notes.db")
    with semmem.connect(f"sqlite://{tmp_path}/notes.db", embedder="none") as mem:
        mem.remember("An owl in the oak.", id="owl")
    assert run(args) == 2
    out, err = capfd.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "it is empty; give it a value, or leave the option out." in err
    with semmem.connect(f"sqlite://{tmp_path}/notes.db", embedder="none") as mem:
        assert [memory.id for memory in mem.list()] == ["owl"]


def test_a_negative_number_that_is_taken_for_an_option_is_answered_with_the_two_dashes(
    capfd: pytest.CaptureFixture[str],
) -> None:
    assert run(["settings", "set", "weights.graph", "-1"]) == 2
    assert "A negative number stands behind two dashes: -- -1." in capfd.readouterr().err
