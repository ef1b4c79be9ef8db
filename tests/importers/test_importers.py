"""Chats of other programs as memories: author, session, position and time are set, no bad row is lost in silence."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from semmem.importers import FORMATS, BadRow, moment, reader
from semmem.model.errors import BadItem, InvalidInput
from semmem.model.imported_items import Item, RowError
from tests.interfaces.cli.program import in_process

MAY = datetime(2026, 5, 1, 9, 0, tzinfo=UTC)


def read(format: str, path: Path) -> tuple[list[Item], list[BadRow]]:
    bad: list[BadRow] = []
    return list(reader(format)(path, reject=bad.append)), bad


def lines(path: Path, *rows: Any) -> Path:
    path.write_text("".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


def whole(path: Path, value: Any) -> Path:
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def test_a_message_a_line_becomes_a_memory_a_line(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "talk.jsonl",
        {"role": "user", "content": "Where is the key?", "timestamp": "2026-05-01T09:00:00Z"},
        {"role": "assistant", "content": "Behind the radio.", "timestamp": "2026-05-01T09:01:00Z"},
    )
    items, bad = read("chat", path)
    assert bad == []
    assert items == [
        {"text": "Where is the key?", "id": "talk:0", "author": "user", "session": "talk", "position": 0,
         "created_at": MAY, "source_type": "user"},
        {"text": "Behind the radio.", "id": "talk:1", "author": "assistant", "session": "talk", "position": 1,
         "created_at": MAY.replace(minute=1), "source_type": "agent"},
    ]  # fmt: skip
    assert [item.where for item in items] == ["line 1", "line 2"]


def test_the_fields_have_other_names_elsewhere(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "talk.jsonl",
        {"author": "Ada", "text": "One.", "session": "s1", "id": "x1"},
        {"speaker": "Bo", "message": "Two.", "conversation_id": 7, "created_at": 1777626000},
        {"name": "Cy", "role": "user", "content": "Three.", "thread_id": "t", "ts": 1777626000000},
        {"author": {"role": "tool", "name": "search"}, "content": "Four.", "session": "s1"},
        {"type": "user", "message": {"role": "user", "content": "Five."}, "session": "s1"},
    )
    items, bad = read("chat", path)
    assert bad == []
    assert [(i["id"], i["author"], i["session"], i["position"], i["text"]) for i in items] == [
        ("x1", "Ada", "s1", 0, "One."),
        ("7:0", "Bo", "7", 0, "Two."),
        ("t:0", "Cy", "t", 0, "Three."),
        ("s1:1", "search", "s1", 1, "Four."),
        ("s1:2", "user", "s1", 2, "Five."),
    ]
    assert [i.get("created_at") for i in items] == [None, MAY, MAY, None, None]  # 1777626000 s = 2026-05-01T09:00Z


def test_the_text_of_content_parts_is_joined_and_the_rest_is_passed_over(tmp_path: Path) -> None:
    openai = {
        "role": "user",
        "content": [
            {"type": "text", "text": "What is this?"},
            {"type": "image_url", "image_url": {"url": "data:x"}},
            {"type": "input_text", "text": "And that?"},
        ],
    }
    anthropic = {
        "role": "assistant",
        "content": [
            {"type": "text", "text": "I look it up."},
            {"type": "tool_use", "id": "t1", "name": "look", "input": {}},
        ],
    }
    items, bad = read("chat", whole(tmp_path / "talk.json", [openai, anthropic]))
    assert bad == []
    assert [item["text"] for item in items] == ["What is this?\n\nAnd that?", "I look it up."]
    assert [item.where for item in items] == ["message 1", "message 2"]


def test_text_that_was_pasted_into_a_message_is_part_of_it(tmp_path: Path) -> None:
    pasted = {"file_name": "paste.txt", "extracted_content": "The launch is in Oslo."}
    path = whole(
        tmp_path / "conversations.json",
        [
            {
                "uuid": "c1",
                "chat_messages": [
                    {
                        "uuid": "m1",
                        "sender": "human",
                        "text": "Review.",
                        "attachments": [pasted, {"file_name": "a.png"}],
                    },
                    {"uuid": "m2", "sender": "human", "content": [], "text": "", "attachments": [pasted]},
                    {"uuid": "m3", "sender": "human", "text": "Again.", "attachments": "none"},
                ],
            }
        ],
    )
    items, bad = read("chat", path)
    assert bad == []
    assert [item["text"] for item in items] == [
        "Review.\n\nThe launch is in Oslo.", "The launch is in Oslo.", "Again.",
    ]  # fmt: skip


def test_conversations_come_one_a_line_or_in_one_value(tmp_path: Path) -> None:
    talk = {"messages": [{"role": "user", "content": "Hello."}, {"role": "assistant", "content": "Hello!"}]}
    named = {"id": "c9", "date": "2026-05-01T09:00", **talk}
    items, bad = read("chat", lines(tmp_path / "many.jsonl", talk, named))
    assert bad == []
    assert [(i.where, i["id"], i["session"]) for i in items] == [
        ("line 1, message 1", "many:1:0", "many:1"),
        ("line 1, message 2", "many:1:1", "many:1"),
        ("line 2, message 1", "c9:0", "c9"),
        ("line 2, message 2", "c9:1", "c9"),
    ]
    assert [i.get("created_at") for i in items] == [None, None, MAY, MAY]
    assert [i["id"] for i in read("chat", whole(tmp_path / "talk.json", talk))[0]] == ["talk:0", "talk:1"]
    assert [i["id"] for i in read("chat", whole(tmp_path / "all.json", [named]))[0]] == ["c9:0", "c9:1"]


def test_a_message_without_a_time_has_that_of_the_one_before_it(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "talk.jsonl",
        {"role": "user", "content": "One.", "timestamp": "2026-05-01T09:00:00Z"},
        {"role": "assistant", "content": "Two."},
        {"role": "user", "content": "Elsewhere.", "session": "other"},
    )
    assert [item.get("created_at") for item in read("chat", path)[0]] == [MAY, MAY, None]


def test_bad_rows_are_told_by_line_and_keep_their_place(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "talk.jsonl",
        {"role": "user", "content": "One."},
        "not json",
        {"role": "user"},
        {"role": "user", "content": [{"type": "image"}, {"type": "tool_use"}]},
        [1],
        {"role": "user", "content": "When?", "timestamp": "yesterday"},
        {"messages": "none"},
        {"role": "user", "content": "Last."},
    )
    items, bad = read("chat", path)
    assert [(row.where, row.reason) for row in bad] == [
        ("line 2", "it is not JSON."),
        ("line 3", "it holds no text."),
        ("line 4", "it holds no text, only image, tool_use."),
        ("line 5", "it is list, not a message."),
        ("line 6", "'yesterday' is not a time (ISO 8601, such as 2026-03-01T09:00)."),
        ("line 7", "its messages are str, not a list."),
    ]
    assert [(item["id"], item["text"]) for item in items] == [("talk:0", "One."), ("talk:4", "Last.")]


def test_a_line_that_is_not_utf8_is_told_and_a_mark_at_the_start_is_none(tmp_path: Path) -> None:
    path = tmp_path / "talk.jsonl"
    path.write_bytes(
        b'\xef\xbb\xbf{"role": "user", "content": "One."}\n\xff\xfe\n\n{"role": "user", "content": "Two."}\n'
    )
    items, bad = read("chat", path)
    assert [item.where for item in items] == ["line 1", "line 4"]
    assert bad == [BadRow("line 2", "it is not UTF-8 (byte 0 of the line).")]


def test_without_anybody_to_tell_a_bad_row_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BadItem, match="line 1: it holds no text"):
        list(reader("chat")(lines(tmp_path / "talk.jsonl", {"role": "user"})))


def locomo() -> list[dict[str, Any]]:
    """Return an invented conversation in LoCoMo's form."""
    turns = [
        {"speaker": "Ada", "dia_id": "D1:1", "text": "I found a boat."},
        {"speaker": "Bo", "dia_id": "D1:2", "text": "Show me!", "blip_caption": "a red boat"},
    ]
    later = [{"speaker": "Ada", "dia_id": "D2:1", "text": "It sank."}, {"speaker": "Bo", "dia_id": "D2:2", "text": " "}]
    dates = {"session_1_date_time": "1:56 pm on 8 May, 2023", "session_10_date_time": "9:00 am on 9 May, 2023"}
    talk = {"speaker_a": "Ada", "speaker_b": "Bo", "session_1": turns, "session_10": later, **dates}
    return [{"sample_id": "conv-1", "conversation": talk, "qa": []}]


