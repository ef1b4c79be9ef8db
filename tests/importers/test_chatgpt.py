"""ChatGPT's conversations.json: the branch on show becomes memories, and nothing odd is lost in silence."""

from __future__ import annotations

import json
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from semmem.importers import BadRow, reader
from semmem.model.errors import InvalidInput
from semmem.model.imported_items import Item
from tests.interfaces.cli.program import Call, in_process

NINE = datetime(2026, 5, 1, 9, 0, tzinfo=UTC)
SECONDS = 1777626000  # NINE


def node(
    name: str, parent: str | None, role: str | None = None, content: Any = None, at: float | None = None, **more: Any
) -> tuple[str, dict[str, Any]]:
    """Return a node of a tree; without a role it has no message, as the root of each conversation."""
    said = content if isinstance(content, dict) else {"content_type": "text", "parts": [content]}
    author = {"role": role, "name": more.pop("by", None), "metadata": {}}
    message = {"id": name, "author": author, "create_time": at, "content": said, "weight": 1.0, **more}
    return name, {"id": name, "message": message if role else None, "parent": parent, "children": []}


def conversation(*nodes: tuple[str, dict[str, Any]], current: str | None, **more: Any) -> dict[str, Any]:
    return {
        "title": "The boat", "create_time": SECONDS, "mapping": dict(nodes), "current_node": current,
        "conversation_id": "c1", **more,
    }  # fmt: skip


HIDDEN = {"metadata": {"is_visually_hidden_from_conversation": True}}
BOAT = conversation(
    node("root", None),
    node("sys", "root", "system", "", **HIDDEN),
    node("ctx", "sys", "user", {"content_type": "user_editable_context", "user_profile": "I sail."}, **HIDDEN),
    node("u1", "ctx", "user", "Where is the boat?", SECONDS),
    node("old", "u1", "assistant", "In Kiel.", SECONDS + 30),
    node("a1", "u1", "assistant", "In \ue200cite\ue202turn0search0\ue201Bergen.", SECONDS + 60),
    node("think", "a1", "assistant", {"content_type": "thoughts", "thoughts": [{"content": "Hm."}]}),
    node("code", "think", "assistant", {"content_type": "code", "language": "python", "text": "print(7)"},
         recipient="python"),
    node("out", "code", "tool", {"content_type": "execution_output", "text": "7"}, SECONDS + 120, by="python"),
    node("u2", "out", "user", {"content_type": "multimodal_text", "parts": [
        {"content_type": "image_asset_pointer", "asset_pointer": "file-service://x"}, "Is this her?"]}, SECONDS + 180),
    current="u2",
)  # fmt: skip


def export(folder: Path, *conversations: Any) -> Path:
    path = folder / "conversations.json"
    path.write_text(json.dumps(list(conversations)), encoding="utf-8")
    return path


def read(path: Path) -> tuple[list[Item], list[BadRow]]:
    bad: list[BadRow] = []
    return list(reader("chatgpt")(path, reject=bad.append)), bad


def test_the_branch_that_ends_at_the_current_node_becomes_memories(tmp_path: Path) -> None:
    items, bad = read(export(tmp_path, BOAT))
    assert bad == []
    assert [
        (i["id"], i["author"], i["source_type"], i["position"], i["created_at"].minute, i["text"]) for i in items
    ] == [
        ("c1:u1", "user", "user", 0, 0, "Where is the boat?"),
        ("c1:a1", "assistant", "agent", 1, 1, "In Bergen."),
        ("c1:code", "assistant", "agent", 2, 1, "print(7)"),
        ("c1:out", "python", "tool", 3, 2, "7"),
        ("c1:u2", "user", "user", 4, 3, "Is this her?"),
    ]
    assert items[0]["created_at"] == NINE
    assert {i["session"] for i in items} == {"c1"}
    assert items[0]["metadata"] == {"conversation": "c1", "conversation_title": "The boat"}
    assert [i.where for i in items][:2] == ["conversation 1, message 1", "conversation 1, message 2"]


