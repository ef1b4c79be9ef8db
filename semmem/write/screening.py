"""Screen memories for credentials, such as keys, tokens and passwords: warn of them, redact, refuse or hide them.

A credential is recognised by the format that its issuer publishes, by the words before it, or by its entropy. People
see kinds of credentials and ids of memories, never the credential itself, as a Python warning; an interface with a
better way to show them collects the sentences by ``noting``.
"""

from __future__ import annotations

import math
import re
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

from semmem.model.errors import InvalidInput
from semmem.model.imported_items import NOTE_HASH, Item, edited, hash_of, hashed
from semmem.model.types import MASKS, REMOVED, Memory, unhashed
from semmem.write.items import Draft, payload_of

__all__ = [
    "Credential",
    "CredentialWarning",
    "Screening",
    "check_mark",
    "credentials",
    "entropy",
    "kinds_of",
    "noted_of",
    "noting",
    "redacted",
    "redacted_note",
    "screened",
    "warn",
    "warn_of",
    "without_credentials",
]

Screening: TypeAlias = Literal["warn", "redact", "refuse", "sensitive", "off"]
"""What happens to a memory that seems to hold a credential."""

T = TypeVar("T")

_NAMED = 5
_TO_DO = "store it with sensitive=True, or take it out"
_LABELS = ("title", "source", "author", "session", "tags", "metadata")
_noted: ContextVar[list[str] | None] = ContextVar("noted", default=None)


class Credential(NamedTuple):
    """A credential in a text: ``text[start:end]``, its kind, and what may stay in the open of it."""

    kind: str
    start: int
    end: int
    shown: str = ""


