"""Screen memories for credentials, such as keys, tokens and passwords: warn of them, refuse them or hide them.

A credential is recognised by the format that its issuer publishes, by the words before it, or by its entropy. People
see kinds of credentials and ids of memories, never the credential itself, as a Python warning; a door with a better way
to show them collects the sentences by ``noting``.
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
    "kinds_of",
    "noted_of",
    "noting",
    "screened",
    "warn",
    "warn_of",
]

Screening: TypeAlias = Literal["warn", "refuse", "sensitive", "off"]
"""What happens to a memory that seems to hold a credential."""

T = TypeVar("T")

_NAMED = 5
_TO_DO = "store it with sensitive=True, or take it out"
_LABELS = ("title", "source", "author", "session", "tags", "metadata")
_noted: ContextVar[list[str] | None] = ContextVar("noted", default=None)


class Credential(NamedTuple):
    """A credential in a text: ``text[start:end]``, and its kind."""

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
_AFTER_WORD = re.compile(
    r"(?<![^\W_])(?:pass(?:word|phrase|wd|code)|pwd|secret|api[ _-]?key|access[ _-]?key|auth[ _-]?token|token|pin)\b"
    r"(?: (?:for|of|to) [^\s:=]{1,40}(?: [^\s:=]{1,40})?)?"
    r"\s{0,3}(?P<sign>[:=]|\bis\b|\bwas changed to\b|\bchanged to\b)\s{0,3}[\"'`]?(?P<said>[^\s\"'`,;]{4,200})",
    re.IGNORECASE,
)
_CALLED = re.compile(r"pass(?:w|phrase|code)|pwd|secret|key|token|pin", re.IGNORECASE)
"""A text without one of these words names no password; this test is cheaper than the full search."""
_SHORTEST = 15
"""The fewest characters, none of them blank, of a known format or of a random string."""
_RUN = re.compile(r"(?<![\w/+.-])[A-Za-z0-9+/_-]{20,200}={0,2}(?![\w/+.-])")
_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)
_HEX = re.compile(r"[0-9a-f]+", re.IGNORECASE)

_SIGN = re.compile(r"[\d\W_]")

LEAST_ENTROPY = 4.2
"""Bits per character: more than names, paths and hyphenated words of that length have, less than random base64 has."""


class CredentialWarning(UserWarning):
    """Warning: a stored memory seems to hold a credential, such as a password or a key."""


def screened(
    draft: Draft,
    screening: Screening,
    changed: Collection[str] | None = None,
    hidden: bool | None = None,
    kinds: tuple[str, ...] | None = None,
) -> Draft:
    """Return the draft with the kinds of credentials in it, and make it sensitive where the setting says so.

    ``changed`` are the fields of an update; other fields were screened when they were written. ``hidden`` says whether
    the memory will be sensitive. ``kinds`` are those of the credentials in the text, where they are known. Labels (all
    fields except the text) are always shown, so no setting can hide a credential in them. Raises InvalidInput where the
    setting refuses the memory.
    """
    memory = draft.memory
    hidden = memory.sensitive if hidden is None else hidden
    if hidden and draft.vector is not None:
        raise InvalidInput("A sensitive memory has no vector, because a vector reveals the text; leave vector out.")
    if hidden and changed is not None and "text" in changed and any(mask in memory.text for mask in MASKS):
        raise InvalidInput(
            "The new text holds the placeholder of the old text; get the old text with reveal, and change that."
        )
    if screening == "off":
        return draft
    opened = changed is not None and "sensitive" in changed and not hidden
    reads_text = not hidden and (changed is None or "text" in changed or opened)
    secret = () if not reads_text else kinds_of([memory.text]) if kinds is None else kinds
    shown = kinds_of(_labels(memory, changed))
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
        return replace(draft, memory=memory, payload=payload, vector=None, fields=draft.fields | {"sensitive"})
    return replace(draft, suspected=tuple(dict.fromkeys((*secret, *shown)))) if secret or shown else draft


def warn_of(drafts: Iterable[Draft]) -> None:
    """Warn of stored drafts that seem to hold credentials, with their ids and the kinds, but no text."""
    suspects = [draft for draft in drafts if draft.suspected]
    if not suspects:
        return
    kinds = _listed(dict.fromkeys(kind for draft in suspects for kind in draft.suspected))
    ids = ", ".join(ascii(draft.memory.id) for draft in suspects[:_NAMED])
    more = f" and {len(suspects) - _NAMED} more" if len(suspects) > _NAMED else ""
    sentence = f"A credential ({kinds}) seems to stand in the memory {ids}{more}: {_TO_DO}."
    warn(sentence)


def warn(sentence: str) -> None:
    """Issue a warning, or pass it to the enclosing ``noting`` block."""
    noted = _noted.get()
    if noted is None:
        warnings.warn(sentence, CredentialWarning, stacklevel=2)
    else:
        noted.append(sentence)


@contextmanager
def noting() -> Iterator[list[str]]:
    """Yield a list that receives the warnings issued in this thread inside the block."""
    noted: list[str] = []
    token = _noted.set(noted)
    try:
        yield noted
    finally:
        _noted.reset(token)


def noted_of(call: Callable[[], T]) -> tuple[T, list[str]]:
    """Call a function; return its result and the warnings it would have issued."""
    with noting() as noted:
        return call(), noted


def kinds_of(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the kinds of credentials in texts, each once."""
    return tuple(dict.fromkeys(one.kind for text in texts for one in credentials(text)))


