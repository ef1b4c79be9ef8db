"""Keys of a server: what each allows, and until when; kept hashed in the store, or in a file of the user's settings.

A key is shown once, when it is made. What is kept is the SHA-256 of its secret, which is 256 random bits, so that no
slower hash is needed. Servers over one store share the keys in it: each reads them again after a second at most, see
``StoredKeys``. The file is read again when it has changed, so a key that was removed there is refused at once.
"""

from __future__ import annotations

import asyncio
import fcntl
import hmac
import json
import math
import os
import re
import secrets
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import copy_context
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from semmem.files import new_file, private_folder, settings_folder
from semmem.model.errors import AccessDenied, InvalidInput, KeyRequired, LocalOnly, NotFound, StoreUnavailable
from semmem.model.process.asker import asked_through

if TYPE_CHECKING:
    from semmem.client.memory import Semmem
    from semmem.model.store.serving import ServingStore

__all__ = [
    "Key",
    "KeySet",
    "Keys",
    "Right",
    "ServerKeys",
    "StoredKeys",
    "TokenKey",
    "asked_with",
    "authorise",
    "found",
    "going",
    "keys_file",
    "principal",
]

Right: TypeAlias = Literal["read", "write", "admin"]
"""What a key may do; one that may write may read, and one that may admin may both."""

_RIGHTS: tuple[Right, ...] = ("read", "write", "admin")
_NAME = re.compile(r"[\w.@-]{1,100}")
_TOKEN = re.compile(r"semmem_([0-9a-f]{8})_([\w-]{43})")


@dataclass(frozen=True, slots=True)
class Key:
    """One key: its ``name``, what it may do, and where: in ``namespaces``, or in all of them where that is None.

    ``id`` is the part of the key that is no secret, ``digest`` the SHA-256 of the rest. ``created_at`` and
    ``expires_at`` are ISO 8601, None being never. ``principal`` is whose requests those with this key are: the id of
    the first key of that name, which its successors have too.
    """

    name: str
    id: str
    digest: str
    right: Right
    namespaces: tuple[str, ...] | None
    created_at: str
    expires_at: str | None = None
    principal: str = ""

    def allows(self, right: Right, namespaces: Sequence[str] | None) -> bool:
        """Return whether this key may do ``right`` in all of ``namespaces``, None being the whole store."""
        if not self.reaches(right):
            return False
        return self.namespaces is None or (namespaces is not None and set(namespaces) <= set(self.namespaces))

    def reaches(self, right: Right) -> bool:
        """Return whether this key may do ``right`` anywhere."""
        return _RIGHTS.index(self.right) >= _RIGHTS.index(right)

    @property
    def title(self) -> str:
        """Its name in a sentence."""
        return f"key {self.name}"

    @property
    def holder(self) -> str:
        """Whom the audit names; no key has the name of a token, because its name has no spaces."""
        return self.name

    def way_to(self, right: Right) -> str:
        """Return how its holder gets a right that it lacks."""
        return f"make a key that has it with `semmem keys add NAME --{right}`"

    def is_over(self, now: datetime) -> bool:
        """Return whether the time of this key has ended."""
        return self.expires_at is not None and datetime.fromisoformat(self.expires_at) <= now


class TokenKey(Key):
    """The key for which a token of an identity server stands; no set of keys holds it."""

    __slots__ = ()

    @property
    def title(self) -> str:
        """Its name in a sentence."""
        return f"token of {self.name}"

    @property
    def holder(self) -> str:
        """Whom the audit names: a subject may be called as a key is."""
        return self.title

    def way_to(self, right: Right) -> str:
        """Return how its holder gets a right that it lacks."""
        return f"ask the identity server for the scope semmem:{right}"


def authorise(key: Key | None, right: Right, namespaces: Sequence[str] | None) -> None:
    """Raise AccessDenied unless ``key`` allows ``right`` in ``namespaces``; no key is a server that needs none."""
    if key is None or key.allows(right, namespaces):
        return
    if not key.reaches(right):
        may = "read" if key.right == "read" else "read and write"
        raise AccessDenied(f"The {key.title} may only {may}, and this needs the right {right}; {key.way_to(right)}.")
    mine = ", ".join(key.namespaces or ())
    if namespaces is None:
        raise AccessDenied(f"The {key.title} works only in these namespaces: {mine}; this call is for the whole store.")
    raise AccessDenied(f"The {key.title} works only in these namespaces: {mine}; give one of them as namespace.")


def asked_with(key: Key | None, interface: str, agent: str | None = None) -> AbstractContextManager[None]:
    """Take the calls of a block as made with ``key``: the log names the agent, or else the key, and the audit both.

    Row-level security lets them touch the namespaces of the key alone.
    """
    if key is None:
        return asked_through(interface, agent)
    return asked_through(interface, agent or key.name, key.holder, key.namespaces)


