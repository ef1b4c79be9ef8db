"""With what a session begins: pinned memories, how the last session ended, what was decided, and the latest memories.

A clone or worktree goes on from its own last session; the sessions since then were elsewhere. Only turns that a person
or an agent said are quoted, without credentials; sensitive, invalid and superseded memories are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from semmem.importers.client_blocks import words_of
from semmem.importers.transcript import TAG
from semmem.importers.turn_content import is_acknowledgement, is_bare_question
from semmem.importers.turn_points import decisions_in, open_points_in
from semmem.interfaces.coding_agents.source import Source
from semmem.interfaces.coding_agents.visits import Visit
from semmem.interfaces.scope import Scope
from semmem.model.types import is_valid
from semmem.read.context import tokens
from semmem.text.passages import sentence_spans
from semmem.write.screening import redacted

__all__ = ["beginning"]

_SHARES = {"pinned": 0.5, "last": 0.25, "open": 0.1, "decided": 0.2, "elsewhere": 0.3}
"""The share of the budget that each part may take before the others had theirs; the latest memories get the rest."""

_WHY = {
    "pinned": None, "last": "last session", "open": "left open", "decided": "decided",
    "elsewhere": "elsewhere since", "latest": None,
}  # fmt: skip
_NOTES, _ENOUGH, _PAGES = 50, 12, 3
"""Memories that are no turns: the most that are looked at, and how many end the reading before the most pages do."""

_TURNS, _TURNS_ELSEWHERE = 5, 3
"""The last turns of a session that are quoted, besides its user's first: of the last session, and of others."""

_SESSIONS, _LAST_TURNS, _POINTS, _DECISIONS = 3, 6, 4, 6
"""The most sessions elsewhere, the last turns that may leave something open, and the most open points and decisions."""

_LEAD, _LAST = 130, 240
"""Characters of a turn that are quoted, and of a session's last turn."""

_OF_A_LINE = 45
"""Tokens of a line besides its text, roughly."""


@dataclass(frozen=True, slots=True)
class _Turn:
    """A turn of an earlier session as it may be quoted."""

    memory: Mapping[str, Any]
    text: str

    @property
    def by_user(self) -> bool:
        """Return whether a person speaks in it: alone, or with a question that is stored with its reply."""
        first, _, rest = self.text.partition("\n\n")
        return self.memory.get("source_type") == "user" or (bool(rest) and is_bare_question(first))

    @property
    def at(self) -> datetime:
        """Return when it was said."""
        return datetime.fromisoformat(self.memory["created_at"])

    def line(self, part: str, text: str) -> dict[str, Any]:
        """Return the line that quotes ``text`` of it; of a session's id, eight characters tell it from others."""
        shown = {"text": " ".join(text.split()), "why": _WHY[part], "session": str(self.memory["session"])[:8]}
        author = None if self.memory["source_type"] == "user" else self.memory.get("author")
        return {**_titled(self.memory), **shown, "author": author, "updated_at": None}


def beginning(
    source: Source, scope: Scope, *, parts: Iterable[str], visit: Visit | None, session: str | None, budget: int
) -> list[Mapping[str, Any]]:
    """Return the lines with which a session begins, the most needed first, for about ``budget`` tokens.

    ``parts`` are those wanted; ``visit`` is the last session of this clone; turns of ``session`` itself are left out.
    """
    wanted = {*parts}
    read = _current(source, scope.namespace)
    threads = _threads(one for one in read if one.get("session") != session)
    last = _last(threads, visit)
    lines: dict[str, list[Mapping[str, Any]]] = {part: [] for part in _WHY}
    if "pinned" in wanted:
        lines["pinned"] = [_note(one) for one in _pinned(source, scope.namespaces)]
    if "last" in wanted:
        lines["last"], lines["open"] = _thread(last, "last", _TURNS), _left_open(last)
    if "decided" in wanted:
        lines["decided"] = _decided(turn for thread in threads.values() for turn in thread)
    if "elsewhere" in wanted and visit is not None:
        after = datetime.fromisoformat(visit.at)
        lines["elsewhere"] = _elsewhere(threads, last, after)
    if "latest" in wanted:
        others = (one for name in scope.namespaces[1:] for one in _current(source, name))
        lines["latest"] = _latest([*read, *others])
    return _within(_distinct(lines), budget)


