"""What a hook does: it recalls for a prompt, begins a session, or stores the new turns of a transcript.

A hook never fails its client: whatever goes wrong is one line on standard error. The same functions answer in the
hook's own process and in one that listens for hooks.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from semmem.files import expanded
from semmem.importers.turn_content import is_acknowledgement
from semmem.interfaces.coding_agents.removed import Removed
from semmem.interfaces.coding_agents.source import Source, source_of
from semmem.interfaces.coding_agents.visits import Visit, last_visit, note_visit
from semmem.interfaces.scope import WITHOUT_ROOTS, Scope, scope_of
from semmem.interfaces.wire import sentence
from semmem.model.errors import SemmemError
from semmem.model.process.asker import asked_through
from semmem.model.process.project import clone_of
from semmem.read.context import block_within

if TYPE_CHECKING:
    from semmem.importers.transcript import Question, Reading

__all__ = ["HookOptions", "Reply", "answer", "answer_alone"]

_NOTE = "memory_get and memory_update take the id."
_HITS = 12

_STEP = 2 * 2**20
"""Bytes of a transcript after which its progress is saved, so that a hook that is killed does not begin anew."""

_LARGEST = 64 * 2**20
"""Bytes of a line that are read; a longer one is passed over."""


@dataclass(frozen=True, slots=True)
class HookOptions:
    """The options of one run; ``folder`` is the working folder of the hook."""

    event: str
    url: str | None
    namespace: str | None
    budget: int
    agent: str
    folder: str

    @property
    def fast(self) -> bool:
        """Whether somebody waits for what it prints."""
        return self.event in ("session-start", "prompt")


@dataclass(slots=True)
class Reply:
    """What a hook prints: a block on standard output, and lines on standard error."""

    block: str = ""
    said: list[str] = field(default_factory=list)

    def say(self, error: Exception | str) -> None:
        """Add an error, or a sentence, to what is said on standard error."""
        self.said.append(f"semmem: {error if isinstance(error, str) else sentence(error)}\n")


def answer_alone(options: HookOptions, raw: bytes) -> tuple[Reply, bool]:
    """Do what the event is for in this process; return what to print, and whether it asked a store on this machine."""
    reply, asked = Reply(), False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("default", UserWarning)
        warnings.showwarning = lambda message, *_, **__: reply.say(str(message))  # without the place in the code
        try:
            payload = _payload(raw)
            if _is_for_nothing(options, payload):
                return reply, False
            with source_of(options.url, fast=options.fast) as source:
                asked = not source.name.startswith("http")
                _answer(options, payload, source, reply)
        except Exception as error:  # noqa: BLE001  # a client's turn goes on, whatever it is
            reply.say(error)
    return reply, asked


def answer(options: HookOptions, raw: bytes, source: Source) -> Reply:
    """Do what the event is for, from a store that is open."""
    reply = Reply()
    try:
        payload = _payload(raw)
        if not _is_for_nothing(options, payload):
            _answer(options, payload, source, reply)
    except Exception as error:  # noqa: BLE001
        reply.say(error)
    return reply


def _answer(options: HookOptions, payload: Mapping[str, Any], source: Source, reply: Reply) -> None:
    scope = _scope(options, payload, source)
    removed = Removed(source.name, scope.namespace)
    if not options.fast:
        clone = clone_of(_folder(options, payload))
        visit = _store_turns(source, scope, payload, options.agent, removed, reply)
        if visit is not None:
            note_visit(source.name, scope.namespace, clone, visit)
        return
    starts = options.event == "session-start"
    with asked_through("hook", options.agent):
        if starts:
            memories = _for_session(source, scope, payload, options)
        else:
            memories = _for_prompt(source, scope, payload, reply)
    also = ("why", "session") if starts else ()
    short = source.short_ids(memories)
    reply.block = block_within(
        memories, budget=options.budget, note=_NOTE, home=scope.namespace, short=short, also=also
    )
    if count := removed.taken() if starts else 0:
        some = "1 credential was" if count == 1 else f"{count} credentials were"
        reply.block += f"semmem: {some} removed from turns of earlier sessions before they were stored.\n"


def _payload(raw: bytes) -> Mapping[str, Any]:
    """Return the JSON object that the client gave."""
    try:
        payload = json.loads(raw)
    except (ValueError, RecursionError):
        payload = None
    if not isinstance(payload, dict):
        raise SemmemError("A hook takes a JSON object on standard input, as the client sends it.")
    return payload


def _is_for_nothing(options: HookOptions, payload: Mapping[str, Any]) -> bool:
    """Return whether a prompt asks nothing, such as "ok, do it": no store is opened and no model loaded for it."""
    return options.event == "prompt" and is_acknowledgement(_question(payload))


def _question(payload: Mapping[str, Any]) -> str:
    """Return the question of a prompt; in quotes, words would have to stand as they are."""
    prompt = payload.get("prompt")
    return prompt.replace('"', " ").strip() if isinstance(prompt, str) else ""


def _scope(options: HookOptions, payload: Mapping[str, Any], source: Source) -> Scope:
    """Return whose memories are meant: those that the MCP server of the same client writes and reads."""
    personal = source.settings.personal_namespace or None
    here = _folder(options, payload)
    roots = None if options.agent in WITHOUT_ROOTS else [here.absolute().as_uri()]
    return scope_of(named=options.namespace, roots=roots, folder=here, personal=personal)


def _folder(options: HookOptions, payload: Mapping[str, Any]) -> Path:
    """Return the folder in which the client works."""
    folder = payload.get("cwd")
    return Path(_nameable(folder)) if isinstance(folder, str) and folder else Path(options.folder)


def _nameable(path: str) -> str:
    """Return ``path`` with a mark in place of lone surrogates, which no disk takes."""
    return path.encode("utf-8", "replace").decode()


def _for_prompt(source: Source, scope: Scope, payload: Mapping[str, Any], reply: Reply) -> list[Mapping[str, Any]]:
    """Return what a prompt recalls, best first, without turns of the very conversation."""
    session = payload.get("session_id")
    found = source.recall(_question(payload), scope.namespaces, _HITS)
    if found.withheld:  # on standard error, which no client puts into a prompt
        memories = "1 memory is" if found.withheld == 1 else f"{found.withheld} memories are"
        reply.say(
            f"The confidence {found.confidence:.2f} is below {found.floor:g}, so {memories} withheld; "
            "SEMMEM_AGENT_MIN_CONFIDENCE=0 shows them."
        )
    return [hit for hit in found.memories if session is None or hit.get("session") != session]


def _for_session(
    source: Source, scope: Scope, payload: Mapping[str, Any], options: HookOptions
) -> list[Mapping[str, Any]]:
    """Return the lines with which a session begins; after /clear, a person wants to begin without the last one."""
    from semmem.interfaces.coding_agents.beginning import beginning

    session = payload.get("session_id")
    cleared = {"last"} if payload.get("source") == "clear" else set()
    return beginning(
        source,
        scope,
        parts=source.settings.session_parts - cleared,
        visit=last_visit(source.name, scope.namespace, clone_of(_folder(options, payload))),
        session=session if isinstance(session, str) else None,
        budget=options.budget,
    )


def _store_turns(
    source: Source, scope: Scope, payload: Mapping[str, Any], agent: str, removed: Removed, reply: Reply
) -> Visit | None:
    """Store the turns of the transcript that are new, each once, by default without the credentials in them.

    Return the session and the time of the last one; None where none is new.
    """
    from semmem.importers.transcript import fields_of, reading, storable
    from semmem.interfaces.coding_agents.progress import progress_of, rest_of_line
    from semmem.write.screening import noting

    path = payload.get("transcript_path")
    visit = None
    if not isinstance(path, str) or not path:
        return None
    transcript = expanded(_nameable(path))
    if not transcript.is_file():
        raise SemmemError(f"There is no transcript {transcript}; no turn was stored.")
    session = payload.get("session_id")
    session = storable(session) if isinstance(session, str) else None
    settings = source.settings
    policy = settings.credentials if settings.source("credentials") != "default" else "redact"
    with progress_of(transcript, source.name) as progress, transcript.open("rb") as file:
        while True:
            file.seek(progress.offset)
            raw = file.read(_STEP) + file.readline(_LARGEST)
            new = reading(raw, progress.turns + 1, progress.question)
            size = new.size
            if not size and len(raw) >= _LARGEST:
                size = rest_of_line(file, len(raw))
                if size:
                    reply.say(f"A line of {size >> 20} MiB in {transcript} was passed over: it is too long.")
            if not size:
                return visit
            if policy == "redact":
                new, count = _redacted(new)
                if count:
                    removed.add(count)
            items = [fields_of(turn, session or turn.session or transcript.stem, agent) for turn in new.turns]
            if items:
                at = items[-1]["created_at"] or datetime.now(UTC).isoformat()
                visit = Visit(items[-1]["session"], at)
            corrections = list(_corrections(source, items, scope.namespace))
            with noting() as noted:
                rejected = source.store(items, scope.namespace)
            for newer, older in corrections:
                source.supersede(newer, older, scope.namespace)
            for sentence in (*noted, *(f"A turn was not stored: {reason}" for reason in rejected)):
                reply.say(sentence)
            progress.offset += size
            progress.turns += new.said
            progress.question = new.question if policy == "off" else _redacted_question(new.question)
            progress.save()


def _corrections(source: Source, turns: Sequence[Mapping[str, Any]], namespace: str) -> Iterator[tuple[str, str]]:
    """Yield (newer, older) ids where a person's turn corrects the one before it, which may be stored already."""
    from semmem.importers.turn_points import corrects, share_a_word

    for index, turn in enumerate(turns):
        if turn["source_type"] != "user" or not corrects(turn["text"]):
            continue
        before = turns[index - 1] if index else source.last_turn(turn["session"], namespace, turn["position"])
        if before is not None and share_a_word(turn["text"], before["text"]):
            yield turn["id"], before["id"]


def _redacted(new: Reading) -> tuple[Reading, int]:
    """Return what was read without the credentials in it, and how many there were."""
    from semmem.write.screening import redacted

    texts = [redacted(turn.text) for turn in new.turns]
    turns = [replace(turn, text=text) for turn, (text, _) in zip(new.turns, texts, strict=True)]
    count = sum(found for _, found in texts)
    if new.question is not None:  # it may stand in a stored turn too, where it was counted
        text, found = redacted(new.question.text)
        count += 0 if any(text in turn.text for turn in turns) else found
    return replace(new, turns=turns), count


def _redacted_question(question: Question | None) -> Question | None:
    """Return an open question without the credentials in it, for a file keeps it until it has a reply."""
    from semmem.write.screening import redacted

    return None if question is None else replace(question, text=redacted(question.text)[0])
