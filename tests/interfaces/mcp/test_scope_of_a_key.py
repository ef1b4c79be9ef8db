"""In which namespaces a call looks that comes with a key: in those of its scope that the key is for."""

from __future__ import annotations

from pathlib import Path

from semmem.interfaces.http.keys import Keys
from semmem.interfaces.mcp.permission import within_key
from semmem.interfaces.scope import Scope


def test_a_call_with_a_key_looks_only_where_its_key_may_and_writes_in_the_first_of_these(tmp_path: Path) -> None:
    keys = Keys(tmp_path / "keys.json")
    scope = Scope("engine", ("engine", "personal"), "a root")
    of_project, _ = keys.add("project", namespaces=["engine"])
    of_another, _ = keys.add("another", namespaces=["ship", "personal"])
    assert within_key(scope, None) == scope
    assert within_key(scope, of_project) == Scope("engine", ("engine",), "a root")
    assert within_key(scope, of_another) == Scope("ship", ("ship", "personal"), f"the {of_another.title}")
