"""Files of every format and backups, mutated at random: what is stored is whole, or the error is one of ours.

Each test prints what it counted; SEMMEM_TEST_MUTATED is how many files it makes.
"""

from __future__ import annotations

import json
import os
import random
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import semmem
from semmem.importers import BadRow, owned, reader, told_apart
from semmem.model.errors import SemmemError
from tests.stores.audit import connections_left
from tests.stores.filled import rows

FILES_MADE = int(os.environ.get("SEMMEM_TEST_MUTATED", "200"))
SPLICES = (
    *(b"\x00", b"\xff\xfe", b"\xed\xa0\x80", b"\\ud800", b"\\u0000", b"\r", b"\n", b"\xef\xbb\xbf", b'"'),
    *(b"null", b"1e999", b"-1", b"NaN", b"true", b'""', b"[]", b"{}", b"9" * 400, b"[" * 3_000, b'{"a":' * 3_000,),
    *(b"\x1b]52;c;x\x07", b"\xe2\x80\xae", b"0001-01-01T00:00:00+23:59", b"9999-12-31T23:59:59-23:59"),
    *(b"{", b"[", b",", b"a" * 70_000),
)  # fmt: skip


def lines(*values: object) -> bytes:
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)


TURNS = [{"speaker": "Ada", "dia_id": f"D1:{n}", "text": f"The owl {n} hoots."} for n in range(1, 4)]
FILES: dict[str, tuple[str, bytes]] = {
    "chat": (
        "chat.jsonl",
        lines(
            {"role": "user", "content": "Hello.", "timestamp": "2026-03-01T09:00:00Z", "session": "s"},
            {"author": {"name": "Ada"}, "text": [{"type": "text", "text": "Hi."}, "there"], "id": 7, "ts": 1772355600},
            {"messages": [{"role": "user", "content": "One."}, {"role": "assistant", "content": "Two."}]},
        ),
    ),
    "csv": (
        "table.csv",
        b'id,text,title,tags,importance,created_at,metadata,position\n'
        b'1,"One, two",T,"a;b",0.5,2026-03-01,"{""x"": 1}",2\n'
        b'2,"Three\nfour",U,c,1,1772355600,,3\n',
    ),
    "jsonl": (
        "rows.jsonl",
        lines(
            {"text": "One.", "id": "a", "tags": ["x"], "metadata": {"n": 1}, "importance": 0.3, "namespace": "n"},
            {"text": "Two.", "id": "b", "created_at": "2026-03-01T09:00:00+01:00", "session": "s", "position": 4},
            {"text": "Three.", "embedder": "x", "vectors": {"a" * 32: "AAAA"}},
        ),
    ),
    "locomo": (
        "locomo.json",
        json.dumps(
            [{"sample_id": "c", "conversation": {"session_1": TURNS, "session_1_date_time": "1:56 pm on 8 May, 2023"}}]
        ).encode(),
    ),
    "longmemeval": (
        "long.json",
        json.dumps(
            [
                {
                    "haystack_sessions": [[{"role": "user", "content": "One."}, {"role": "x", "content": "Two."}]],
                    "haystack_session_ids": ["s1"],
                    "haystack_dates": ["2023/05/30 (Tue) 21:48"],
                }
            ]
        ).encode(),
    ),
    "markdown": (
        "note.md",
        b"---\ntitle: Kestrel\naliases: [KL-7, Old Bird]\ntags: [a, b]\ncreated: 2026-03-01\nat: 12:30\n"
        b"x: {y: [1, 2]}\n---\n"
        b"# Heading\nIt [[logs|writes]] at #site, see [more](sub/other.md#top) and `code`.\n```\n[[no]]\n```\n",
    ),
    "mcp": (
        "memory.jsonl",
        lines(
            {"type": "entity", "name": "Ada_L", "entityType": "person", "observations": ["Wrote.", "Met an owl."]},
            {"type": "relation", "from": "Ada_L", "to": "Owl", "relationType": "worksWith"},
        ),
    ),
    "mem0": (
        "mem0.json",
        json.dumps(
            {
                "results": [
                    {"id": "1", "memory": "One.", "user_id": "u", "created_at": "2026-03-01T09:00:00Z"},
                    {"id": "2", "memory": "Two.", "categories": ["x"], "metadata": {"k": "v"}, "run_id": "r"},
                ]
            }
        ).encode(),
    ),
}  # fmt: skip


def mutated(raw: bytes, chance: random.Random) -> bytes:
    """Return ``raw`` with a few bits flipped, pieces cut out, doubled, put elsewhere, or something odd put in."""
    for _ in range(chance.choice((1, 1, 1, 2, 3, 8))):
        at, to = sorted((chance.randrange(len(raw) + 1), chance.randrange(len(raw) + 1)))
        match chance.randrange(6):
            case 0 if raw:
                at = chance.randrange(len(raw))
                raw = raw[:at] + bytes([raw[at] ^ 1 << chance.randrange(8)]) + raw[at + 1 :]
            case 1:
                raw = raw[:at] + raw[min(to, at + 20) :]
            case 2:
                raw = raw[:at] + raw[at : at + 60] + raw[at:]
            case 3:
                raw = raw[:at]
            case _:
                raw = raw[:at] + chance.choice(SPLICES) + raw[at:]
    return raw


