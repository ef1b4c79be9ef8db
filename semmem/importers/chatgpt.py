"""ChatGPT's export ``conversations.json``: a list of conversations, each a tree of messages under ``mapping``.

The branch that ends at ``current_node`` is read, which is what ChatGPT shows, and with ``branches`` the others too:
earlier versions of edited questions, and replies that were made again. System messages, hidden messages, the user's
profile, thoughts and empty messages are left out. One message becomes one memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from semmem.importers import BadRow, Reject, document, moment, refuse
from semmem.model.errors import InvalidInput
from semmem.model.imported_items import Item, RowError, item
from semmem.model.types import source_type_of

__all__ = ["is_export", "read"]

_TEXTS = ("text", "result")
_NO_TURN = (
    "user_editable_context", "model_editable_context", "thoughts", "reasoning_recap", "app_pairing_content",
    "tether_browsing_display",
)  # fmt: skip
"""The content types that ChatGPT does not show as messages."""

_HIDDEN = ("is_visually_hidden_from_conversation", "is_user_system_message")
_CITATION = re.compile("\ue200[^\ue200\ue201]*\ue201")
"""A mark that ChatGPT shows as a link, such as a citation."""


def is_export(value: Any) -> bool:
    """Return whether the JSON value of a file is a conversation of ChatGPT, or a list that begins with one."""
    first = value[0] if isinstance(value, list) and value else value
    return isinstance(first, Mapping) and isinstance(first.get("mapping"), Mapping)


def read(path: Path, *, reject: Reject | None = None, branches: bool = False) -> Iterator[Item]:
    """Yield one item per message; its id is that of the conversation and that of the message.

    The session is the conversation's id; its title is in the metadata, and of a message that ChatGPT does not show,
    the mark ``branch``: "other". A message without a time has that of the message
    before it. A message that cannot be stored goes to ``reject`` with its place, such as "conversation 2, message 5";
    without ``reject`` it raises BadItem. Raises InvalidInput where the file is no export.
    """
    report = reject or refuse
    value = document(path)
    rows = [value] if isinstance(value, Mapping) else value
    if not isinstance(rows, list) or not any(map(is_export, rows)):
        raise InvalidInput(
            f"{path} is not ChatGPT's conversations.json: it has no conversation with 'mapping'; import chat reads "
            "other chats."
        )
    for number, row in enumerate(rows, 1):
        where = f"conversation {number}"
        try:
            yield from _conversation(where, row, f"{path.stem}:{number}", report, branches)
        except RowError as error:
            report(BadRow(where, str(error)))


def _conversation(where: str, row: Any, default: str, report: Reject, branches: bool) -> Iterator[Item]:
    if not is_export(row):
        raise RowError("it has no messages under 'mapping'.")
    session = str(row.get("conversation_id") or row.get("id") or default)
    title = row.get("title")
    metadata = {"conversation": session}
    if isinstance(title, str) and title.strip():
        metadata["conversation_title"] = title.strip()
    shown = _branch(where, row, row.get("current_node"), report)
    yield from _messages(where, shown, {}, session, moment(row.get("create_time")), metadata, report)
    if not branches:
        return
    seen = dict(shown)
    parents = [node.get("parent") for node in row["mapping"].values() if isinstance(node, Mapping)]
    inner = {parent for parent in parents if isinstance(parent, str)}
    for leaf in sorted(row["mapping"].keys() - inner - seen.keys()):
        branch = _branch(where, row, leaf, report)
        when = moment(row.get("create_time"))
        yield from _messages(where, branch, seen, session, when, {**metadata, "branch": "other"}, report)
        seen.update(branch)


def _messages(
    where: str,
    branch: Sequence[tuple[str, Mapping[str, Any]]],
    seen: Mapping[str, Any],
    session: str,
    when: datetime | None,
    metadata: Mapping[str, str],
    report: Reject,
) -> Iterator[Item]:
    """Yield the messages of a branch but for the nodes ``seen`` before; a position counts from the branch's first."""
    for position, (name, message) in enumerate(_said(where, branch, report)):
        place = f"{where}, message {position + 1}"
        try:
            when = moment(message.get("create_time")) or when
            if name not in seen:
                yield _item(place, f"{session}:{name}", message, session, position, when, metadata)
        except RowError as error:
            if name not in seen:
                report(BadRow(place, str(error)))


