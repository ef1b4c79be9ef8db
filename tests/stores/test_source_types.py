"""The source type of a memory, user, agent, tool or imported, over every store there is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import semmem
from semmem.client.memory import Semmem
from semmem.importers import reader
from semmem.model.errors import Conflict, InvalidInput
from semmem.stores.sql_files import migrations
from tests.stores.sqlite.older import written_at


def types(mem: Semmem, namespace: str = "default") -> dict[str, str | None]:
    return {memory.id: memory.source_type for memory in mem.list(namespace=namespace)}


def four(mem: Semmem) -> None:
    """Remember one memory of each source type, and one without."""
    for name in ("user", "agent", "tool", "imported"):
        mem.remember(f"The kettle of the {name} stands on the stove.", id=name, source_type=name)
    mem.remember("The kettle of nobody stands on the stove.", id="unset")


def test_a_source_type_is_stored_updated_and_kept_in_the_history(mem: Semmem) -> None:
    assert mem.remember("Tea at four.", id="a", source_type="tool").source_type == "tool"
    assert mem.remember("Rum at five.", id="b").source_type is None
    assert mem.update("a", text="Tea at five.").source_type == "tool"
    assert mem.update("a", source_type="user").source_type == "user"
    assert mem.update("a", source_type=None).source_type is None
    found = mem.history("a")
    assert [one.memory.source_type for one in found] == ["tool", "tool", "user", None]
    assert [one.changed for one in found] == [(), ("text",), ("source_type",), ("source_type",)]
    mem.update("a", source_type="agent")
    mem.forget("a")
    assert mem.restore_memory("a").source_type == "agent"


def test_as_of_an_earlier_time_a_memory_has_the_source_type_of_then(mem: Semmem) -> None:
    first = mem.remember("The kettle stands on the stove.", id="a", source_type="tool")
    mem.update("a", text="The kettle stands on the shelf.", source_type="user")
    at = first.updated_at
    assert at is not None
    assert mem.get("a", as_of=at).source_type == "tool"
    assert [hit.source_type for hit in mem.recall("kettle", as_of=at)] == ["tool"]
    assert [hit.id for hit in mem.recall("kettle", as_of=at, filters={"source_types": "tool"})] == ["a"]
    assert not mem.recall("kettle", as_of=at, filters={"source_types": "user"})


def test_recall_list_export_and_forget_are_narrowed_to_source_types(mem: Semmem) -> None:
    four(mem)
    some = {"source_types": ["user", "agent"]}
    assert {hit.id for hit in mem.recall("kettle stove", filters=some)} == {"user", "agent"}
    assert {memory.id for memory in mem.list(filters=some)} == {"user", "agent"}
    assert {row["id"]: row["source_type"] for row in mem.export(filters=some)} == {"user": "user", "agent": "agent"}
    assert mem.recall("kettle of the tool")[0].as_dict()["source_type"] == "tool"
    assert mem.forget(filters={"source_types": "tool"}) == 1
    assert types(mem) == {"user": "user", "agent": "agent", "imported": "imported", "unset": None}


def test_an_unknown_source_type_is_refused_with_the_four_that_there_are(mem: Semmem) -> None:
    words = 'must be "user", "agent", "tool" or "imported", not \'web\''
    with pytest.raises(InvalidInput, match=f"^source_type {words}"):
        mem.remember("Tea.", source_type="web")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match=f"^The filter source_types {words}"):
        mem.list(filters={"source_types": ["web"]})  # type: ignore[typeddict-item]
    assert not mem.list()


def test_the_same_text_of_another_source_type_is_another_memory(mem: Semmem) -> None:
    said = mem.remember("Tea at four.", source_type="user")
    found = mem.remember("Tea at four.", source_type="tool")
    assert said.id != found.id
    assert mem.remember("Tea at four.", source_type="user").id == said.id
    with pytest.raises(Conflict):
        mem.remember("Tea at four.", id=said.id, source_type="tool")


def test_an_export_brings_the_source_types_back_as_they_were(mem: Semmem, tmp_path: Path) -> None:
    four(mem)
    rows = list(mem.export())
    file = tmp_path / "memories.jsonl"
    file.write_text("".join(json.dumps({**row, "namespace": "other"}) + "\n" for row in rows))
    mem.import_items(reader("jsonl")(file), namespace="other")
    assert types(mem, "other") == types(mem)
    mem.import_items([{**row, "namespace": "rows"} for row in rows], namespace="rows")
    assert types(mem, "rows") == types(mem)
    mem.copy_namespace("default", "copied")
    assert types(mem, "copied") == types(mem)


def test_what_is_brought_in_is_imported_and_a_chat_goes_by_its_roles(mem: Semmem, tmp_path: Path) -> None:
    mem.import_items([{"id": "a", "text": "Tea."}, {"id": "b", "text": "Rum.", "source_type": "user"}])
    assert types(mem) == {"a": "imported", "b": "user"}
    roles = ["user", "assistant", "tool", "system"]
    file = tmp_path / "talk.json"
    file.write_text(json.dumps([{"role": role, "content": f"The {role} speaks."} for role in roles]))
    mem.import_items(reader("chat")(file), namespace="chat")
    expected = {"talk:0": "user", "talk:1": "agent", "talk:2": "tool", "talk:3": "imported"}
    assert types(mem, "chat") == expected
    file.write_text(json.dumps([{"chat_messages": [{"sender": "human", "text": "Tea?"}]}]))
    assert [item["source_type"] for item in reader("chat")(file)] == ["user"]
    messages = [{"role": role, "name": "Bo", "content": f"The {role} speaks."} for role in roles]
    mem.remember_messages(messages, session="s", namespace="messages", position=0)
    assert types(mem, "messages") == {"s:0": "user", "s:1": "agent", "s:2": "tool", "s:3": None}


def test_a_table_names_source_types_and_a_note_cannot(mem: Semmem, tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("id,text,source_type\na,Tea.,user\nb,Rum.,\n")
    mem.import_items(reader("csv")(table))
    assert types(mem) == {"a": "user", "b": "imported"}
    vault = tmp_path / "vault"
    vault.mkdir()
    (vault / "n.md").write_text("---\nsource_type: user\n---\nObey.\n")
    mem.import_items(reader("markdown")(vault), namespace="notes")
    assert types(mem, "notes") == {"n.md": "imported"}


def test_an_import_without_source_types_marks_new_memories_and_leaves_stored_ones_as_they_are(mem: Semmem) -> None:
    mem.remember("Tea.", id="a", author="Ada")
    item = {"id": "a", "text": "Tea.", "author": "Ada"}
    report = mem.import_items([item])
    assert (report.unchanged, report.rejected, mem.get("a").source_type) == (1, (), None)
    mem.remember("Rum.", id="b", author="Ada", source_type="agent")
    assert mem.import_items([{"id": "b", "text": "Rum.", "author": "Ada"}]).unchanged == 1
    assert mem.get("b").source_type == "agent"
    report = mem.import_items([item], owned={"authors": "Ada"}, replace=True)
    assert (report.unchanged, mem.get("a").source_type) == (1, None)
    report = mem.import_items(
        [{**item, "text": "Gin."}, {"text": "Milk.", "id": "c"}], owned={"authors": "Ada"}, replace=True
    )
    assert (report.replaced, types(mem)) == (1, {"a": None, "b": "agent", "c": "imported"})


def test_the_block_for_a_prompt_says_who_each_memory_comes_from(mem: Semmem) -> None:
    mem.remember("The kettle is poisoned, call 555.", id="page", source_type="tool", pinned=True)
    mem.remember("The kettle stands on the stove.", id="said", source_type="user")
    mem.remember("A kettle whistles.", id="unset")
    text = mem.context("kettle").text
    shown = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    assert {one["id"]: one.get("source_type") for one in shown} == {"page": "tool", "said": "user", "unset": None}


def test_a_file_of_a_schema_without_source_types_comes_over(tmp_path: Path) -> None:
    with semmem.connect(f"sqlite://{tmp_path}/newest.db") as mem:
        mem.remember("Tea at four.", id="a")
    number = next(number for number, _, statements in migrations("sqlite") if "source_type" in statements)
    written_at(number - 1, tmp_path / "newest.db", tmp_path / "notes.db")
    with semmem.connect(f"sqlite://{tmp_path}/notes.db") as mem:
        assert mem.get("a").source_type is None
        assert mem.update("a", source_type="user").source_type == "user"
        assert mem.remember("Tea at four.", id="b").source_type is None
