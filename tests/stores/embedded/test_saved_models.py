"""Saved models of the embedded server: they belong to one store, whoever erases removes them, and kills leave none."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
import pytest

import semmem
from semmem import transfer
from semmem.model.errors import StoreUnavailable
from semmem.stores.embedded.server import EmbeddedServer
from semmem.stores.postgres import saved as names
from semmem.stores.postgres.moving.copy import _Copy
from semmem.stores.resident import loading, saved, saving
from semmem.stores.resident.block import Block
from tests.stores.saving import ERASED, ERASURES, erase_beside_savers, fill, fill_into, opened, said, saved_in, standing
from tests.stores.sqlite.bakery import ROOT, fresh


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Save namespaces of two memories, too."""
    monkeypatch.setattr(saved, "FEWEST", 2)


@pytest.fixture
def folder(server: EmbeddedServer) -> Path:
    """The folder of saved models of the server that the tests share, empty or not there."""
    place = server.data / "postgresql" / "models"
    for path in place.iterdir() if place.exists() else ():
        path.unlink()
    return place


@pytest.fixture
def socket_url(server: EmbeddedServer, embedded_url: str) -> str:
    """The URL of the same store, by the socket of its server."""
    return f"postgresql://semmem@/semmem?host={quote(str(server.status().socket), safe='')}"


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list to which each reading of rows for memory is added."""
    readings: list[str] = []
    before = loading._rows
    monkeypatch.setattr(loading, "_rows", lambda *answers: readings.append("rows") or before(*answers))
    return readings


# ---------------------------------------------------------------------- whose a file is


@pytest.mark.slow
def test_by_a_url_nothing_is_saved_or_used_and_everything_is_erased(
    embedded_url: str, socket_url: str, folder: Path, read: list[str]
) -> None:
    fill(socket_url)
    assert saved_in(folder) == set()
    with opened(embedded_url) as mem:
        said(mem)
        said(mem)
    assert len(standing(folder, ERASED)) == 1
    read.clear()
    with opened(socket_url) as mem:
        said(mem)
        said(mem)
        assert read == ["rows"]
        assert mem.forget("gate", hard=True) == 1
        assert saved_in(folder) == set()


@pytest.mark.slow
def test_a_store_in_another_database_of_the_server_leaves_its_files_alone(
    embedded_url: str, store_url: str, folder: Path
) -> None:
    fill(embedded_url)
    fill(store_url)
    with opened(store_url) as mem:
        mem.forget("gate", hard=True)
        mem.maintain()
    assert len(standing(folder, ERASED)) == 1


@pytest.mark.slow
def test_a_copy_takes_no_names_and_one_that_was_recalled_from_is_still_finished(
    embedded_url: str, store_url: str, folder: Path
) -> None:
    before = fill(store_url)
    semmem.copy(store_url, embedded_url)
    for _ in range(2):
        with opened(embedded_url) as mem:
            said(mem)
            assert said(mem) == before
    assert len(saved_in(folder)) == 1
    semmem.copy(store_url, embedded_url)
    assert saved_in(folder) == set()


@pytest.mark.slow
def test_of_what_a_copy_brought_up_to_date_nothing_stays_that_was_saved_meanwhile(
    embedded_url: str, store_url: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(store_url)
    semmem.copy(store_url, embedded_url)
    with opened(store_url) as mem:
        mem.forget("gate", hard=True)
    take, saved_meanwhile = _Copy._take, []

    def taken(*arguments: Any) -> None:
        take(*arguments)
        with opened(embedded_url) as mem:
            said(mem)
            said(mem)
        saved_meanwhile.extend(standing(folder, ERASED))

    monkeypatch.setattr(_Copy, "_take", taken)
    semmem.copy(store_url, embedded_url)
    assert len(saved_meanwhile) == 1
    assert saved_in(folder) == set()


def test_a_backup_takes_no_names_and_a_restore_removes_what_was_saved_before(
    embedded_url: str, store_url: str, folder: Path, tmp_path: Path
) -> None:
    before = fill(embedded_url)
    with opened(embedded_url) as mem:
        transfer.backup(mem.store, tmp_path / "all.semmem", force=False, progress=None)
    with opened(store_url) as mem:
        transfer.restore(mem.store, tmp_path / "all.semmem", progress=None)
        assert mem.store.rows("saved_names", {}) == []
    with opened(embedded_url) as mem:
        mem.drop_namespace("default")
        name = f"{'0' * 32}.model"
        (folder / name).write_text(ERASED)
        mem.store.run(lambda c: c.execute(names._SQL["meta_set"], {"key": "saved default", "value": f'"{name}"'}))
        transfer.restore(mem.store, tmp_path / "all.semmem", progress=None)
        assert saved_in(folder) == set()
    with opened(embedded_url) as mem:
        assert said(mem) == before


def test_a_copy_by_another_program_has_names_of_files_that_are_not_its_own_and_forgets_them(
    embedded_url: str, store_url: str, folder: Path
) -> None:
    fill(embedded_url)
    fill(store_url)
    (name,) = saved_in(folder)
    with opened(store_url) as mem:
        mem.store.run(lambda c: c.execute(names._SQL["meta_set"], {"key": "saved default", "value": f'"{name}"'}))
        assert mem.store.forget("default", "gate", semmem.Filters(), dry_run=False) == 1
        assert mem.store.rows("saved_names", {}) == []
    assert saved_in(folder) == {name}


def test_a_file_of_another_kind_of_name_is_not_looked_for(embedded_url: str, folder: Path, read: list[str]) -> None:
    before = fill(embedded_url)
    with opened(embedded_url, resident_mb=0) as mem:
        mem.store.run(lambda c: c.execute("UPDATE meta SET value = '\"../cluster\"' WHERE key = 'saved default'"))
    read.clear()
    with opened(embedded_url) as mem:
        said(mem)
        assert said(mem) == before
    assert read == ["rows"]


# ---------------------------------------------------------------------- beside others


@pytest.mark.slow
@pytest.mark.parametrize("how", sorted(ERASURES.keys() - {"a rebuild"}))  # which erases no title
def test_while_a_file_is_erased_nobody_can_save_its_namespace(
    embedded_url: str, server: EmbeddedServer, folder: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    work, options = ERASURES[how]
    fill(embedded_url)
    before, may_save = saved.erase_files, []

    def erase_files(*arguments: Any) -> None:
        with psycopg.connect(server.ensure_running()) as other:
            other.execute("SET search_path TO semmem")
            other.execute("SET lock_timeout TO '1ms'")
            try:
                may_save.append(other.execute(names._SQL["saved_own"], {"namespace": "default"}).fetchone() is not None)
            except psycopg.errors.LockNotAvailable:
                may_save.append(False)
        before(*arguments)

    monkeypatch.setattr(saved, "erase_files", erase_files)
    with opened(embedded_url, **options) as mem:
        work(mem)
    assert may_save
    assert not any(may_save)


def test_while_somebody_writes_closing_waits_for_nothing_and_saves_nothing(
    embedded_url: str, server: EmbeddedServer, folder: Path
) -> None:
    with opened(embedded_url) as mem:
        fill_into(mem)
        with psycopg.connect(server.ensure_running()) as other:
            other.execute("UPDATE semmem.namespace SET changed_at = now()")
            mem.close()
            assert saved_in(folder) == set()
            other.rollback()


def test_while_somebody_rewrites_the_vectors_closing_waits_for_nothing_and_saves_nothing(
    embedded_url: str, server: EmbeddedServer, folder: Path
) -> None:
    """A model that is behind reads what has changed, and waits for no VACUUM FULL of a user."""
    mem = opened(embedded_url)
    fill_into(mem)
    with opened(embedded_url, resident_mb=0) as other:
        other.remember("The Crane Gate is shut.", id="shut")
    with psycopg.connect(server.ensure_running()) as other, ThreadPoolExecutor(1) as threads:
        other.execute("LOCK TABLE semmem.embedding IN ACCESS EXCLUSIVE MODE")
        closing = threads.submit(mem.close)
        try:
            closing.result(30)
        finally:
            other.rollback()
    assert saved_in(folder) == set()


def test_the_counts_of_maintain_are_given_where_nothing_can_be_read_of_what_is_to_be_saved(
    embedded_url: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(*_: object) -> list[str]:
        raise StoreUnavailable("The server of this store has gone.")

    fill(embedded_url, resident_mb=0)
    with opened(embedded_url) as mem:
        monkeypatch.setattr(saving, "_large_of", lost)
        assert "folded" in mem.maintain()
    assert saved_in(folder) == set()


def test_what_is_forgotten_just_before_the_lock_is_taken_is_not_saved(
    embedded_url: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = saving._model

    def late(*arguments: Any, **more: Any) -> Any:
        with opened(embedded_url, resident_mb=0) as other:
            other.store.forget("default", "gate", semmem.Filters(), dry_run=False)
        return before(*arguments, **more)

    monkeypatch.setattr(saving, "_model", late)
    fill(embedded_url)
    assert saved_in(folder) == set()


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return a function that plans what somebody does once ``before`` or ``after`` the next file is written."""
    write, plans = saved.write, {}

    def written(*arguments: Any) -> None:
        plans.pop("before", lambda: None)()
        try:
            write(*arguments)
        finally:
            plans.pop("after", lambda: None)()

    monkeypatch.setattr(saved, "write", written)
    return plans.update