def principal(key: Key | None) -> str:
    """Return whose requests those with ``key`` are, also after a rotation; without keys all are of one client."""
    return "" if key is None else key.principal or key.id


def keys_file() -> Path:
    """Return where the user's keys are. Raises InvalidInput for a user without a home."""
    folder = settings_folder()
    if folder is None:
        raise InvalidInput("This user has no home folder for keys; name a file with --keys FILE.")
    return folder / "keys.json"


class KeySet(ABC):
    """A set of keys; safe to share between threads and processes."""

    @abstractmethod
    def _by_id(self) -> Mapping[str, Key]:
        """Return the keys by id, as they are now or were a moment ago."""

    @abstractmethod
    def _change(self, change: Callable[[list[Key]], list[Key]]) -> None:
        """Replace the keys by what ``change`` makes of them, while nobody else changes them."""

    def __bool__(self) -> bool:
        return bool(self._by_id())

    def list(self) -> tuple[Key, ...]:
        """Return every key, by name; of one name the newest first."""
        keys = sorted(self._by_id().values(), key=lambda key: key.created_at, reverse=True)
        return tuple(sorted(keys, key=lambda key: key.name))

    def add(
        self,
        name: str,
        *,
        right: Right = "read",
        namespaces: Sequence[str] | None = None,
        lasting: timedelta | None = None,
    ) -> tuple[Key, str]:
        """Make a key and store its hash; return it, and the text to show once. Raises InvalidInput.

        With ``lasting`` the key expires after that time.
        """
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise InvalidInput("The name of a key has 1 to 100 letters, digits, dots, dashes or underscores.")
        if right not in _RIGHTS:
            raise InvalidInput(f"A key may read, write or admin, not {right!r}.")
        if namespaces is not None and not (namespaces and all(namespaces)):
            raise InvalidInput("A key needs the name of each namespace it is for; without any it is for all of them.")
        where = None if namespaces is None else tuple(dict.fromkeys(namespaces))
        now = _now()
        ends = None if lasting is None else (now + lasting).isoformat()
        new_key, text = _made(Key(name, "", "", right, where, now.isoformat(), ends))

        def change(keys: list[Key]) -> list[Key]:
            if any(key.name == name for key in keys):
                raise InvalidInput(f"A key named {name} already exists; remove it first, or choose another name.")
            return [*keys, new_key]

        self._change(change)
        return new_key, text

    def remove(self, name: str) -> Key:
        """Remove the keys of that name, which every server refuses from now on; return the newest. Raises NotFound."""
        gone: list[Key] = []

        def change(keys: list[Key]) -> list[Key]:
            gone[:] = _named(keys, name)
            return [key for key in keys if key.name != name]

        self._change(change)
        return gone[0]

    def rotate(self, name: str, *, overlap: timedelta, lasting: timedelta | None = None) -> tuple[Key, Key, str]:
        """Make the successor of a key: the old one goes on for ``overlap``.

        Return the old key, the new one, and the text to show once. The new one has the right and the namespaces of the
        old one; it expires after ``lasting``, or, without it, never. Raises NotFound, and InvalidInput where the old
        one has expired.
        """
        made: list[tuple[Key, Key, str]] = []

        def change(keys: list[Key]) -> list[Key]:
            now = _now()
            old = _named(keys, name)[0]
            if old.is_over(now):
                raise InvalidInput(f"The key {name} has expired; remove it, and make a new one.")
            ends = None if lasting is None else (now + lasting).isoformat()
            new, text = _made(replace(old, principal=principal(old), created_at=now.isoformat(), expires_at=ends))
            last = now + overlap
            if old.expires_at is not None:
                last = min(last, datetime.fromisoformat(old.expires_at))
            old = replace(old, principal=principal(old), expires_at=last.isoformat())
            made[:] = [(old, new, text)]
            others = [key for key in keys if key.id != old.id and not (key.name == name and key.is_over(now))]
            return [*others, *([] if old.is_over(now) else [old]), new]

        self._change(change)
        return made[0]

    def take(self, others: Sequence[Key]) -> int:
        """Take keys of elsewhere over, with their hashes; return how many are new. Raises InvalidInput.

        A key that is here already stays as it is.
        """
        new: list[Key] = []

        def change(keys: list[Key]) -> list[Key]:
            here = {key.id for key in keys}
            names = {key.name for key in keys}
            new[:] = [key for key in others if key.id not in here]
            if twice := sorted({key.name for key in new} & names):
                raise InvalidInput(
                    f"There is another key named {twice[0]} already; remove it first. No key was imported."
                )
            return [*keys, *new]

        self._change(change)
        return len(new)

    def find(self, authorization: str | None, *, wants_key: bool = False) -> Key | None:
        """Return the key in the header ``Authorization: Bearer …``; see ``found``."""
        return found(self._by_id(), authorization, wants_key=wants_key)

    async def fresh(self) -> Mapping[str, Key]:
        """Return the keys by id, without holding the loop up."""
        return self._by_id()


