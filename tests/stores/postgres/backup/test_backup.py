"""A backup is one file that holds the store of one moment; what is not whole is never restored."""

from __future__ import annotations

import hashlib
import io
import json
import resource
import stat
import tracemalloc
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import semmem
from semmem.client.memory import Semmem
from semmem.model.errors import InvalidInput, SchemaTooNew, StoreError
from semmem.stores.postgres.moving import tables as postgres_tables
from semmem.stores.sql_files import migrations
from tests.stores.audit import check, sql
from tests.stores.filled import asked, held, rows, tables, url_of

NEWEST = migrations("postgres")[-1][0]


def test_a_restored_store_is_the_one_that_was_backed_up(filled: Semmem, empty: Semmem, tmp_path: Path) -> None:
    file = tmp_path / "mine.semmem"
    written = filled.backup(file)
    restored = empty.restore(file)
    assert rows(url_of(empty)) == rows(url_of(filled))
    assert set(written.tables) == tables(url_of(filled))
    assert min(written.tables.values()) > 0
    assert (written.memories, written.schema, written.bytes) == (88, NEWEST, file.stat().st_size)
    assert written.namespaces == restored.namespaces == held(url_of(filled)) == held(url_of(empty))
    assert asked(url_of(empty)) == asked(url_of(filled))
    one = empty.remember("After the restore.", id="after", namespace="one")
    assert empty.get("after", namespace="one") == one


def test_the_file_is_closed_to_others_and_appears_whole(filled: Semmem, tmp_path: Path) -> None:
    file = tmp_path / "mine.semmem"
    (tmp_path / "secret").write_text("precious")
    (tmp_path / "mine.semmem.part").symlink_to(tmp_path / "secret")
    seen: set[bool] = set()
    modes: set[int] = set()

    def look(done: int) -> None:
        seen.add(file.exists())
        modes.update(stat.S_IMODE(found.stat().st_mode) for found in tmp_path.glob(".*"))

    filled.backup(file, progress=look)
    assert modes == {0o600}
    assert (tmp_path / "secret").read_text() == "precious"
    (tmp_path / "secret").unlink()
    (tmp_path / "mine.semmem.part").unlink()
    assert seen == {False}
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [found.name for found in tmp_path.iterdir()] == ["mine.semmem"]