# ---------------------------------------------------------------------- what is read


def _current(source: Source, namespace: str) -> list[Mapping[str, Any]]:
    """Return the newest memories of a namespace that may be shown and that no other one supersedes."""
    read = list(_newest(source, namespace))
    superseded = source.superseded(namespace, [str(one["id"]) for one in read])
    return [one for one in read if one["id"] not in superseded and _is_shown(one)]


def _pinned(source: Source, namespaces: Sequence[str]) -> list[Mapping[str, Any]]:
    """Return the pinned memories of some namespaces that may be shown and that no other one supersedes."""
    read = [one for one in source.pinned(namespaces) if _is_shown(one)]
    ids: dict[str, list[str]] = {}
    for one in read:
        ids.setdefault(one["namespace"], []).append(one["id"])
    superseded = {name: source.superseded(name, some) for name, some in ids.items()}
    return [one for one in read if one["id"] not in superseded[one["namespace"]]]


def _newest(source: Source, namespace: str) -> Iterator[Mapping[str, Any]]:
    """Yield the newest memories of a namespace, page by page until enough of them are no turns."""
    notes = 0
    for page in islice(source.pages(namespace), _PAGES):
        yield from page
        notes += sum(TAG not in one.get("tags", ()) for one in page)
        if notes >= _ENOUGH:
            return


def _is_shown(memory: Mapping[str, Any]) -> bool:
    """Return whether a memory may be shown to whoever begins: it is not sensitive, and valid now."""
    times = map(memory.get, ("valid_from", "valid_to"))
    begins, ends = (datetime.fromisoformat(value) if value else None for value in times)
    return not memory.get("sensitive") and is_valid(begins, ends, datetime.now(UTC))


def _threads(memories: Iterable[Mapping[str, Any]]) -> dict[str, list[_Turn]]:
    """Return the turns of each session in their order, the session with the newest turn first."""
    threads: dict[str, list[_Turn]] = {}
    for one in memories:
        said_by = one.get("source_type") or {"user": "user", "assistant": "agent"}.get(str(one.get("author")))
        said = TAG in one.get("tags", ()) and one.get("session") and one.get("created_at")
        if not said or said_by not in ("user", "agent"):
            continue
        text = redacted(words_of(str(one["text"])))[0]
        if text and not is_acknowledgement(text):
            threads.setdefault(str(one["session"]), []).append(_Turn({**one, "source_type": said_by}, text))
    for thread in threads.values():
        thread.sort(key=lambda turn: (turn.at, turn.memory.get("position") or 0))
    return dict(sorted(threads.items(), key=lambda item: item[1][-1].at, reverse=True))


def _last(threads: Mapping[str, list[_Turn]], visit: Visit | None) -> list[_Turn]:
    """Return the session that this clone saw last, else the newest one."""
    if visit is not None and visit.session in threads:
        return threads[visit.session]
    return next(iter(threads.values()), [])


# ---------------------------------------------------------------------- the parts


def _thread(thread: Sequence[_Turn], part: str, last: int) -> list[Mapping[str, Any]]:
    """Return what a session was about and how it ended: its user's first turn and the ``last`` turns of anybody."""
    first = next((index for index, turn in enumerate(thread) if turn.by_user), 0)
    shown = sorted({first, *range(len(thread))[-last:]} if thread else ())
    return [
        thread[index].line(part, _lead(thread[index].text, _LAST if index == len(thread) - 1 else _LEAD))
        for index in shown
    ]


