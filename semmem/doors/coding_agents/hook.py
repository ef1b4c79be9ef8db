"""What a coding agent's client runs at certain moments: JSON on standard input, a block of memories on standard output.

A hook never fails its client: whatever goes wrong is one line on standard error, and the exit code is 0. An exit code
of 2 would keep a person's prompt from being sent.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from semmem.doors.coding_agents.error_log import error_log
from semmem.doors.coding_agents.removed import Removed
from semmem.doors.coding_agents.source import Found, ServerGone, Source, source_of
from semmem.doors.scope import WITHOUT_ROOTS, Scope, scope_of
from semmem.doors.wire import sentence
from semmem.files import expanded
from semmem.model.errors import SemmemError
from semmem.read.context import block_within

if TYPE_CHECKING:
    from semmem.importers.transcript import Reading

__all__ = ["BUDGET", "EVENTS", "HookOptions", "answer_hook", "quick"]

EVENTS = ("session-start", "prompt", "pre-compact", "stop")

BUDGET = 1_000
"""Tokens of a block."""

_NOTE = "The tools memory_get and memory_update take their id and namespace."
_HITS = 12
_LATEST = 50
_TRANSCRIPT = "transcript"
"""The tag of a turn."""

_STEP = 2 * 2**20
"""Bytes of a transcript after which its progress is saved, so that a hook that is killed does not begin anew."""

_LARGEST = 64 * 2**20
"""Bytes of a line that are read; a longer one is passed over."""


@dataclass(frozen=True, slots=True)
class HookOptions:
    """The options of one run. ``detach``: go on in the background and let the client continue."""

    event: str
    url: str | None = None
    namespace: str | None = None
    budget: int = BUDGET
    agent: str = "claude-code"
    detach: bool = False


def quick(arguments: Sequence[str]) -> int | None:
    """Run a hook by the arguments behind ``hook``, without the library that reads options: it loads for too long.

    What cannot be read is told on standard error, and the answer is 0 all the same. None for what that library has to
    do, such as ``--help``.
    """
    if {"-h", "--help"} & set(arguments):
        return None
    options: dict[str, Any] = {}
    rest = iter(arguments)
    for word in rest:
        if word == "--detach":
            options["detach"] = True
        elif word in ("--json", "--debug"):
            continue  # every command has them, and a hook prints the same
        elif word in ("--url", "--namespace", "--agent", "--budget"):
            value = next(rest, "")
            if not value or (word == "--budget" and not value.isdecimal()):
                return _unknown(f"{word} {value}")
            options[word[2:]] = int(value) if word == "--budget" else value
        elif word in EVENTS and "event" not in options:
            options["event"] = word
        else:
            return _unknown(word)
    return answer_hook(HookOptions(**options)) if "event" in options else _unknown("no event")


def _unknown(what: str) -> int:
    _say(SemmemError(f"A hook cannot use {what!r}; see semmem hook --help. Its events are {', '.join(EVENTS)}."))
    return 0


def answer_hook(options: HookOptions) -> int:
    """Read the client's JSON, do what the event is for, print a block if there is one; return 0, whatever happens."""
    try:
        payload = _payload()
        if options.detach and not _in_background():
            return 0
        with warnings.catch_warnings():
            _say_warnings()
            _answer(options, payload)
    except KeyboardInterrupt:
        pass
    except Exception as error:  # noqa: BLE001  # a client's turn goes on, whatever it is
        _say(error)
    return 0


class _Shown(NamedTuple):
    """What a hook prints: memories, best first, and how many credentials were removed since it was last said."""

    memories: list[Mapping[str, Any]]
    removed: int = 0


def _answer(options: HookOptions, payload: Mapping[str, Any]) -> None:
    try:
        shown = _handle(options, payload)
    except ServerGone as error:
        _say(error)
        shown = _handle(options, payload, direct=True)
    block = block_within(shown.memories, budget=options.budget, note=_NOTE)
    if shown.removed:
        some = "1 credential was" if shown.removed == 1 else f"{shown.removed} credentials were"
        block += f"semmem: {some} removed from turns of earlier sessions before they were stored.\n"
    if block:
        sys.stdout.write(block)
        sys.stdout.flush()


def _handle(options: HookOptions, payload: Mapping[str, Any], *, direct: bool = False) -> _Shown:
    """Do what the event is for, and return what to print."""
    scope = _scope(options, payload)
    with source_of(options.url, fast=options.event in ("session-start", "prompt"), direct=direct) as source:
        removed = Removed(source.name, scope.namespace)
        if options.event == "prompt":
            return _Shown(_for_prompt(source, scope, payload))
        if options.event == "session-start":
            return _Shown(_for_session(source, scope), removed.taken())
        _store_turns(source, scope, payload, options.agent, removed)
        return _Shown([])


def _say(error: Exception) -> None:
    with suppress(OSError, ValueError):
        sys.stderr.write(f"semmem: {sentence(error)}\n")


