"""Anthropic's memory tool over a namespace: the commands, what they refuse, and their own runner's class."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

import semmem
from semmem.interfaces.claude_memory import MemoryFiles, memory_tool


@pytest.fixture
def mem() -> Iterator[semmem.Semmem]:
    with semmem.connect("sqlite::memory:", embedder="none") as opened:
        yield opened


@pytest.fixture
def files(mem: semmem.Semmem) -> MemoryFiles:
    return MemoryFiles(mem)


def refused(files: MemoryFiles, **command: object) -> str:
    answer, wrong = files.run(command)
    assert wrong
    return answer


def test_a_file_is_created_viewed_edited_renamed_and_deleted(files: MemoryFiles) -> None:
    path = "/memories/notes/ferry.md"
    assert files.run({"command": "create", "path": path, "file_text": "Leaves at nine.\nPier 4.\n"}) == (
        f"File created successfully at: {path}",
        False,
    )
    assert (
        files.view(path) == f"Here's the content of {path} with line numbers:\n     1\tLeaves at nine.\n     2\tPier 4."
    )
    assert files.view(path, [2, -1]).endswith("numbers:\n     2\tPier 4.")
    assert files.str_replace(path, "nine", "ten").endswith(
        "(with line numbers):\n     1\tLeaves at ten.\n     2\tPier 4.\n     3\t"
    )
    assert files.insert(path, 1, "Not on Sundays.\n") == f"The file {path} has been edited."
    assert files.view(path).split("\n")[1:] == ["     1\tLeaves at ten.", "     2\tNot on Sundays.", "     3\tPier 4."]
    assert files.rename(path, "/memories/boat.md") == f"Successfully renamed {path} to /memories/boat.md"
    assert files.view("/memories").split("\n")[1:] == ["39B\t/memories", "39B\t/memories/boat.md"]
    assert files.delete("/memories/boat.md") == "Successfully deleted /memories/boat.md"
    assert files.view("/memories").split("\n")[1:] == ["0B\t/memories"]


def test_what_is_in_a_file_can_be_recalled(files: MemoryFiles, mem: semmem.Semmem) -> None:
    files.create("/memories/a.md", "The ferry to Porto leaves at nine.")
    assert [hit.memory.id for hit in mem.recall("ferry", namespace="claude")] == ["/memories/a.md"]


@pytest.mark.parametrize("text", ["", "\n", "  \n\n"])
def test_a_file_without_words_is_kept_as_it_is(files: MemoryFiles, text: str) -> None:
    files.create("/memories/a.md", text)
    assert files.view("/memories").split("\n")[1] == f"{len(text)}B\t/memories"
    files.insert("/memories/a.md", 0, "Now it has one.")
    assert "     1\tNow it has one." in files.view("/memories/a.md")


def test_a_folder_is_shown_two_levels_deep_with_sizes(files: MemoryFiles) -> None:
    for path in ("/memories/a.md", "/memories/x/b.md", "/memories/x/y/c.md", "/memories/x/y/z/d.md"):
        files.create(path, "12345")
    assert files.view("/memories").split("\n")[1:] == [
        "20B\t/memories", "5B\t/memories/a.md", "15B\t/memories/x/", "5B\t/memories/x/b.md", "10B\t/memories/x/y/",
    ]  # fmt: skip
    assert files.delete("/memories/x/y") == "Successfully deleted /memories/x/y"
    assert files.rename("/memories/x", "/memories/z") == "Successfully renamed /memories/x to /memories/z"
    assert files.view("/memories").split("\n")[1:] == [
        "10B\t/memories", "5B\t/memories/a.md", "5B\t/memories/z/", "5B\t/memories/z/b.md",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ({"command": "view", "path": "/etc/passwd"}, "Path must start with /memories, got: /etc/passwd"),
        ({"command": "view", "path": "/memories/../etc"}, "would escape /memories"),
        ({"command": "view", "path": "/memories/%2e%2e/etc"}, "would escape /memories"),
        ({"command": "view", "path": "/memoriesx"}, "must start with /memories"),
        ({"command": "view", "path": "/memories/no.md"}, "The path /memories/no.md does not exist"),
        ({"command": "view", "path": "/memories/a.md", "view_range": [3, 9]}, "outside the file, which has 2 lines"),
        ({"command": "view", "path": "/memories/a.md", "view_range": [1]}, "must be two line numbers"),
        ({"command": "create", "path": "/memories", "file_text": "x"}, "name a file in it"),
        ({"command": "create", "path": "/memories/a.md", "file_text": "x"}, "File /memories/a.md already exists"),
        ({"command": "create", "path": "/memories/d", "file_text": "x"}, "File /memories/d already exists"),
        ({"command": "str_replace", "path": "/memories/no.md", "old_str": "a", "new_str": "b"}, "does not exist"),
        ({"command": "str_replace", "path": "/memories/a.md", "old_str": "two", "new_str": "b"}, "did not appear"),
        ({"command": "str_replace", "path": "/memories/a.md", "old_str": "one", "new_str": "b"}, "in lines: 1, 2."),
        ({"command": "insert", "path": "/memories/a.md", "insert_line": 3, "insert_text": "x"}, "[0, 2]"),
        ({"command": "insert", "path": "/memories/a.md", "insert_line": -1, "insert_text": "x"}, "[0, 2]"),
        ({"command": "delete", "path": "/memories"}, "Cannot delete the /memories directory itself"),
        ({"command": "delete", "path": "/memories/no"}, "The path /memories/no does not exist"),
        ({"command": "rename", "old_path": "/memories/no", "new_path": "/memories/b"}, "does not exist"),
        ({"command": "rename", "old_path": "/memories/a.md", "new_path": "/memories/d/b"}, "already exists"),
        ({"command": "rename", "old_path": "/memories/d", "new_path": "/memories/d/e"}, "cannot go into itself"),
        ({"command": "dance"}, "The memory tool knows view, create, str_replace, insert, delete, rename."),
        ({"command": "view", "colour": "red"}, "does not take these arguments: colour."),
        ({}, "The memory tool knows"),
        ({"command": "create"}, "create needs path and file_text."),
        ({"command": "create", "path": "/memories/c.md", "file_text": 5}, "file_text must be a string, not int."),
        ({"command": "insert", "path": "/memories/a.md", "insert_line": "1", "insert_text": "x"},
         "insert_line must be a whole number, not str."),
        ({"command": "view", "path": None}, "path must be a string, not NoneType."),
    ],
)  # fmt: skip
def test_what_is_wrong_is_answered_with_a_sentence_and_changes_nothing(
    files: MemoryFiles, mem: semmem.Semmem, command: dict[str, object], sentence: str
) -> None:
    files.create("/memories/a.md", "one\none\n")
    files.create("/memories/d/b", "three")
    before = list(mem.export(namespace="claude"))
    answer = refused(files, **command)
    assert answer.startswith("Error: ")
    assert sentence in answer
    assert list(mem.export(namespace="claude")) == before


@pytest.mark.parametrize(("call", "name"), [(None, "NoneType"), ("view", "str"), ([], "list")])
def test_a_call_that_is_no_object_is_answered_with_a_sentence(files: MemoryFiles, call: Any, name: str) -> None:
    assert files.run(call) == (f"Error: A call of the memory tool is an object with a command, not {name}.", True)


def test_no_file_is_in_a_file(files: MemoryFiles) -> None:
    files.create("/memories/a.txt", "hello")
    files.create("/memories/b.txt", "there")
    said = "Error: /memories/a.txt is a file, so /memories/a.txt/c/b cannot be in it; choose another path."
    assert refused(files, command="create", path="/memories/a.txt/c/b", file_text="x") == said
    assert refused(files, command="rename", old_path="/memories/b.txt", new_path="/memories/a.txt/c/b") == said
    assert files.run({"command": "view", "path": "/memories/b.txt"})[1] is False


@pytest.mark.parametrize("given", [5, "1,2", [1], [True, False], {"first": 1}])
def test_a_range_of_lines_that_is_none_is_answered_with_a_sentence(files: MemoryFiles, given: Any) -> None:
    files.create("/memories/a.txt", "hello")
    said = refused(files, command="view", path="/memories/a.txt", view_range=given)
    assert said == f"Error: view_range must be two line numbers, not {given!r}."
    assert refused(files, command="view", path="/memories/a.txt", view_range=[2, 3]).endswith("which has 1 line.")


def test_edits_of_several_at_once_are_all_there(files: MemoryFiles, mem: semmem.Semmem) -> None:
    files.create("/memories/a.md", "begin\n")
    answers: list[tuple[str, bool]] = []

    def edit(number: int) -> None:
        answers.append(
            files.run(
                {"command": "insert", "path": "/memories/a.md", "insert_line": 1, "insert_text": f"line {number}"}
            )
        )

    threads = [threading.Thread(target=edit, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    done = [number for number, (_, wrong) in enumerate(answers) if not wrong]
    lines = mem.get("/memories/a.md", namespace="claude").text.split("\n")
    assert len([line for line in lines if line.startswith("line ")]) == len(done)  # none is lost, none half there
    assert done


def test_the_class_of_anthropics_own_runner_gives_the_same_answers(mem: semmem.Semmem) -> None:
    pytest.importorskip("anthropic")
    from anthropic.lib.tools import ToolError

    tool = memory_tool(mem)
    assert tool.to_dict() == {"type": "memory_20250818", "name": "memory"}
    assert tool.call({"command": "create", "path": "/memories/a.md", "file_text": "One.\n"}).startswith("File created")
    assert tool.call({"command": "view", "path": "/memories/a.md"}).endswith("     1\tOne.")
    with pytest.raises(ToolError, match="does not exist"):
        tool.call({"command": "view", "path": "/memories/no.md"})
    assert tool.clear_all_memory() == "All memory cleared"
    assert list(mem.list(namespace="claude")) == []


def test_a_file_that_is_renamed_keeps_all_that_it_had(files: MemoryFiles, mem: semmem.Semmem) -> None:
    mem.remember("One.", id="/memories/a.md", namespace="claude", title="A", tags=["t"], importance=0.9, author="ana")
    files.rename("/memories/a.md", "/memories/b.md")
    moved = mem.get("/memories/b.md", namespace="claude")
    assert (moved.title, moved.tags, moved.importance, moved.author) == ("A", ("t",), 0.9, "ana")


def test_an_edit_that_comes_while_a_file_is_renamed_is_moved_too(files: MemoryFiles, mem: semmem.Semmem) -> None:
    files.create("/memories/a.md", "old")
    file = mem.get("/memories/a.md", namespace="claude")
    files.str_replace("/memories/a.md", "old", "new")
    files._move(file, "/memories/b.md")  # as a rename does that has read it before the edit
    assert [(one.id, one.text) for one in mem.list(namespace="claude")] == [("/memories/b.md", "new")]


def test_clearing_takes_the_files_and_nothing_else(files: MemoryFiles, mem: semmem.Semmem) -> None:
    files.create("/memories/a.md", "One.")
    mem.remember("No file.", id="x", namespace="claude")
    mem.configure(namespace="claude", exact_bonus=0.5)
    files.clear()
    assert [one.id for one in mem.list(namespace="claude")] == ["x"]
    assert dict(mem.settings_of(namespace="claude")) == {"exact_bonus": 0.5}


def test_no_piece_of_a_sensitive_file_is_changed_so_what_is_shown_in_its_place_destroys_nothing(
    files: MemoryFiles, mem: semmem.Semmem
) -> None:
    path = "/memories/safe.md"
    mem.remember("zqx7kolibri", id=path, namespace="claude", sensitive=True)
    shown = files.view(path).split("\t")[1]
    for old in (shown, "sensitive", "zqx7kolibri"):
        edits = {"command": "str_replace", "path": path, "old_str": old, "new_str": "open"}
        assert "is sensitive and not shown here" in refused(files, **edits)
    assert "is sensitive" in refused(files, command="insert", path=path, insert_line=0, insert_text="More.")
    assert mem.get(path, namespace="claude", reveal=True).text == "zqx7kolibri"