@pytest.mark.slow
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("how", sorted(ERASURES))
def test_what_erases_a_memory_while_its_namespace_is_saved_has_removed_the_file_and_nothing_is_saved(
    embedded_url: str,
    folder: Path,
    meanwhile: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    how: str,
    when: str,
) -> None:
    monkeypatch.setattr(saved, "MOST_BEHIND", 0)
    work, options = ERASURES[how]
    fill(embedded_url)
    assert len(standing(folder, ERASED)) == 1
    left = []

    def erase() -> None:
        with opened(embedded_url, **options) as other:
            work(other)
            left.extend(saved_in(folder))

    with opened(embedded_url) as mem:
        mem.update("mole", text="Somebody painted the mole.")
        saved_names = partial(mem.store.rows, "saved_names", {})
        meanwhile(**{when: erase})
        mem.maintain()
        assert (left, saved_in(folder), saved_names()) == ([], set(), [])


def _advance(mem: semmem.Semmem) -> None:
    """Change memories as a new extraction does, which no change names."""
    mem.store.run(lambda c: c.execute("UPDATE namespace SET revision = revision + 1"))


def _begin_drop(mem: semmem.Semmem) -> None:
    """Begin to drop a namespace; a killed process goes no further."""
    mem.store.run(lambda c: c.execute("UPDATE namespace SET dropping = ords"))