def stored(mem: Any) -> dict[tuple[str, str], str]:
    return {(row["namespace"], row["id"]): row["text"] for row in mem.export(namespace=None)}


def bring(mem: Any, format: str, path: Path, on_error: str) -> tuple[int, int, int]:
    """Import as the command does and return (read as items, bad rows of the file, bad items)."""
    bad: list[BadRow] = []
    apart = told_apart(format, path, mem, "n")
    report = mem.import_items(
        reader(format)(path, reject=bad.append if on_error == "skip" else None, **apart),
        namespace="n",
        on_error=on_error,
        owned=owned(format, path, **apart),
        replace=format == "markdown",
    )
    return report.remembered, len(bad), len(report.rejected)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("format", FILES)
def test_a_mutated_file_is_stored_whole_or_refused_in_our_words(
    format: str, own_url: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    chance = random.Random(f"{format} 1")
    name, whole = FILES[format]
    place = tmp_path / ("vault" if format == "markdown" else "files")
    place.mkdir()
    path, source = place / name, place if format == "markdown" else place / name
    done: Counter[str] = Counter()
    with semmem.connect(own_url, embedder="none", pool_size=2) as mem:
        path.write_bytes(whole)
        assert bring(mem, format, source, "abort")[0] > 0
        while done["files"] < FILES_MADE:
            if done["files"] % 50 == 0:
                mem.forget(namespace="n", everything=True)
            path.write_bytes(mutated(whole, chance))
            done["files"] += 1
            before = stored(mem)
            try:
                remembered, bad, refused = bring(mem, format, source, chance.choice(("skip", "abort")))
            except SemmemError as error:
                done["refused"] += 1
                done["of several lines"] += "\n" in str(error).strip()
                assert stored(mem) == before, path.read_bytes()[:300]
            else:
                done["taken"] += 1
                done["stored"] += remembered
                done["bad rows"] += bad + refused
        there = stored(mem)
        assert {(row["namespace"], row["id"]) for row in mem.export(namespace=None)} == set(there)
    open_yet = connections_left(own_url)
    with capfd.disabled():
        print(f"\n{format}: {dict(done)}, foreign errors 0, leaked connections {open_yet}", end="")
    assert (open_yet, done["of several lines"]) == (0, 0)
    assert min(done["refused"] + done["bad rows"], done["stored"]) > 0


def remade(file: Path, out: Path, change: Callable[[dict[str, bytes]], None]) -> None:
    """Write ``file`` anew with changed members, so that the checksums of the archive are right again."""
    with zipfile.ZipFile(file) as old:
        members = {member.filename: old.read(member) for member in old.infolist()}
    change(members)
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
        new.writestr(zipfile.ZipInfo("semmem-backup"), members.pop("semmem-backup"))
        for name, raw in members.items():
            new.writestr(name, raw)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_mutated_backup_is_restored_exactly_or_refused_and_nothing_stays(
    filled_url: str, own_url: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    chance = random.Random(10)  # two of the first hundred can be restored
    done: Counter[str] = Counter()
    file, other = tmp_path / "whole", tmp_path / "other"
    with semmem.connect(filled_url, embedder="none", pool_size=2) as mem:
        mem.backup(file)
    whole, held = file.read_bytes(), rows(filled_url)

    def change(members: dict[str, bytes]) -> None:
        name = chance.choice(sorted(members.keys() - {"semmem-backup"})) if chance.random() < 0.5 else "manifest.json"
        members[name] = mutated(members[name], chance)

    with semmem.connect(own_url, embedder="none", pool_size=2) as mem:
        nothing = rows(own_url)
        for number in range(FILES_MADE // 2):  # a restore takes longer
            if number % 2:
                remade(file, other, change)
            else:
                other.write_bytes(mutated(whole, chance))
            done["files"] += 1
            try:
                mem.restore(other)
            except SemmemError as error:
                done["found"] += 1
                done["of several lines"] += "\n" in str(error).strip()
                if done["found"] % 10 == 1:
                    assert rows(own_url) == nothing
                assert mem.stats().memories == 0
            else:
                done["restored"] += 1
                assert rows(own_url) == held
                for namespace in ("one", "zwei ☂"):
                    mem.forget(namespace=namespace, everything=True)
                nothing = rows(own_url)
        assert rows(own_url) == nothing
    open_yet = connections_left(own_url)
    with capfd.disabled():
        print(f"\nrestore: {dict(done)}, foreign errors 0, leaked connections {open_yet}", end="")
    assert (open_yet, done["of several lines"]) == (0, 0)
    assert done["found"] > 10
