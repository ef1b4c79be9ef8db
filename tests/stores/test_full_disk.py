"""A disk without room, in every verb: one sentence says what happened, and with room again the verb does its work."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import psycopg
import pytest

import semmem
from semmem import Semmem
from semmem.model.errors import StoreUnavailable
from semmem.stores.embedded.server import EmbeddedServer

SMALL = 96_000_000
LARGE = 300_000_000
LONG = "reed marsh heron tide ledger ferry signal harbour " * 40
ITEMS = [{"id": f"m{n}", "text": f"heron {n} in the reeds"} for n in range(400)]
MANY = [{"id": f"long{n}", "text": f"{n} {LONG}"} for n in range(3_000)]

AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts disks")


class Disk:
    """A small disk, which can be filled to the last page and emptied again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._ballast = folder / "ballast"

    def fill(self, *, but: int = 0) -> None:
        """Leave no room, or only some bytes."""
        with open(self._ballast, "wb", buffering=0) as ballast, contextlib.suppress(OSError):
            while True:
                ballast.write(b"." * 4096)
        os.truncate(self._ballast, max(0, self._ballast.stat().st_size - but))

    def empty(self) -> None:
        """Make room."""
        self._ballast.unlink(missing_ok=True)


@contextlib.contextmanager
def mounted(folder: Path, size: int) -> Iterator[Disk]:
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=755", "small", str(folder)]
    if subprocess.run(command, capture_output=True).returncode != 0:
        pytest.skip("no disk can be mounted here")
    try:
        yield Disk(folder)
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@contextlib.contextmanager
def opened(kind: str, folder: Path) -> Iterator[tuple[Semmem, Disk]]:
    """Yield a store of a kind, filled, on a disk of its own."""
    with mounted(folder, SMALL if kind == "SQLite" else LARGE) as disk, contextlib.ExitStack() as stack:
        url = f"sqlite://{disk.folder}/notes.db"
        if kind == "PostgreSQL":
            server = EmbeddedServer(disk.folder / "data", idle_stop_s=60)
            with psycopg.connect(server.ensure_running(), autocommit=True) as connection:
                connection.execute("ALTER SYSTEM SET max_wal_size = '48MB'")  # the disk is for the tables
                connection.execute("ALTER SYSTEM SET min_wal_size = '16MB'")
                connection.execute("SELECT pg_reload_conf()")
            stack.callback(server.stop, "immediate")
            url = f"embedded://{disk.folder}/data"
        mem = stack.enter_context(semmem.connect(url, embedder="hashing", pool_size=2))
        mem.remember_many(ITEMS)
        mem.remember_many([{**item, "namespace": "other"} for item in ITEMS[:100]])
        yield mem, disk


def state(mem: Semmem) -> dict[str, int]:
    return {one.name: mem.stats(namespace=one.name).memories for one in mem.namespaces()}


@AS_ROOT
@pytest.mark.parametrize("kind", ["SQLite", pytest.param("PostgreSQL", marks=pytest.mark.slow)])
def test_a_hard_forget_on_a_full_disk_says_that_the_memory_is_gone_and_its_bytes_are_not(
    tmp_path: Path, kind: str
) -> None:
    with opened(kind, tmp_path / "disk") as (mem, disk):
        mem.remember("Xanthippe keeps the ledger.", id="secret")
        disk.fill(but=400_000)
        with pytest.raises(StoreUnavailable) as caught:
            mem.forget("secret", hard=True)
        assert str(caught.value).startswith(
            "The memories are forgotten, but their bytes are still in the files, so forget with hard again: "
            + ("there is no room left on the disk of the file " if kind == "SQLite" else "the disk of ")
        )
        disk.empty()  # PostgreSQL, which has stopped, starts again
        with pytest.raises(semmem.NotFound):
            mem.get("secret")
        with pytest.raises(semmem.NotFound, match="There is no memory 'secret'"):
            mem.forget("secret", hard=True)  # makes up for the files first
        if kind == "SQLite":
            assert not any(b"Xanthippe" in file.read_bytes() for file in disk.folder.iterdir())
        assert state(mem) == {"default": 400, "other": 100}


def updated(mem: Semmem, count: int) -> None:
    """Give so many memories a long text."""
    for n in range(count):
        mem.update(f"m{n}", text=f"{n} {LONG * 20}")