@pytest.mark.parametrize(
    "work",
    [lambda mem: mem.forget("gate", hard=True), lambda mem: mem.drop_namespace("default"), _begin_drop, _advance],
    ids=["a hard forget", "a drop", "a drop that is not done", "what no change names"],
)
def test_a_namespace_that_loses_its_history_while_it_is_saved_is_not_saved(
    embedded_url: str, folder: Path, meanwhile: Callable[..., None], work: Callable[[semmem.Semmem], None]
) -> None:
    done = []

    def changed() -> None:
        with opened(embedded_url, resident_mb=0) as other:
            work(other)
            done.append(True)

    fill(embedded_url, resident_mb=0)
    meanwhile(after=changed)
    with opened(embedded_url) as mem:
        assert "saved" not in mem.maintain()
        assert done == [True]
        assert saved_in(folder) == set()
        assert mem.store.rows("saved_names", {}) == []


def test_who_closes_reads_no_namespace_to_save_it(embedded_url: str, folder: Path, read: list[str]) -> None:
    fill(embedded_url)
    with opened(embedded_url) as mem, opened(embedded_url, resident_mb=0) as other:
        said(mem)
        other.drop_namespace("default")
        fill_into(other)
        read.clear()
    assert read == []
    assert saved_in(folder) == set()


