"""What memory holds of a namespace is read anew after another program has dropped the namespace and filled it again."""

from __future__ import annotations

from pathlib import Path

import semmem


def test_a_namespace_that_was_dropped_and_filled_meanwhile_has_nothing_of_before(tmp_path: Path) -> None:
    url = f"sqlite:{tmp_path}/notes.db"
    with semmem.connect(url, embedder="hashing") as reader, semmem.connect(url, embedder="hashing") as writer:
        for name in ("old", "older"):
            writer.remember(f"The ferry of {name} leaves at nine.", id=name, namespace="n")
        assert {hit.id for hit in reader.recall("ferry", namespace="n")} == {"old", "older"}
        writer.drop_namespace("n")
        writer.remember("The ferry of today leaves at ten.", id="new", namespace="n")
        found = reader.recall("ferry", namespace="n")
        assert ([hit.id for hit in found], found.total) == (["new"], 1)