def found(keys: Mapping[str, Key], authorization: str | None, *, wants_key: bool = False) -> Key | None:
    """Return the key in the header ``Authorization: Bearer …``; None where there are no keys at all.

    Raises KeyRequired where there are keys and this is none of them, or has expired; with ``wants_key`` also where
    there are none.
    """
    if not keys and not wants_key:
        return None
    if authorization is None:
        raise KeyRequired("This server requires a key: set SEMMEM_KEY, or send the header Authorization: Bearer KEY.")
    scheme, _, text = authorization.strip().partition(" ")
    token = _TOKEN.fullmatch(text.strip()) if scheme.lower() == "bearer" else None
    key = keys.get(token[1]) if token is not None else None
    if token is None or key is None or not hmac.compare_digest(_digest(token[2]), key.digest):
        raise KeyRequired(
            "This server does not know that key; `semmem keys list` and `semmem serve key list` name those that it "
            "knows."
        )
    if key.is_over(_now()):
        raise KeyRequired(f"The key {key.name} expired at {key.expires_at}; ask for a new one.")
    return key


class Keys(KeySet):
    """The keys in one file, which need not exist."""

    def __init__(self, file: Path | None = None) -> None:
        self.file = keys_file() if file is None else file
        self._cached: tuple[tuple[int, int, int], dict[str, Key]] | None = None

    def _by_id(self) -> dict[str, Key]:
        """Return the keys by id, from memory as long as the file is the same."""
        try:
            status = self.file.stat()
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise InvalidInput(f"The key file {self.file} cannot be read: {error.strerror}.") from None
        version = (status.st_mtime_ns, status.st_size, status.st_ino)
        if self._cached is None or self._cached[0] != version:
            self._cached = (version, self._parsed())
        return self._cached[1]

    def _parsed(self) -> dict[str, Key]:
        try:
            rows = json.loads(self.file.read_text(encoding="utf-8"))["keys"]
            keys = [_key(row) for row in rows]
        except OSError as error:
            raise InvalidInput(f"The key file {self.file} cannot be read: {error.strerror}.") from None
        except (ValueError, KeyError, TypeError, RecursionError):
            # no key is let in, and none is taken for a server without keys
            raise InvalidInput(
                f"The key file {self.file} is damaged and cannot be used; put an earlier copy in its place, or "
                "remove it and make new keys with `semmem serve key add`."
            ) from None
        return {key.id: key for key in keys}

    def _change(self, change: Callable[[list[Key]], list[Key]]) -> None:
        with self._locked():
            self._write(change(list(self._by_id().values())))

    def _write(self, keys: Sequence[Key]) -> None:
        with new_file(self.file, force=True) as out:
            out.write(json.dumps({"keys": [asdict(key) for key in keys]}, indent=1).encode() + b"\n")

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the file for oneself, so that two who add a key at once both have theirs."""
        private_folder(self.file.parent)
        handle = os.open(self.file.with_suffix(".lock"), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)


class StoredKeys(KeySet):
    """The keys in a store, which every server over it shares.

    They are read again when they are asked for more than ``FRESH_S`` after they were read: a key that was added or
    removed by anybody counts from then on.
    """

    FRESH_S = 1.0

    def __init__(self, serving: ServingStore) -> None:
        self._serving = serving
        self._cached: tuple[float, dict[str, Key]] | None = None

    @property
    def age(self) -> float:
        """The seconds since the keys were read."""
        return math.inf if self._cached is None else time.monotonic() - self._cached[0]

    @property
    def known(self) -> Mapping[str, Key]:
        """The keys as they were read last."""
        return {} if self._cached is None else self._cached[1]

    def read(self) -> dict[str, Key]:
        """Read the keys from the store."""
        before = time.monotonic()
        keys = {row["id"]: _key(row) for row in self._serving.key_list()}
        self._cached = (before, keys)
        return keys

    def _by_id(self) -> Mapping[str, Key]:
        return self.read() if self._cached is None or self.age > self.FRESH_S else self._cached[1]

    def _change(self, change: Callable[[list[Key]], list[Key]]) -> None:
        self._serving.change_keys(lambda rows: [asdict(key) for key in change([_key(row) for row in rows])])
        self._cached = None


class ServerKeys(KeySet):
    """The keys of one server: those in a file, and those in the store that ``opened`` returns, where it keeps some."""

    LATE_S = 10.0
    """Seconds for which keys that were read count where the store does not answer."""

    WAITS_S = 1.0
    """Seconds for which a request waits for newer keys while those that were read count."""

    def __init__(self, file: KeySet, opened: Callable[[], Semmem]) -> None:
        self._file = file
        self._opened: Callable[[], Semmem] | None = opened
        self._stored: StoredKeys | None = None
        self._opening: asyncio.Future[Any] | None = None
        self._reading: asyncio.Future[Any] | None = None

    def __bool__(self) -> bool:
        return bool(self._file) or bool(self._by_id())  # no store is opened where the file says it

    async def fresh(self) -> Mapping[str, Key]:
        """Return the keys, those of the store at most a second old, or ten where the store does not answer in time.

        Raises StoreUnavailable where they are older, and what opening the store raises.
        """
        if self._opened is not None:
            self._opening = going(self._opening, self._in_store)
            await asyncio.shield(self._opening)
        stored = self._stored
        if stored is None:
            return self._file._by_id()
        if stored.age > stored.FRESH_S:
            reading = self._reading = going(self._reading, stored.read)
            waits = self.WAITS_S if stored.age < self.LATE_S else self.LATE_S
            await asyncio.wait([reading], timeout=waits)
            if reading.done() and reading.exception() is not None and stored.age > self.LATE_S:
                reading.result()
            if stored.age > self.LATE_S:
                raise StoreUnavailable("The store does not answer, so no key can be checked; ask again later.")
        return {**self._file._by_id(), **stored.known}

    def _in_store(self) -> StoredKeys | None:
        """Return the keys in the store, which is opened for it; None where it keeps none."""
        if self._opened is not None:
            mem = self._opened()
            with suppress(LocalOnly):  # the store is behind another server, which has keys of its own
                serving = mem.store.serving
                self._stored = None if serving is None else StoredKeys(serving)
            self._opened = None
        return self._stored

    def _by_id(self) -> Mapping[str, Key]:
        stored = self._in_store()
        return {**self._file._by_id(), **({} if stored is None else stored._by_id())}

    def _change(self, change: Callable[[list[Key]], list[Key]]) -> None:
        raise NotImplementedError("Keys are changed in the file, or in the store.")


def going(before: asyncio.Future[Any] | None, call: Callable[[], Any]) -> asyncio.Future[Any]:
    """Return the same call that another request waits for, else begin it."""
    return asyncio.ensure_future(_in_own_thread(call)) if before is None or before.done() else before


async def _in_own_thread(call: Callable[[], Any]) -> Any:
    """Return what a call returns. The end of the server waits for asyncio's own threads, but not for this one."""
    result: Future[Any] = Future()
    result.set_running_or_notify_cancel()

    def work() -> None:
        try:
            result.set_result(call())
        except BaseException as error:  # noqa: BLE001  # raised where it is waited for
            result.set_exception(error)

    threading.Thread(target=copy_context().run, args=(work,), name="semmem-http-keys", daemon=True).start()
    return await asyncio.wrap_future(result)


