"""What a key allows a tool: to drop a namespace it needs the right to administer, which to write does not give."""

from __future__ import annotations

from pathlib import Path

import pytest

import semmem
from semmem.interfaces.http.keys import Keys
from semmem.interfaces.mcp.permission import permitted
from semmem.model.errors import AccessDenied


def test_a_key_that_may_write_everywhere_forgets_memories_for_good_but_no_whole_namespace(tmp_path: Path) -> None:
    keys = Keys(tmp_path / "keys.json")
    may_write, _ = keys.add("writer", right="write")
    may_all, _ = keys.add("admin", right="admin")
    with semmem.connect(f"sqlite:{tmp_path}/notes.db", embedder="none") as mem:
        for id in ("a", "b"):
            mem.remember(f"Tea {id}.", id=id, namespace="n")
        assert permitted(mem, may_write).forget("a", namespace="n", hard=True) == 1
        with pytest.raises(AccessDenied):
            permitted(mem, may_write).forget(namespace="n", everything=True, hard=True)
        assert [one.id for one in mem.list(namespace="n")] == ["b"]
        assert permitted(mem, may_all).forget(namespace="n", everything=True, hard=True) == 1


def test_a_key_of_one_namespace_forgets_there_but_not_for_good_since_that_rewrites_the_whole_store(
    tmp_path: Path,
) -> None:
    may_write, _ = Keys(tmp_path / "keys.json").add("writer", right="write", namespaces=["n"])
    with semmem.connect(f"sqlite:{tmp_path}/notes.db", embedder="none") as mem:
        for id in ("a", "b"):
            mem.remember(f"Tea {id}.", id=id, namespace="n")
        with pytest.raises(AccessDenied):
            permitted(mem, may_write).forget("a", namespace="n", hard=True)
        assert permitted(mem, may_write).forget("a", namespace="n") == 1
        assert [one.id for one in mem.list(namespace="n")] == ["b"]
