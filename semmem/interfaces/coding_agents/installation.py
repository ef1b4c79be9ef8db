"""Installing semmem in a client and taking it out again: the files, before and after, and writing them."""

from __future__ import annotations

import difflib
import os
import shlex
import stat
import tomllib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from semmem.files import new_file, private_folder
from semmem.interfaces.coding_agents import json_text, records
from semmem.interfaces.coding_agents.asking import EVENTS
from semmem.interfaces.coding_agents.clients import CLIENTS, SERVER, Client, hook_commands, server_entry
from semmem.model.errors import Conflict, InvalidInput

__all__ = ["Change", "changes", "write", "write_all"]

_LARGEST = 64 * 2**20


@dataclass(frozen=True, slots=True)
class Change:
    """One file: ``before`` is its text, None where it does not exist, and ``after`` what is to be, None for no file.

    ``original`` is its text without semmem: as it was before the installation, as far as that is known.
    """

    file: Path
    before: str | None
    after: str | None
    original: str | None

    @property
    def needed(self) -> bool:
        """Whether anything is to be written."""
        return self.before != self.after

    def difference(self) -> str:
        """Return what changes, as a unified diff."""
        old, new = (self.before or "").splitlines(keepends=True), (self.after or "").splitlines(keepends=True)
        lines = difflib.unified_diff(old, new, str(self.file), str(self.file) if self.after is not None else "removed")
        return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


def changes(
    client: Client,
    folder: Path | None,
    options: Sequence[str],
    *,
    hooks: bool = True,
    remove: bool = False,
    replace: bool = False,
) -> list[Change]:
    """Return what becomes of a client's files: semmem in them, once, or with ``remove`` no longer.

    ``folder`` is a project's, None the user. ``replace``: also where a person's own server has the name. Raises
    InvalidInput for a file that is not what its client reads, and for such a server.
    """
    servers, events = client.places(folder)
    entry = server_entry(client, options, shared=folder is not None)
    place = _Place(entry, installed=records.known(servers), replace=replace)
    parts: dict[Path, list[_Part]] = {servers: [_Part(lambda text, out: _server(client, text, place, out), remove)]}
    if events is not None:  # without hooks, earlier ones of ours go
        own = folder is None or ".local." in events.name  # a file that no other person gets
        commands = hook_commands(client, options, shared=not own)
        part = _Part(lambda text, out: _hooks(text, commands, out), remove or not hooks)
        parts.setdefault(events, []).append(part)
    return [_change(file, of_file) for file, of_file in parts.items()]


def write_all(changes: Sequence[Change]) -> None:
    """Write what is to be changed, and remove the folders that an installation made and that are empty now.

    See write for what it raises.
    """
    needed = [change for change in changes if change.needed]
    gone = [change.file for change in needed if change.after is None]
    made = {folder for file in gone for folder in file.resolve().parents[: records.folders_made(file)]}
    for change in needed:
        write(change)
    for folder in sorted(made, key=lambda one: len(one.parts), reverse=True):
        with suppress(OSError):  # something else is in it
            folder.rmdir()


def write(change: Change) -> None:
    """Write one file, whole or not at all; what a link leads to is written, and the rights of a file stay.

    Raises Conflict where another program has changed the file meanwhile, and nothing is written.
    """
    file = change.file.resolve()
    mode = file.stat().st_mode & 0o777 if file.exists() else None
    missing = sum(not folder.exists() for folder in file.parents)
    if _text(change.file) != change.before:
        raise Conflict(
            f"{change.file} was changed by another program at the same time; nothing was written. Try again."
        )
    if change.after is None:
        file.unlink()
        records.forget(change.file)
        return
    if change.after != change.original:
        records.keep(change.file, change.original, change.after, missing)
    private_folder(file.parent)
    with new_file(file, force=True) as out:
        out.write(change.after.encode())
    if change.after == change.original:
        records.forget(change.file)
    if mode is not None:
        with suppress(OSError):
            os.chmod(file, mode)


Edit = Callable[[str, bool], str]
"""Returns a text with something of ours in it, or, where the second argument is true, without."""


@dataclass(frozen=True, slots=True)
class _Part:
    """What is to stand in a file, or, with ``out``, to stand in it no longer."""

    edit: Edit
    out: bool


