"""Chat transcripts: one message a line, or message arrays as the OpenAI and Anthropic APIs have them.

A ``.jsonl`` file has one message a line, or one conversation a line (``{"messages": […]}``); any other file is one
JSON value: an array of messages, a conversation, or an array of conversations. A message has ``role``, ``author``,
``speaker`` or ``name``; ``content``, ``text`` or ``message`` (a string, or parts, of which the text is read), to which
the ``extracted_content`` of ``attachments`` is added; and optionally ``timestamp``, ``session`` and ``id``, and the
fields of ``LIFE``. One message becomes one memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any

from semmem.importers import BadRow, Reject, document, lines, moment
from semmem.importers import refuse as _refuse
from semmem.importers.chatgpt import is_export
from semmem.model.errors import InvalidInput
from semmem.model.imported_items import Item, RowError, item, life_of, plain_text
from semmem.model.types import Memory, source_type_of

__all__ = ["name_of", "read"]

_AUTHOR = ("author", "speaker", "name", "role", "sender")
_TEXT = ("content", "text", "message")
_TIME = ("timestamp", "created_at", "create_time", "time", "date", "ts")
_SESSION = ("session", "session_id", "conversation", "conversation_id", "thread_id", "thread", "chat_id")
_ID = ("id", "uuid", "message_id")
_MESSAGES = ("messages", "turns", "chat_messages")
_BEGINNING = 20
_LINES = (".jsonl", ".ndjson")


def read(path: Path, *, reject: Reject | None = None, name: str | None = None) -> Iterator[Item]:
    """Yield one item per message; positions count from 0 in each session.

    A message without a session belongs to the session ``name``, by default the file's name. A message without an id is
    identified by session and position, so a transcript that has grown can be read again and nothing is stored twice. A
    message without a time has the time of the message before it in its session. A message that cannot be stored, or has
    no text, goes to ``reject`` with its line; without ``reject`` it raises BadItem. It still counts as a position, so
    that later ids do not shift.
    """
    report = reject or _refuse
    positions: Counter[str] = Counter()
    times: dict[str, datetime] = {}
    for where, row, session in _messages(path, report, name or path.stem):
        try:
            yield _item(where, row, session, positions, times)
        except RowError as error:
            report(BadRow(where, str(error)))


def name_of(
    path: Path,
    stored: Callable[[list[str]], Sequence[Memory]],
    before: Sequence[str] = (),
    *,
    replace: bool = False,
) -> str:
    """Return the name of a transcript's session: the file's name, with a hash where another transcript has that name.

    ``stored`` returns the memories of ids, ``before`` are the names of transcripts read from the same place. A
    transcript is recognised by its beginning, wherever its file is: most of the first messages are equal, or half of
    them at the same place. The hash is that of the beginning, as long as it was when first read. With ``replace`` the
    transcript last read from the same place is this one, even if its beginning has changed.
    """
    stem = path.stem
    items = (item for item in read(path, reject=lambda row: None) if str(item["id"]).startswith(f"{stem}:"))
    first = list(islice(items, _BEGINNING))
    if not first:
        return stem
    hashes = [f"{stem}-{_hashed(first[:count])}" for count in range(len(first), 0, -1)]
    names = list(before) if replace and before else list(dict.fromkeys([*before, stem, *hashes]))
    rest = [str(item["id"])[len(stem) :] for item in first]
    by_id = {memory.id: memory for memory in stored([name + end for name in names for end in rest])}
    free: list[str] = []
    for name in names:
        both = [(item, by_id[name + end]) for item, end in zip(first, rest, strict=True) if name + end in by_id]
        same = sum((item["text"], item.get("author")) == (memory.text, memory.author) for item, memory in both)
        if both and (2 * same > len(both) or (name in before and 2 * same == len(both))):
            return name
        if not both:
            free.append(name)
    if replace and before:
        return before[0]
    return next((name for name in (stem, *hashes) if name in free), hashes[0])


def _hashed(first: Sequence[Item]) -> str:
    """Return a hash of the first messages, which tells a transcript from others."""
    content = repr([(str(item["id"]), item.get("author"), item["text"]) for item in first])
    return blake2b(content.encode(errors="surrogatepass"), digest_size=8).hexdigest()


def _messages(path: Path, reject: Reject, stem: str) -> Iterator[tuple[str, Any, str]]:
    """Yield (where, message, default session) of each message."""
    if path.suffix.lower() in _LINES:
        rows = lines(path, reject)
    else:
        value = document(path)
        if is_export(value):
            raise InvalidInput(f"{path} is an export of ChatGPT; use: semmem import chatgpt")
        if isinstance(value, Mapping):
            value = [value]
        if not isinstance(value, list):
            raise InvalidInput(f"{path} holds {type(value).__name__}, not messages or conversations.")
        kind = "conversation" if any(_of(row, _MESSAGES) is not None for row in value) else "message"
        rows = ((f"{kind} {number}", row) for number, row in enumerate(value, 1))
    for where, row in rows:
        inside = _of(row, _MESSAGES)
        if inside is None:
            yield where, row, stem
            continue
        if not isinstance(inside, list):
            reject(BadRow(where, f"its messages are {type(inside).__name__}, not a list."))
            continue
        number = where.rpartition(" ")[2]
        alone = where == "conversation 1" and isinstance(row, Mapping) and not _of(row, (*_ID, *_SESSION))
        session = str(_of(row, (*_ID, *_SESSION)) or (stem if alone else f"{stem}:{number}"))
        when = _of(row, _TIME)
        for place, message in enumerate(inside, 1):
            dated = isinstance(message, Mapping) and _of(message, _TIME) is None and when is not None
            yield f"{where}, message {place}", {**message, "timestamp": when} if dated else message, session


def _item(where: str, row: Any, session: str, positions: Counter[str], times: dict[str, datetime]) -> Item:
    if not isinstance(row, Mapping):
        raise RowError(f"it is {type(row).__name__}, not a message.")
    own = _of(row, _SESSION)
    session = session if own is None else str(own)
    position = positions[session]
    positions[session] += 1
    content = _of(row, _TEXT)
    if isinstance(content, Mapping) and _of(content, _TEXT) is not None:  # a transcript wraps {"role", "content"}
        row = {**row, **content}
        content = _of(content, _TEXT)
    text = plain_text([*(content if isinstance(content, list) else [content]), *_pasted(row)])
    times_own = moment(_of(row, _TIME))
    if times_own is not None:
        times[session] = times_own
    author, id = _of(row, _AUTHOR), _of(row, _ID)
    return item(
        where,
        text=text,
        id=f"{session}:{position}" if id is None else str(id),
        author=_name(author),
        session=session,
        position=position,
        created_at=times.get(session),
        source_type=row.get("source_type") or _source_type(row),
        **life_of(row),
    )


def _pasted(row: Mapping[str, Any]) -> list[str]:
    """Return the texts that the person pasted into a message; Claude.ai's export has them as attachments."""
    attachments = row.get("attachments")
    found = (_of(one, ("extracted_content",)) for one in (attachments if isinstance(attachments, list) else ()))
    return [one for one in found if isinstance(one, str)]


def _of(row: Any, names: tuple[str, ...]) -> Any:
    """Return the value of the first of the fields ``names`` that the row has, None where it has none of them."""
    if not isinstance(row, Mapping):
        return None
    return next((row[name] for name in names if row.get(name) is not None), None)


def _source_type(row: Mapping[str, Any]) -> str | None:
    """Return who a message comes from by its role, else by a speaker that is named as a role is."""
    author = row.get("author")
    role = author.get("role") if isinstance(author, Mapping) else None
    return source_type_of(role or _of(row, ("role", "sender", *_AUTHOR)))


def _name(author: Any) -> str | None:
    """Return the author: a name, or the role where the author is an object such as {"role": …}."""
    if isinstance(author, Mapping):
        author = _of(author, ("name", "role"))
    return None if author is None else str(author)