_KEYS = re.compile(
    r"(?P<private_key>-----BEGIN (?:[A-Z]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----)"
    r"|(?P<putty_key>\bPrivate-Lines: \d{1,4})"
)
_FORMATS = re.compile(
    r"\b(?:(?P<aws_access_key>(?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16}\b)"
    r"|(?P<github_token>(?:gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{60,255})\b)"
    r"|(?P<gitlab_token>(?:gl(?:pat|dt|rt|cbt|ptt|ft|soat|oas|imt|agent)-|GR1348941)[A-Za-z0-9_-]{20,100})"
    r"|(?P<anthropic_key>sk-ant-[A-Za-z0-9_-]{20,200})"
    r"|(?P<openai_key>sk-(?:proj-|svcacct-|admin-|or-v1-)?(?=[A-Za-z_-]{0,31}\d)[A-Za-z0-9_-]{32,250})"
    r"|(?P<stripe_key>(?:[rs]k_(?:live|test)_|whsec_)[A-Za-z0-9]{16,250}\b)"
    r"|(?P<slack_token>(?:xox[abceoprs]|xapp)-[A-Za-z0-9-]{10,250})"
    r"|(?P<webhook>(?:hooks\.slack\.com/(?:services|workflows)|discord(?:app)?\.com/api/webhooks)/(?P<of_webhook>[\w/-]{20,200}))"
    r"|(?P<google_key>(?:AIza[0-9A-Za-z_-]{35}|ya29\.[0-9A-Za-z_-]{20,250}|GOCSPX-[0-9A-Za-z_-]{20,60}))"
    r"|(?P<huggingface_token>hf_[A-Za-z0-9]{30,60}\b)"
    r"|(?P<npm_token>npm_[A-Za-z0-9]{36}\b)"
    r"|(?P<pypi_token>pypi-[A-Za-z0-9_-]{50,250})"
    r"|(?P<service_token>(?:(?:do[opr]_v1|shp(?:at|ca|pa|ss)|dckr_pat|lin_api|glsa|sntr[yu]s|figd|sbp|pscale_tkn|gsk"
    r"|r8|ntn|tskey|rubygems|phc|phx|semmem)_|(?:hv[sb]|dp\.(?:pt|st|ct)|SG)\.|(?:xai|pplx|PMAK|NRAK|sq0csp|dapi"
    r"|AGE-SECRET-KEY)-)(?=[A-Za-z_.-]{0,30}\d)[A-Za-z0-9_.-]{20,250})"
    r"|(?P<telegram_token>\d{8,10}:AA[A-Za-z0-9_-]{33}\b)"
    r"|(?P<json_web_token>eyJ[A-Za-z0-9_-]{8,4000}\.eyJ[A-Za-z0-9_-]{8,20000}\.[A-Za-z0-9_-]{8,2000})"
    r"|(?P<password_in_url>(?i:[a-z][a-z0-9+.-]{1,20})://[^\s/:@]{0,100}:(?![*<$\{\[])"
    r"(?P<in_url>[^\s/]{2,200})@[\w.-]{1,200})"
    r"|(?P<bearer_token>[Bb]earer\s{1,3}(?P<of_bearer>(?=[A-Za-z_.~+/-]{0,60}\d)[\w.~+/-]{16,4000}={0,2}))"
    r"|(?P<basic_authorization>[Aa]uthorization[\"']?:\s{0,3}[\"']?Basic\s{1,3}(?P<of_basic>[A-Za-z0-9+/]{8,400}={0,2}))"
    r"|(?P<password_of_curl>curl\b[^\n]{0,200}?\s(?:-u|--user)\s{0,3}[\"']?[\w.@-]{1,60}:"
    r"(?P<of_curl>(?![<$\{*\[])[^\s\"'`]{3,200})))"
)
_OPTIONS = re.compile(
    r"(?P<password_option>(?:\s|^)--(?:pass(?:word|phrase|wd)|token|api-key|secret(?:-key)?)\s{1,3}"
    r"[\"']?(?P<of_option>(?![<$\{*\[-])[^\s\"'`,;]{4,200}))"
)
_INNER = ("of_webhook", "in_url", "of_bearer", "of_basic", "of_option", "of_curl")
"""The groups of a format of which one is the credential, and the rest shows what it is for."""
_ISSUER = re.compile(
    r"github_pat_|sk-ant-|sk-(?:proj|svcacct|admin)-|[rs]k_(?:live|test)_|GR1348941|AGE-SECRET-KEY-|"
    r"[A-Za-z0-9]{2,9}(?:_v1)?[-_.]|A[A-Z]{3}(?=[0-9A-Z]{16})|AIza|eyJ"
)
"""How a credential begins that says who has issued it; no part of the secret."""
_KEY_END = re.compile(r"-----END [A-Z ]{1,60}-----")
_KEY_LINES = re.compile(r"(?:(?:\r?\n|\\r|\\n)(?:[A-Za-z-]{1,40}: [^\n]{0,200}|[^\s]{1,100}(?=\r?\n|\Z)))*")
"""The lines of a private key without a last line: those with a name and a colon, and those without a blank."""
_LONGEST_KEY = 40_000
_WORDS = (
    r"pass(?:word|phrase|wd|code)|pwd|secret|token|pin|(?:api|access|account|auth|client|encryption|master|private|secret"
    r"|signing)[ _-]?(?:key|token|secret)|passwort|kennwort|contraseña|mot de passe"
)
_AFTER_WORD = re.compile(
    rf"(?:(?<![^\W_])|(?-i:(?<=[a-z])(?=[A-Z])))(?P<word>{_WORDS})\b[\"']?"
    r"(?: (?:for|of|to|für|de|del|du) [^\s:=]{1,40}(?: [^\s:=]{1,40})?)?"
    r"\s{0,3}(?P<sign>:=|[:=]|\b(?:is|ist|lautet|es|est)\b|\bwas changed to\b|\bchanged to\b)\s{0,3}"
    r"(?:(?P<quote>[\"'`])(?P<quoted>[^\"'`\n]{4,200})(?P=quote)|[\"'`]?(?P<said>[^\s\"'`,;]{4,2000}))",
    re.IGNORECASE,
)
_CALLED = re.compile(r"pass(?:w|phrase|code|e\b)|pwd|secret|key|token|pin|kennwort|contraseña", re.IGNORECASE)
"""A text without one of these words names no password; this test is cheaper than the full search."""
_PLAIN_KEY = re.compile(r"\d+|values?|text|content", re.IGNORECASE)
_OF_DIGITS = re.compile(r"pass(?:word|code|wd)|pwd|kennwort|passwort|(?<![^\W_])pin(?![^\W_])", re.IGNORECASE)
"""Keys whose credential may be a number; a number of tokens is none."""
_SHORTEST = 15
"""The fewest characters, none of them blank, of a random string, and of a known format without one of these signs."""
_SIGNS = ("://", "--", "curl", "asic ")
_RUN = re.compile(r"(?<![\w/+.-])[A-Za-z0-9+/_-]{20,200}={0,2}(?![\w/+.-])")
_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)
_HEX = re.compile(r"[0-9a-f]+", re.IGNORECASE)

