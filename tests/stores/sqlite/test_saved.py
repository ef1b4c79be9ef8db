"""Saved models of a SQLite file: a new process maps one, no answer differs, and what was erased is in none."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import semmem
from semmem.model.errors import StoreUnavailable
from semmem.model.store import Keep
from semmem.stores.resident import coarse, model, saved
from semmem.stores.sqlite import resident
from tests.stores.expiry import let_expire
from tests.stores.resident.trio import QUESTIONS, change, new_space
from tests.stores.sqlite.bakery import ROOT, fresh
from tests.stores.sqlite.test_three_legs import Letters
from tests.stores.test_full_disk import AS_ROOT, mounted

ERASED = "Xanthippe"


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


def opened(url: str, **more: Any) -> semmem.Semmem:
    return semmem.connect(url, embedder="hashing", count_accesses=False, **more)


def said(mem: semmem.Semmem, query: str = "Where is the Crane Gate?", **asked: Any) -> list[tuple[str, float]]:
    return [(hit.id, hit.score) for hit in mem.recall(query, **asked)]


def fill(url: str, title: str = ERASED) -> list[tuple[str, float]]:
    """Remember four memories, ask, and close; return the answer."""
    with opened(url) as mem:
        mem.remember("The Crane Gate stands by the quay.", id="gate", title=title, session="s", position=1)
        mem.remember("Mila painted the Crane Gate.", id="mila", author="ada", session="s", position=2)
        mem.remember("The quay was swept on Monday.", id="quay")
        mem.remember("Nobody painted the mole.", id="mole")
        return said(mem)


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


def standing(folder: Path, word: str) -> list[str]:
    """Return the files below ``folder`` in which a word stands."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return [path.name for path in files if word.encode() in path.read_bytes()]


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


def test_a_process_with_an_older_model_mapped_finds_what_others_wrote_and_not_what_they_forgot(
    url: str, folder: Path, rows_read: list[str]
) -> None:
    fill(url)
    rows_read.clear()
    with opened(url) as one, opened(url) as other:
        assert "gate" in dict(said(one))
        other.remember("The Crane Gate was sold to Mila.", id="sold")
        other.forget("gate", hard=True)
        assert list(folder.iterdir()) == []
        assert rows_read == []
        answer = said(one)
        assert (dict(answer).keys() & {"gate", "sold"}, rows_read) == ({"sold"}, ["since"])
        with opened(url, resident_mb=0) as plain:
            assert said(plain) == answer
    assert standing(folder.parent, ERASED) == []  # the process with the older model has saved none of it
    assert len(list(folder.iterdir())) == 1


STEPS = ("few", "few", "update", "forget", "take back", "link", "many", "sensitive", "maintain", "merge", "drop")


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


def test_a_copied_and_a_renamed_namespace_answer_as_before(url: str) -> None:
    before = fill(url)
    with opened(url) as mem:
        assert mem.copy_namespace("default", "copy") == mem.rename_namespace("default", "moved") == 4
    for _ in range(2):
        with opened(url) as mem:
            assert said(mem, namespace="copy") == said(mem, namespace="moved") == before


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


def test_files_and_their_folder_are_their_owners_alone_and_no_name_shows(url: str, folder: Path) -> None:
    with opened(url) as mem:
        for n in range(3):
            mem.remember(f"The Crane Gate {n}.", namespace="Petra's diary")
        said(mem, namespace="Petra's diary")
    (path,) = folder.iterdir()
    assert [stat.S_IMODE(one.stat().st_mode) for one in (folder, path)] == [0o700, 0o600]
    assert "Petra" not in path.name
    assert standing(folder, "Petra") == []


def test_a_small_namespace_is_not_saved(url: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saved, "FEWEST", 5)
    fill(url)
    assert not folder.exists()


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


def fill_into(mem: semmem.Semmem, namespace: str = "default") -> None:
    for n in range(3):
        mem.remember(f"The Crane Gate {n}.", id=f"m{n}", namespace=namespace)
    said(mem, namespace=namespace)


def test_it_is_saved_anew_when_it_is_a_thousand_changes_behind(
    url: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saved, "_MOST_BEHIND", 3)
    fill(url)
    names = []
    for n in range(8):
        with opened(url) as mem:
            mem.remember(f"The Crane Gate {n}.", id=f"n{n}")
            said(mem)
        names.append([path.name for path in folder.iterdir()])
    assert [len(each) for each in names] == [1] * 8
    assert [names[n] != names[n - 1] for n in range(1, 8)] == [False, False, True, False, False, False, True]


