"""The notes of a vault by path and by name: which note a link means, and how it is shown."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path, PurePosixPath
from unicodedata import normalize

from semmem.tokens import tokens
from semmem.types import Memory

__all__ = ["Origin", "Vault", "origin", "vault_name"]

_NO_NAMES = frozenset(("index", "readme", "untitled", "_index", "home", "note", "notes"))


def vault_name(folder: Path) -> str:
    """Return the name of the folder, by which the memories of one vault are told from those of another."""
    return normalize("NFC", folder.resolve().name) or "vault"


@dataclass(frozen=True, slots=True)
class Origin:
    """Which vault a note comes from: its name, the folder it was first read from, what its ids begin with."""

    name: str
    folder: str
    prefix: str = ""


def origin(
    folder: Path,
    stored: Callable[[str], Sequence[Memory]] = lambda name: (),
    texts: Callable[[], Mapping[str, str]] = dict,
) -> Origin:
    """Return which vault a folder is; one that has the name of another stored vault gets a name and ids of its own.

    ``stored`` gives some memories of the vault of a name, ``texts`` the notes of the folder. A vault is known by the
    path of its folder, and in another place, such as after a move, by its notes: half of them are the same.
    """
    name, place = vault_name(folder), blake2b(os.fsencode(os.path.realpath(folder)), digest_size=8).hexdigest()
    some = stored(name)
    places = {memory.metadata.get("vault_id", place) for memory in some}
    if not some or place in places:
        return Origin(name, place)
    now = texts()
    if 2 * sum(now.get(memory.id) == memory.text for memory in some) >= len(some):
        return Origin(name, sorted(map(str, places))[0])
    return Origin(f"{name}-{place[:8]}", place, f"{name}-{place[:8]}/")


class Vault:
    """Notes by id (path from the vault's root, such as ``People/Ada.md``)."""

    def __init__(self, ids: Iterable[str]) -> None:
        self._ids = sorted(ids)
        self._paths = {id.casefold(): id for id in reversed(self._ids)}
        self._stems: dict[str, list[str]] = {}
        self._names: dict[str, list[str]] = {}
        for id in self._ids:
            self._stems.setdefault(PurePosixPath(id).stem.casefold(), []).append(id)

    def __contains__(self, id: str) -> bool:
        return id in self._names

    def name(self, id: str, title: str, aliases: Iterable[str]) -> None:
        """Record what a note is called: its title, its aliases, and its file name where no other note has it."""
        names = [title, *aliases]
        stem = PurePosixPath(id).stem
        if len(self._stems[stem.casefold()]) == 1 and stem.casefold() not in _NO_NAMES:
            names.append(stem)
        found: dict[tuple[str, ...], str] = {}
        for one in names:
            found.setdefault(_folded(one), one)
        self._names[id] = list(found.values())

    def aliases(self, id: str) -> list[str]:
        """Return what a note is called besides its title."""
        return self._names.get(id, [])[1:]

    def find(self, target: str, source: str) -> str | None:
        """Return the note that ``target`` means in the note ``source``, as Obsidian has it; None when there is none.

        Case aside: a path from the root or (./, ../) from the source, else the note whose path ends so: one in the
        source's folder, else the one with the shortest path.
        """
        wanted = normalize("NFC", target.strip().replace("\\", "/"))
        here = posixpath.dirname(source)
        if wanted.startswith(("./", "../")):
            wanted = posixpath.normpath(posixpath.join(here, wanted))
        wanted = wanted.lstrip("/").casefold()
        wanted = wanted if wanted.endswith(".md") else f"{wanted}.md"
        if wanted in self._paths:
            return self._paths[wanted]
        near = posixpath.join(here, wanted).casefold()
        if near in self._paths:
            return self._paths[near]
        ending = [
            id for id in self._stems.get(PurePosixPath(wanted).stem, ()) if f"/{id.casefold()}".endswith(f"/{wanted}")
        ]
        return min(ending, key=lambda id: (id.count("/"), len(id), id), default=None)

    def shown(self, target: str, alias: str | None, source: str) -> tuple[str, str]:
        """Return (id of the note, or the target as it stands, and what to read in its place).

        What is read is what its author shows, and the title behind it where the extractor would not know the note by
        that: it is no name of the note, or has no capital.
        """
        found = self.find(target, source)
        last = target.rpartition("/")[2]
        seen = alias or (last[:-3] if last.lower().endswith(".md") else last)
        if found is None or found not in self._names:
            return found or target, seen
        title = self._names[found][0]
        names = {_folded(name) for name in self._names[found]}
        if _folded(seen) == _folded(title) or (_folded(seen) in names and seen[:1].isupper()):
            return found, seen
        return found, f"{seen} ({title})"


def _folded(name: str) -> tuple[str, ...]:
    return tuple(word.folded for word, _, _ in tokens(name)) or (name.casefold(),)