def _change(file: Path, parts: Sequence[_Part]) -> Change:
    before = _text(file)
    try:
        original = records.original(file, before)
    except records.Unrecorded:
        original = _edited(file, before, [_Part(part.edit, True) for part in parts])
    return Change(file, before, original if all(part.out for part in parts) else _edited(file, before, parts), original)


def _edited(file: Path, before: str | None, parts: Sequence[_Part]) -> str | None:
    """Return the text of a file after the edits of its parts; None for no file."""
    mark = _BOM if (before or "").startswith(_BOM) else ""
    text = after = (before or "")[len(mark) :]
    remove = all(part.out for part in parts)
    try:
        for part in parts:
            after = part.edit(after, part.out)
        if not _same_but_for_ours(text, after, toml=file.suffix == ".toml"):
            raise TypeError
    except InvalidInput as error:
        raise InvalidInput(f"{file}: {str(error).rstrip('.')}. Nothing was written.") from None
    except RecursionError:
        raise InvalidInput(f"{file}: it is nested too deeply to be edited. Nothing was written.") from None
    except (ValueError, TypeError, LookupError, AttributeError):  # a layout that the parser reads and cannot write
        raise InvalidInput(f"{file}: {_BY_HAND}. Nothing was written.") from None
    if remove and not text.strip(_NOTHING):
        return before
    if remove and before is not None and not records.existed(file) and not after.strip(_NOTHING):
        return None  # nothing else was in it
    return mark + after


_NOTHING = "{} \r\n\t"
_BOM = "\ufeff"
_BY_HAND = (
    "semmem cannot be written there without a change of other entries; `semmem install CLIENT --dry-run` in an empty "
    "home folder shows what to write by hand"
)


def _same_but_for_ours(before: str, after: str, *, toml: bool) -> bool:
    """Return whether two texts hold the same settings, but for ours."""
    others = _others(_values(before, toml))
    try:
        return bool(others == _others(_values(after, toml)))
    except InvalidInput:  # an edit has made it unreadable
        return False


def _values(text: str, toml: bool) -> Any:
    if not toml:
        return json_text.parsed(text)
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(f"it is not TOML ({error}); correct it first") from None


def _others(values: Any) -> Any:
    """Return settings without ours, and without the sections that then are empty."""
    if not isinstance(values, dict):
        return values
    out = dict(values)
    for name in {client.section for client in CLIENTS.values()}:
        if isinstance(section := out.get(name), dict):
            out[name] = {key: value for key, value in section.items() if key != SERVER}
    if isinstance(events := out.get("hooks"), dict):
        out["hooks"] = {
            event: [group for group in groups if not _is_ours(group)] if isinstance(groups, list) else groups
            for event, groups in events.items()
        }
        out["hooks"] = {event: groups for event, groups in out["hooks"].items() if groups != []}
    return {key: value for key, value in out.items() if value != {}}


def _text(file: Path) -> str | None:
    try:
        state = file.stat()
        if not stat.S_ISREG(state.st_mode):
            raise InvalidInput(f"{file} is not a regular file; move it away, and try again.")
        if state.st_size > _LARGEST:
            raise InvalidInput(f"{file} has more than {_LARGEST >> 20} MiB, which is too large for a settings file.")
        return file.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{file} is not UTF-8 text (byte {error.start}); convert it.") from None
    except OSError as error:
        raise InvalidInput(f"{file} cannot be read: {error.strerror or error}. Nothing was written.") from None


@dataclass(frozen=True, slots=True)
class _Place:
    """The entry that is to stand under the server's name.

    ``installed``: an installation has written the file before. ``replace``: whatever stands there.
    """

    entry: Mapping[str, Any]
    installed: bool
    replace: bool

    def over(self, present: Any) -> dict[str, Any]:
        """Return what to write where ``present`` stands; keys of its own, such as ``env``, stay.

        Raises InvalidInput for a person's own server.
        """
        if not self.replace and not self._is_ours(present):
            raise InvalidInput(
                f"its server {SERVER} is not one that this command has written; rename it there, or let --replace "
                "replace it, and uninstall give it back"
            )
        kept = present if isinstance(present, dict) and _starts_semmem(present) is not None else {}
        return {**self.entry, **{key: value for key, value in kept.items() if key not in {*self.entry, "args"}}}

    def stays(self, present: Any) -> bool:
        """Return whether an entry is left where semmem is taken out, or is what a replacing installation gives back."""
        return _starts_semmem(present) is None or not self._is_ours(present)

    def _is_ours(self, present: Any) -> bool:
        """Return whether an entry starts semmem with no options, with ours, or with those of an installation."""
        if present is None or (given := _starts_semmem(present)) is None:
            return present is None
        return self.installed or given in ([], ["mcp"], _starts_semmem(self.entry))