def test_maintain_saves_what_this_process_has_not_asked_for(url: str, folder: Path, rows_read: list[str]) -> None:
    with opened(url, resident_mb=0) as mem:
        fill_into(mem)
        fill_into(mem, "other")
    with opened(url) as mem:
        mem.maintain()
        assert len(list(folder.iterdir())) == 2
    rows_read.clear()
    with opened(url) as mem:
        said(mem)
        said(mem, namespace="other")
        mem.maintain()
    assert rows_read == []


def test_while_somebody_writes_closing_waits_for_nothing_and_saves_nothing(url: str, file: Path, folder: Path) -> None:
    with opened(url) as mem:
        fill_into(mem)
        with closing(sqlite3.connect(file, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            mem.close()
            other.execute("ROLLBACK")
    assert not folder.exists()


def test_all_saved_models_take_at_most_what_memory_may_and_the_one_mapped_longest_ago_goes(
    url: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spaces = ("one", "two", "three")
    for namespace in spaces[:2]:
        with opened(url) as mem:
            fill_into(mem, namespace)
    one, two = sorted(folder.iterdir(), key=lambda path: path.stat().st_mtime_ns)
    os.utime(one, (2, 2))
    os.utime(two, (1, 1))
    size = one.stat().st_size
    with opened(url) as mem:
        mem.store.models.budget = 2 * size + size // 2
        mem.store.models.save(every=True)  # nothing makes room for what nobody asked for
        assert {path.name for path in folder.iterdir()} == {one.name, two.name}
        fill_into(mem, "three")
    left = {path.name for path in folder.iterdir()}
    assert (one.name in left, two.name in left, len(left)) == (True, False, 2)


def test_stats_count_the_bytes_of_saved_models(url: str, folder: Path) -> None:
    fill(url)
    (path,) = folder.iterdir()
    size = path.stat().st_size
    with opened(url) as mem:
        with_it = mem.stats().bytes
        path.unlink()
        without = mem.stats().bytes
    assert with_it is not None
    assert without is not None
    assert with_it - without == size


# ---------------------------------------------------------------------- erasure


def soft_then_hard(mem: semmem.Semmem) -> None:
    mem.forget("gate")
    mem.forget("gate", hard=True)


def expired(mem: semmem.Semmem) -> None:
    let_expire(mem, "gate")
    mem.maintain()


def expired_and_said_again(mem: semmem.Semmem) -> None:
    let_expire(mem, "gate")
    mem.remember("The gate is new.", id="gate")


def past_its_days(mem: semmem.Semmem) -> None:
    mem.store._run(lambda c: c.execute("UPDATE memory SET created_at = 1, updated_at = 1 WHERE id = 'gate'"))
    mem.namespace_limits("default", keep_days=1)
    mem.maintain()


def forgotten_long_ago(mem: semmem.Semmem) -> None:
    mem.forget("gate")
    mem.store._run(lambda c: c.execute("UPDATE history SET forgotten_at = 1"))
    mem.maintain()


def forgotten_by_an_emptied_namespace(mem: semmem.Semmem) -> None:
    for id in ("gate", "mila", "quay", "mole"):
        mem.forget(id)
    mem.store._run(lambda c: c.execute("UPDATE namespace SET changed_at = 1"))
    mem.store.maintain(Keep(changes_days=1))
    assert mem.store._rows("namespace_forgotten", {"day_before": 2, "changes_before": 2}) == []  # its row is gone
    assert mem.forget("gate", hard=True) == 1


def retitled_often(mem: semmem.Semmem) -> None:
    for n in range(3):
        mem.update("gate", title=f"Gate {n}")


def retitled_and_swept(mem: semmem.Semmem) -> None:
    mem.update("gate", title="Gate")
    mem.store._run(lambda c: c.execute("UPDATE history SET version = -version"))  # as if there were later ones
    mem.store.maintain(Keep(versions=0))


def extracted_otherwise(mem: semmem.Semmem) -> None:
    mem.store._run(lambda c: c.execute("UPDATE memory SET length = length + 1"))  # as another extractor has left it
    mem.rebuild(extract=True)


ERASURES: dict[str, tuple[Callable[[semmem.Semmem], Any], dict[str, Any]]] = {
    "a hard forget": (lambda mem: mem.forget("gate", hard=True), {}),
    "a hard forget by a filter": (lambda mem: mem.forget(filters={"sessions": ["s"]}, hard=True), {}),
    "a hard forget of what was forgotten softly": (soft_then_hard, {}),
    "a hard forget of everything": (lambda mem: mem.forget(everything=True, hard=True), {}),
    "a hard forget in a namespace that has long been empty": (forgotten_by_an_emptied_namespace, {}),
    "a forget that keeps nothing": (lambda mem: mem.forget("gate"), {"keep_forgotten_days": 0}),
    "a drop": (lambda mem: mem.drop_namespace("default"), {}),
    "an expiry": (expired, {}),
    "an expiry, and the same id again": (expired_and_said_again, {}),
    "the days of its namespace": (past_its_days, {}),
    "the days of a soft forget": (forgotten_long_ago, {}),
    "updates beyond the versions that are kept": (retitled_often, {"keep_versions": 1}),
    "a sweep of versions": (retitled_and_swept, {}),
    "a memory that becomes sensitive": (lambda mem: mem.update("gate", sensitive=True, title="Gate"), {}),
    "a rebuild": (lambda mem: mem.rebuild(embedder=Letters()), {}),
    "a rebuild of concepts": (extracted_otherwise, {}),
}


@pytest.mark.parametrize("how", ERASURES)
def test_what_erases_a_memory_has_removed_the_saved_model_when_it_returns(url: str, folder: Path, how: str) -> None:
    work, options = ERASURES[how]
    fill(url)
    assert len(standing(folder, ERASED)) == 1
    part = folder / f".{'0' * 16}.part"
    part.write_text(ERASED)  # of a process that was killed
    with opened(url, **options) as mem:
        work(mem)
        assert standing(folder, ERASED) == []


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


def test_an_erasure_that_is_undone_loses_the_saved_model_and_no_memory(url: str, folder: Path) -> None:
    before = fill(url)
    with opened(url) as mem:

        def work() -> str:
            mem.forget("gate", hard=True)
            raise ValueError

        with pytest.raises(ValueError):
            mem.store.serving.once(b"k", b"r", work, together=True, keep_days=1.0)
        assert list(folder.iterdir()) == []
    with opened(url) as mem:
        assert said(mem) == before
    assert len(list(folder.iterdir())) == 1


def test_a_file_that_cannot_be_removed_is_an_error_and_nothing_is_forgotten(url: str, folder: Path) -> None:
    fill(url)
    (folder / f"{'0' * 32}.model").mkdir()  # as good as a file of another user, which root may remove
    with opened(url) as mem:
        with pytest.raises(StoreUnavailable) as error:
            mem.forget("gate", hard=True)
        assert str(error.value) == (
            f"Saved models of this store in {folder} cannot be removed (Is a directory), so nothing was changed; "
            "delete that folder, and try again."
        )
        assert mem.get("gate").title == ERASED
        shutil.rmtree(folder)
        assert mem.forget("gate", hard=True) == 1


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
saved.FEWEST, saved._MOST_BEHIND = 2, 0

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
def test_twenty_kills_of_a_process_that_saves_all_the_time_change_no_answer(url: str, folder: Path) -> None:
    with opened(url) as mem:
        mem.remember_many([{"id": f"m{n}", "text": f"heron {n} in the reeds"} for n in range(400)])
    fill(url)
    program = (
        f"import sys, semmem\nurl = sys.argv[1]\n{_SAVING}\nfor n in itertools.count(): saving(n); print(n, flush=True)"
    )
    for kill in range(20):
        with subprocess.Popen([sys.executable, "-c", program, url], stdout=subprocess.PIPE, cwd=ROOT) as process:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(kill * 0.013)
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
    fill(url, "Gate")
    program = f"{_SAVING}\nfor n in range(25): saving(n)"
    with ThreadPoolExecutor(2) as threads:
        done = [threads.submit(fresh, url, program) for _ in range(2)]
        rounds = 0
        while not all(one.done() for one in done):
            with opened(url) as mem:
                mem.remember("The Crane Gate was sold.", id="sold", title=ERASED)
                said(mem)
            with opened(url) as mem:
                mem.store.forget("default", "sold", semmem.Filters(), dry_run=False)
                assert standing(folder, ERASED) == []
            rounds += 1
    assert [(one.result().returncode, one.result().stderr) for one in done] == [(0, "")] * 2
    assert rounds > 0
    with opened(url) as mem, opened(url, resident_mb=0) as plain:
        assert len(said(mem)) == len(said(plain)) > 0
        assert said(mem, limit=60) == said(plain, limit=60)
