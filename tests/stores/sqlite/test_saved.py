"""Saved models of a SQLite file, beyond those of any store: files that are torn or foreign, moves, kills."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from semmem.model.errors import StoreUnavailable
from semmem.stores.resident import coarse, model, saved
from semmem.stores.sqlite import resident
from tests.stores.resident.trio import QUESTIONS, change, new_space
from tests.stores.saving import ERASED, erase_beside_savers, fill, fill_into, opened, said, standing
from tests.stores.sqlite.bakery import ROOT, fresh
from tests.stores.test_full_disk import AS_ROOT, mounted


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Save namespaces of two memories, too."""
    monkeypatch.setattr(saved, "FEWEST", 2)


@pytest.fixture
def url(file: Path) -> str:
    return f"sqlite://{file}"


@pytest.fixture
def folder(file: Path) -> Path:
    return file.with_name("notes.db-models")


@pytest.fixture
def rows_read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list to which each reading of rows is added: ``all`` of a namespace, or those ``since`` a change."""
    read: list[str] = []
    before = resident._rows

    def rows(connection: Any, where: Any, *, since: bool = False) -> Any:
        read.append("since" if since else "all")
        return before(connection, where, since=since)

    monkeypatch.setattr(resident, "_rows", rows)
    return read


# ---------------------------------------------------------------------- the same answers


def test_what_one_process_has_read_and_closed_the_next_one_maps(url: str, rows_read: list[str]) -> None:
    before = fill(url)
    rows_read.clear()
    with opened(url) as mem:
        assert said(mem) == before
        assert rows_read == []
        mem.remember("The Crane Gate was sold to Mila.", id="sold")
        after = said(mem)
        assert "sold" in dict(after)
        assert rows_read == ["since"]
    with opened(url, resident_mb=0) as mem:
        assert said(mem) == after
    assert rows_read == ["since", "all"]


def test_the_block_that_follows_a_mapped_one_has_its_vectors_in_bytes_again(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coarse, "FEWEST", 3)
    monkeypatch.setattr(model, "_TAIL", 2)
    fill(url)
    with opened(url) as mem:
        said(mem)
        assert mem.store.models.current("default")._base.coarse is None
        mem.remember_many([{"text": f"The Crane Gate {n}."} for n in range(2)])
        answer = said(mem)
        assert (mem.store.models.current("default")._base.coarse is None) != coarse.is_possible(6)
    with opened(url, resident_mb=0) as mem:
        assert said(mem) == answer


def test_a_mapped_array_cannot_be_written_to(url: str) -> None:
    fill(url)
    with opened(url) as mem:
        said(mem)
        block = mem.store.models.current("default").block
        with pytest.raises(ValueError, match="read-only"):
            block.lengths[0] = 1
        assert not any(array.flags.writeable for array in block.arrays().values() if array.size)


STEPS = ("few", "few", "update", "forget", "take back", "link", "many", "sensitive", "maintain", "merge", "drop")


@pytest.mark.slow
@settings(
    max_examples=6,
    suppress_health_check=list(HealthCheck),
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
)
@given(st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 200)), min_size=1, max_size=5))
def test_after_any_writes_a_process_that_maps_answers_as_one_that_reads(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int]]
) -> None:
    url, space = f"sqlite://{tmp_path_factory.mktemp('saved')}/notes.db", new_space()
    for at, step in enumerate([("many", 0), *steps]):
        with opened(url) as writer:
            change(writer, space, step)
            asked = at % 2  # so that a step follows a model that was saved one or two steps before
            if asked:
                said(writer, namespace=space)
        answers = []
        for megabytes in (64, 0):
            with opened(url, resident_mb=megabytes) as mem:
                answers.append([said(mem, question, namespace=space, limit=20) for question in QUESTIONS])
        assert answers[0] == answers[1], step


def test_a_store_restored_from_a_copy_does_not_use_what_was_saved_of_the_one_it_replaces(url: str, file: Path) -> None:
    with opened(url) as mem:
        mem.remember("The Crane Gate is red.", id="red")
        mem.remember("The quay is dry.", id="dry")
    shutil.copy(file, file.with_name("copy.db"))
    with opened(url) as mem:
        mem.remember("The Crane Gate is shut.", id="shut")
        assert {"red", "shut"} <= dict(said(mem)).keys()
    shutil.copy(file.with_name("copy.db"), file)
    with opened(url, resident_mb=0) as mem:
        mem.remember("The Crane Gate is open.", id="open")  # as long, so that the states have equal numbers
    with opened(url) as mem:
        assert dict(said(mem)).keys() & {"red", "shut", "open"} == {"red", "open"}


@pytest.mark.parametrize("replaced", [True, False])
def test_a_process_whose_file_was_replaced_or_deleted_saves_nothing_of_it(
    url: str, file: Path, folder: Path, tmp_path: Path, replaced: bool
) -> None:
    with opened(url) as mem:
        fill_into(mem)
        file.unlink()
        if replaced:
            file.write_bytes(b"")
    assert not folder.exists()


def test_a_new_store_at_the_path_of_one_that_was_deleted_begins_empty(url: str, file: Path, folder: Path) -> None:
    fill(url)
    for path in file.parent.glob("notes.db*"):
        if path.is_file():
            path.unlink()
    assert standing(folder, ERASED) != []
    fill(url, "Crane Gate")
    assert standing(folder, ERASED) == []
    assert len(list(folder.iterdir())) == 1


# ---------------------------------------------------------------------- files that are not to be trusted


def other_endian(raw: bytes) -> bytes:
    """Return a file as a machine of the other byte order writes it, its header's hash included."""
    size = int.from_bytes(raw[8:16], "little")
    header = raw[32 : 32 + size].replace(b"<i8", b">i8")
    return raw[:16] + saved._hash(header) + header + raw[32 + size :]