def test_a_file_is_overwritten_only_when_that_is_asked_for(filled: Semmem, tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("precious")
    with pytest.raises(InvalidInput, match=r"notes\.txt exists already; .*--force"):
        filled.backup(file)
    assert file.read_text() == "precious"
    assert filled.backup(file, force=True).memories == 88
    assert zipfile.is_zipfile(file)


def test_of_two_backups_under_one_name_the_first_stays(filled: Semmem, tmp_path: Path) -> None:
    file = tmp_path / "mine.semmem"

    def another(done: int) -> None:
        if not file.exists():
            filled.backup(file)

    with pytest.raises(
        InvalidInput, match=r"mine\.semmem (exists already|was written by somebody else); choose another"
    ):
        filled.backup(file, progress=another)
    assert zipfile.ZipFile(file).testzip() is None
    assert [found.name for found in tmp_path.iterdir()] == ["mine.semmem"]


def test_a_backup_holds_one_moment_while_others_write(filled: Semmem, empty: Semmem, tmp_path: Path) -> None:
    before = held(url_of(filled))
    written = False

    def meanwhile(done: int) -> None:
        nonlocal written
        if not written:
            written = True
            filled.remember("Meanwhile.", id="meanwhile", namespace="one")
            filled.forget("m2", namespace="one")
            filled.maintain()

    filled.backup(tmp_path / "b", progress=meanwhile)
    assert held(url_of(filled)) != before
    assert empty.restore(tmp_path / "b").namespaces == before == held(url_of(empty))


def test_the_same_store_can_be_filled_again_after_it_was_cleared(filled: Semmem, file: Path) -> None:
    before, answers = rows(url_of(filled)), asked(url_of(filled))
    for namespace in ("one", "zwei ☂"):
        filled.forget(namespace=namespace, everything=True)
    assert filled.stats().memories == 0
    filled.restore(file)
    assert rows(url_of(filled)) == before
    assert asked(url_of(filled)) == answers


def test_what_is_remembered_while_a_restore_finds_the_store_empty_stays(
    filled: Semmem, empty: Semmem, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = postgres_tables.lock

    def remembered(connection: Any, all: Any) -> None:
        with semmem.connect(url_of(empty), embedder="hashing") as other:
            other.remember("Mine.", id="mine")
        lock(connection, all)

    monkeypatch.setattr(postgres_tables, "lock", remembered)
    with pytest.raises(InvalidInput, match=r"The store is not empty \(1 memories\); restore into an empty one"):
        empty.restore(file)
    assert empty.get("mine").text == "Mine."


def test_a_store_that_is_not_empty_is_left_alone(filled: Semmem, empty: Semmem, file: Path) -> None:
    empty.remember("Mine.", id="mine")
    before = rows(url_of(empty))
    with pytest.raises(InvalidInput, match=r"The store is not empty \(1 memories\); restore into an empty one"):
        empty.restore(file)
    assert rows(url_of(empty)) == before


def test_a_file_that_is_foreign_cut_off_or_changed_is_refused_before_anything_is_written(
    empty: Semmem, file: Path, tmp_path: Path
) -> None:
    whole = file.read_bytes()
    before = rows(url_of(empty))
    broken = tmp_path / "broken"
    members = [m for m in zipfile.ZipFile(file).infolist() if m.compress_size > 200]
    assert len(members) >= 4
    damaged = [whole[:end] for end in (0, 10, 100, len(whole) // 2, len(whole) - 1)]
    damaged += [_changed(whole, member) for member in members]
    for raw in damaged:
        broken.write_bytes(raw)
        with pytest.raises(InvalidInput, match=r"is damaged or was cut off|is not a backup of semmem") as told:
            empty.restore(broken)
        assert str(told.value).count(". ") == 0
    with pytest.raises(InvalidInput, match=r"There is no file .*nowhere"):
        empty.restore(tmp_path / "nowhere")
    (tmp_path / "text").write_text("not a backup at all, but long enough to look into " * 3)
    with zipfile.ZipFile(tmp_path / "zip", "w") as other:
        other.writestr("manifest.json", "{}")
    for name in ("text", "zip"):
        with pytest.raises(InvalidInput, match="is not a backup of semmem; `semmem backup FILE` writes one"):
            empty.restore(tmp_path / name)
    assert rows(url_of(empty)) == before


def _changed(whole: bytes, member: zipfile.ZipInfo) -> bytes:
    """Return the archive with one bit flipped behind the middle of ``member``, the first that changes what it holds.

    One bit in twenty of a well compressed member changes nothing, such as the distance to a repetition of a repetition.
    """
    before = zipfile.ZipFile(io.BytesIO(whole)).read(member)
    middle = member.header_offset + 80 + member.compress_size // 2
    for at in range(middle, middle + 50):
        changed = whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1 :]
        try:
            if zipfile.ZipFile(io.BytesIO(changed)).read(member.filename) != before:
                return changed
        except (zipfile.BadZipFile, zlib.error):
            return changed
    raise AssertionError(f"No bit of {member.filename} changes it.")


def test_any_flipped_bit_is_found_or_does_no_harm(filled: Semmem, empty: Semmem, file: Path, tmp_path: Path) -> None:
    whole = file.read_bytes()
    found = 0
    for at in range(7, len(whole), len(whole) // 30):
        (tmp_path / "flipped").write_bytes(whole[:at] + bytes([whole[at] ^ 0x01]) + whole[at + 1 :])
        try:
            empty.restore(tmp_path / "flipped")
        except InvalidInput:
            found += 1
            continue
        assert rows(url_of(empty)) == rows(url_of(filled)), at  # such as the time of a member, which nobody reads
        for namespace in ("one", "zwei ☂"):
            empty.forget(namespace=namespace, everything=True)
    assert found > 20


def rewritten(file: Path, change: Callable[[dict[str, Any]], Any]) -> Path:
    """Return the path of ``file`` with another manifest."""
    out = file.with_name("rewritten")
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(out, "w") as new:
        for member in old.infolist():
            raw = old.read(member)
            if member.filename == "manifest.json":
                manifest = json.loads(raw)
                change(manifest)
                raw = json.dumps(manifest).encode()
            new.writestr(zipfile.ZipInfo(member.filename), raw)
    return out


def test_a_manifest_that_somebody_changed_or_that_is_newer_is_refused(empty: Semmem, file: Path) -> None:
    changes: list[Callable[[dict[str, Any]], Any]] = [
        lambda m: m.update(schema="4"),
        lambda m: m.update(schema=0),
        lambda m: m["tables"]["memory"].update(sha256="0" * 64),
        lambda m: m["tables"].update({'memory"; DROP SCHEMA semmem; --': m["tables"]["memory"]}),
        lambda m: m["namespaces"].update(one=7),
        lambda m: m.update(tables=[]),
        lambda m: m.update(tables={}),
        lambda m: m["tables"].update(memory=None),
        lambda m: m["tables"]["memory"].update(columns="id"),
        lambda m: m["tables"]["memory"].update(rows=-1),
        lambda m: m["tables"]["memory"].update(rows="88"),
        lambda m: m["tables"]["memory"].update(sha256=7),
        lambda m: m.update(memories=None),
        lambda m: m.update(indexed="yes"),
        lambda m: m.update(format=True),
        lambda m: m.update(schema=1e400),
        lambda m: m.pop("format"),
    ]
    for change in changes:
        with pytest.raises(InvalidInput, match="is damaged or was cut off"):
            empty.restore(rewritten(file, change))
    newer = rewritten(file, lambda manifest: manifest.update(schema=999))
    with pytest.raises(
        SchemaTooNew,
        match=(rf"has schema 999 and this version of semmem reads up to " rf"{NEWEST}; upgrade semmem as docs/operate"),
    ):
        empty.restore(newer)
    newer = rewritten(file, lambda manifest: manifest.update(format=99))
    with pytest.raises(
        SchemaTooNew,
        match=(r"has format 99 and this version of semmem reads up to 1; " r"upgrade semmem as docs/operate"),
    ):
        empty.restore(newer)
    assert sum(map(len, rows(url_of(empty)).values())) == 0


def test_a_restore_tells_how_many_memories_there_are_now_whatever_the_manifest_says(empty: Semmem, file: Path) -> None:
    done = empty.restore(rewritten(file, lambda manifest: manifest.update(memories=3)))
    assert done.memories == empty.stats().memories > 3


def archived(file: Path, *members: tuple[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> Path:
    """Return the path of an archive with the mark of a backup and these members."""
    with zipfile.ZipFile(file, "w", method) as out:
        out.writestr(zipfile.ZipInfo("semmem-backup"), "1\n")
        for name, raw in members:
            out.writestr(name, raw)
    return file


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_an_archive_that_no_backup_is_costs_little_and_is_refused(empty: Semmem, file: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(file) as whole:
        members = [(m.filename, whole.read(m)) for m in whole.infolist() if m.filename != "semmem-backup"]
    deep = b"[" * 200_000
    odd = [
        archived(tmp_path / "bomb", ("manifest.json", b" " * 400_000_000)),
        archived(tmp_path / "deep", ("manifest.json", deep)),
        archived(tmp_path / "deeper", ("manifest.json", b'{"format": 1, "schema": 1, "x": ' + deep)),
        archived(tmp_path / "twice", *members, members[-1]),
        archived(tmp_path / "more", *members, ("tables/another.copy", b"")),
        archived(tmp_path / "fewer", *members[1:]),
        archived(tmp_path / "many", *members, *((f"x{n}", b"") for n in range(2_000))),
        archived(tmp_path / "packed", *members, method=zipfile.ZIP_LZMA),
        archived(tmp_path / "without", *members[:-1]),
        archived(tmp_path / "latin", ("manifest.json", "é".encode("latin-1"))),
    ]
    tracemalloc.start()
    try:
        for path in odd:
            with pytest.raises(InvalidInput, match="is damaged or was cut off"):
                empty.restore(path)
        assert tracemalloc.get_traced_memory()[1] < 200_000_000
    finally:
        tracemalloc.stop()
    assert sum(map(len, rows(url_of(empty)).values())) == 0
    assert empty.restore(archived(tmp_path / "same", *members)).memories == 88


@pytest.mark.slow
def test_numbers_go_on_behind_those_of_the_backup(filled: Semmem, empty: Semmem, file: Path) -> None:
    empty.restore(file)
    for mem in (filled, empty):
        assert mem.forget("m5", namespace="one") == 1
        assert mem.remember("After the restore.", id="after", namespace="one").id == "after"
        mem.merge_concepts("owl 9", "owl 10", namespace="one")
        mem.maintain()
        check(mem)
    assert asked(url_of(empty)) == asked(url_of(filled))
    numbers = "SELECT namespace, ords, segments, changes FROM namespace ORDER BY 1"
    assert sql(url_of(empty), numbers) == sql(url_of(filled), numbers)


def test_rows_that_no_store_can_hold_are_told_in_one_sentence(empty: Semmem, file: Path) -> None:
    def wrong(change: Callable[[bytes], bytes]) -> Path:
        out = file.with_name("wrong")
        with zipfile.ZipFile(file) as old:
            raw = {m.filename: old.read(m) for m in old.infolist()}
        manifest = json.loads(raw["manifest.json"])
        table = change(raw["tables/meta.copy"])
        raw["tables/meta.copy"] = table
        head, end = len(postgres_tables.HEADER), len(postgres_tables.END)
        manifest["tables"]["meta"]["sha256"] = hashlib.sha256(table[head:-end]).hexdigest()
        raw["manifest.json"] = json.dumps(manifest).encode()
        return archived(out, *((name, one) for name, one in raw.items() if name != "semmem-backup"))

    empty.restore(wrong(lambda table: table))
    empty.forget(namespace="one", everything=True)
    empty.forget(namespace="zwei ☂", everything=True)
    changes: list[Callable[[bytes], bytes]] = [
        lambda table: table.replace(b"{", b"!"),
        lambda table: table[:-2] + table[19:-2] + table[-2:],
        lambda table: table[:-2] + b"\x00\x07" + table[-2:],
    ]
    for change in changes:
        with pytest.raises((InvalidInput, StoreError), match=r"holds what no store can hold|differs from"):
            empty.restore(wrong(change))
        assert empty.stats().memories == 0


def test_rows_that_are_not_what_the_manifest_counts_are_not_kept(empty: Semmem, file: Path) -> None:
    wrong = rewritten(file, lambda manifest: manifest["tables"]["memory"].update(rows=1))
    with pytest.raises(StoreError, match="The table memory differs from the backup; nothing was restored"):
        empty.restore(wrong)
    assert empty.stats().memories == 0


def test_an_interrupted_restore_leaves_an_empty_store(filled: Semmem, empty: Semmem, file: Path) -> None:
    def stop(done: int) -> None:
        if done > 100:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        empty.restore(file, progress=stop)
    assert sum(map(len, rows(url_of(empty)).values())) == 0
    empty.restore(file)
    assert rows(url_of(empty)) == rows(url_of(filled))


def test_a_full_disk_leaves_neither_a_file_nor_a_piece_of_one(filled: Semmem, tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (8192, before[1]))
        with pytest.raises(InvalidInput, match=r"The backup cannot be written to .*: File too large"):
            filled.backup(tmp_path / "b")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert list(tmp_path.iterdir()) == []


def test_what_may_still_be_taken_back_is_overwritten_by_no_backup_and_no_copy(
    filled: Semmem, empty: Semmem, tmp_path: Path
) -> None:
    filled.backup(tmp_path / "b")
    empty.remember("The key is red.", id="key")
    empty.forget("key")
    with pytest.raises(InvalidInput, match="keeps 1 forgotten memories that can still be brought back"):
        empty.restore(tmp_path / "b")
    with pytest.raises(InvalidInput, match=r"not empty \(1 forgotten memories"):
        semmem.copy(url_of(filled), url_of(empty))
    assert empty.restore_memory("key").text == "The key is red."
    empty.forget("key", hard=True)
    assert empty.restore(tmp_path / "b").memories > 0
