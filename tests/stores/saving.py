"""Four memories, one with a title that is looked for in files, and what erases it; for the tests of saved models."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import semmem
from semmem.model.store import Keep
from tests.stores.expiry import let_expire
from tests.stores.sqlite.bakery import fresh
from tests.stores.sqlite.test_three_legs import Letters

ERASED = "Xanthippe"


def opened(url: str, **more: Any) -> semmem.Semmem:
    return semmem.connect(url, embedder="hashing", count_accesses=False, **more)


def said(mem: semmem.Semmem, query: str = "Where is the Crane Gate?", **asked: Any) -> list[tuple[str, float]]:
    return [(hit.id, hit.score) for hit in mem.recall(query, **asked)]


def fill(url: str, title: str = ERASED, **more: Any) -> list[tuple[str, float]]:
    """Remember four memories, ask until they are in memory, and close; return the answer."""
    with opened(url, **more) as mem:
        mem.remember("The Crane Gate stands by the quay.", id="gate", title=title, session="s", position=1)
        mem.remember("Mila painted the Crane Gate.", id="mila", author="ada", session="s", position=2)
        mem.remember("The quay was swept on Monday.", id="quay")
        mem.remember("Nobody painted the mole.", id="mole")
        said(mem)
        return said(mem)


def fill_into(mem: semmem.Semmem, namespace: str = "default") -> None:
    """Remember three memories, and ask until they are in memory."""
    for n in range(3):
        mem.remember(f"The Crane Gate {n}.", id=f"m{n}", namespace=namespace)
    said(mem, namespace=namespace)
    said(mem, namespace=namespace)


def standing(folder: Path, word: str) -> list[str]:
    """Return the files below ``folder`` in which a word stands."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return [path.name for path in files if word.encode() in path.read_bytes()]


def erase_beside_savers(url: str, folder: Path, program: str) -> None:
    """Erase a title again and again while two processes run ``program``, which saves; no file has the title then."""
    fill(url, "Gate")
    with ThreadPoolExecutor(2) as threads:
        done = [threads.submit(fresh, url, program) for _ in range(2)]
        rounds = 0
        while not all(one.done() for one in done):
            with opened(url) as mem:
                mem.remember("The Crane Gate was sold.", id="sold", title=ERASED)
                said(mem)
                said(mem)
            with opened(url) as mem:
                mem.store.forget("default", "sold", semmem.Filters(), dry_run=False)
                assert standing(folder, ERASED) == []
            rounds += 1
    assert [(one.result().returncode, one.result().stderr) for one in done] == [(0, "")] * 2
    assert rounds > 0
    with opened(url) as mem, opened(url, resident_mb=0) as plain:
        assert len(said(mem)) == len(said(plain)) > 0


def saved_in(folder: Path) -> set[str]:
    """Return the names of the files in a folder of saved models, which need not be there."""
    return {path.name for path in folder.iterdir()} if folder.exists() else set()


def _execute(mem: semmem.Semmem, in_file: str, on_server: str) -> None:
    """Run a statement of SQLite, or of PostgreSQL."""
    if mem.store.kind == "SQLite":
        mem.store._run(lambda c: c.execute(in_file))
    else:
        mem.store.run(lambda c: c.execute(on_server))


def _soft_then_hard(mem: semmem.Semmem) -> None:
    mem.forget("gate")
    mem.forget("gate", hard=True)


def _expired(mem: semmem.Semmem) -> None:
    let_expire(mem, "gate")
    mem.store.maintain()


def _expired_and_said_again(mem: semmem.Semmem) -> None:
    let_expire(mem, "gate")
    mem.remember("The gate is new.", id="gate")


def _past_its_days(mem: semmem.Semmem) -> None:
    old = "UPDATE memory SET created_at = {0}, updated_at = {0} WHERE id = 'gate'"
    _execute(mem, old.format(1), old.format("to_timestamp(1)"))
    mem.namespace_limits("default", keep_days=1)
    mem.store.maintain()


def _forgotten_long_ago(mem: semmem.Semmem) -> None:
    mem.forget("gate")
    old = "UPDATE history SET forgotten_at = {}"
    _execute(mem, old.format(1), old.format("to_timestamp(1)"))
    mem.store.maintain()


def _forgotten_long_ago_and_said_again(mem: semmem.Semmem) -> None:
    mem.forget("gate")
    mem.remember("The gate is new.", id="gate")
    mem.forget("gate")
    old = "UPDATE history SET forgotten_at = {} WHERE title IS NOT NULL"
    _execute(mem, old.format(1), old.format("to_timestamp(1)"))
    mem.store.maintain()


def _forgotten_by_an_emptied_namespace(mem: semmem.Semmem) -> None:
    for id in ("gate", "mila", "quay", "mole"):
        mem.forget(id)
    old = "UPDATE namespace SET changed_at = {}"
    _execute(mem, old.format(1), old.format("to_timestamp(1)"))
    mem.store.maintain(Keep(changes_days=1))
    assert mem.namespaces() == []  # its row is gone
    assert mem.forget("gate", hard=True) == 1


def _retitled_often(mem: semmem.Semmem) -> None:
    for n in range(3):
        mem.update("gate", title=f"Gate {n}")


def _retitled_and_swept(mem: semmem.Semmem) -> None:
    mem.update("gate", title="Gate")
    if mem.store.kind == "SQLite":
        mem.store._run(lambda c: c.execute("UPDATE history SET version = -version"))  # as if there were later ones
    mem.store.maintain(Keep(versions=0))


def _extracted_otherwise(mem: semmem.Semmem) -> None:
    """Rebuild, as if another extractor had filled the store."""
    _execute(mem, "UPDATE memory SET length = length + 1", "UPDATE forward SET length = length + 1")
    mem.rebuild(extract=True)


ERASURES: dict[str, tuple[Callable[[semmem.Semmem], Any], dict[str, Any]]] = {
    "a hard forget": (lambda mem: mem.forget("gate", hard=True), {}),
    "a hard forget by a filter": (lambda mem: mem.forget(filters={"sessions": ["s"]}, hard=True), {}),
    "a hard forget of what was forgotten softly": (_soft_then_hard, {}),
    "a hard forget of everything": (lambda mem: mem.forget(everything=True, hard=True), {}),
    "a hard forget in a namespace that has long been empty": (_forgotten_by_an_emptied_namespace, {}),
    "a forget that keeps nothing": (lambda mem: mem.forget("gate"), {"keep_forgotten_days": 0}),
    "a drop": (lambda mem: mem.drop_namespace("default"), {}),
    "an expiry": (_expired, {}),
    "an expiry, and the same id again": (_expired_and_said_again, {}),
    "the days of its namespace": (_past_its_days, {}),
    "the days of a soft forget": (_forgotten_long_ago, {}),
    "the days of a soft forget, of an id that was said again": (_forgotten_long_ago_and_said_again, {}),
    "updates beyond the versions that are kept": (_retitled_often, {"keep_versions": 1}),
    "a sweep of versions": (_retitled_and_swept, {}),
    "a memory that becomes sensitive": (lambda mem: mem.update("gate", sensitive=True, title="Gate"), {}),
    "a rebuild": (lambda mem: mem.rebuild(embedder=Letters()), {}),
    "a rebuild of concepts": (_extracted_otherwise, {}),
}
"""What erases the title of a memory from a store, and the settings under which it does."""