def newer(raw: bytes) -> bytes:
    size = int.from_bytes(raw[8:16], "little")
    header = raw[32 : 32 + size].replace(b'"layout": 1', b'"layout": 2')
    return raw[:16] + saved._hash(header) + header + raw[32 + size :]


@pytest.mark.parametrize(
    "tampered",
    [
        lambda raw: b"",
        lambda raw: raw[:20],
        lambda raw: raw[:-1],
        lambda raw: raw + b"\0",
        lambda raw: raw[: len(raw) // 2],
        lambda raw: b"SQLite format 3\0" + raw[16:],
        lambda raw: raw[:40] + b"\xff" + raw[41:],
        lambda raw: raw[:8] + b"\xff" * 8 + raw[16:],
        other_endian,
        newer,
    ],
    ids=[
        "empty", "only a head", "a byte short", "a byte long", "half", "foreign", "a header with a wrong byte",
        "a header without end", "other endian", "newer",
    ],
)  # fmt: skip
def test_a_file_that_is_torn_or_foreign_is_ignored_and_replaced(
    url: str, folder: Path, rows_read: list[str], tampered: Callable[[bytes], bytes]
) -> None:
    before = fill(url)
    (path,) = folder.iterdir()
    raw = path.read_bytes()
    assert tampered(raw) != raw
    path.write_bytes(tampered(raw))
    rows_read.clear()
    with opened(url) as mem:
        assert said(mem) == before
        assert rows_read == ["all"]
    (path,) = folder.iterdir()
    with opened(url) as mem:
        assert said(mem) == before
    assert rows_read == ["all"]


def test_a_link_and_a_folder_in_the_place_of_a_saved_model_are_ignored(url: str, folder: Path) -> None:
    before = fill(url)
    (path,) = folder.iterdir()
    path.rename(folder / "elsewhere")
    path.symlink_to(folder / "elsewhere")
    with opened(url) as mem:
        assert said(mem) == before
        mem.remember("The quay is dry.", id="dry")
    (name,) = {name.name for name in folder.iterdir()} - {"elsewhere"}  # files of others stay
    (folder / name).unlink()
    (folder / name).mkdir()
    with opened(url) as mem:
        assert dict(said(mem)).keys() == {*dict(before), "dry"}


@pytest.mark.parametrize("kind", ["file", "link", "open to others"])
def test_where_no_folder_of_the_owner_alone_can_be_recalls_work_and_nothing_is_saved(
    url: str, folder: Path, kind: str
) -> None:
    elsewhere = folder.with_name("elsewhere")
    elsewhere.mkdir()
    if kind == "file":
        folder.write_text("mine")
    elif kind == "link":
        folder.symlink_to(elsewhere)
    else:
        folder.mkdir(mode=0o755)
    before = fill(url)
    with opened(url) as mem:
        assert said(mem) == before
        assert mem.forget("gate", hard=True) == 1
    assert list(elsewhere.iterdir()) == []
    assert folder.is_file() or list(folder.iterdir()) == []


def test_of_a_store_that_others_may_write_nothing_is_saved(url: str, file: Path, folder: Path) -> None:
    with opened(url) as mem:
        mem.remember("The quay is dry.", id="dry")
    file.chmod(0o660)
    fill(url)
    assert not folder.exists()


@AS_ROOT
@pytest.mark.slow
def test_on_a_full_disk_recalls_work_nothing_is_left_and_a_later_process_saves(tmp_path: Path) -> None:
    with mounted(tmp_path / "disk", 4_000_000) as disk:
        url, folder = f"sqlite://{disk.folder}/notes.db", disk.folder / "notes.db-models"
        with opened(url) as mem:
            mem.remember_many([{"id": f"m{n}", "text": f"heron {n} in the reeds"} for n in range(40)])
        with opened(url) as mem:
            before = said(mem, "heron")
            disk.fill(but=20_000)  # a saved model takes 90 KB
        assert not folder.exists() or list(folder.iterdir()) == []
        disk.empty()
        with opened(url) as mem:
            assert said(mem, "heron") == before
        assert len(list(folder.iterdir())) == 1


# ---------------------------------------------------------------------- when, and how much


def test_without_memory_for_namespaces_none_is_saved_and_none_used(
    url: str, folder: Path, rows_read: list[str]
) -> None:
    with opened(url, resident_mb=0) as mem:
        fill_into(mem)
        mem.maintain()
    assert not folder.exists()
    fill(url)
    rows_read.clear()
    with opened(url, resident_mb=0) as mem:
        said(mem)
    assert rows_read == ["all"]


def test_while_somebody_writes_closing_waits_for_nothing_and_saves_nothing(url: str, file: Path, folder: Path) -> None:
    with opened(url) as mem:
        fill_into(mem)
        with closing(sqlite3.connect(file, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            mem.close()
            other.execute("ROLLBACK")
    assert not folder.exists()


# ---------------------------------------------------------------------- erasure


def test_who_opens_the_store_by_a_link_removes_what_was_saved_beside_the_file(
    url: str, file: Path, folder: Path, tmp_path: Path
) -> None:
    fill(url)
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "other.db").symlink_to(file)
    with opened(f"sqlite://{tmp_path}/links/other.db") as mem:
        assert mem.forget("gate", hard=True) == 1
    assert standing(folder, ERASED) == []
    assert [path.name for path in (tmp_path / "links").iterdir()] == ["other.db"]


def test_of_a_store_in_a_folder_whose_name_is_not_utf8_a_model_is_saved_and_erased(tmp_path: Path) -> None:
    place = tmp_path / os.fsdecode(b"caf\xe9")
    place.mkdir()
    fill(f"sqlite://{place}/notes.db")
    assert len(standing(place, ERASED)) > 1
    with opened(f"sqlite://{place}/notes.db") as mem:
        assert mem.forget("gate", hard=True) == 1
        assert (mem.stats().bytes or 0) > 0
    assert standing(place / "notes.db-models", ERASED) == []


def test_of_a_store_that_was_moved_while_it_is_open_nothing_is_forgotten_until_it_is_opened_there(
    tmp_path: Path,
) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    before.mkdir()
    fill(f"sqlite://{before}/notes.db")
    with opened(f"sqlite://{before}/notes.db") as mem:
        before.rename(after)
        with pytest.raises(StoreUnavailable) as error:
            mem.forget("gate", hard=True)
    assert str(error.value) == (
        f"{before}/notes.db was moved while this process has it open, with the saved models beside it, so nothing was "
        "changed; close this store, and open it where it is now."
    )
    with opened(f"sqlite://{after}/notes.db") as mem:
        assert mem.get("gate").title == ERASED
        assert mem.forget("gate", hard=True) == 1
    assert standing(after, ERASED) == []


_SAVING = """
import itertools, os
from semmem.stores.resident import saved
saved.FEWEST, saved.MOST_BEHIND = 2, 0

def killed(*_):
    os.kill(os.getpid(), 9)

def half(out, state, arrays):
    out.write(arrays["title.raw"].tobytes())
    out.flush()
    killed()

def saving(n):
    with semmem.connect(url, embedder="hashing") as mem:
        mem.remember(f"The Crane Gate {n}.", id=f"{os.getpid()}-{n}")
        mem.recall("Where is the Crane Gate?")
"""


@pytest.mark.parametrize("where", ["_write = half", "tidy = killed"], ids=["in a file", "before the commit"])
def test_a_process_that_is_killed_while_it_saves_leaves_what_is_not_used_and_the_next_eraser_removes(
    url: str, folder: Path, where: str
) -> None:
    fill(url)
    before = {path.name for path in folder.iterdir()}
    assert fresh(url, f"{_SAVING}\nsaved.{where}\nsaving(1)").returncode == -9
    (left,) = {path.name for path in folder.iterdir()} - before
    assert ERASED.encode() in (folder / left).read_bytes()
    with opened(url) as mem, opened(url, resident_mb=0) as plain:
        assert said(mem) == said(plain)
        mem.forget("gate", hard=True)
        assert list(folder.iterdir()) == []
        assert standing(folder.parent, ERASED) == []


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_ten_kills_of_a_process_that_saves_all_the_time_change_no_answer(url: str, folder: Path) -> None:
    with opened(url) as mem:
        mem.remember_many([{"id": f"m{n}", "text": f"heron {n} in the reeds"} for n in range(400)])
    fill(url)
    program = (
        f"import sys, semmem\nurl = sys.argv[1]\n{_SAVING}\nfor n in itertools.count(): saving(n); print(n, flush=True)"
    )
    for kill in range(10):
        with subprocess.Popen([sys.executable, "-c", program, url], stdout=subprocess.PIPE, cwd=ROOT) as process:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(kill * 0.026)
            process.kill()
        with opened(url) as mem, opened(url, resident_mb=0) as plain:
            assert said(mem) == said(plain)
    with opened(url) as mem:
        mem.forget("gate", hard=True)
        assert list(folder.iterdir()) == []
        assert standing(folder.parent, ERASED) == []


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_processes_that_save_beside_one_that_erases_bring_nothing_back(url: str, folder: Path) -> None:
    erase_beside_savers(url, folder, f"{_SAVING}\nfor n in range(25): saving(n)")
    with opened(url) as mem, opened(url, resident_mb=0) as plain:
        assert said(mem, limit=60) == said(plain, limit=60)
