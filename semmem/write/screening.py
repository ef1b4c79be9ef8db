"""Screening of what is to be remembered for credentials: warned of, refused, or stored as sensitive. No text is told.

What a person sees are kinds and ids, as a warning of Python; a door that has a better way takes them by ``noting``.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, Literal, TypeAlias, TypeVar

from semmem.model.errors import InvalidInput
from semmem.model.types import MASK, Memory
from semmem.text.credentials import credentials
from semmem.write.items import Draft, payload_of

__all__ = ["CredentialWarning", "Screening", "noted_of", "noting", "screened", "warn", "warn_of"]

Screening: TypeAlias = Literal["warn", "refuse", "sensitive", "off"]
"""What becomes of a memory in which a credential seems to stand."""

T = TypeVar("T")

_NAMED = 5
_TO_DO = "store it with sensitive=True, or take it out"
_LABELS = ("title", "source", "author", "session", "tags", "metadata")
_noted: ContextVar[list[str] | None] = ContextVar("noted", default=None)


class CredentialWarning(UserWarning):
    """What was remembered seems to hold a credential, such as a password or a key."""


def screened(
    draft: Draft, screening: Screening, changed: Collection[str] | None = None, hidden: bool | None = None
) -> Draft:
    """Return a draft with the kinds of the credentials in it, sensitive where the setting makes it so.

    ``changed`` are the fields that an update gives; the others were looked at when they were written. ``hidden`` says
    whether the memory is sensitive after it. Labels, which are everything but the text, are always shown, so no setting
    hides them. Raises InvalidInput.
    """
    memory = draft.memory
    hidden = memory.sensitive if hidden is None else hidden
    if hidden and draft.vector is not None:
        raise InvalidInput("A sensitive memory has no vector, which would tell of its text; leave vector out.")
    if hidden and changed is not None and "text" in changed and MASK in memory.text:
        raise InvalidInput(
            "The new text holds the mark that stands for the old one; get that with reveal, and change what you read."
        )
    if screening == "off":
        return draft
    opened = changed is not None and "sensitive" in changed and not hidden
    asked = not hidden and (changed is None or "text" in changed or opened)
    secret = _kinds([memory.text]) if asked else ()
    shown = _kinds(_labels(memory, changed))
    if shown and screening != "warn":
        raise InvalidInput(
            f"A label of this memory (title, tags, source, metadata …) seems to hold a credential ({_listed(shown)}), "
            f"and labels are always shown; the setting credentials is {screening}, so put it into the text."
        )
    if secret and (screening == "refuse" or (screening == "sensitive" and opened)):
        raise InvalidInput(
            f"The text seems to hold a credential ({_listed(secret)}), and the setting credentials is {screening}; "
            f"{_TO_DO}."
        )
    if secret and screening == "sensitive":
        memory = replace(memory, sensitive=True)
        payload = payload_of(memory, timed=draft.timed)
        return replace(draft, memory=memory, payload=payload, vector=None, given=draft.given | {"sensitive"})
    return replace(draft, suspected=tuple(dict.fromkeys((*secret, *shown))))


def warn_of(drafts: Iterable[Draft]) -> None:
    """Warn of the drafts that were stored and seem to hold credentials: their ids and the kinds, no text."""
    suspects = [draft for draft in drafts if draft.suspected]
    if not suspects:
        return
    kinds = _listed(dict.fromkeys(kind for draft in suspects for kind in draft.suspected))
    ids = ", ".join(ascii(draft.memory.id) for draft in suspects[:_NAMED])
    more = f" and {len(suspects) - _NAMED} more" if len(suspects) > _NAMED else ""
    sentence = f"A credential ({kinds}) seems to stand in the memory {ids}{more}: {_TO_DO}."
    warn(sentence)


def warn(sentence: str) -> None:
    """Give a sentence to who takes them by ``noting``, else warn of it."""
    noted = _noted.get()
    if noted is None:
        warnings.warn(sentence, CredentialWarning, stacklevel=2)
    else:
        noted.append(sentence)


@contextmanager
def noting() -> Iterator[list[str]]:
    """Yield a list that gets what would be warned of meanwhile, in this thread."""
    noted: list[str] = []
    token = _noted.set(noted)
    try:
        yield noted
    finally:
        _noted.reset(token)


def noted_of(call: Callable[[], T]) -> tuple[T, list[str]]:
    """Call, and return with the value what would be warned of."""
    with noting() as noted:
        return call(), noted


def _kinds(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(one.kind for text in texts for one in credentials(text)))


def _listed(kinds: Iterable[str]) -> str:
    return ", ".join(kinds)


def _labels(memory: Memory, changed: Collection[str] | None) -> Iterator[str]:
    for name in _LABELS:
        if changed is None or name in changed:
            yield from _strings(getattr(memory, name))


def _strings(value: Any) -> Iterator[str]:
    """Yield the strings in JSON; those under a key together with it, so that "password" counts as what it says."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, one in value.items():
            yield from ((f"{key}: {one}",) if isinstance(one, str) else _strings(one))
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _strings(one)
