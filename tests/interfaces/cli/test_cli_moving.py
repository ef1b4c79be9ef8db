"""copy, backup, restore and stats --verify on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from semmem.interfaces.cli.app import run
from semmem.stores.postgres.moving import copy
from tests.interfaces.cli.program import Call, in_process, loaded


@pytest.fixture
def call(capfd: pytest.CaptureFixture[str], filled_url: str, monkeypatch: pytest.MonkeyPatch) -> Call:
    """Run the program on a filled store, with the hashing embedder; return code, output and errors."""
    monkeypatch.setenv("SEMMEM_URL", filled_url)
    monkeypatch.setenv("SEMMEM_EMBEDDER", "hashing")
    return in_process(capfd)


def test_a_store_is_backed_up_restored_and_verified(call: Call, other_url: str, tmp_path: Path) -> None:
    file = str(tmp_path / "mine.semmem")
    before = loaded(call("stats", "--verify", "--json"))
    written = loaded(call("backup", file, "--json"))
    assert (written["memories"], written["file"]) == (88, file)
    restored = loaded(call("restore", file, "--url", other_url, "--json"))
    assert restored["namespaces"] == written["namespaces"] == before["hashes"]
    assert set(before["hashes"]) == {"one", "zwei ☂"}
    after = loaded(call("stats", "--verify", "--url", other_url, "--json"))
    assert after["hashes"] == before["hashes"]
    assert (after["memories"], "hashes" in loaded(call("stats", "--json"))) == (88, False)
    one = loaded(call("stats", "--verify", "-n", "one", "--json"))["hashes"]
    assert one == {"one": before["hashes"]["one"]}
    code, out, err = call("backup", file)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "--force" in err
    code, out, err = call("backup", file, "--force")
    assert (code, err) == (0, "")
    assert "Wrote 88 memories" in out
    code, out, err = call("restore", file, "--url", other_url)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "not empty" in err
    code, out, err = call("restore", str(tmp_path / "nowhere"))
    assert (code, out) == (2, "")
    assert before["hashes"]["one"]["graph"] in call("stats", "--verify")[1]


def test_a_store_is_copied_and_what_came_meanwhile_is_told(
    call: Call, filled_url: str, other_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = loaded(call("copy", filled_url, other_url, "--json"))
    assert (report["memories"], report["found"], report["came"]) == (88, 0, 0)
    assert report["namespaces"]["one"]["memories"] == 71
    assert loaded(call("recall", "owl 4", "-n", "one", "--url", other_url, "--json")) is not None
    analyzed = copy.postgres_tables.analyze

    def slowly(connection: Any, tables: Any) -> None:
        assert run(["remember", "Meanwhile.", "--id", "meanwhile", "--json"]) == 0
        analyzed(connection, tables)

    monkeypatch.setattr(copy.postgres_tables, "analyze", slowly)
    code, out, err = call("copy", filled_url, other_url)
    assert code == 0
    assert "rows were there already" in out
    assert "counts and hashes are the same" in out
    assert "1 memory came into the source and 0 were forgotten; run the same command again" in err


def test_what_cannot_be_copied_is_one_sentence(call: Call, filled_url: str, tmp_path: Path) -> None:
    for urls in ((filled_url, filled_url), (filled_url, f"sqlite:{tmp_path}/x.db"), (filled_url, "nonsense:")):
        code, out, err = call("copy", *urls)
        assert (code, out, err.count("\n")) == (2, "", 1)