def test_who_saves_a_mapped_namespace_by_maintain_maps_the_new_file(
    embedded_url: str, monkeypatch: pytest.MonkeyPatch, read: list[str]
) -> None:
    monkeypatch.setattr(saved, "MOST_BEHIND", 0)
    fill(embedded_url)
    with opened(embedded_url) as mem:
        said(mem)
        mem.remember("The gate is shut.", id="shut")
        assert mem.maintain()["saved"] == 1
        read.clear()
        assert "shut" in dict(said(mem))
    assert read == []


def test_what_another_process_has_erased_is_in_no_file_of_one_that_has_it_in_memory(
    embedded_url: str, folder: Path
) -> None:
    fill(embedded_url)
    with opened(embedded_url) as mem:
        said(mem)
        assert mem.resident
        with opened(embedded_url, resident_mb=0) as other:
            other.store.forget("default", "gate", semmem.Filters(), dry_run=False)
        assert mem.maintain()["saved"] == 1
        assert len(saved_in(folder)) == 1
        assert standing(folder, ERASED) == []


def test_a_namespace_that_another_process_has_made_anew_is_saved_as_it_is_now(embedded_url: str, folder: Path) -> None:
    fill(embedded_url)
    with opened(embedded_url) as mem, opened(embedded_url, resident_mb=0) as other:
        said(mem)
        other.rename_namespace("default", "former")
        other.remember("The Crane Gate is shut.", id="shut")
        other.remember("Mila saw it.", id="saw")
        other.drop_namespace("former")
        assert mem.maintain()["saved"] == 1
        assert len(saved_in(folder)) == 1
        assert standing(folder, ERASED) == []


def test_maintain_saves_a_single_mapped_namespace_whose_file_is_larger_than_saved_mb(
    embedded_url: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saved, "MOST_BEHIND", 0)
    fill(embedded_url)
    (former,) = saved_in(folder)
    with opened(embedded_url) as mem:
        said(mem)
        mem.remember("The gate is shut.", id="shut")
        mem._here.reader._saved = (folder / former).stat().st_size // 2
        assert mem.maintain()["saved"] == 1
        assert saved_in(folder) != {former}


def test_what_is_written_after_somebody_has_erased_stands_in_no_file_even_of_a_process_that_is_killed_then(
    embedded_url: str, folder: Path, meanwhile: Callable[..., None]
) -> None:
    seen = []

    def erase() -> None:
        with opened(embedded_url, resident_mb=0) as other:
            other.forget("gate", hard=True)

    meanwhile(before=erase, after=lambda: seen.append(saved_in(folder)))
    fill(embedded_url)
    assert seen == [set()]


def test_who_erases_waits_for_no_saver_who_waits_for_it(embedded_url: str, server: EmbeddedServer) -> None:
    """A killed process has left the name of a file that it was writing."""
    fill(embedded_url, resident_mb=0)
    url = server.ensure_running()
    connects = partial(psycopg.connect, url, autocommit=True, options="-c search_path=semmem")

    def begin() -> tuple[str, list[Any]]:
        with names.begin(saver, "default") as begun:
            assert begun is not None
            return begun.path.name, saver.execute(names._SQL["saved_names"]).fetchall()

    with connects() as saver, connects() as other, connects() as watcher, ThreadPoolExecutor(1) as threads:
        left = {"key": "saved default", "value": f'["{"0" * 32}.model", "{"1" * 32}.model"]'}
        other.execute(names._SQL["meta_set"], left)
        with other.transaction():
            other.execute(names._SQL["saved_own"], {"namespace": "default"})
            saving_now = threads.submit(begin)
            waits = "SELECT FROM pg_stat_activity WHERE pid = %s AND wait_event_type = 'Lock'"
            while watcher.execute(waits, (saver.info.backend_pid,)).fetchone() is None:
                assert not saving_now.done()
                time.sleep(0.01)
            other.execute("SET LOCAL lock_timeout TO '100ms'")
            names.erase(other, "default")
        name, recorded = saving_now.result(30)
        assert recorded == [(name,)]