_SIGN = re.compile(r"[\d\W_]")
_PLACEHOLDER = re.compile(r"[<$\{\[]|\*\*\*|https?://|%[(sd]|(?:.{1,12}…)?\[removed\]")
_EXPRESSION = re.compile(r"[A-Za-z_]+(?:\.[A-Za-z_]+)*(?:[(\[{|].*|\)+)?")
"""A name of a program without a number, an attribute or a call: a value that stands elsewhere."""
_PIECE = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+")
_LETTERS_A_WORD = 2.8
"""Fewer letters on average than names such as HttpServerV2 have in a part, more than random strings have (1.9)."""

LEAST_ENTROPY = 4.2
"""Bits per character: more than names, paths and hyphenated words of that length have, less than random base64 has."""


class CredentialWarning(UserWarning):
    """Warning: a stored memory seems to hold a credential, such as a password or a key, or held it and is redacted."""


def screened(
    draft: Draft,
    screening: Screening,
    changed: Collection[str] | None = None,
    hidden: bool | None = None,
    kinds: tuple[str, ...] | None = None,
) -> Draft:
    """Return the draft with the kinds of credentials in it, and redact it or make it sensitive by the setting.

    ``changed`` are the fields of an update; other fields were screened when they were written. ``hidden`` says whether
    the memory will be sensitive. ``kinds`` are those of the credentials in the text, where they are known. Labels (all
    fields except the text) are always shown, so no setting can hide a credential in them; they are redacted or refused.
    Raises InvalidInput where the setting refuses the memory.
    """
    memory = draft.memory
    hidden = memory.sensitive if hidden is None else hidden
    if hidden and draft.vector is not None:
        raise InvalidInput("A sensitive memory has no vector, because a vector reveals the text; leave vector out.")
    if hidden and changed is not None and "text" in changed and any(mask in memory.text for mask in MASKS):
        raise InvalidInput(
            "The new text holds the placeholder of the old text; get the old text with reveal, and change that."
        )
    if (
        hidden
        and changed is not None
        and "metadata" in changed
        and any(one in MASKS for one in memory.metadata.values())
    ):
        raise InvalidInput(
            "The new metadata holds the placeholder of the old text; get the memory with reveal, and change that."
        )
    if screening == "off":
        return draft
    opened = changed is not None and "sensitive" in changed and not hidden
    reads_text = not hidden and (changed is None or "text" in changed or opened)
    secret = () if not reads_text else kinds_of([memory.text]) if kinds is None else kinds
    shown = kinds_of(_labels(memory, changed))
    if shown and screening in ("refuse", "sensitive"):
        raise InvalidInput(
            f"A label of this memory (title, tags, source, metadata …) seems to hold a credential ({_listed(shown)}), "
            f"and labels are always shown; the setting credentials is {screening}, so put it into the text."
        )
    stays = opened and "text" not in (changed or ())  # no update changes a text that it does not give
    if secret and (screening == "refuse" or (screening == "sensitive" and opened) or (screening == "redact" and stays)):
        raise InvalidInput(
            f"The text seems to hold a credential ({_listed(secret)}), and the setting credentials is {screening}; "
            f"{_TO_DO}."
        )
    if not secret and not shown:
        return draft
    suspected = tuple(dict.fromkeys((*secret, *shown)))
    if screening == "redact":
        draft = _redacted(draft, bool(secret), changed, suspected)
        if left := kinds_of(_labels(draft.memory, changed)):
            raise InvalidInput(
                f"A label of this memory seems to hold a credential ({_listed(left)}) that cannot be removed; leave it "
                "out."
            )
        return draft
    if secret and screening == "sensitive":
        if draft.id_of_content:
            raise InvalidInput(
                f"The text seems to hold a credential ({_listed(secret)}), and the id, which is made from the content, "
                "would reveal it; give it an id of its own."
            )
        memory = unhashed(replace(memory, sensitive=True))
        payload = payload_of(memory, timed=draft.timed)
        return replace(draft, memory=memory, payload=payload, vector=None, fields=draft.fields | {"sensitive"})
    return replace(draft, suspected=suspected)