def _say_warnings() -> None:
    """Print each warning for people as one line, without the place in the code."""
    warnings.simplefilter("ignore")
    warnings.simplefilter("default", UserWarning)
    warnings.showwarning = lambda message, *_, **__: _say(SemmemError(str(message)))


def _payload() -> Mapping[str, Any]:
    """Return the JSON object on standard input."""
    try:
        payload = json.loads(sys.stdin.buffer.read())
    except (ValueError, RecursionError):
        payload = None
    if not isinstance(payload, dict):
        raise SemmemError("A hook takes a JSON object on standard input, as the client sends it.")
    return payload


def _scope(options: HookOptions, payload: Mapping[str, Any]) -> Scope:
    """Return whose memories are meant: those that the MCP server of the same client writes and reads."""
    from semmem.config import Settings

    personal = Settings.load().personal_namespace or None
    folder = payload.get("cwd")
    here = Path(_nameable(folder)) if isinstance(folder, str) and folder else Path.cwd()
    roots = None if options.agent in WITHOUT_ROOTS else [here.absolute().as_uri()]
    return scope_of(named=options.namespace, roots=roots, folder=here, personal=personal)


def _nameable(path: str) -> str:
    """Return ``path`` with a mark in place of lone surrogates, which no disk takes."""
    return path.encode("utf-8", "replace").decode()


def _for_prompt(source: Source, scope: Scope, payload: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return what a prompt recalls, best first, without turns of the very conversation."""
    prompt = payload.get("prompt")
    if not isinstance(prompt, str) or not prompt.strip():
        return []
    question = prompt.replace('"', " ")  # in quotes, words must stand as they are
    if not question.strip():
        return []
    session = payload.get("session_id")
    found = source.recall(question, scope.namespaces, _HITS)
    if found.withheld:
        _say_withheld(found)
    return [hit for hit in found.memories if session is None or hit.get("session") != session]


def _say_withheld(found: Found) -> None:
    """Tell a person on standard error, which no client puts into a prompt, why the hook shows nothing."""
    memories = "1 memory is" if found.withheld == 1 else f"{found.withheld} memories are"
    _say(
        SemmemError(
            f"The confidence {found.confidence:.2f} is below {found.floor:g}, so {memories} withheld; "
            "SEMMEM_AGENT_MIN_CONFIDENCE=0 shows them."
        )
    )


def _for_session(source: Source, scope: Scope) -> list[Mapping[str, Any]]:
    """Return the newest memories of the project and the personal namespace that are no turns, important ones first."""
    memories = [memory for name in scope.namespaces for memory in source.latest(name, _LATEST)]
    memories = [memory for memory in memories if _TRANSCRIPT not in memory.get("tags", ())]
    memories.sort(key=lambda memory: str(memory.get("updated_at")), reverse=True)
    return sorted(memories, key=lambda memory: -float(memory.get("importance", 0.5)))


def _store_turns(source: Source, scope: Scope, payload: Mapping[str, Any], agent: str, removed: Removed) -> None:
    """Store the turns of the transcript that are new, each once, by default without the credentials in them."""
    from semmem.config import Settings
    from semmem.doors.coding_agents.progress import progress_of, rest_of_line
    from semmem.importers.transcript import fields_of, reading, storable
    from semmem.write.screening import noting

    path = payload.get("transcript_path")
    if not isinstance(path, str) or not path:
        return
    transcript = expanded(_nameable(path))
    if not transcript.is_file():
        raise SemmemError(f"There is no transcript {transcript}; no turn was stored.")
    session = payload.get("session_id")
    session = storable(session) if isinstance(session, str) else None
    settings = Settings.load()
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
                    _say(SemmemError(f"A line of {size >> 20} MiB in {transcript} was passed over: it is too long."))
            if not size:
                return
            if policy == "redact":
                new, count = _redacted(new)
                if count:
                    removed.add(count)
            items = [fields_of(turn, session or turn.session or transcript.stem, agent) for turn in new.turns]
            with noting() as noted:
                rejected = source.store(items, scope.namespace)
            for sentence in (*noted, *(f"A turn was not stored: {reason}" for reason in rejected)):
                _say(SemmemError(sentence))
            progress.offset += size
            progress.turns += new.said
            progress.question = new.question
            progress.save()


def _redacted(new: Reading) -> tuple[Reading, int]:
    """Return what was read without the credentials in it, and how many there were."""
    from semmem.write.screening import redacted

    texts = [redacted(turn.text) for turn in new.turns]
    turns = [replace(turn, text=text) for turn, (text, _) in zip(new.turns, texts, strict=True)]
    count = sum(found for _, found in texts)
    question = new.question
    if question is not None:  # it may stand in a stored turn too, where it was counted
        text, found = redacted(question.text)
        question = replace(question, text=text)
        count += 0 if any(text in turn.text for turn in turns) else found
    return replace(new, turns=turns, question=question), count


def _in_background() -> bool:
    """Go on in a process of its own; return whether this is that one."""
    if os.fork():
        return False
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    with suppress(OSError, SemmemError):  # without a log, what goes wrong is lost, and the client still goes on
        sys.stderr = error_log()
    return True
