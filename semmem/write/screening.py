"""Screening of memories for credentials: keys, tokens and passwords, which are warned of, refused or made sensitive.

A credential is recognised by the format that its maker publishes, by what is said before it, and by entropy. What a
person sees are kinds and ids, never the credential itself, as a warning of Python; a door that has a better way takes
the sentences by ``noting``.
"""

from __future__ import annotations

import math
import re
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

from semmem.model.errors import InvalidInput
from semmem.model.types import MASKS, Memory
from semmem.write.items import Draft, payload_of

__all__ = [
    "Credential",
    "CredentialWarning",
    "Screening",
    "credentials",
    "entropy",
    "noted_of",
    "noting",
    "screened",
    "warn",
    "warn_of",
]

Screening: TypeAlias = Literal["warn", "refuse", "sensitive", "off"]
"""What becomes of a memory in which a credential seems to stand."""

T = TypeVar("T")

_NAMED = 5
_TO_DO = "store it with sensitive=True, or take it out"
_LABELS = ("title", "source", "author", "session", "tags", "metadata")
_noted: ContextVar[list[str] | None] = ContextVar("noted", default=None)


class Credential(NamedTuple):
    """Where a credential stands: ``text[start:end]``, and what it is."""

    kind: str
    start: int
    end: int


_FORMATS = re.compile(
    r"(?P<private_key>-----BEGIN (?:[A-Z]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----)"
    r"|(?P<aws_access_key>\b(?:AKIA|ASIA)[0-9A-Z]{16}\b)"
    r"|(?P<github_token>\b(?:gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{60,255})\b)"
    r"|(?P<gitlab_token>\bglpat-[A-Za-z0-9_-]{20,64})"
    r"|(?P<anthropic_key>\bsk-ant-[A-Za-z0-9_-]{20,200})"
    r"|(?P<openai_key>\bsk-(?:proj-)?[A-Za-z0-9_-]{32,200})"
    r"|(?P<stripe_key>\b[rs]k_(?:live|test)_[A-Za-z0-9]{16,120}\b)"
    r"|(?P<slack_token>\bxox[abeoprs]-[A-Za-z0-9-]{10,200})"
    r"|(?P<google_key>\bAIza[0-9A-Za-z_-]{35})"
    r"|(?P<huggingface_token>\bhf_[A-Za-z0-9]{30,60}\b)"
    r"|(?P<npm_token>\bnpm_[A-Za-z0-9]{36}\b)"
    r"|(?P<pypi_token>\bpypi-[A-Za-z0-9_-]{50,250})"
    r"|(?P<json_web_token>\beyJ[A-Za-z0-9_-]{8,2000}\.eyJ[A-Za-z0-9_-]{8,4000}\.[A-Za-z0-9_-]{8,1000})"
    r"|(?P<password_in_url>\b[a-z][a-z0-9+.-]{1,20}://[^\s/:@]{1,100}:(?![*<$\{])[^\s/@]{3,200}@[\w.-]{1,200})"
)
_SAID = re.compile(
    r"(?<![^\W_])(?:pass(?:word|phrase|wd|code)|pwd|secret|api[ _-]?key|access[ _-]?key|auth[ _-]?token|token|pin)\b"
    r"(?: (?:for|of|to) [^\s:=]{1,40}(?: [^\s:=]{1,40})?)?"
    r"\s{0,3}(?P<sign>[:=]|\bis\b|\bwas changed to\b|\bchanged to\b)\s{0,3}[\"'`]?(?P<said>[^\s\"'`,;]{4,200})",
    re.IGNORECASE,
)
_CALLED = re.compile(r"pass(?:w|phrase|code)|pwd|secret|key|token|pin", re.IGNORECASE)
"""Without one of these nothing is said to be a password: cheaper than the search for one."""
_SHORTEST = 15
"""Characters, none of them blank, that a known format or a random string has at the least."""
_RUN = re.compile(r"(?<![\w/+.-])[A-Za-z0-9+/_-]{20,200}={0,2}(?![\w/+.-])")
_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)
_HEX = re.compile(r"[0-9a-f]+", re.IGNORECASE)

_SIGN = re.compile(r"[\d\W_]")

LEAST_ENTROPY = 4.2
"""Bits a character: above what names, paths and words joined by hyphens have at that length, below random base64."""


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
    if hidden and changed is not None and "text" in changed and any(mask in memory.text for mask in MASKS):
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


# ---------------------------------------------------------------------- credentials in a text


def credentials(text: str) -> list[Credential]:
    """Return the credentials in ``text``, in the order in which they stand; none overlaps another."""
    found: list[Credential] = []
    end = 0
    long = "://" in text or "-----BEGIN" in text or any(len(word) >= _SHORTEST for word in text.split())
    runs = (*_known(text), *_random(text)) if long else ()
    said = _said(text) if _CALLED.search(text) else ()
    for one in sorted((*runs, *said), key=lambda one: (one.start, -one.end)):
        if one.start >= end:
            found.append(one)
            end = one.end
    return found


def _known(text: str) -> Iterator[Credential]:
    for match in _FORMATS.finditer(text):
        yield Credential((match.lastgroup or "").replace("_", " "), match.start(), match.end())


def _said(text: str) -> Iterator[Credential]:
    """Yield what is called a password or a key: after "is", what holds a digit or a sign, so that no word is taken."""
    for match in _SAID.finditer(text):
        said = match["said"].rstrip(".!?)")
        plain = said.isalpha() if match["sign"] in (":", "=") else not _SIGN.search(said)
        if len(said) >= 4 and not plain and not said.startswith(("<", "$", "{", "***", "http://", "https://")):
            yield Credential("password", match.start("said"), match.start("said") + len(said))


def _random(text: str) -> Iterator[Credential]:
    """Yield long runs that look drawn by chance: letters of both cases and digits, of high entropy."""
    for match in _RUN.finditer(text):
        run = match.group().rstrip("=")
        mixed = any(map(str.isdigit, run)) and any(map(str.isupper, run)) and any(map(str.islower, run))
        if mixed and not _HEX.fullmatch(run) and not _UUID.search(run) and entropy(run) >= LEAST_ENTROPY:
            yield Credential("random string", match.start(), match.end())


def entropy(run: str) -> float:
    """Return Shannon's entropy of the characters of ``run``, in bits a character."""
    return -sum(count / len(run) * math.log2(count / len(run)) for count in Counter(run).values())