def _named(keys: Sequence[Key], name: str) -> list[Key]:
    """Return the keys of a name, the newest first. Raises NotFound."""
    found = sorted((key for key in keys if key.name == name), key=lambda key: key.created_at, reverse=True)
    if not found:
        names = ", ".join(sorted({key.name for key in keys})) or "none"
        raise NotFound(f"There is no key named {name!r}; there are {names}.")
    return found


def _made(key: Key) -> tuple[Key, str]:
    """Return a key with an id and the hash of a new secret, and the text to show once."""
    id, secret = secrets.token_hex(4), secrets.token_urlsafe(32)
    return replace(key, id=id, digest=_digest(secret), principal=key.principal or id), f"semmem_{id}_{secret}"


def _now() -> datetime:
    return datetime.now(UTC)


def _key(row: Any) -> Key:
    """Return the key of a row of a file or a store. Raises KeyError, TypeError or ValueError for what is none."""
    where, ends = row["namespaces"], row.get("expires_at")
    texts = [row[name] for name in ("name", "id", "digest", "created_at")] + list(where or ())
    texts += [row.get("principal", "")] + ([] if ends is None else [ends])
    whole = where is None or (isinstance(where, list) and bool(where))
    if not whole or row["right"] not in _RIGHTS or not all(isinstance(text, str) for text in texts):
        raise ValueError("no key")
    if ends is not None and datetime.fromisoformat(ends).tzinfo is None:
        raise ValueError("no key")
    return Key(**{**row, "namespaces": None if where is None else tuple(where)})


def _digest(secret: str) -> str:
    return sha256(secret.encode()).hexdigest()
