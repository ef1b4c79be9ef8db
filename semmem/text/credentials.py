"""Credentials in a text: keys, tokens and passwords, by the formats their makers publish, and by entropy. Pure.

What is found is a place and a kind, never the text itself, so that a warning or a log does not repeat it.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["Credential", "credentials"]


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