def _left_open(thread: Sequence[_Turn]) -> list[Mapping[str, Any]]:
    """Return what the last turns of a session leave to do; a question is open only where nobody spoke after it."""
    points: list[Mapping[str, Any]] = []
    for turn in thread[-_LAST_TURNS:]:
        for point in open_points_in(turn.text):
            if not point.endswith("?") or turn is thread[-1]:
                points.append(turn.line("open", point))
    return points[-_POINTS:][::-1]


def _decided(turns: Iterable[_Turn]) -> list[Mapping[str, Any]]:
    """Return the decisions in some turns, the newest first."""
    found: list[Mapping[str, Any]] = []
    for turn in sorted(turns, key=lambda turn: turn.at, reverse=True):
        found += [turn.line("decided", one) for one in decisions_in(turn.text, turn.memory["source_type"])]
        if len(found) >= _DECISIONS:
            break
    return found[:_DECISIONS]


def _elsewhere(threads: Mapping[str, list[_Turn]], last: list[_Turn], after: datetime) -> list[Mapping[str, Any]]:
    """Return how the newest sessions that went on after ``after`` began and ended, without the ``last`` one."""
    others = [thread for thread in threads.values() if thread is not last and thread[-1].at > after]
    return [line for thread in others[:_SESSIONS] for line in _thread(thread, "elsewhere", _TURNS_ELSEWHERE)]


def _latest(memories: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the memories that are no turns, the important ones first, and of equal ones the newest."""
    notes = [one for one in memories if TAG not in one.get("tags", ())]
    notes.sort(key=lambda memory: str(memory.get("updated_at")), reverse=True)
    notes.sort(key=lambda memory: -float(memory.get("importance", 0.5)))
    return [_note(one) for one in notes[:_NOTES]]


def _note(memory: Mapping[str, Any]) -> dict[str, Any]:
    """Return the line of a memory that is no turn."""
    return {**_titled(memory), "text": redacted(str(memory["text"]))[0], "session": None}


def _titled(memory: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a memory whose title holds no credential."""
    return {**memory, "title": redacted(title)[0]} if (title := memory.get("title")) else memory


# ---------------------------------------------------------------------- what is shown of it


def _lead(text: str, most: int) -> str:
    """Return the first sentences of a text that fit into ``most`` characters, or the beginning of the first one."""
    line = " ".join(text.split())
    if len(line) <= most:
        return line
    end = max((end for _, end in sentence_spans(line) if end <= most - 2), default=0)
    return f"{line[:end] if end else line[:most].rsplit(' ', 1)[0]} …"


def _distinct(lines: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, list[Mapping[str, Any]]]:
    """Return the lines without those that say what an earlier line of the same memory says already."""
    said: dict[tuple[str, str], list[str]] = {}
    texts: set[str] = set()
    out: dict[str, list[Mapping[str, Any]]] = {part: [] for part in lines}
    for part, some in lines.items():
        for one in some:
            of_memory = said.setdefault((str(one.get("namespace")), str(one["id"])), [])
            text = str(one["text"])
            if text not in texts and not any(text in other for other in of_memory):
                out[part].append(one)
            of_memory.append(text)
            texts.add(text)
    return out


def _within(lines: Mapping[str, Sequence[Mapping[str, Any]]], budget: int) -> list[Mapping[str, Any]]:
    """Return the lines that about fit, by part: each part its share, then what room is left in the same order."""
    chosen: dict[str, int] = dict.fromkeys(lines, 0)
    room = float(budget)
    for share_of in (_SHARES, {}):
        for part, some in lines.items():
            share = budget * share_of.get(part, 0.0 if share_of else 1.0)
            for one in some[chosen[part] :]:
                size = tokens(str(one["text"])) + _OF_A_LINE
                share, room = share - size, room - size
                if share < 0 or room < 0:
                    room += size
                    break
                chosen[part] += 1
    rest = [one for part, some in lines.items() for one in some[chosen[part] :]]
    return [*(one for part, some in lines.items() for one in some[: chosen[part]]), *rest]