def test_who_erases_what_is_not_saved_locks_no_names(embedded_url: str, server: EmbeddedServer) -> None:
    """On several nodes a statement that deletes nothing would lock them on all."""
    fill(embedded_url, resident_mb=0)
    url = server.ensure_running()
    connects = partial(psycopg.connect, url, options="-c search_path=semmem")
    with connects() as other, connects() as eraser:
        other.execute("LOCK TABLE meta IN SHARE MODE")  # which may wait for the server's own cleaning
        eraser.execute("SET LOCAL lock_timeout TO '100ms'")
        names.erase(eraser, "default")
        names.erase(eraser)


def test_a_namespace_whose_first_file_cannot_be_written_has_no_name(
    embedded_url: str, folder: Path, meanwhile: Callable[..., None]
) -> None:
    meanwhile(before=lambda: [path.unlink() for path in folder.iterdir()])
    fill(embedded_url)
    with opened(embedded_url, resident_mb=0) as mem:
        rows = mem.store.run(lambda c: c.execute("SELECT key FROM meta WHERE starts_with(key, 'saved ')").fetchall())
    assert rows == []


def test_what_is_erased_after_a_file_was_begun_is_written_to_no_file_of_the_folder(
    embedded_url: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, left = saved.write, []

    def late(*arguments: Any, **more: Any) -> None:
        with opened(embedded_url, resident_mb=0) as other:
            other.forget("gate", hard=True)
        try:
            write(*arguments, **more)
        finally:
            left.extend(saved_in(folder))

    monkeypatch.setattr(saved, "write", late)
    fill(embedded_url)
    assert left == []


def test_a_file_that_somebody_removes_who_did_not_see_its_name_yet_does_not_take_the_place_of_the_former(
    embedded_url: str, folder: Path, meanwhile: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saved, "MOST_BEHIND", 0)
    fill(embedded_url)
    (former,) = saved_in(folder)
    with opened(embedded_url) as mem:
        mem.update("mole", text="Somebody painted the mole.")
        meanwhile(after=lambda: saved.tidy(folder, {former}))  # as an eraser in another namespace may
        assert "saved" not in mem.maintain()
        assert saved_in(folder) == {former}
        assert mem.maintain()["saved"] == 1


@pytest.mark.slow
def test_a_namespace_is_saved_while_others_write_to_it_and_erase_in_another_one(
    embedded_url: str, folder: Path, meanwhile: Callable[..., None], read: list[str]
) -> None:
    def write() -> None:
        with opened(embedded_url, resident_mb=0) as other:
            other.remember("The Crane Gate is shut.", id="shut")
            other.forget("quay")
            other.forget("m0", namespace="other", hard=True)

    with opened(embedded_url, resident_mb=0) as other:
        fill_into(other, "other")
    meanwhile(before=write)
    fill(embedded_url)
    assert len(saved_in(folder)) == 1
    read.clear()
    with opened(embedded_url) as mem, opened(embedded_url, resident_mb=0) as plain:
        assert said(mem) == said(plain)
        assert "shut" in dict(said(mem))
    assert read == ["rows"]  # of the changes since


def test_where_a_writer_holds_a_namespace_for_long_its_former_file_stays(
    embedded_url: str,
    server: EmbeddedServer,
    folder: Path,
    meanwhile: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(saving, "_BY_MAINTAIN", saving._BY_MAINTAIN._replace(patience="50ms"))
    monkeypatch.setattr(saved, "MOST_BEHIND", 0)
    fill(embedded_url)
    (former,) = saved_in(folder)
    with opened(embedded_url) as mem, psycopg.connect(server.ensure_running()) as other:
        mem.remember("The gate is shut.", id="shut")
        meanwhile(after=lambda: other.execute("UPDATE semmem.namespace SET changed_at = now()"))
        mem.maintain()
        assert saved_in(folder) == {former}
        assert mem.store.rows("saved_names", {}) == [(former,)]
        other.rollback()
        assert mem.maintain()["saved"] == 1
        assert former not in saved_in(folder)


def test_a_namespace_that_another_process_saves_at_this_moment_is_left_to_it(
    embedded_url: str, folder: Path, meanwhile: Callable[..., None]
) -> None:
    counts = []

    def save() -> None:
        with opened(embedded_url) as other:
            counts.append(other.maintain().get("saved", 0))

    meanwhile(before=save)
    fill(embedded_url)
    assert counts == [0]
    assert len(saved_in(folder)) == 1


@pytest.fixture
def growing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Save mapped namespaces anew after four memories, and build none anew in memory, however small it is."""
    size = Block.whole_size.fget
    assert size is not None
    monkeypatch.setattr(saved, "MOST_BEHIND", 3)
    monkeypatch.setattr(Block, "whole_size", property(lambda block: 1 << 40 if block.is_mapped else size(block)))


@pytest.mark.usefixtures("growing")
def test_a_mapped_namespace_that_has_grown_is_saved_anew_and_mapped_while_the_process_goes_on(
    embedded_url: str, folder: Path
) -> None:
    fill(embedded_url)
    (former,) = saved_in(folder)
    with opened(embedded_url) as mem, opened(embedded_url, resident_mb=0) as other:
        said(mem)
        models = mem._here.reader.models
        for n in range(4):
            assert saved_in(folder) == {former}
            other.remember(f"The Crane Gate {n} is shut.", id=f"m{n}")
            said(mem)
        for _ in range(3000):
            if saved_in(folder) != {former} and models._models["default"].behind == 0:
                break
            time.sleep(0.01)
        assert models._models["default"].behind == 0
        assert models._models["default"].is_mapped
        assert said(mem) == said(other)


@pytest.mark.usefixtures("growing")
def test_for_a_namespace_that_has_grown_the_file_makes_room_whose_namespace_was_asked_longest_ago(
    embedded_url: str, folder: Path, meanwhile: Callable[..., None]
) -> None:
    files: dict[str, Path] = {}
    for namespace in ("one", "two", "three"):
        with opened(embedded_url) as mem:
            fill_into(mem, namespace)
        files[namespace] = folder / (saved_in(folder) - {path.name for path in files.values()}).pop()
    with opened(embedded_url) as mem:
        for mtime, namespace in enumerate(files, start=1):
            said(mem, namespace=namespace)
            os.utime(files[namespace], (mtime, mtime))
        said(mem, namespace="one")  # from memory, which touches no file
        mem._here.reader._saved = 3 * files["one"].stat().st_size
        meanwhile(before=lambda: os.utime(files["two"]))  # as of a process that maps it while the other is written
        mem.remember_many([{"text": f"The Crane Gate {n} is shut."} for n in range(4)], namespace="three")
        said(mem, namespace="three")
        mem._here.reader.models.end_renewing()
        assert [files[namespace].exists() for namespace in files] == [True, False, False]
        assert len(saved_in(folder)) == 2


@pytest.mark.usefixtures("growing")
def test_a_process_that_closes_while_it_saves_a_namespace_anew_leaves_that_file(
    embedded_url: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(embedded_url)
    (former,) = saved_in(folder)
    begun, write = threading.Event(), saved.write

    def slow(*arguments: Any) -> None:
        begun.set()
        time.sleep(0.3)
        write(*arguments)

    monkeypatch.setattr(saved, "write", slow)
    with opened(embedded_url) as mem:
        said(mem)
        mem.remember_many([{"text": f"The Crane Gate {n} is shut."} for n in range(4)])
        said(mem)
        assert begun.wait(30)
    assert len(saved_in(folder) - {former}) == len(saved_in(folder)) == 1


def test_a_reader_waits_for_nobody_who_saves(embedded_url: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before, answers = saved._write, []

    def write(*arguments: Any) -> None:
        with opened(embedded_url) as other:
            answers.append(said(other))
        before(*arguments)

    monkeypatch.setattr(saved, "_write", write)
    answer = fill(embedded_url)
    assert answers == [answer]
    assert len(saved_in(folder)) == 1


@pytest.mark.slow
def test_who_loses_the_connection_while_saving_leaves_no_file_behind_somebody_who_erased_since(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = EmbeddedServer(tmp_path / "data")
    url, folder = f"embedded://{server.data}", server.data / "postgresql" / "models"
    before = saved._write

    def late(*arguments: Any) -> None:
        server.stop()
        with opened(url, resident_mb=0) as other:
            other.store.forget("default", "gate", semmem.Filters(), dry_run=False)
        before(*arguments)

    monkeypatch.setattr(saved, "_write", late)
    try:
        fill(url)
        assert saved_in(folder) == set()
    finally:
        server.stop()


# ---------------------------------------------------------------------- kills

_SAVING = """
import itertools, os
from semmem.stores.postgres import saved as names
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
        mem.recall("Where is the Crane Gate?")
"""


@pytest.mark.slow
@pytest.mark.parametrize("where", ["_write = half", "in_the_way = killed"], ids=["in a file", "before the commit"])
def test_a_process_that_is_killed_while_it_saves_leaves_what_is_not_used_and_the_next_eraser_removes(
    embedded_url: str, socket_url: str, folder: Path, where: str
) -> None:
    fill(embedded_url, resident_mb=0)
    assert fresh(embedded_url, f"{_SAVING}\nsaved.{where}\nsaving(1)").returncode == -9
    (left,) = saved_in(folder)
    assert ERASED.encode() in (folder / left).read_bytes()
    with opened(socket_url, resident_mb=0) as mem:
        mem.forget("gate", hard=True)
        assert saved_in(folder) == set()


@pytest.mark.slow
def test_what_a_process_leaves_that_is_killed_while_it_saves_the_next_one_that_saves_removes(
    embedded_url: str, folder: Path
) -> None:
    fill(embedded_url)
    (former,) = saved_in(folder)
    assert fresh(embedded_url, f"{_SAVING}\nsaved._write = half\nsaving(1)").returncode == -9
    assert len(saved_in(folder)) == 2
    with opened(embedded_url) as mem:
        fill_into(mem, "other")
    (other,) = saved_in(folder) - {former}
    with opened(embedded_url) as mem:
        assert sorted(mem.store.rows("saved_names", {})) == sorted([(former,), (other,)])


@pytest.mark.slow
def test_of_processes_that_are_killed_while_they_save_only_the_last_has_left_a_file(
    embedded_url: str, folder: Path
) -> None:
    fill(embedded_url, resident_mb=0)
    for n in range(2):
        assert fresh(embedded_url, f"{_SAVING}\nsaved._write = half\nsaving({n})").returncode == -9
        assert len(saved_in(folder)) == 1


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_processes_that_save_beside_one_that_erases_bring_nothing_back(embedded_url: str, folder: Path) -> None:
    erase_beside_savers(embedded_url, folder, f"{_SAVING}\nfor n in range(15): saving(n)")


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_six_kills_of_a_process_that_saves_all_the_time_change_no_answer(embedded_url: str, folder: Path) -> None:
    fill(embedded_url)
    program = (
        f"import sys, semmem\nurl = sys.argv[1]\n{_SAVING}\nfor n in itertools.count(): saving(n); print(n, flush=True)"
    )
    for kill in range(6):
        with subprocess.Popen(
            [sys.executable, "-c", program, embedded_url], stdout=subprocess.PIPE, cwd=ROOT
        ) as killed:
            assert killed.stdout is not None
            killed.stdout.readline()
            time.sleep(kill * 0.04)
            killed.kill()
        with opened(embedded_url) as mem, opened(embedded_url, resident_mb=0) as plain:
            assert [id for id, _ in said(mem)] == [id for id, _ in said(plain)]
    with opened(embedded_url) as mem:
        mem.forget("gate", hard=True)
    assert standing(folder, ERASED) == []


# ---------------------------------------------------------------------- a server of one's own


@pytest.mark.slow
def test_after_a_new_start_of_the_server_a_new_process_maps_what_was_saved(tmp_path: Path, read: list[str]) -> None:
    server = EmbeddedServer(tmp_path / "data")
    try:
        before = fill(f"embedded://{server.data}")
        with psycopg.connect(server.ensure_running(), autocommit=True) as connection:
            connection.execute("VACUUM (FULL) semmem.namespace")  # which is another file then
        server.stop()
        read.clear()
        with opened(f"embedded://{server.data}") as mem:
            assert said(mem) == before
            assert list(mem.resident) == ["default"]
        assert read == []
    finally:
        server.stop()


@pytest.mark.slow
def test_of_a_folder_that_was_moved_while_its_server_runs_nothing_is_forgotten_until_it_is_opened_there(
    tmp_path: Path,
) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    try:
        fill(f"embedded://{before}")
        with opened(f"embedded://{before}") as mem:
            said(mem)
            before.rename(after)
            anew = before / "postgresql" / "cluster"  # as of a store that was made there meanwhile
            anew.mkdir(parents=True)
            (anew / "postmaster.pid").write_text("1\n/elsewhere\n2\n")
            with pytest.raises(StoreUnavailable) as error:
                mem.store.forget("default", "gate", semmem.Filters(), dry_run=False)
            assert str(error.value) == (
                "The saved models of this store cannot be reached from here, or its data folder was moved while its "
                "server runs, so nothing was changed; stop that server with `semmem server stop`, and open the store "
                "with embedded:FOLDER."
            )
            mem.store.close()
        shutil.rmtree(before)
        EmbeddedServer(after).stop()
        with opened(f"embedded://{after}") as mem:
            assert mem.get("gate").title == ERASED
            assert mem.forget("gate", hard=True) == 1
        assert standing(after / "postgresql" / "models", ERASED) == []
    finally:
        EmbeddedServer(after).stop()


@pytest.mark.slow
def test_a_server_that_is_set_back_does_not_use_what_was_saved_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saved, "MOST_BEHIND", 0)
    server = EmbeddedServer(tmp_path / "data")
    url, cluster = f"embedded://{server.data}", server.data / "postgresql" / "cluster"
    try:
        fill(url)
        server.stop()
        subprocess.run(["cp", "-a", str(cluster), str(tmp_path / "earlier")], check=True)
        with opened(url) as mem:
            mem.remember("The Crane Gate is shut.", id="shut")
            said(mem)
            assert "shut" in dict(said(mem))
        server.stop()
        cluster.rename(tmp_path / "later")
        subprocess.run(["cp", "-a", str(tmp_path / "earlier"), str(cluster)], check=True)
        with opened(url, resident_mb=0) as mem:
            mem.remember("The Crane Gate is open.", id="open")  # as long, so that the states have equal numbers
        for _ in range(2):
            with opened(url) as mem:
                assert dict(said(mem)).keys() & {"shut", "open"} == {"open"}
    finally:
        server.stop()