def test_locomos_file_gives_its_turns_with_their_session_and_date(tmp_path: Path) -> None:
    items, bad = read("locomo", whole(tmp_path / "locomo.json", locomo()))
    assert items == [
        {"text": "I found a boat.", "id": "conv-1:D1:1", "author": "Ada", "session": "conv-1:1", "position": 0,
         "created_at": datetime(2023, 5, 8, 13, 56, tzinfo=UTC)},
        {"text": "Show me! [a red boat]", "id": "conv-1:D1:2", "author": "Bo", "session": "conv-1:1", "position": 1,
         "created_at": datetime(2023, 5, 8, 13, 56, tzinfo=UTC)},
        {"text": "It sank.", "id": "conv-1:D2:1", "author": "Ada", "session": "conv-1:10", "position": 0,
         "created_at": datetime(2023, 5, 9, 9, 0, tzinfo=UTC)},
    ]  # fmt: skip
    assert bad == [BadRow("conversation 1 (conv-1), session 10, turn 2", "it holds no text.")]


def test_locomos_turns_may_be_rows_and_count_in_their_session(tmp_path: Path) -> None:
    turn = {"conv": "c1", "session": 2, "date_time": "1:56 pm on 8 May, 2023", "speaker": "Ada"}
    rows = [
        {**turn, "dia_id": "D2:1", "text": "One."},
        {**turn, "dia_id": "D2:2", "text": "Two.", "blip_caption": "a boat", "img_query": "boat"},
        {**turn, "session": 3, "dia_id": "D3:1", "text": "Three."},
        {**turn, "dia_id": "D2:3", "text": " "},
        {**turn, "dia_id": "D2:4", "text": "Five.", "date_time": "yesterday"},
        {"dia_id": "D2:5", "text": "Six."},
    ]
    items, bad = read("locomo", lines(tmp_path / "documents.jsonl", *rows))
    assert [(i["id"], i["session"], i["position"], i["text"]) for i in items] == [
        ("c1:D2:1", "c1:2", 0, "One."),
        ("c1:D2:2", "c1:2", 1, "Two. [a boat]"),
        ("c1:D3:1", "c1:3", 0, "Three."),
    ]
    assert {i["created_at"] for i in items} == {datetime(2023, 5, 8, 13, 56, tzinfo=UTC)}
    assert [(row.where, row.reason) for row in bad] == [
        ("line 4", "it holds no text."),
        ("line 5", "'yesterday' is not a time (I:M p on d B, Y)."),
        ("line 6", "it is not an object with 'conv', 'session' and 'date_time'."),
    ]


