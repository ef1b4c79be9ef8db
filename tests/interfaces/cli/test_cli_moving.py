"""migrate, copy, backup, restore and stats --verify on the command line."""

from __future__ import annotations

import errno
import time
from contextlib import nullcontext
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


@pytest.mark.slow
def test_a_series_keeps_the_newest_and_its_newest_restores_on_trial(call: Call, other_url: str, tmp_path: Path) -> None:
    place = tmp_path / "backups"
    code, out, err = call("backup", str(place), "--keep", "2")
    assert (code, out) == (2, "")
    assert err == f"There is no folder {place}; --keep and --every are for a folder or a bucket.\n"
    place.mkdir()
    code, out, err = call("restore", str(place))
    assert (code, out, err) == (
        4, "", f"There is no backup of a series at {place}; `semmem backup {place}` writes one.\n"
    )  # fmt: skip
    written = loaded(call("backup", str(place), "--keep", "1", "--json"))
    assert (written["memories"], written["place"], written["removed"]) == (88, str(place), [])
    assert [one.name for one in place.iterdir()] == [written["file"]]
    code, out, err = call("restore", str(place), "--drill")
    assert (code, err) == (0, "")
    assert f"The backup {written['file']} can be restored: 88 memories in 2 namespaces, all hashes equal" in out
    code, out, err = call("restore", str(place), "--drill", "--url", other_url)
    assert (code, out) == (2, "")
    assert err == "--drill restores into a store of its own, which is removed again; leave --url out.\n"
    assert loaded(call("restore", str(place), "--url", other_url, "--json"))["memories"] == 88
    code, out, err = call("backup", str(place), "--force")
    assert (code, err) == (2, "--force is for one file; in a series every backup has a name of its own.\n")


@pytest.mark.slow
def test_with_every_a_failure_is_told_and_the_next_backup_is_tried(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from semmem.client import backup_series as series
    from semmem.interfaces.cli.commands import whole_store
    from semmem.model.errors import StoreUnavailable

    rounds: list[float] = []
    write = series.add

    def sometimes(*given: Any, **options: Any) -> Any:
        if len(rounds) == 1:
            raise StoreUnavailable("The server is away.")
        if len(rounds) == 2:
            raise OSError(errno.ENOSPC, "No space left on device", "backups/x.semmem")
        return write(*given, **options)

    def rest(seconds: float) -> None:
        rounds.append(seconds)
        if len(rounds) == 4:
            raise KeyboardInterrupt
        time.sleep(1.1)  # names differ by the second

    monkeypatch.setattr(series, "add", sometimes)
    monkeypatch.setattr(whole_store, "interrupted_at_rest", lambda: nullcontext(rest))
    code, _, err = call("backup", str(tmp_path), "--every", "24")
    assert (code, rounds) == (130, [86_400.0] * 4)
    assert "The server is away. The next try is in 24 hours." in err
    assert "backups/x.semmem: No space left on device. The next try is in 24 hours." in err
    assert len(list(tmp_path.glob("semmem-*.semmem"))) == 2


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


def test_a_file_is_migrated_as_far_as_asked_and_no_command_does_it_by_itself(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite://{tmp_path}/notes.db"
    assert loaded(call("migrate", "--to", "14", "--url", url, "--json")) == {
        "before": 0, "after": 14, "newest": 15, "dry_run": False, "migrations": [
            "0003_everything_led_by_its_namespace", "0004_what_the_life_of_a_memory_leaves",
            "0005_how_often_a_memory_was_returned", "0006_when_a_text_began", "0007_what_made_the_parts",
            "0008_when_a_namespace_was_changed", "0009_what_servers_share", "0010_the_type_of_a_source",
            "0011_the_most_important_first", "0012_what_three_legs_read", "0013_what_was_given_to_whom",
            "0014_each_order_of_a_list",
        ],
    }  # fmt: skip
    monkeypatch.setenv("SEMMEM_MIGRATE", "false")
    has = f"The file {tmp_path}/notes.db has schema 14, this semmem needs schema 15, and the setting migrate is false; "
    sentence = has + "run `semmem migrate` once, as a user who may create tables.\n"
    for command in (("stats",), ("remember", "x"), ("serve", "--port", "0"), ("doctor",)):
        code, out, err = call(*command, "--url", url)
        assert (code, sentence in out + err) == (8, True), command
    assert call("migrate", "--dry-run", "--url", url) == (
        0,
        "The store has schema 14; this semmem needs 15.\n  0015_who_read_and_wrote\n1 migration would run.\n",
        "",
    )
    code, out, _ = call("migrate", "--url", url)
    assert (code, out.splitlines()[-1]) == (0, "1 migration ran.")
    assert call("migrate", "--url", url)[1] == "The store has schema 15; this semmem needs 15.\n0 migrations ran.\n"
    assert call("remember", "x", "--url", url)[0] == 0


@pytest.mark.parametrize(
    ("url", "code", "sentence"),
    [
        ("sqlite:new.db", 2, "A SQLite file lies on one machine; to spread its memories over several, run `semmem ex"),
        ("http://127.0.0.1:1", 2, "This needs the store itself, and the URL is that of a server"),
        ("", 8, "This server has no Citus, which spreads a store over several; install version 13 or newer on every"),
    ],
)  # fmt: skip
def test_a_store_that_cannot_be_distributed_is_one_sentence(
    call: Call, filled_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str, code: int, sentence: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for more in ((), ("--dry-run",)):
        found, out, err = call("distribute", *more, "--url", url or filled_url)
        assert (found, out, err.count("\n"), sentence in err) == (code, "", 1, True), err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--to", "16", "--url", "sqlite:new.db"), "can be migrated to a schema from 3 to 15, not to 16; a"),
        (("--to", "x", "--url", "sqlite:new.db"), "it must be a whole number"),
        (("--url", "http://127.0.0.1:1"), "This needs the store itself, and the URL is that of a server"),
        (("--url", "sqlite:nowhere/new.db"), "There is no folder "),
    ],
)  # fmt: skip
def test_a_migration_that_cannot_be_is_one_sentence(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], sentence: str
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = call("migrate", *arguments)
    assert (code, out, err.count("\n"), sentence in err) == (2, "", 1, True), err
    assert list(tmp_path.iterdir()) == []