def _redacted(draft: Draft, text: bool, changed: Collection[str] | None, suspected: tuple[str, ...]) -> Draft:
    """Return the draft without its credentials; a given vector, which reveals the text, goes with those of the text."""
    memory = draft.memory
    changes: dict[str, Any] = {
        name: without_credentials(getattr(memory, name)) for name in _LABELS if changed is None or name in changed
    }
    bare = replace(memory, **changes, text=redacted(memory.text)[0] if text else memory.text)
    if changed is None and NOTE_HASH in memory.metadata and not edited(memory):  # it stays as it was imported
        bare = replace(bare, metadata={**bare.metadata, NOTE_HASH: hash_of(bare)})
    vector = None if text else draft.vector
    payload = payload_of(bare, timed=draft.timed)
    return replace(draft, memory=bare, payload=payload, vector=vector, suspected=suspected, redacted=True)


def redacted_note(note: Item) -> Item:
    """Return a note as it is stored without its credentials, with the hash of that."""
    bare = Item({**note, **{name: without_credentials(note[name]) for name in _LABELS if name in note}})
    bare["text"], _ = redacted(note["text"])
    if NOTE_HASH in bare.get("metadata", ()):
        hashed(bare)
    return bare


def without_credentials(value: Any) -> Any:
    """Return a JSON value without the credentials in it; a value is read with the key above it, such as "password"."""
    return _without_under("", value)


def _without_under(above: str, value: Any) -> Any:
    if isinstance(value, dict):
        return _without_in_keys(above, value)
    if isinstance(value, list | tuple):
        return type(value)(_without_under(above, one) for one in value)
    if not _is_read(above, value):
        return value
    beginning = f"{above}: " if above else ""
    whole, count = redacted(f"{beginning}{value}")
    if not whole.startswith(beginning):
        whole, count = redacted(str(value))
        return whole if count else value
    return whole[len(beginning) :] if count else value


