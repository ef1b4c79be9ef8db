"""Anthropic's memory tool (``memory_20250818``) over a namespace: every file is one memory, so it can be recalled too.

The tool's commands, their arguments and the sentences they answer with are those that Anthropic's documentation of the
tool describes: https://docs.claude.com/en/docs/agents-and-tools/tool-use/memory-tool
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from semmem.client.pages import every_memory
from semmem.interfaces.arguments import check_memory, check_namespace
from semmem.model.errors import Conflict, InvalidInput, MissingExtra, NotFound, SemmemError
from semmem.model.types import Memory

if TYPE_CHECKING:
    from semmem.client.memory import Semmem

__all__ = ["MemoryFiles", "memory_tool"]

ROOT = "/memories"
_LEVELS = 2
_TRIES = 5
_EMPTY = "(an empty file)"
"""What the memory of a file without text says; its metadata says that the file is empty."""


class MemoryFiles:
    """The files below ``/memories``, kept as memories of ``namespace``: the id is the path, the text is what it holds.

    Safe for several processes: an edit is made for the version that was read, and is made again where another one
    came first. A folder is there as long as a file is in it.
    """

    def __init__(self, memory: Semmem, *, namespace: str = "claude") -> None:
        check_memory(memory)
        check_namespace(namespace)
        self._memory = memory
        self.namespace = namespace
        self._commands: Mapping[str, Callable[..., str]] = {
            "view": self.view,
            "create": self.create,
            "str_replace": self.str_replace,
            "insert": self.insert,
            "delete": self.delete,
            "rename": self.rename,
        }

    def run(self, command: Mapping[str, Any] | Any) -> tuple[str, bool]:
        """Run one call of the tool, as the model sends it, and return (answer, whether it is an error)."""
        if not isinstance(command, Mapping):
            return f"Error: A call of the memory tool is an object with a command, not {type(command).__name__}.", True
        arguments = dict(command)
        verb = self._commands.get(str(arguments.pop("command", None)))
        try:
            if verb is None:
                raise InvalidInput(f"The memory tool knows {', '.join(self._commands)}.")
            _check(verb, arguments)
            return verb(**arguments), False
        except SemmemError as error:
            return f"Error: {error}", True

    def view(self, path: str, view_range: list[int] | None = None) -> str:
        """Return the lines of a file with their numbers, or the files of a folder, two levels deep."""
        where = _checked(path)
        memory = self._find(where)
        if memory is None:
            return self._folder(where)
        lines = _text(memory).split("\n")
        if lines[-1] == "":
            lines.pop()
        first, last = _range(view_range, len(lines))
        shown = "\n".join(f"{number:>6}\t{lines[number - 1]}" for number in range(first, last + 1))
        return f"Here's the content of {where} with line numbers:\n{shown}"

    def create(self, path: str, file_text: str) -> str:
        """Write a new file. Raises Conflict for one that is there."""
        where = _checked(path, file=True)
        if self._find(where) is not None or self._below(where):
            raise Conflict(f"File {where} already exists", names=frozenset({(self.namespace, where)}))
        self._check_folders(where)
        try:
            self._memory.remember(
                file_text if file_text.strip() else _EMPTY,
                id=where,
                namespace=self.namespace,
                source="claude-memory-tool",
                source_type="agent",
                metadata=_raw(file_text),
            )
        except Conflict as error:  # another process was there first
            raise Conflict(f"File {where} already exists", names=frozenset({(self.namespace, where)})) from error
        return f"File created successfully at: {where}"

    def str_replace(self, path: str, old_str: str, new_str: str = "") -> str:
        """Replace a text that stands once in a file. Raises InvalidInput when it is not there, or several times."""
        where = _checked(path, file=True)

        def change(text: str) -> tuple[str, int]:
            if not old_str or old_str not in text:
                raise InvalidInput(
                    f"No replacement was performed, old_str `{old_str}` did not appear verbatim in {where}."
                )
            if text.count(old_str) > 1:
                numbers = [str(n) for n, line in enumerate(text.split("\n"), 1) if old_str.split("\n")[0] in line]
                raise InvalidInput(
                    f"No replacement was performed. Multiple occurrences of old_str `{old_str}` in lines: "
                    f"{', '.join(numbers)}. Please ensure it is unique"
                )
            before = text.index(old_str)
            return text.replace(old_str, new_str), text.count("\n", 0, before) + 1

        text, line = self._edit(where, change)
        lines = text.split("\n")
        first, last = max(1, line - 2), min(len(lines), line + new_str.count("\n") + 2)
        shown = "\n".join(f"{number:>6}\t{lines[number - 1]}" for number in range(first, last + 1))
        return f"The memory file has been edited. Here is the snippet showing the change (with line numbers):\n{shown}"

    def insert(self, path: str, insert_line: int, insert_text: str) -> str:
        """Put lines behind line ``insert_line`` of a file; 0 is its beginning."""
        where = _checked(path, file=True)

        def change(text: str) -> tuple[str, int]:
            lines = text.split("\n")
            end = lines.pop() if lines[-1] == "" else None
            if isinstance(insert_line, bool) or not 0 <= insert_line <= len(lines):
                raise InvalidInput(
                    f"Invalid `insert_line` parameter: {insert_line}. It should be within the range of lines of the "
                    f"file: [0, {len(lines)}]"
                )
            lines[insert_line:insert_line] = insert_text.removesuffix("\n").split("\n")
            return "\n".join(lines if end is None else [*lines, end]), insert_line

        self._edit(where, change)
        return f"The file {where} has been edited."

    def delete(self, path: str) -> str:
        """Delete a file, or a folder with all that is in it."""
        where = _checked(path)
        if where == ROOT:
            raise InvalidInput(f"Cannot delete the {ROOT} directory itself")
        files = [where] if self._find(where) is not None else [memory.id for memory in self._below(where)]
        if not files:
            raise NotFound(f"The path {where} does not exist")
        for file in files:
            try:
                self._memory.forget(file, namespace=self.namespace)
            except NotFound:  # another process was first; it is gone
                continue
        return f"Successfully deleted {where}"

    def rename(self, old_path: str, new_path: str) -> str:
        """Give a file, or a folder with all that is in it, another path; the new ones are written before the old go."""
        old, new = _checked(old_path), _checked(new_path, file=True)
        if old == ROOT:
            raise InvalidInput(f"Cannot rename the {ROOT} directory itself")
        if new.startswith(f"{old}/"):
            raise InvalidInput(f"A folder cannot go into itself: {old} → {new}.")
        if self._find(new) is not None or self._below(new):
            raise Conflict(f"The destination {new} already exists", names=frozenset({(self.namespace, new)}))
        self._check_folders(new)
        memory = self._find(old)
        moved = [memory] if memory is not None else self._below(old)
        if not moved:
            raise NotFound(f"The path {old} does not exist")
        if hidden := next((one.id for one in moved if one.sensitive), None):
            raise InvalidInput(f"The text of {hidden} is sensitive and not shown here, so it gets no other path.")
        for one in moved:
            self._move(one, new + one.id[len(old) :])
        return f"Successfully renamed {old} to {new}"

    def _move(self, file: Memory, path: str) -> None:
        """Write a file at its new path, as it is, and forget the old one; an edit that came between is moved too."""
        self._memory.remember(file.text, id=path, **_fields(file, self.namespace))
        for _ in range(_TRIES):
            now = self._find(file.id)
            if now is None:
                return
            if now.version == file.version:
                self._memory.forget(file.id, namespace=self.namespace)
                return
            file = now
            self._memory.update(path, namespace=self.namespace, text=file.text, metadata=file.metadata)
        raise Conflict(
            f"The file {file.id} is being edited by others; it is at both paths now.",
            names=frozenset({(self.namespace, file.id)}),
        )

    def clear(self) -> str:
        """Delete every file."""
        for one in self._below(ROOT):
            with suppress(NotFound):
                self._memory.forget(one.id, namespace=self.namespace)
        return "All memory cleared"

    def _find(self, path: str) -> Memory | None:
        try:
            return self._memory.get(path, namespace=self.namespace)
        except NotFound:
            return None

    def _check_folders(self, path: str) -> None:
        """Raise InvalidInput where a folder of ``path`` is a file, which holds no other files."""
        names = path.split("/")
        for depth in range(3, len(names)):
            if self._find(folder := "/".join(names[:depth])) is not None:
                raise InvalidInput(f"{folder} is a file, so {path} cannot be in it; choose another path.")

    def _below(self, folder: str) -> list[Memory]:
        files = every_memory(self._memory, namespace=self.namespace)
        return sorted((one for one in files if one.id.startswith(f"{folder}/")), key=lambda one: one.id)

    def _folder(self, folder: str) -> str:
        sizes: dict[str, int] = {folder: 0}
        files = self._below(folder)
        if not files and folder != ROOT:
            raise NotFound(f"The path {folder} does not exist. Please provide a valid path.")
        for one in files:
            names = one.id[len(folder) + 1 :].split("/")
            size = len(_text(one).encode())
            sizes[folder] += size
            for level in range(1, min(len(names), _LEVELS) + 1):
                path = "/".join([folder, *names[:level]]) + ("/" if level < len(names) else "")
                sizes[path] = sizes.get(path, 0) + size
        lines = "\n".join(f"{_size(size)}\t{path}" for path, size in sizes.items())
        return f"Here're the files and directories up to 2 levels deep in {folder}, excluding hidden items:\n{lines}"

    def _edit(self, path: str, change: Callable[[str], tuple[str, int]]) -> tuple[str, int]:
        """Change the text of a file, for the version that was read; return (new text, line of the change)."""
        for _ in range(_TRIES):
            memory = self._find(path)
            if memory is None:
                raise NotFound(f"The path {path} does not exist. Please provide a valid path.")
            if memory.sensitive:
                raise InvalidInput(f"The text of {path} is sensitive and not shown here, so no piece of it is changed.")
            text, line = change(_text(memory))
            try:
                self._memory.update(
                    path,
                    namespace=self.namespace,
                    expected_version=memory.tag,
                    text=text if text.strip() else _EMPTY,
                    metadata={name: one for name, one in memory.metadata.items() if name != "blank"} | _raw(text),
                )
            except Conflict:  # somebody else has edited it since
                continue
            return text, line
        raise Conflict(
            f"The file {path} is being edited by others; view it and try again.",
            names=frozenset({(self.namespace, path)}),
        )


def _check(verb: Callable[..., str], arguments: Mapping[str, Any]) -> None:
    """Raise InvalidInput for arguments of a command that are unknown, missing or of another type."""
    takes = inspect.signature(verb).parameters
    if unknown := [str(name) for name in arguments if name not in takes]:
        raise InvalidInput(f"{verb.__name__} does not take these arguments: {', '.join(unknown)}.")
    if missing := [name for name, of in takes.items() if of.default is of.empty and name not in arguments]:
        raise InvalidInput(f"{verb.__name__} needs {' and '.join(missing)}.")
    for name, value in arguments.items():
        kind = {"insert_line": int, "view_range": object}.get(name, str)
        if not isinstance(value, kind):
            must = "a whole number" if kind is int else "a string"
            raise InvalidInput(f"{name} must be {must}, not {type(value).__name__}.")


def _checked(path: str, *, file: bool = False) -> str:
    """Return the path without a slash at its end. Raises InvalidInput for one that is not below ``/memories``."""
    if not isinstance(path, str) or not (path == ROOT or path.startswith(f"{ROOT}/")):
        raise InvalidInput(f"Path must start with {ROOT}, got: {path}")
    names = path[len(ROOT) :].strip("/").split("/")
    if any(name in (".", "..") for name in names) or "\\" in path or "\0" in path or "%2e" in path.lower():
        raise InvalidInput(f"Path {path} would escape {ROOT} directory")
    where = "/".join([ROOT, *[name for name in names if name]])
    if file and where == ROOT:
        raise InvalidInput(f"{ROOT} is the folder of all files; name a file in it.")
    return where


def _fields(file: Memory, namespace: str) -> dict[str, Any]:
    """Return what ``remember`` takes of a file beside its text and its path."""
    return {
        "namespace": namespace, "title": file.title, "author": file.author, "session": file.session,
        "position": file.position, "source": file.source, "tags": file.tags, "metadata": file.metadata,
        "importance": file.importance, "created_at": file.created_at,
        "source_type": file.source_type, "pinned": file.pinned, "expires_at": file.expires_at,
        "valid_from": file.valid_from, "valid_to": file.valid_to,
    }  # fmt: skip


def _range(view_range: list[int] | None, lines: int) -> tuple[int, int]:
    if view_range is None:
        return 1, lines
    numbers = isinstance(view_range, list | tuple) and all(
        isinstance(one, int) and not isinstance(one, bool) for one in view_range
    )
    if not numbers or len(view_range) != 2:
        raise InvalidInput(f"view_range must be two line numbers, not {view_range!r}.")
    first, last = view_range[0], lines if view_range[1] == -1 else view_range[1]
    if not 1 <= first <= max(lines, 1) or last < first:
        raise InvalidInput(f"view_range {view_range} is outside the file, which has {lines} line{'s' * (lines != 1)}.")
    return first, min(last, lines)


def _text(memory: Memory) -> str:
    """Return what the file holds: for one without any letter that is in its metadata, for no memory has no text."""
    blank = memory.metadata.get("blank")
    return blank if memory.text == _EMPTY and isinstance(blank, str) else memory.text


def _raw(text: str) -> dict[str, Any]:
    return {} if text.strip() else {"blank": text}


def _size(size: int) -> str:
    if size < 1024:
        return f"{size}B"
    return f"{size / 1024:.1f}K" if size < 1024 * 1024 else f"{size / 1024 / 1024:.1f}M"


def memory_tool(memory: Semmem, *, namespace: str = "claude") -> Any:
    """Return a tool that Anthropic's own runner takes (``client.beta.messages.run_tools(tools=[…])``).

    Raises MissingExtra without the package anthropic; MemoryFiles.run needs none.
    """
    try:
        from anthropic.lib.tools import BetaAbstractMemoryTool, ToolError
    except ImportError as error:
        raise MissingExtra("Anthropic's memory tool needs: pip install 'semmem[anthropic]'") from error
    files = MemoryFiles(memory, namespace=namespace)

    class SemmemMemoryTool(BetaAbstractMemoryTool):
        def execute(self, command: Any) -> Any:
            arguments = command.model_dump(exclude_none=True) if hasattr(command, "model_dump") else dict(command)
            answer, wrong = files.run(arguments)
            if wrong:
                raise ToolError(answer)
            return answer

        def view(self, command: Any) -> Any:
            return self.execute(command)

        create = str_replace = insert = delete = rename = view

        def clear_all_memory(self) -> Any:
            return files.clear()

    return SemmemMemoryTool()