def test_odd_nodes_are_reported_by_their_place_and_the_others_are_read(tmp_path: Path) -> None:
    image = {"content_type": "multimodal_text", "parts": [{"content_type": "image_asset_pointer"}]}
    odd = conversation(
        node("a", "gone", "user", "One."),
        node("b", "a", "user", image),
        ("c", {"id": "c", "message": "no", "parent": "b"}),
        node("d", "c", "user", "Two.", "soon"),  # type: ignore[arg-type]  # a wrong time
        node("e", "d", "user", "Three."),
        current="e",
    )
    circle = conversation(node("x", "y", "user", "Four."), node("y", "x", "user", "Five."), current="y", id="c2")
    lost = conversation(node("z", None, "user", "Six."), current="elsewhere")
    items, bad = read(export(tmp_path, odd, circle, lost, {"title": "none"}, 7))
    assert [i["text"] for i in items] == ["One.", "Three.", "Four.", "Five."]
    assert [(row.where, row.reason) for row in bad] == [
        ("conversation 1, node a", "the node above it, 'gone', is not under 'mapping'."),
        ("conversation 1, node c", "its message is str, not an object."),
        ("conversation 1, message 2", "it holds no text, only image_asset_pointer."),
        ("conversation 1, message 3", "'soon' is not a time (ISO 8601, such as 2026-03-01T09:00)."),
        ("conversation 2, node x", "its parent comes after it; the messages above are left out."),
        ("conversation 3, node current_node", "the node above it, 'elsewhere', is not under 'mapping'."),
        ("conversation 4", "it has no messages under 'mapping'."),
        ("conversation 5", "it has no messages under 'mapping'."),
    ]


def test_without_a_current_node_the_newest_message_ends_the_branch(tmp_path: Path) -> None:
    items, _ = read(export(tmp_path, {**BOAT, "current_node": None}))
    assert [i["id"] for i in items][-1] == "c1:u2"


def test_another_file_is_refused_with_the_format_that_reads_it(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="no conversation with 'mapping'; import chat reads other chats"):
        read(export(tmp_path, {"role": "user", "content": "One."}))
    with pytest.raises(InvalidInput, match="is an export of ChatGPT; use: semmem import chatgpt"):
        list(reader("chat")(export(tmp_path, BOAT)))
    with zipfile.ZipFile(tmp_path / "export.zip", "w") as archive:
        archive.write(tmp_path / "conversations.json")
    with pytest.raises(InvalidInput, match=r"export.zip is a ZIP archive; unpack it, and name the file in it\.$"):
        read(tmp_path / "export.zip")


def test_a_second_import_stores_only_what_was_said_since(
    capfd: pytest.CaptureFixture[str], store_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SEMMEM_URL", store_url)
    monkeypatch.setenv("SEMMEM_EMBEDDER", "none")
    call: Call = in_process(capfd)

    def told() -> tuple[int, int, int]:
        found = json.loads(call("import", "chatgpt", str(tmp_path / "conversations.json"), "-n", "gpt", "--json")[1])
        return found["remembered"], found["unchanged"], len(found["rejected"])

    export(tmp_path, BOAT)
    assert told() == (5, 0, 0)
    assert told() == (0, 5, 0)
    name, last = node("a2", "u2", "assistant", "Yes.", SECONDS + 240)
    export(tmp_path, {**BOAT, "mapping": {**BOAT["mapping"], name: last}, "current_node": "a2"})
    assert told() == (1, 5, 0)


def test_with_branches_every_message_of_the_tree_is_read_once(tmp_path: Path) -> None:
    edited = node("u0", "ctx", "user", "Where is the ship?", SECONDS - 60)
    reply = node("a0", "u0", "assistant", "In Oslo.", SECONDS - 30)
    tree = {**BOAT, "mapping": {**BOAT["mapping"], **dict([edited, reply])}}
    path = export(tmp_path, tree)
    bad: list[BadRow] = []
    items = list(reader("chatgpt")(path, reject=bad.append, branches=True))
    assert [i["id"] for i in items[:5]] == [i["id"] for i in read(path)[0]]
    assert [(i["id"], i["position"], i["text"], i["metadata"]["branch"]) for i in items[5:]] == [
        ("c1:u0", 0, "Where is the ship?", "other"),
        ("c1:a0", 1, "In Oslo.", "other"),
        ("c1:old", 1, "In Kiel.", "other"),
    ]
    assert bad == []


def test_branches_are_an_option_of_chatgpt_alone(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    program: Call = in_process(capfd)
    code, _, err = program("import", "chat", str(export(tmp_path, BOAT)), "--branches")
    assert (code, err) == (2, "--branches is an option of import chatgpt, not of import chat.\n")
