"""What was read in one language is not found in another, and that is said instead of finding nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

import semmem


@pytest.fixture(params=["PostgreSQL", "SQLite"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty store of each kind."""
    if request.param == "SQLite":
        return f"sqlite://{tmp_path}/notes.db"
    return str(request.getfixturevalue("store_url"))


def test_a_store_of_another_language_is_refused_until_it_is_rebuilt(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with semmem.connect(url, embedder="hashing" if url[0] == "p" else None) as mem:
        mem.remember("Die Boote liegen in den Häfen.", id="boats", namespace="harbour")
        mem.remember("To be forgotten.", id="gone", namespace="empty")
        mem.forget("gone", namespace="empty")
    monkeypatch.setenv("SEMMEM_LANGUAGE", "german")
    sentence = (
        r"^The namespace 'harbour' of this store was read in english and the setting language is german, .*"
        r"set language to english, or run `semmem rebuild --extract`"
    )
    with semmem.connect(url) as mem:
        for use in (
            lambda: mem.recall("Boot im Hafen", namespace="harbour"),
            lambda: mem.remember("Ein Boot.", namespace="other"),
            lambda: mem.remember_many([{"text": "Ein Boot."}]),
            lambda: mem.update("boats", namespace="harbour", title="Boote"),
        ):
            with pytest.raises(semmem.InvalidInput, match=sentence):
                use()
        assert mem.get("boats", namespace="harbour").version == 1
        assert [space.name for space in mem.namespaces()] == ["harbour"]
        assert mem.rebuild(extract=True).read == 1
        assert mem.recall("Boot im Hafen", namespace="harbour", recipe="lexical")[0].id == "boats"
        mem.remember("Ein Boot.", id="again", namespace="empty")
    with semmem.connect(url) as mem:
        assert mem.recall("Boote", namespace="empty", recipe="lexical")[0].id == "again"
    monkeypatch.delenv("SEMMEM_LANGUAGE")
    with semmem.connect(url) as mem, pytest.raises(semmem.InvalidInput, match=r"read in german and .* is english"):
        mem.recall("boat", namespace="harbour")