VERBS: Mapping[str, Callable[[Semmem], Any]] = {
    "remember": lambda mem: [mem.remember(f"{n} {LONG * 20}", id=f"r{n}") for n in range(200)],
    "remember_many": lambda mem: mem.remember_many(MANY),
    "import_items": lambda mem: mem.import_items(MANY),
    "update": lambda mem: updated(mem, 200),
    "forget": lambda mem: mem.forget(filters={"created_after": "2000-01-01"}),
    "forget everything": lambda mem: mem.forget(namespace="other", everything=True),
    "link": lambda mem: [mem.link(f"m{n}", "see-also", f"m{n + 1}") for n in range(399)],
    "configure": lambda mem: mem.configure(recipe="lexical"),
    "maintain": lambda mem: mem.maintain(),
    "rename_namespace": lambda mem: mem.rename_namespace("other", "elsewhere"),
    "copy_namespace": lambda mem: mem.copy_namespace("default", "copied"),
    "drop_namespace": lambda mem: mem.drop_namespace("other"),
    "restore_memory": lambda mem: [mem.restore_memory(f"m{n}", namespace="gone") for n in range(100)],
}
VERBS_ALONE: tuple[Callable[[Semmem], Any], ...] = (
    lambda mem: mem.rebuild(),
    lambda mem: mem.rebuild(extract=True),
    lambda mem: mem.rename_namespace("other", "new"),
)
"""Verbs that take a connection of their own, for a lock."""

WHOLE = {"remember": range(400, 601), "remember_many": range(400, 3_401, 500), "import_items": range(400, 3_401, 500)}
"""The memories that a full disk may leave where a verb writes in several transactions: whole memories and batches."""


def refusal(mem: Semmem, verb: Callable[[Semmem], Any]) -> str:
    """Return the sentence by which a verb says that there is no room; empty where it needs none."""
    try:
        verb(mem)
    except StoreUnavailable as error:
        return str(error)
    return ""


@AS_ROOT
@pytest.mark.slow
def test_verbs_that_need_a_connection_of_their_own_say_that_the_disk_is_full(tmp_path: Path) -> None:
    with opened("PostgreSQL", tmp_path / "disk") as (mem, disk):
        for file in disk.folder.glob("data/postgresql/cluster/**/pg_internal.init"):
            file.unlink()  # which the next connection writes again, as after a change of the tables
        disk.fill()
        for verb in VERBS_ALONE:
            assert refusal(mem, verb).startswith("The disk of the database server is full"), verb
        disk.empty()
        assert mem.rebuild(extract=True).read == 500
        assert mem.rename_namespace("other", "new") == 100


@AS_ROOT
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", ["SQLite", "PostgreSQL"])
def test_a_full_disk_leaves_nothing_in_part_and_every_verb_works_when_there_is_room(tmp_path: Path, kind: str) -> None:
    with opened(kind, tmp_path / "disk") as (mem, disk):
        mem.remember_many([{**item, "namespace": "gone"} for item in ITEMS[:100]])
        mem.forget(namespace="gone", filters={"created_after": "2000-01-01"})
        before = state(mem)
        refused = set()
        for name, verb in VERBS.items():
            disk.fill()
            if sentence := refusal(mem, verb):
                refused.add(name)
                assert "disk" in sentence, (name, sentence)
                said = ("are forgotten, but", "in part", "Nothing that was acknowledged is lost")
                assert any(words in sentence for words in said), (name, sentence)
            disk.empty()
            after = state(mem)
            assert after.get("default", 0) in {400, *WHOLE.get(name, ()), *({0} if name == "forget" else ())}, name
            assert {n: c for n, c in after.items() if n not in ("default", "other", "elsewhere")} in ({}, {"gone": 100})
            assert after.get("other", 0) + after.get("elsewhere", 0) in (100, 0), name
            _made_again(mem)
            assert state(mem) == before, name
        assert refused >= {"remember", "remember_many", "import_items", "update", "copy_namespace"}
        for name in ("maintain", "link", "configure", "copy_namespace", "restore_memory"):
            VERBS[name](mem)  # with room, all of it
        updated(mem, 20)
        assert state(mem) == {"default": 400, "other": 100, "copied": 400, "gone": 100}
        assert mem.recall("ledger", namespace="copied").degraded == mem.recall("heron").degraded


def _made_again(mem: Semmem) -> None:
    """Make the memories what they were before a verb."""
    for one in mem.namespaces():
        if one.name not in ("default", "other"):
            mem.forget(namespace=one.name, filters={"created_after": "2000-01-01"})
    stored = {memory.id for memory in _all(mem)}
    for id in stored:
        if not id.startswith("m"):
            mem.forget(id)
    mem.remember_many([item for item in ITEMS if item["id"] not in stored])
    stored = {memory.id for memory in _all(mem, "other")}
    mem.remember_many([{**item, "namespace": "other"} for item in ITEMS[:100] if item["id"] not in stored])


def _all(mem: Semmem, namespace: str = "default") -> list[Any]:
    memories: list[Any] = []
    page = mem.list(namespace=namespace, limit=500)
    while True:
        memories += page.memories
        if page.cursor is None:
            return memories
        page = mem.list(namespace=namespace, limit=500, cursor=page.cursor)