def _without_in_keys(above: str, value: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object without the credentials in its keys and below them; keys that are alike then get a number."""
    kept: dict[str, Any] = {}
    for key, one in value.items():
        name = shown = redacted(key)[0]
        number = 1
        while name in kept:
            number += 1
            name = f"{shown} {number}"
        kept[name] = _without_under(_telling(above, shown), one)
    return kept


def check_mark(mark: Mapping[str, Any], screening: Screening) -> None:
    """Warn of credentials in the metadata that an import gives to every memory; refuse them by the setting."""
    kinds = () if screening == "off" else kinds_of(_strings(mark))
    if not kinds:
        return
    said = f"The mark of an import, which each of its memories gets, seems to hold a credential ({_listed(kinds)})"
    if screening == "warn":
        warn(f"{said}: take it out.")
        return
    raise InvalidInput(f"{said}, and the setting credentials is {screening}; take it out. Nothing was stored.")


def warn_of(drafts: Iterable[Draft]) -> None:
    """Warn of stored drafts that seem to hold credentials, or held them, with their ids and the kinds, but no text."""
    suspects = [draft for draft in drafts if draft.suspected]
    if not suspects:
        return
    kinds = _listed(dict.fromkeys(kind for draft in suspects for kind in draft.suspected))
    ids = ", ".join(ascii(draft.memory.id) for draft in suspects[:_NAMED])
    more = f" and {len(suspects) - _NAMED} more" if len(suspects) > _NAMED else ""
    if any(draft.redacted for draft in suspects):
        warn(f"A credential ({kinds}) was removed from the memory {ids}{more} before it was stored.")
    else:
        warn(f"A credential ({kinds}) seems to be in the memory {ids}{more}: {_TO_DO}.")


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


def _strings(value: Any, above: str = "") -> Iterator[str]:
    """Yield the keys and values in a JSON value, each value with a key above it, so that "password" is seen as well."""
    if isinstance(value, dict):
        for key, one in value.items():
            yield key
            yield from _strings(one, _telling(above, key))
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _strings(one, above)
    elif _is_read(above, value):
        yield f"{above}: {value}" if above else str(value)


def _telling(above: str, key: str) -> str:
    """Return the key that says most of a value: its own, or where that is as plain as "value" the one above it."""
    return above if above and _PLAIN_KEY.fullmatch(key) else key


def _is_read(above: str, value: object) -> bool:
    """Return whether a value may be a credential: a string, or a whole number below a key such as "pin"."""
    number = isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, str) or (number and _OF_DIGITS.search(above) is not None)


# ---------------------------------------------------------------------- credentials in a text


def credentials(text: str) -> list[Credential]:
    """Return the credentials in ``text`` in the order in which they stand, without overlaps."""
    chosen: list[Credential] = []
    may_be = any(sign in text for sign in _SIGNS) or any(
        len(word) >= _SHORTEST and not _is_word(word) for word in text.split()
    )
    runs = (*_by_format(text), *_random(text)) if may_be else ()
    after_words = _after_words(text) if _CALLED.search(text) else ()
    for one in sorted((*runs, *after_words), key=lambda one: (one.start, -one.end)):
        if not chosen or one.start >= chosen[-1].end:
            chosen.append(one)
        elif one.end > chosen[-1].end:  # no end of it may stay in the open
            chosen[-1] = chosen[-1]._replace(end=one.end)
    return chosen


def _is_word(long: str) -> bool:
    """Return whether a run without blanks is an ordinary word, with its marks, and no credential."""
    bare = long.strip(".,;:!?()[]\"'")
    return bare.isalpha() and (bare[1:].islower())


def redacted(text: str) -> tuple[str, int]:
    """Return ``text`` with ``[removed]`` in the place of each credential, and how many there were.

    The beginning that names the issuer stays, such as ``ghp_``. A text that was redacted holds no credential.
    """
    found = credentials(text)
    parts, past = [], 0
    for one in found:
        parts += [text[past : one.start], f"{one.shown}…{REMOVED}" if one.shown else REMOVED]
        past = one.end
    return "".join((*parts, text[past:])), len(found)


def _by_format(text: str) -> Iterator[Credential]:
    yield from _keys(text)
    for expression in (_FORMATS, _OPTIONS):
        for match in expression.finditer(text):
            kind = (match.lastgroup or "").replace("_", " ")
            start, end = next((match.span(group) for group in _INNER if match.groupdict().get(group)), match.span())
            if expression is _OPTIONS and text[start:end].isalpha():
                continue
            issuer = _ISSUER.match(text, start, end) if start == match.start() else None
            yield Credential(kind, start, end, issuer[0] if issuer is not None else "")


def _keys(text: str) -> Iterator[Credential]:
    """Yield the private keys, each with all its lines."""
    past = 0
    for match in _KEYS.finditer(text):
        if match.start() >= past and not text.startswith(f"…{REMOVED}", match.end()):
            past = _end_of_key(text, match.end())
            yield Credential((match.lastgroup or "").replace("_", " "), match.start(), past, match.group())


def _end_of_key(text: str, start: int) -> int:
    """Return where the private key ends whose first line ends at ``start``."""
    end = text.find("-----END ", start, start + _LONGEST_KEY)
    last = _KEY_END.match(text, end) if end >= 0 else None
    lines = last or _KEY_LINES.match(text, start)
    return start if lines is None else lines.end()


def _after_words(text: str) -> Iterator[Credential]:
    """Yield what follows a word such as password or key; after "is" it must hold a digit or a sign."""
    for match in _AFTER_WORD.finditer(text):
        group = "quoted" if match["quoted"] is not None else "said"
        whole = group == "quoted" or match["sign"] == "="  # no end of a sentence
        secret = match[group] if whole else match[group].rstrip(".!?)")
        if len(secret) >= 4 and not _is_plain(secret, match) and not _PLACEHOLDER.match(secret):
            yield Credential("password", match.start(group), match.start(group) + len(secret))


def _is_plain(secret: str, match: re.Match[str]) -> bool:
    """Return whether what stands where a password may stand is a word, or an expression of a program."""
    if match["quote"] == "`" and " " in secret:  # a line of code
        return True
    if match["quoted"] is not None:
        return secret.replace(" ", "").isalpha() and match["word"].casefold() != "passphrase"
    if match["sign"] in (":", "=", ":="):
        return secret.isalpha() or _EXPRESSION.fullmatch(secret) is not None
    return not _SIGN.search(secret)


def _random(text: str) -> Iterator[Credential]:
    """Yield long runs that look random: letters of both cases and digits, of high entropy, and not made of words."""
    for match in _RUN.finditer(text):
        run = match.group().rstrip("=")
        mixed = any(map(str.isdigit, run)) and any(map(str.isupper, run)) and any(map(str.islower, run))
        if not mixed or _HEX.fullmatch(run) or _UUID.search(run) or entropy(run) < LEAST_ENTROPY:
            continue
        if len(run) < _LETTERS_A_WORD * len(_PIECE.findall(run)):
            yield Credential("random string", match.start(), match.end(), run[:4])


def entropy(run: str) -> float:
    """Return the Shannon entropy of the characters of ``run``, in bits per character."""
    return -sum(count / len(run) * math.log2(count / len(run)) for count in Counter(run).values())