def _said(
    where: str, branch: Sequence[tuple[str, Mapping[str, Any]]], report: Reject
) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the messages of a branch that ChatGPT shows, each with the name of its node."""
    said: list[tuple[str, Mapping[str, Any]]] = []
    for name, node in branch:
        message = node.get("message")
        if message is None or (isinstance(message, Mapping) and _is_hidden(message)):
            continue
        if isinstance(message, Mapping):
            said.append((name, message))
        else:
            report(BadRow(f"{where}, node {name}", f"its message is {type(message).__name__}, not an object."))
    return said


def _branch(where: str, row: Mapping[str, Any], name: Any, report: Reject) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the nodes from the root to the one of that ``name``, or to the newest; each with its name.

    A branch that breaks off is reported; its nodes from there on are returned.
    """
    nodes: Mapping[str, Any] = row["mapping"]
    if name is None and nodes:
        name = max(nodes, key=lambda one: _created(nodes[one]))
    branch: dict[str, Mapping[str, Any]] = {}
    below = "current_node"
    while name is not None:
        node = nodes.get(name) if isinstance(name, str) else None
        if name in branch:
            report(BadRow(f"{where}, node {below}", "its parent comes after it; the messages above are left out."))
            break
        if not isinstance(node, Mapping):
            report(BadRow(f"{where}, node {below}", f"the node above it, {name!r}, is not under 'mapping'."))
            break
        branch[name] = node
        below, name = name, node.get("parent")
    return list(reversed(branch.items()))


def _created(node: Any) -> float:
    message = node.get("message") if isinstance(node, Mapping) else None
    when = message.get("create_time") if isinstance(message, Mapping) else None
    return float(when) if isinstance(when, int | float) else 0.0


def _is_hidden(message: Mapping[str, Any]) -> bool:
    """Return whether ChatGPT does not show a message, or it is empty."""
    content, notes = message.get("content"), message.get("metadata")
    if _role(message) == "system" or message.get("weight") == 0:
        return True
    if isinstance(notes, Mapping) and any(notes.get(mark) for mark in _HIDDEN):
        return True
    if not isinstance(content, Mapping):
        return False
    return content.get("content_type") in _NO_TURN or not any(_parts(content))


def _role(message: Mapping[str, Any]) -> Any:
    author = message.get("author")
    return author.get("role") if isinstance(author, Mapping) else author


def _parts(content: Mapping[str, Any]) -> Sequence[Any]:
    """Return the parts of a message's content; code, output and quotations have a text alone."""
    parts = content.get("parts")
    if isinstance(parts, list):
        return parts
    return [next((content[name] for name in _TEXTS if content.get(name)), None)]


def _item(
    where: str,
    id: str,
    message: Mapping[str, Any],
    session: str,
    position: int,
    when: datetime | None,
    metadata: Mapping[str, str],
) -> Item:
    author = message.get("author")
    name = author.get("name") if isinstance(author, Mapping) else None
    role = _role(message)
    content = message.get("content")
    if not isinstance(content, Mapping):
        raise RowError("it has no content.")
    return item(
        where,
        text=_text(content),
        id=id,
        author=str(name or role) if name or role else None,
        session=session,
        position=position,
        created_at=when,
        source_type=source_type_of(role),
        metadata=dict(metadata),
    )


def _text(content: Mapping[str, Any]) -> str:
    """Return the text of a message without marks of citations. Raises RowError where it has none."""
    texts: list[str] = []
    others: list[str] = []
    for part in _parts(content):
        text = part.get("text") if isinstance(part, Mapping) else part
        if isinstance(text, str):
            texts.append(_CITATION.sub("", text).strip())
        elif isinstance(part, Mapping):
            others.append(str(part.get("content_type", "object")))
    whole = "\n\n".join(filter(None, texts))
    if not whole:
        kinds = ", ".join(dict.fromkeys(others))
        raise RowError(f"it holds no text{f', only {kinds}' if kinds else ''}.")
    return whole