def _listed(kinds: Iterable[str]) -> str:
    return ", ".join(kinds)


def _labels(memory: Memory, changed: Collection[str] | None) -> Iterator[str]:
    for name in _LABELS:
        if changed is None or name in changed:
            yield from _strings(getattr(memory, name))


def _strings(value: Any) -> Iterator[str]:
    """Yield the strings in a JSON value, each with the key above it, so that the key "password" is seen as well."""
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
    """Return the credentials in ``text`` in the order in which they stand, without overlaps."""
    chosen: list[Credential] = []
    end = 0
    long = "://" in text or "-----BEGIN" in text or any(len(word) >= _SHORTEST for word in text.split())
    runs = (*_by_format(text), *_random(text)) if long else ()
    after_words = _after_words(text) if _CALLED.search(text) else ()
    for one in sorted((*runs, *after_words), key=lambda one: (one.start, -one.end)):
        if one.start >= end:
            chosen.append(one)
            end = one.end
    return chosen


def _by_format(text: str) -> Iterator[Credential]:
    for match in _FORMATS.finditer(text):
        yield Credential((match.lastgroup or "").replace("_", " "), match.start(), match.end())


def _after_words(text: str) -> Iterator[Credential]:
    """Yield what follows a word such as password or key; after "is" it must hold a digit or a sign."""
    for match in _AFTER_WORD.finditer(text):
        secret = match["said"].rstrip(".!?)")
        plain = secret.isalpha() if match["sign"] in (":", "=") else not _SIGN.search(secret)
        if len(secret) >= 4 and not plain and not secret.startswith(("<", "$", "{", "***", "http://", "https://")):
            yield Credential("password", match.start("said"), match.start("said") + len(secret))


def _random(text: str) -> Iterator[Credential]:
    """Yield long runs that look random: letters of both cases and digits, of high entropy."""
    for match in _RUN.finditer(text):
        run = match.group().rstrip("=")
        mixed = any(map(str.isdigit, run)) and any(map(str.isupper, run)) and any(map(str.islower, run))
        if mixed and not _HEX.fullmatch(run) and not _UUID.search(run) and entropy(run) >= LEAST_ENTROPY:
            yield Credential("random string", match.start(), match.end())


def entropy(run: str) -> float:
    """Return the Shannon entropy of the characters of ``run``, in bits per character."""
    return -sum(count / len(run) * math.log2(count / len(run)) for count in Counter(run).values())