def test_locomos_turns_without_an_id_are_numbered_from_1_in_their_session(tmp_path: Path) -> None:
    turns = [{"speaker": "Ada", "text": "One."}, {"speaker": "Bo", "text": "Two."}]
    talk = {"speaker_a": "Ada", "speaker_b": "Bo", "session_4": turns, "session_4_date_time": "1:56 pm on 8 May, 2023"}
    items, bad = read("locomo", whole(tmp_path / "locomo.json", [{"sample_id": "c1", "conversation": talk, "qa": []}]))
    assert ([item["id"] for item in items], bad) == (["c1:D4:1", "c1:D4:2"], [])


def test_an_id_that_is_a_number_is_its_digits_and_true_is_no_number(tmp_path: Path) -> None:
    rows = [{"id": 7, "session": 0, "text": "One."}, {"id": "7", "text": "Two."}, {"id": True, "text": "Three."}]
    items, bad = read("jsonl", lines(tmp_path / "notes.jsonl", *rows))
    assert bad == []
    assert [(item["id"], item.get("session")) for item in items] == [("7", "0"), ("7", None), (True, None)]


def test_longmemevals_file_gives_each_session_once(tmp_path: Path) -> None:
    turns = [{"role": "user", "content": "I moved."}, {"role": "assistant", "content": "Where to?"}]
    question = {
        "haystack_sessions": [turns, [{"role": "user"}]],
        "haystack_session_ids": ["a", "b"],
        "haystack_dates": ["2023/05/30 (Tue) 21:48", "2023/05/31 (Wed) 08:00"],
    }
    other = {**question, "haystack_session_ids": ["b", "a"]}
    items, bad = read("longmemeval", whole(tmp_path / "mini.json", [question, other, {"haystack_sessions": [turns]}]))
    assert [(i["id"], i["author"], i["session"], i["position"], i["text"]) for i in items] == [
        ("a:0", "user", "a", 0, "I moved."),
        ("a:1", "assistant", "a", 1, "Where to?"),
    ]
    assert {i["created_at"] for i in items} == {datetime(2023, 5, 30, 21, 48, tzinfo=UTC)}
    assert [(row.where, row.reason) for row in bad] == [
        ("question 1, session 2, turn 1", "it holds no text."),
        ("question 2, session 1", "the session 'b' was met before with other turns."),
        ("question 2, session 2", "the session 'a' was met before with other turns."),
        ("question 3", "it has no lists haystack_sessions, haystack_session_ids, haystack_dates of one length."),
    ]


