"""A hash of a sensitive text, by which it could be guessed, is nowhere to be read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import semmem
from semmem.importers import reader
from semmem.model.imported_items import NOTE_HASH, hashed, item
from semmem.write.screening import noting
from semmem.write.sync import ImportReport
from tests.importers.vault import vault
from tests.interfaces.cli.program import Call, in_process

WIFI = "The wifi password is heron-blue-42."


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty store."""
    return f"sqlite:///{tmp_path}/s.db" if request.param == "sqlite" else request.getfixturevalue("store_url")


@pytest.fixture
def call(capfd: pytest.CaptureFixture[str], url: str, monkeypatch: pytest.MonkeyPatch) -> Call:
    """Run the program in this process; return code, output and errors."""
    monkeypatch.setenv("SEMMEM_URL", url)
    monkeypatch.setenv("SEMMEM_EMBEDDER", "none")
    return in_process(capfd)


def test_a_note_that_becomes_sensitive_keeps_its_hash_in_no_version(call: Call, url: str, tmp_path: Path) -> None:
    folder = vault(tmp_path / "v", a="The safe opens with 1931.")
    how = ["import", "markdown", str(folder), "-n", "n", "--json"]
    call(*how)
    with semmem.connect(url, embedder="none") as mem:
        assert NOTE_HASH in mem.get("a.md", namespace="n").metadata
        mem.update("a.md", namespace="n", title="Safe")
        mem.update("a.md", namespace="n", sensitive=True)
        versions = mem.history("a.md", namespace="n", reveal=True)
        assert [NOTE_HASH in one.memory.metadata for one in versions] == [False] * 3
        assert [one.memory.metadata["vault"] for one in versions] == ["v"] * 3
        mem.update("a.md", namespace="n", title="A")
    told = json.loads(call(*how)[1])
    assert (told["remembered"], told["unchanged"], told["replaced"]) == (0, 0, 1)  # by its title
    told = json.loads(call(*how)[1])
    assert (told["remembered"], told["unchanged"], told["replaced"]) == (0, 1, 0)
    vault(folder, a="The safe opens with 1932.")
    assert json.loads(call(*how)[1])["replaced"] == 1
    with semmem.connect(url, embedder="none") as mem:
        (memory,) = mem.list(namespace="n", reveal=True)
        assert (memory.text, memory.sensitive) == ("The safe opens with 1932.", True)
        assert NOTE_HASH not in memory.metadata


def test_a_note_that_the_screening_hides_has_no_hash_and_is_known_again(url: str) -> None:
    def brought(setting: Any) -> ImportReport:
        items = [item("", id="wifi", text=WIFI), item("", id="tea", text="Tea.")]
        for one in items:
            hashed(one)
        own = {"metadata": {"imported_from": "x"}}
        with semmem.connect(url, embedder="none", credentials=setting) as mem, noting():
            report = mem.import_items(items, owned=own, replace=True, mark=own["metadata"])
            assert NOTE_HASH in mem.get("tea").metadata
            assert (NOTE_HASH in mem.get("wifi").metadata) is (setting == "warn")
            return report

    assert brought("warn").remembered == 2
    report = brought("sensitive")
    assert (report.replaced, report.unchanged) == (1, 1)
    assert brought("sensitive").unchanged == 2
    with semmem.connect(url, embedder="none") as mem:
        assert [NOTE_HASH in one.memory.metadata for one in mem.history("wifi", reveal=True)] == [False, False]


def test_a_row_of_a_table_that_the_screening_hides_needs_an_id_that_is_no_hash_of_it(url: str, tmp_path: Path) -> None:
    bare, named = tmp_path / "bare.csv", tmp_path / "named.csv"
    bare.write_text(f"text\n{WIFI}\nTea.\n")
    named.write_text(f"text,id\n{WIFI},wifi\n")
    with semmem.connect(url, embedder="none", credentials="sensitive") as mem:
        report = mem.import_items(reader("csv")(bare))
        assert (report.remembered, [row.reason for row in report.rejected]) == (
            1,
            ["The text seems to hold a credential (password), and the id, which is made from the content, would reveal "
             "it; give it an id of its own."],
        )  # fmt: skip
        mem.import_items(reader("csv")(named))
        assert mem.get("wifi").sensitive
