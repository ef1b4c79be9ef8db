"""A memory that a source brings has its mark and its type of source, whichever of the two the item gives itself."""

from __future__ import annotations

import semmem


def test_an_item_that_says_who_it_comes_from_gets_the_mark_of_its_file_all_the_same() -> None:
    with semmem.connect("sqlite::memory:", embedder="none") as mem:
        mem.import_items(
            [{"id": "a", "text": "The code is 5432.", "source_type": "user"}, {"id": "b", "text": "It was 5431."}],
            mark={"imported_from": "a.csv"},
        )
        said, told = mem.get("a"), mem.get("b")
    assert (said.source_type, dict(said.metadata)) == ("user", {"imported_from": "a.csv"})
    assert (told.source_type, dict(told.metadata)) == ("imported", {"imported_from": "a.csv"})


def test_an_import_without_a_mark_says_that_it_is_one() -> None:
    with semmem.connect("sqlite::memory:", embedder="none") as mem:
        mem.import_items([{"id": "a", "text": "The code is 5432."}])
        assert mem.get("a").source_type == "imported"