def test_longmemevals_sessions_may_be_rows(tmp_path: Path) -> None:
    row = {"id": "s0", "date": "2023/05/30 (Tue) 21:48", "turns": [{"role": "user", "content": "I moved."}]}
    items, bad = read("longmemeval", lines(tmp_path / "rows.jsonl", row, row, {"id": "s1"}))
    assert [item["id"] for item in items] == ["s0:0"]
    assert bad == [BadRow("line 3", "it is not an object with 'id' and 'turns'.")]


@pytest.mark.parametrize("format", ["locomo", "longmemeval"])
def test_a_file_of_another_form_is_refused_in_a_sentence(tmp_path: Path, format: str) -> None:
    with pytest.raises(InvalidInput, match="file: that is a list of objects with"):
        read(format, whole(tmp_path / "other.json", [{"text": "One."}]))
    (tmp_path / "broken.json").write_text("{", encoding="utf-8")
    with pytest.raises(InvalidInput, match="is not JSON"):
        read(format, tmp_path / "broken.json")


def test_the_mcp_memory_server_gives_a_memory_an_observation_and_one_a_relation(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "memory.jsonl",
        {"type": "entity", "name": "Petra_Lindqvist", "entityType": "person", "observations": ["Born in 1980.", ""]},
        {"type": "entity", "name": "Kestrel", "entityType": "dataLogger", "observations": []},
        {"type": "relation", "from": "Petra_Lindqvist", "to": "Kestrel", "relationType": "hasDesigned"},
        {"type": "relation", "from": "Petra_Lindqvist", "to": "Kestrel"},
        {"type": "thing"},
        {"type": "entity", "name": "X", "observations": "one"},
    )
    items, bad = read("mcp", path)
    who, what = {"entity": "Petra_Lindqvist"}, {"from": "Petra_Lindqvist", "to": "Kestrel", "type": "hasDesigned"}
    assert [{key: value for key, value in item.items() if key != "id"} for item in items] == [
        {"text": "Born in 1980.", "title": "Petra Lindqvist", "tags": ["person"], "metadata": who},
        {"text": "Kestrel: data Logger", "title": "Kestrel", "tags": ["dataLogger"], "metadata": {"entity": "Kestrel"}},
        {"text": "Petra Lindqvist has Designed Kestrel", "metadata": {"relation": what}},
    ]
    assert [item["id"] for item in items[1:]] == ["Kestrel", "Petra_Lindqvist|hasDesigned|Kestrel"]
    assert items[0]["id"].startswith("Petra_Lindqvist:")
    assert [item["id"] for item in read("mcp", path)[0]] == [item["id"] for item in items]
    assert [(row.where, row.reason) for row in bad] == [
        ("line 1, observation 2", "it holds no text."),
        ("line 4", "its 'relationType' is no name."),
        ("line 5", 'it is not an object with "type" entity or relation.'),
        ("line 6", "its observations are str, not a list."),
    ]


