"""What was read in one language is not found in another, and that is said instead of finding nothing."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import semmem


@pytest.fixture(params=["PostgreSQL", "SQLite"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty store of each kind."""
    if request.param == "SQLite":
        return f"sqlite://{tmp_path}/notes.db"
    return str(request.getfixturevalue("store_url"))


def embedder(url: str) -> str | None:
    return "hashing" if url[0] == "p" else None


def test_a_namespace_of_another_language_is_refused_until_it_is_rebuilt(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with semmem.connect(url, embedder=embedder(url)) as mem:
        mem.remember("Die Boote liegen in den Häfen.", id="boats", namespace="harbour")
        mem.remember("To be forgotten.", id="gone", namespace="empty")
        mem.forget("gone", namespace="empty")
    monkeypatch.setenv("SEMMEM_LANGUAGE", "german")
    sentence = (
        r"^The namespace 'harbour' was read in english and the setting language is german, .*"
        r"set language to english, use another namespace, or run `semmem rebuild --extract`"
    )
    with semmem.connect(url) as mem:
        for use in (
            lambda: mem.recall("Boot im Hafen", namespace="harbour"),
            lambda: mem.recall("Boot im Hafen", namespace=["other", "harbour"]),
            lambda: mem.recall("Boot im Hafen", namespace="harbour", filters={"tags": "x"}),
            lambda: mem.remember("Ein Boot.", namespace="harbour"),
            lambda: mem.remember_many([{"text": f"Ein Boot, das {n}."} for n in range(20)], namespace="harbour"),
            lambda: mem.update("boats", namespace="harbour", title="Boote"),
        ):
            with pytest.raises(semmem.InvalidInput, match=sentence):
                use()
        assert mem.get("boats", namespace="harbour").version == 1
        assert [(space.name, space.memories) for space in mem.namespaces()] == [("harbour", 1)]
        assert mem.rebuild(extract=True).read == 1
        assert mem.recall("Boot im Hafen", namespace="harbour", recipe="lexical")[0].id == "boats"
        mem.remember("Ein Boot.", id="again", namespace="empty")
    with semmem.connect(url) as mem:
        assert mem.recall("Boote", namespace="empty", recipe="lexical")[0].id == "again"
    monkeypatch.delenv("SEMMEM_LANGUAGE")
    with semmem.connect(url) as mem, pytest.raises(semmem.InvalidInput, match=r"read in german and .* is english"):
        mem.recall("boat", namespace="harbour")


def test_two_languages_live_beside_each_other_in_one_store(url: str) -> None:
    with (
        semmem.connect(url, embedder=embedder(url)) as english,
        semmem.connect(url, embedder=embedder(url), language="german") as german,
    ):
        english.remember("Two running horses.", id="e", namespace="en", title="Ada Lovelace")
        german.remember("Die Boote liegen in den Häfen.", id="d", namespace="de", title="Ada Lovelace")
        assert english.recall("a horse that runs", namespace="en", recipe="lexical")[0].id == "e"
        assert german.recall("Boot im Hafen", namespace="de", recipe="lexical")[0].id == "d"
        for mem in (english, german):
            with pytest.raises(semmem.InvalidInput, match="was read in"):
                mem.recall("Boot im Hafen", namespace=["en", "de"])
        # what is forgotten or tidied by the other leaves each memory with the stems of its own language
        english.remember("Ada Lovelace kennt die Häfen.", id="late", namespace="en")
        german.remember("Ada Lovelace kennt alle Boote.", id="late", namespace="de")
        english.forget("d", namespace="de")
        english.maintain()
        assert german.recall("Boot", namespace="de", recipe="lexical")[0].id == "late"
        german.maintain()
        assert german.recall("Boot", namespace="de", recipe="lexical")[0].id == "late"
        assert german.store.languages() == {"de": "german", "en": "english"}


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 20])
def test_of_two_first_writers_of_two_languages_one_decides_and_the_other_is_told(url: str, size: int) -> None:
    barrier = threading.Barrier(2, timeout=60)

    refused: list[str] = []

    def first(language: str) -> None:
        items = [{"id": f"{language}{n}", "text": f"Die Boote liegen in den Häfen {n}."} for n in range(size)]
        with semmem.connect(url, embedder=embedder(url), language=language) as mem:
            mem.stats()
            barrier.wait()
            for space in range(6):
                try:
                    mem.remember_many(items, namespace=f"n{space}")
                except semmem.InvalidInput as error:
                    refused.append(error.message)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(first, ("english", "german")))
    with semmem.connect(url, embedder=embedder(url)) as mem:
        spoken = mem.store.languages()
        held = {n: {m.id.rstrip("0123456789") for m in mem.list(namespace=n)} for n in spoken}
    assert sorted(spoken) == [f"n{space}" for space in range(6)]
    assert ["was read in" in message for message in refused] == [True] * 6
    assert held == {namespace: {language} for namespace, language in spoken.items()}


def test_a_rebuild_in_another_language_that_was_interrupted_mixes_no_stems(url: str) -> None:
    with semmem.connect(url, embedder=embedder(url)) as mem:
        mem.remember_many([{"id": str(n), "text": f"Die Boote liegen in Häfen {n}."} for n in range(3)])

    class Stop(Exception):
        pass

    def stop(_: int) -> None:
        raise Stop

    with semmem.connect(url, embedder=embedder(url), language="german") as german:
        with pytest.raises(Stop):
            german.rebuild(extract=True, progress=stop)
        for language in ("german", "english"):
            with semmem.connect(url, embedder=embedder(url), language=language) as mem:
                for use in (lambda: mem.recall("Boot"), lambda: mem.remember("Ein Boot.")):
                    with pytest.raises(semmem.InvalidInput, match=r"read again in german; .* language = german"):
                        use()
        german.rebuild(extract=True)
        assert len(german.recall("Boot im Hafen", recipe="lexical")) == 3
        german.remember("Ein Boot.")
