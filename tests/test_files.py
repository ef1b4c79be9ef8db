"""A new file is whole or not there, its owner's alone, and never written through a link."""

from __future__ import annotations

import errno
import os
import resource
import stat
from pathlib import Path

import pytest

import semmem
from semmem.files import claimed, must_be_free, new_file, private_folder, state
from semmem.interfaces.cli.app import run
from semmem.model.errors import InvalidInput
from semmem.stores.embedded import data_directory


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


@pytest.fixture(autouse=True)
def open_umask() -> object:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.parametrize("force", [False, True])
def test_a_file_has_its_name_when_it_is_whole(force: bool, tmp_path: Path) -> None:
    path = tmp_path / "x" if force else tmp_path / ("n" * 255)
    with new_file(path, force=force) as out:
        out.write(b"one")
        assert not path.exists()
        assert [mode(found) for found in tmp_path.iterdir()] == [0o600]
        out.seek(0)
        assert out.read() == b"one"
    assert path.read_bytes() == b"one"
    assert mode(path) == 0o600
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt])
def test_after_an_error_there_is_nothing_and_what_was_there_stays(kind: type[BaseException], tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("before")

    def half() -> None:
        with new_file(path, force=True) as out:
            out.write(b"half")
            raise kind

    with pytest.raises(kind):
        half()
    assert [found.read_text() for found in tmp_path.iterdir()] == ["before"]


def test_a_file_is_written_over_only_by_force_also_when_it_comes_meanwhile(tmp_path: Path) -> None:
    path = tmp_path / "x"

    def meanwhile() -> None:
        with new_file(path) as out:
            out.write(b"mine")
            path.write_text("theirs")

    with pytest.raises(InvalidInput, match=r"x exists already; .*--force"):
        meanwhile()
    assert path.read_text() == "theirs"
    with pytest.raises(InvalidInput, match=r"x exists already"), new_file(path):
        raise AssertionError("it was opened")
    with new_file(path, force=True) as out:
        out.write(b"mine")
    assert path.read_text() == "mine"
    assert list(tmp_path.iterdir()) == [path]


def test_the_last_moment_counts_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x"
    real = os.link

    def late(*given: object, **more: object) -> None:
        path.write_text("theirs")
        real(*given, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "link", late)
    with pytest.raises(InvalidInput, match=r"x was written by another program at the same time"), new_file(path) as out:
        out.write(b"mine")
    assert [found.read_text() for found in tmp_path.iterdir()] == ["theirs"]


def test_a_file_system_without_links_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*given: object, **more: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", none)
    with new_file(tmp_path / "x") as out:
        out.write(b"one")
    assert [(found.name, found.read_text()) for found in tmp_path.iterdir()] == [("x", "one")]


def test_what_a_link_leads_to_is_never_written(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("precious")
    for target in (secret, tmp_path / "nowhere"):
        link = tmp_path / "link"
        link.symlink_to(target)
        with pytest.raises(InvalidInput, match="link exists already"), new_file(link):
            raise AssertionError("it was opened")
        with new_file(link, force=True) as out:
            out.write(b"one")
        assert (link.is_symlink(), link.read_text()) == (False, "one")
        link.unlink()
    assert secret.read_text() == "precious"
    assert [found.name for found in tmp_path.iterdir()] == ["secret"]


def test_what_is_no_file_is_refused_by_force_too(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "to-pipe").symlink_to(tmp_path / "pipe")
    (tmp_path / "to-device").symlink_to(os.devnull)
    (tmp_path / "to-link").symlink_to(tmp_path / "to-device")
    (tmp_path / "to-folder").symlink_to(tmp_path)
    before = sorted(tmp_path.iterdir())
    device = "is a device or a pipe, not a file; export takes - for standard output."
    wrong = dict.fromkeys((tmp_path / "pipe", tmp_path / "to-pipe", tmp_path / "to-device"), device)
    wrong |= {tmp_path / "to-link": device, Path(os.devnull): device}
    wrong |= dict.fromkeys((tmp_path, tmp_path / "to-folder"), "is a folder, not a file.")
    for path, why in wrong.items():
        with pytest.raises(InvalidInput) as refused:
            must_be_free(path, force=True)
        assert str(refused.value) == f"{path} {why}"
        with pytest.raises(InvalidInput), new_file(path, force=True):
            raise AssertionError("it was opened")
    assert sorted(tmp_path.iterdir()) == before
    assert (tmp_path / "to-device").is_symlink()
    with pytest.raises(FileNotFoundError), new_file(tmp_path / "none" / "x"):
        raise AssertionError("it was opened")


def test_a_claimed_file_is_its_owners_alone_and_claimed_once(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    assert [claimed(tmp_path / name) for name in ("x", "x", "link")] == [True, False, False]
    assert mode(tmp_path / "x") == 0o600
    assert not (tmp_path / "nowhere").exists()


def test_stores_exports_and_pages_are_closed_to_others(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with semmem.connect(f"sqlite:{tmp_path / 'notes.db'}", embedder="none") as mem:
        mem.remember("Petra Lindqvist came.", id="a")
        found = {path.name: mode(path) for path in tmp_path.iterdir()}
        assert found == {"notes.db": 0o600, "notes.db-wal": 0o600, "notes.db-shm": 0o600}
    where = ["--url", f"sqlite:{tmp_path / 'notes.db'}"]
    (tmp_path / "secret").write_text("precious")
    (tmp_path / "out.jsonl.part").symlink_to(tmp_path / "secret")
    assert run(["export", str(tmp_path / "out.jsonl"), *where]) == 0
    assert mode(tmp_path / "out.jsonl") == 0o600
    assert (tmp_path / "secret").read_text() == "precious"
    assert (tmp_path / "out.jsonl.part").is_symlink()
    assert run(["export", str(tmp_path / "none" / "out.jsonl"), *where]) == 2
    told = capfd.readouterr().err
    assert told.endswith(f"There is no folder {tmp_path}/none; create it first.\n")


def test_a_link_to_nothing_is_no_sqlite_store(tmp_path: Path) -> None:
    (tmp_path / "link.db").symlink_to(tmp_path / "nowhere.db")
    with pytest.raises(InvalidInput, match=r"link\.db is a link to a file that is not there; name that file"):
        semmem.connect(f"sqlite:{tmp_path / 'link.db'}", embedder="none")
    assert not (tmp_path / "nowhere.db").exists()


@pytest.mark.parametrize("command", [["export"], ["backup"]])
def test_no_command_puts_a_file_where_a_link_leads_to_a_device(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, command: list[str]
) -> None:
    link = tmp_path / "stdout"
    link.symlink_to(os.devnull)
    url = f"sqlite://{tmp_path}/notes.db"
    with semmem.connect(url, embedder="none") as mem:
        mem.remember("An owl.")
    assert run([*command, str(link), "--force", "--url", url]) == 2
    assert capfd.readouterr().err == (
        f"{link} is a device or a pipe, not a file; export takes - for standard output.\n"
    )
    assert link.is_symlink()


def test_every_missing_folder_is_made_for_its_owner_alone_and_others_stay_as_they_are(tmp_path: Path) -> None:
    open_one = tmp_path / "open"
    open_one.mkdir()
    private_folder(open_one / "a" / "b")
    private_folder(open_one / "a" / "b")
    assert [mode(path) for path in (open_one, open_one / "a", open_one / "a" / "b")] == [0o777, 0o700, 0o700]
    (open_one / "file").touch()
    with pytest.raises(OSError, match=r"File exists|Not a directory"):
        private_folder(open_one / "file")
    with pytest.raises(OSError, match=r"File exists|Not a directory"):
        private_folder(open_one / "file" / "c")


def test_folders_of_the_embedded_server_are_closed_to_others_with_all_that_are_made_above_them(tmp_path: Path) -> None:
    who = data_directory.owner(create=True)
    assert who is not None
    tmp_path.chmod(0o755)  # no list of access on it
    data_directory.prepare(tmp_path / ".local" / "share" / "semmem", who)
    made = [".local", ".local/share", ".local/share/semmem", ".local/share/semmem/postgresql"]
    assert [mode(tmp_path / folder) & 0o707 for folder in made] == [0o700] * 4


@pytest.mark.parametrize("client", ["claude-code", "codex", "cursor"])
def test_folders_of_clients_are_closed_to_others(client: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever may write there would say which programs the client runs."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    assert run(["install", client]) == 0
    folders = [folder for folder in tmp_path.iterdir() if folder.is_dir()]
    assert {mode(folder) for folder in folders} == {0o700}


def test_no_folder_is_made_with_folders_above_it_that_are_open_to_others() -> None:
    sources = Path(semmem.__file__).parent.rglob("*.py")
    assert [str(file) for file in sources if "parents=True" in file.read_text(encoding="utf-8")] == []


def test_whatever_is_no_json_object_counts_as_no_state(tmp_path: Path) -> None:
    for at, text in enumerate(["", "[]", "\x00", "[" * 100_000, "5"]):
        (tmp_path / str(at)).write_text(text)
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "device").symlink_to("/dev/zero")
    assert [state(found) for found in [*tmp_path.iterdir(), tmp_path / "missing"]] == [{}] * 9
    (tmp_path / "good").write_text('{"a": 1}')
    assert state(tmp_path / "good") == {"a": 1}


def test_without_room_the_error_names_the_file_and_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    most, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, hard))
    try:
        code = run(["install", "cursor"])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))
    assert code == 1
    assert capsys.readouterr().err == f"{tmp_path}/.cursor/mcp.json: File too large.\n"
    assert [found for found in tmp_path.rglob("*") if found.is_file()] == []