def test_mem0s_memories_keep_their_ids_users_runs_and_times(tmp_path: Path) -> None:
    rows = [
        {"id": "m1", "memory": "Likes rye.", "user_id": "ada", "run_id": "r1", "categories": ["food"],
         "metadata": {"source": "chat"}, "created_at": "2026-05-01T02:00:00-07:00", "updated_at": None, "hash": "x"},
        {"id": "m2", "memory": "Answers in rhyme.", "agent_id": "bot", "metadata": None},
        {"id": "m3", "memory": " "},
        {"memory": "Nameless."},
        7,
    ]  # fmt: skip
    items, bad = read("mem0", whole(tmp_path / "mem0.json", {"results": rows}))
    assert items == [
        {"text": "Likes rye.", "id": "m1", "author": "ada", "session": "r1", "tags": ["food"],
         "metadata": {"source": "chat", "user_id": "ada"}, "created_at": MAY},
        {"text": "Answers in rhyme.", "id": "m2", "author": "bot", "metadata": {"agent_id": "bot"}},
    ]  # fmt: skip
    assert [(row.where, row.reason) for row in bad] == [
        ("memory 3", "it holds no text."), ("memory 4", "it has no id."), ("memory 5", "it is int, not a memory."),
    ]  # fmt: skip
    assert read("mem0", whole(tmp_path / "list.json", rows))[0] == items
    assert read("mem0", lines(tmp_path / "rows.jsonl", *rows))[0] == items
    with pytest.raises(InvalidInput, match="is not an export of mem0"):
        read("mem0", whole(tmp_path / "other.json", {"text": "One."}))


def test_what_the_command_line_offers_is_what_can_be_read(capfd: pytest.CaptureFixture[str]) -> None:
    code, _, told = in_process(capfd)("import", "telegram", "x.json")
    assert code == 2
    assert told.startswith("There is no importer for 'telegram'; choose one of chat, chatgpt, csv, documents, git")
    assert all(reader(format) for format in FORMATS)
    with pytest.raises(InvalidInput, match="choose one of chat, chatgpt, csv, documents, git"):
        reader("telegram")


def test_a_number_is_a_time_in_seconds_and_in_milliseconds_from_100_000_000_000_on() -> None:
    assert moment(99_999_999_999) == datetime(5138, 11, 16, 9, 46, 39, tzinfo=UTC)
    assert moment(100_000_000_000) == datetime(1973, 3, 3, 9, 46, 40, tzinfo=UTC)


def test_a_number_in_text_is_the_time_that_the_number_is() -> None:
    assert moment("1777626000") == moment("1777626000000") == moment(1777626000) == MAY
    assert moment("1777626000.000100") == MAY.replace(microsecond=100)
    assert moment("20260501T090000") == moment("2026-05-01 09:00") == MAY
    for day_and_time in ("20260501090000", "202605010900"):
        with pytest.raises(RowError, match=rf"'{day_and_time}' is not a time"):
            moment(day_and_time)


def test_a_chat_with_times_in_milliseconds_as_text_is_of_2024_and_not_of_1712(tmp_path: Path) -> None:
    items, bad = read("chat", lines(tmp_path / "t.jsonl", {"role": "user", "content": "One.", "ts": "1712100512345"}))
    assert (bad, items[0]["created_at"]) == ([], datetime(2024, 4, 2, 23, 28, 32, 345_000, tzinfo=UTC))


def test_the_formats_whose_memories_name_their_file_are_these() -> None:
    marked = {name for name, format in FORMATS.items() if format.marked}
    assert marked == {"chat", "chatgpt", "csv", "documents", "jsonl"}
