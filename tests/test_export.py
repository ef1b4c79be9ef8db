"""What goes out comes back: every field of every memory, the same bytes when it is exported again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import semmem
from semmem import Semmem
from semmem.embedders.hashing import Hashing
from semmem.importers import reader
from semmem.model.errors import BadItem, Conflict, InvalidInput
from tests.interfaces.cli.program import Call, in_process
from tests.serving import running

MAY = datetime(2026, 5, 1, 9, 0, 0, 123456, tzinfo=timezone(timedelta(hours=2)))
SPLIT = "".join(f"The Kestrel logs {i:04}. " for i in range(160))  # 3,680 characters, more than the 1,400 of a part
_numbers = count(1)


@pytest.fixture
def mem(store_url: str) -> Iterator[Semmem]:
    with semmem.connect(store_url, embedder="none") as opened:
        yield opened


@pytest.fixture
def call(capfd: pytest.CaptureFixture[str], store_url: str, monkeypatch: pytest.MonkeyPatch) -> Call:
    """Run the program in this process; return code, output and errors."""
    monkeypatch.setenv("SEMMEM_URL", store_url)
    monkeypatch.setenv("SEMMEM_EMBEDDER", "none")
    return in_process(capfd)


def written(mem: Semmem, path: Path, **how: Any) -> bytes:
    rows = [json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in mem.export(**how)]
    path.write_bytes(b"".join(rows))
    return path.read_bytes()


def test_a_memory_goes_out_with_all_that_was_given_and_without_what_it_has_not(mem: Semmem) -> None:
    mem.remember(
        "The key hangs behind the radio.", id="key", namespace="n", title="Heron House", author="Ada", session="s",
        position=3, source="notes.md", tags=["key", "home"], metadata={"b": 1, "a": [None, True]}, importance=0.1,
        created_at=MAY,
    )  # fmt: skip
    mem.remember("Bare.", id="bare", namespace="n", created_at="2026-05-01T00:00:00Z")
    assert list(mem.export(namespace="n")) == [
        {
            "id": "key", "namespace": "n", "text": "The key hangs behind the radio.", "title": "Heron House",
            "author": "Ada", "session": "s", "position": 3, "source": "notes.md", "tags": ["key", "home"],
            "metadata": {"a": [None, True], "b": 1}, "importance": 0.1,
            "created_at": "2026-05-01T07:00:00.123456+00:00",  # 09:00 at +02:00
            "updated_at": "2026-05-01T07:00:00.123456+00:00", "version": 1,
        },
        {
            "id": "bare", "namespace": "n", "text": "Bare.", "importance": 0.5,
            "created_at": "2026-05-01T00:00:00+00:00", "updated_at": "2026-05-01T00:00:00+00:00", "version": 1,
        },
    ]  # fmt: skip


_TEXT = st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), min_size=1, max_size=30)
_LABEL = st.none() | _TEXT
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | _TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXT, inner, max_size=3),
    max_leaves=6,
)
_MEMORY = st.fixed_dictionaries(
    {"text": (_TEXT.filter(lambda t: bool(t.strip())) | st.just(SPLIT)), "id": _TEXT | st.just("a#1")},
    optional={
        "title": _LABEL,
        "author": _LABEL,
        "session": _LABEL,
        "source": _LABEL,
        "position": st.none() | st.integers(-(2**63) + 1, 2**63 - 1),
        "tags": st.lists(_TEXT, max_size=3),
        "metadata": st.dictionaries(_TEXT, _JSON, max_size=3),
        "importance": st.floats(0, 1),
        "created_at": st.datetimes(
            datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.sampled_from([UTC, timezone(timedelta(hours=-7))])
        ),
    },
)


_ALIKE = "The ferry to the island leaves at noon from the old harbour, and the gulls know it well."


@pytest.mark.slow
@example([{"text": _ALIKE, "id": "0"}, {"text": _ALIKE + " Today too.", "id": "Å"}])
@example([{"text": _ALIKE, "id": "a", "created_at": MAY}, {"text": _ALIKE, "id": "b", "created_at": MAY}])
@example([{"text": _ALIKE, "id": "b", "created_at": MAY}, {"text": _ALIKE, "id": "a", "created_at": MAY}])
@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(memories=st.lists(_MEMORY, min_size=1, max_size=4, unique_by=lambda one: one["id"]))
def test_export_import_export_gives_the_same_bytes(mem: Semmem, tmp_path: Path, memories: list[dict[str, Any]]) -> None:
    path, where = tmp_path / "all.jsonl", f"n{next(_numbers)}"
    mem.remember_many(memories, namespace=where)
    before = written(mem, path, namespace=where)
    assert before.count(b"\n") == len(memories)  # a split memory is one line
    assert mem.import_items(reader("jsonl")(path)).unchanged == len(memories)  # there already, under whatever time
    mem.forget(namespace=where, filters={"created_before": "9999-12-31T23:59:59Z"}, hard=True)
    assert list(mem.export(namespace=where)) == []
    report = mem.import_items(reader("jsonl")(path))
    assert (report.remembered, report.rejected) == (len(memories), ())
    assert written(mem, path, namespace=where) == before


def test_the_order_does_not_depend_on_the_order_of_writing_and_pages_lose_nothing(mem: Semmem) -> None:
    items = [{"text": f"Note {i}.", "id": f"{i:03}", "created_at": f"2026-05-{1 + i % 28:02}"} for i in range(230)]
    mem.remember_many(items, namespace="up")
    mem.remember_many(reversed(items), namespace="down")
    up, down = ([row["id"] for row in mem.export(namespace=name)] for name in ("up", "down"))
    assert up == down
    assert len(set(up)) == 230
    assert up[:2] == ["223", "195"]  # of the 28th day, the greatest id first: 223 = 27 + 7 * 28, 195 = 27 + 6 * 28
    both = [row["namespace"] for row in mem.export(namespace=None)]
    assert both == ["down"] * 230 + ["up"] * 230


@pytest.mark.slow
def test_vectors_travel_and_are_not_made_again(store_url: str, tmp_path: Path) -> None:
    class Counting(Hashing):
        embedded = 0

        def embed(self, texts: Any) -> Any:
            self.embedded += len(texts)
            return super().embed(texts)

    path = tmp_path / "all.jsonl"
    with semmem.connect(store_url, embedder="hashing") as mem:
        mem.remember(SPLIT, id="long", title="Kestrel", tags=["t"], metadata={"aliases": ["KL-7"]})
        mem.remember("Short.", id="short", author="Ada")
        before = written(mem, path, vectors=True)
        parts = [len(row["vectors"]) for row in map(json.loads, before.splitlines())]
        assert sorted(parts) == [1, 3]  # 3,680 characters in parts of at most 1,400
        mem.forget("long", hard=True)
        mem.forget("short", hard=True)
    counting = Counting()
    with semmem.connect(store_url, embedder=counting) as mem:
        mem.import_items(reader("jsonl")(path))
        assert counting.embedded == 0
        assert mem.stats().vectors == 4
        assert written(mem, path, vectors=True) == before
        mem.forget("short", hard=True)
        mem.import_items(reader("jsonl")(path, vectors=False))
        assert counting.embedded == 1
        assert written(mem, path, vectors=True) == before


@pytest.mark.slow
def test_given_vectors_come_back_bit_by_bit(store_url: str, tmp_path: Path) -> None:
    path = tmp_path / "all.jsonl"
    random = np.random.default_rng(7)
    with semmem.connect(store_url) as mem:
        for number in range(20):
            mem.remember(f"Note {number}.", id=str(number), vector=random.normal(size=37))
        before = written(mem, path, vectors=True)
        assert len(json.loads(before.splitlines()[0])["vector"]) == 37
        for number in range(20):
            mem.forget(str(number), hard=True)
        assert mem.import_items(reader("jsonl")(path)).remembered == 20
        assert written(mem, path, vectors=True) == before


def test_the_same_id_with_other_content_is_told_by_line(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    path.write_text(
        '{"id": "a", "text": "One."}\n\n{"id": "b", "text": "Two."}\n{"id": "a", "text": "Other."}\n7\n'
        '{"id": "c", "text": "x", "colour": 1}\n{"id": "a", "text": "One."}\n{"text": "No id."}\n',
        encoding="utf-8",
    )
    told = json.loads(call("import", "jsonl", str(path), "-n", "n", "--json")[1])
    assert (told["remembered"], told["unchanged"], told["replaced"]) == (3, 1, 0)
    assert [(row["where"], row["reason"][:40]) for row in told["rejected"]] == [
        ("line 5", "it is int, not a memory."),
        ("line 4", "The id 'a' came earlier in the same sour"),
        ("line 6", "A memory has no field 'colour'; use text"),
    ]
    path.write_text('{"id": "b", "text": "Two."}\n{"id": "a", "text": "Other."}\n', encoding="utf-8")
    told = json.loads(call("import", "jsonl", str(path), "-n", "n", "--json")[1])
    assert (told["unchanged"], told["rejected"][0]["where"]) == (1, "line 2")
    code, out, err = call("import", "jsonl", str(path), "-n", "n", "--on-error", "abort")
    assert (code, out, err) == (
        5,
        "",
        "line 2: The id 'a' is already stored with another text; import with --replace to change it.\n",
    )


def test_an_export_appears_whole_or_not_at_all(call: Call, tmp_path: Path) -> None:
    call("remember", "One — “two”.", "--id", "a", "-n", "n", "--tag", "x")
    call("remember", "Other.", "--id", "b", "-n", "m")
    path = tmp_path / "out.jsonl"
    assert call("export", str(path), "-n", "n") == (0, f"Exported 1 memory to {path}.\n", "")
    assert "“two”" in path.read_text(encoding="utf-8")
    code, out, err = call("export", str(path), "--all")
    assert (code, out, err) == (2, "", f"{path} already exists; --force overwrites it.\n")
    assert json.loads(call("export", str(path), "--all", "--force", "--json")[1])["exported"] == 2
    assert [path.name for path in tmp_path.iterdir()] == ["out.jsonl"]
    assert call("export", "-", "-n", "n", "-n", "m")[1].splitlines()[1:] == path.read_text("utf-8").splitlines()[:1]
    nothing = "Nothing was exported: no memory matches; `semmem namespaces` lists the namespaces that hold any.\n"
    assert call("export", "-", "-n", "n", "--tag", "y") == (0, "", nothing)
    assert call("export", "-", "-n", "typo") == (0, "", nothing)
    assert call("export", "-", "--all", "-n", "n")[0] == 2
    before = path.read_bytes()
    code, _, err = call("export", str(path), "--force", "--all", "--url", "postgresql:///nowhere?host=/none")
    assert code == 8, err
    assert path.read_bytes() == before
    assert call("export", str(tmp_path), "--force")[2] == f"{tmp_path} is a folder, not a file.\n"


def test_all_lines_can_go_into_one_namespace(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    path.write_text('{"id": "a", "text": "One.", "namespace": "x"}\n{"id": "b", "text": "Two."}\n', encoding="utf-8")
    assert call("import", "jsonl", str(path), "-n", "n")[0] == 0
    assert call("get", "a", "-n", "x")[0] == call("get", "b", "-n", "n")[0] == 0
    code, out, _ = call("import", "jsonl", str(path), "--into", "y")
    assert code == 0
    assert "into namespace y in" in out
    assert call("get", "a", "-n", "y")[0] == call("get", "b", "-n", "y")[0] == 0


def test_what_is_asked_wrongly_is_refused(mem: Semmem) -> None:
    for none in ([], [""], ""):
        with pytest.raises(InvalidInput, match="namespace must be a name, or a list of at least one"):
            mem.export(namespace=none)
    with pytest.raises(InvalidInput, match="'tag' is not a filter"):
        mem.export(filters={"tag": "x"})
    with pytest.raises(InvalidInput, match="Pass owned, filters that say which memories"):
        mem.import_items([], prune=True)
    with pytest.raises(InvalidInput, match="on_error must be"):
        mem.import_items([], on_error="stop")  # type: ignore[arg-type]
    with pytest.raises(BadItem, match=r"Item 1 \(id 'b'\): The text is empty"):
        mem.import_items([{"text": "a", "id": "a"}, {"text": " ", "id": "b"}], on_error="abort")
    assert list(mem.export()) == []


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_what_an_update_made_the_newest_is_the_newest_after_export_and_import_and_again(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str
) -> None:
    url = request.getfixturevalue("store_url") if kind == "postgres" else f"sqlite:{tmp_path}/one.db"
    with semmem.connect(url, embedder="none", pool_size=2) as mem:
        mem.remember("The database port is 5432.", id="first", created_at="2026-01-01")
        mem.remember("The database port is 6543.", id="second", created_at="2026-02-01")
        mem.update("first", text="The database port is 7777.")
        rows = list(mem.export())
        began = mem.get("first").updated_at
    by_id = {row["id"]: row for row in rows}
    assert began is not None
    assert (by_id["first"]["text_at"], "text_at" in by_id["second"]) == (began.isoformat(), False)
    for row in rows:
        row.pop("links", None)
    again = tmp_path / "again.jsonl"
    again.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    for number, items in enumerate((rows, reader("jsonl")(again))):
        with semmem.connect(f"sqlite:{tmp_path}/again{number}.db", embedder="none") as mem:
            mem.import_items(items)
            links = [(one.from_id, one.type, one.to_id) for one in mem.links("first")]
            assert links == [("first", "contradicts", "second")]
            assert {row["id"]: row.get("text_at") for row in mem.export()} == {
                "first": began.isoformat(),
                "second": None,
            }
            changed = [{**by_id["first"], "text": "The database port is 8888.", "text_at": "2026-03-01T00:00:00+00:00"}]
            mem.import_items(changed, owned={"created_after": "2000-01-01"}, replace=True)
            assert {row["id"]: row.get("text_at") for row in mem.export()}["first"] == "2026-03-01T00:00:00+00:00"


def test_an_export_without_the_time_of_texts_comes_in_and_one_that_is_no_time_is_refused(tmp_path: Path) -> None:
    with semmem.connect(f"sqlite:{tmp_path}/notes.db", embedder="none") as mem:
        row = {"id": "a", "namespace": "default", "text": "Tea.", "created_at": "2026-01-01", "version": 3}
        assert mem.import_items([row]).remembered == 1
        done = mem.import_items([{**row, "id": "b", "text_at": "soon"}, {**row, "id": "c", "text_at": "2999-01-01"}])
        assert (done.remembered, [one.id for one in done.rejected]) == (1, ["b"])
        assert done.rejected[0].reason == "text_at must be an ISO 8601 time, not 'soon'."
        assert ["text_at" in one for one in mem.export()] == [False, False]  # what is to come is no time of a text


@pytest.mark.parametrize("door", ["store", "server", "file"])
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_what_was_remembered_without_a_time_is_a_repeat_without_one_after_export_and_import_too(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str, door: str
) -> None:
    chat = [{"role": "user", "content": "I moved to Bonn."}, {"role": "assistant", "content": "Noted."}]
    with semmem.connect(f"sqlite:{tmp_path}/one.db", embedder="none") as mem:
        mem.remember_messages(chat, session="c", position=0)
        mem.remember("The port is 8080.")
        mem.remember("Deploy on Fridays.", id="deploy")
        mem.remember("The code is 4711.", id="code", sensitive=True)
        mem.remember("May has begun.", id="may", created_at=MAY)
        rows = list(mem.export(sensitive=True))
    assert {row["text"]: row.get("untimed") for row in rows} == {
        "I moved to Bonn.": True, "Noted.": True, "The port is 8080.": True, "Deploy on Fridays.": True,
        "The code is 4711.": True, "May has begun.": None,
    }  # fmt: skip
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    url = request.getfixturevalue("store_url") if kind == "postgres" else f"sqlite:{tmp_path}/two.db"
    with semmem.connect(url, embedder="none", pool_size=2) as mem:
        with running(mem) as server, semmem.connect(server.url) as there:
            door_in = there if door == "server" else mem
            for remembered in (len(rows), 0):
                report = door_in.import_items(reader("jsonl")(path) if door == "file" else rows)
                assert (report.remembered, report.unchanged, report.rejected) == (remembered, 6 - remembered, ())
        assert list(mem.export(sensitive=True)) == [{**row, "updated_at": row["created_at"]} for row in rows]
        more = [*chat, {"role": "user", "content": "And now to Köln."}]
        assert mem.remember_messages(more, session="c", position=0).unchanged == 2
        assert mem.remember("The port is 8080.").seen_count == 2
        assert mem.remember("Deploy on Fridays.", id="deploy").version == 1
        assert mem.remember("The code is 4711.", id="code", sensitive=True).version == 1
        assert mem.remember("May has begun.", id="may", created_at=MAY).version == 1
        with pytest.raises(Conflict):
            mem.remember("May has begun.", id="may")


def test_a_row_without_untimed_counts_its_time_and_another_time_of_one_that_has_it_is_seen(tmp_path: Path) -> None:
    with semmem.connect(f"sqlite:{tmp_path}/one.db", embedder="none") as mem:
        row: dict[str, Any] = {"id": "a", "namespace": "default", "text": "Tea.", "version": 3, "importance": 0.5}
        rows = [{**row, "created_at": MAY.isoformat()}, {**row, "id": "b", "created_at": MAY.isoformat()}]
        mem.import_items([rows[0], {**rows[1], "untimed": True}])
        assert mem.remember("Tea.", id="b").version == 1
        with pytest.raises(Conflict):
            mem.remember("Tea.", id="a")
        later = {**rows[1], "untimed": True, "created_at": "2026-06-01T00:00:00+00:00"}
        assert (
            mem.import_items([later])
            .rejected[0]
            .reason.startswith("The id 'b' is already stored with another created_at;")
        )
        assert mem.import_items([later], owned={"created_after": "2000-01-01"}, replace=True).replaced == 1
        assert mem.get("b").created_at == datetime(2026, 6, 1, tzinfo=UTC)
        assert mem.remember("Tea.", id="b").version == 2
        report = mem.import_items([{**rows[1], "id": "c", "untimed": "yes"}])
        assert report.rejected[0].reason == "untimed must be True or False, not 'yes'."


def test_rows_of_an_export_that_a_file_reader_gives_are_remembered_through_a_server_too(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    with semmem.connect("sqlite::memory:", embedder="none") as mem:
        mem.remember_many([{"id": "a", "text": "Tea."}, {"id": "b", "text": "Milk."}])
        mem.link("a", "see-also", "b")
        written(mem, path)
    with (
        semmem.connect("sqlite::memory:", embedder="none") as mem,
        running(mem) as server,
        semmem.connect(server.url) as there,
    ):
        assert there.remember_many(reader("jsonl")(path)).remembered == 2