def _starts_semmem(entry: Any) -> list[str] | None:
    """Return the words behind ``semmem`` by which an entry starts it; None where it starts another program."""
    if not isinstance(entry, Mapping):
        return None
    command, more = entry.get("command"), entry.get("args", [])
    words = [*(command if isinstance(command, list) else [command]), *(more if isinstance(more, list) else [more])]
    if not all(isinstance(word, str) for word in words) or not words:
        return None
    if Path(words[0]).name == SERVER:
        return words[1:]
    if Path(words[0]).name.startswith("python") and SERVER in words[1:] and words[words.index(SERVER) - 1] == "-m":
        return words[words.index(SERVER) + 1 :]
    return None


def _server(client: Client, text: str, place: _Place, remove: bool) -> str:
    if client.servers.endswith(".toml"):
        return _toml(text, client, place, remove)
    path = (client.section, SERVER)
    values = json_text.parsed(text)
    section = values.get(client.section) if isinstance(values, dict) else None
    present = section.get(SERVER) if isinstance(section, dict) else None
    if remove:
        return text if place.stays(present) else json_text.removed(text, path)
    entry = place.over(present)
    return text if present == entry else json_text.put(text, path, entry)


def _toml(text: str, client: Client, place: _Place, remove: bool) -> str:
    import tomlkit
    from tomlkit.exceptions import TOMLKitError
    from tomlkit.items import InlineTable, Table

    try:
        document = tomlkit.parse(text)
    except TOMLKitError as error:
        raise InvalidInput(f"it is not TOML ({' '.join(str(error).split())[:100]}); correct it first") from None
    section: Any = document.get(client.section)
    if section is not None and not isinstance(section, dict):
        raise InvalidInput(f"{client.section} is not a table; correct it first")
    present = section[SERVER].unwrap() if section is not None and SERVER in section else None
    if remove:
        if section is None or place.stays(present):
            return text
        del section[SERVER]
        if not section and isinstance(section, Table) and section.is_super_table():  # made by us, not written out
            del document[client.section]
        return tomlkit.dumps(document).rstrip("\n") + "\n"
    entry = place.over(present)
    if present == entry:
        return text
    table: Any = tomlkit.inline_table() if isinstance(section, InlineTable) else tomlkit.table()
    table.update(entry)
    if section is None:
        section = tomlkit.table(is_super_table=True)
        section[SERVER] = table
        document[client.section] = section
    else:
        section[SERVER] = table
    return tomlkit.dumps(document)


def _hooks(text: str, commands: Mapping[str, dict[str, Any]], remove: bool) -> str:
    """Return a text with the hook of each event in ``commands``, and with no other hook of ours at these events."""
    values = json_text.parsed(text)
    present = values.get("hooks") if isinstance(values, dict) else None
    for event, command in commands.items():
        groups = present.get(event) if isinstance(present, dict) else None
        ours = [group for group in groups if _is_ours(group)] if isinstance(groups, list) else []
        if not remove and ours == [command]:
            continue
        if ours:
            text = json_text.without(text, ("hooks", event), _is_ours)
        if not remove:
            text = json_text.append(text, ("hooks", event), command)
    return text


def _is_ours(group: Any) -> bool:
    """Return whether a hook is ours, or a group holds ours and no other."""
    hooks = group.get("hooks", [group]) if isinstance(group, dict) else None
    if not isinstance(hooks, list) or not hooks:
        return False
    return all(isinstance(hook, dict) and _is_our_command(hook.get("command")) for hook in hooks)


def _is_our_command(command: Any) -> bool:
    try:
        words = shlex.split(command) if isinstance(command, str) else []
    except ValueError:
        return False
    if "hook" not in words[:-1]:
        return False
    index = words.index("hook")
    return words[index + 1] in EVENTS and any(Path(word).name == SERVER for word in words[:index])
