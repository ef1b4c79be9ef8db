"""Keys of a server: what each allows, kept hashed in one file of the user's settings folder.

A key is shown once, when it is made. The file holds the SHA-256 of its secret, which is 256 random bits, so that no
slower hash is needed. A server reads the file again when it has changed: a key that was removed is refused at once.
"""

from __future__ import annotations

import fcntl
import hmac
import json
import os
import re
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, TypeAlias

from semmem.files import new_file, settings_folder
from semmem.model.errors import AccessDenied, InvalidInput, KeyRequired, NotFound

__all__ = ["Key", "Keys", "Right", "authorise", "keys_file", "principal"]

Right: TypeAlias = Literal["read", "write"]
"""What a key may do; one that may write may read."""

_NAME = re.compile(r"[\w.@-]{1,100}")
_TOKEN = re.compile(r"semmem_([0-9a-f]{8})_([\w-]{43})")


@dataclass(frozen=True, slots=True)
class Key:
    """One key: its ``name``, what it may do, and where: in ``namespaces``, or in all of them where that is None.

    ``id`` is the part of the key that is no secret, ``digest`` the SHA-256 of the rest, ``created_at`` ISO 8601.
    """

    name: str
    id: str
    digest: str
    right: Right
    namespaces: tuple[str, ...] | None
    created_at: str

    def allows(self, right: Right, namespaces: Sequence[str] | None) -> bool:
        """Return whether this key may do ``right`` in all of ``namespaces``, None being the whole store."""
        if right == "write" and self.right != "write":
            return False
        return self.namespaces is None or (namespaces is not None and set(namespaces) <= set(self.namespaces))


def authorise(key: Key | None, right: Right, namespaces: Sequence[str] | None) -> None:
    """Raise AccessDenied unless ``key`` allows ``right`` in ``namespaces``; no key is a server that needs none."""
    if key is None or key.allows(right, namespaces):
        return
    if right == "write" and key.right != "write":
        raise AccessDenied(f"The key {key.name} may only read; make one with `semmem serve key add NAME --write`.")
    mine = ", ".join(key.namespaces or ())
    if namespaces is None:
        raise AccessDenied(
            f"The key {key.name} works only in these namespaces: {mine}; this call is about the whole store."
        )
    raise AccessDenied(f"The key {key.name} works only in these namespaces: {mine}; give one of them as namespace.")


def principal(key: Key | None) -> str:
    """Return whose requests those with ``key`` are, also after a rotation; without keys all are of one client."""
    return "" if key is None else key.id


def keys_file() -> Path:
    """Return where the user's keys are. Raises InvalidInput for a user without a home."""
    folder = settings_folder()
    if folder is None:
        raise InvalidInput("This user has no home folder to keep keys in; name a file with --keys FILE.")
    return folder / "keys.json"


class Keys:
    """The keys in one file, which need not exist; safe to share between threads and processes."""

    def __init__(self, file: Path | None = None) -> None:
        self.file = keys_file() if file is None else file
        self._cached: tuple[tuple[int, int, int], dict[str, Key]] | None = None

    def __bool__(self) -> bool:
        return bool(self._by_id())

    def list(self) -> tuple[Key, ...]:
        """Return every key, by name."""
        return tuple(sorted(self._by_id().values(), key=lambda key: key.name))

    def add(self, name: str, *, right: Right = "read", namespaces: Sequence[str] | None = None) -> tuple[Key, str]:
        """Make a key and store its hash; return it, and the text to show once. Raises InvalidInput."""
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise InvalidInput("The name of a key has 1 to 100 letters, digits, dots, dashes or underscores.")
        if right not in ("read", "write"):
            raise InvalidInput(f"A key may read or write, not {right!r}.")
        if namespaces is not None and not (namespaces and all(namespaces)):
            raise InvalidInput("A key needs the name of each namespace it is for; without any it is for all of them.")
        id, secret = secrets.token_hex(4), secrets.token_urlsafe(32)
        where = None if namespaces is None else tuple(dict.fromkeys(namespaces))
        new_key = Key(name, id, _digest(secret), right, where, datetime.now(UTC).isoformat(timespec="seconds"))
        with self._locked():
            keys = self._by_id()
            if any(key.name == name for key in keys.values()):
                raise InvalidInput(f"There is a key named {name} already; remove it first, or choose another name.")
            self._write([*keys.values(), new_key])
        return new_key, f"semmem_{id}_{secret}"

    def remove(self, name: str) -> Key:
        """Remove the key of that name, which every server refuses from now on. Raises NotFound."""
        with self._locked():
            keys = self._by_id()
            old_key = next((key for key in keys.values() if key.name == name), None)
            if old_key is None:
                names = ", ".join(sorted(key.name for key in keys.values())) or "none"
                raise NotFound(f"There is no key named {name!r}; there are {names}.")
            self._write([key for key in keys.values() if key is not old_key])
        return old_key

    def find(self, authorization: str | None, *, wants_key: bool = False) -> Key | None:
        """Return the key in the header ``Authorization: Bearer …``; None where there are no keys at all.

        Raises KeyRequired where there are keys and this is none of them; with ``wants_key`` also where there are none.
        """
        keys = self._by_id()
        if not keys and not wants_key:
            return None
        if authorization is None:
            raise KeyRequired("This server wants a key: send it as the header Authorization: Bearer KEY.")
        scheme, _, text = authorization.strip().partition(" ")
        token = _TOKEN.fullmatch(text.strip()) if scheme.lower() == "bearer" else None
        key = keys.get(token[1]) if token is not None else None
        if token is None or key is None or not hmac.compare_digest(_digest(token[2]), key.digest):
            raise KeyRequired("This server does not know that key; `semmem serve key list` names those it knows.")
        return key

    def _by_id(self) -> dict[str, Key]:
        """Return the keys by id, from memory as long as the file is the same."""
        try:
            status = self.file.stat()
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise InvalidInput(f"The file of keys {self.file} cannot be read: {error.strerror}.") from None
        version = (status.st_mtime_ns, status.st_size, status.st_ino)
        if self._cached is None or self._cached[0] != version:
            self._cached = (version, self._parsed())
        return self._cached[1]

    def _parsed(self) -> dict[str, Key]:
        try:
            rows = json.loads(self.file.read_text(encoding="utf-8"))["keys"]
            keys = [_key(row) for row in rows]
        except OSError as error:
            raise InvalidInput(f"The file of keys {self.file} cannot be read: {error.strerror}.") from None
        except (ValueError, KeyError, TypeError, RecursionError):
            # no key is let in, and none is taken for a server without keys
            raise InvalidInput(
                f"The file of keys {self.file} is damaged and cannot be used; put an earlier copy in its place, or "
                "remove it and make the keys anew with `semmem serve key add`."
            ) from None
        return {key.id: key for key in keys}

    def _write(self, keys: Sequence[Key]) -> None:
        with new_file(self.file, force=True) as out:
            out.write(json.dumps({"keys": [asdict(key) for key in keys]}, indent=1).encode() + b"\n")

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the file for oneself, so that two who add a key at once both have theirs."""
        self.file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle = os.open(self.file.with_suffix(".lock"), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)


def _key(row: Any) -> Key:
    """Return the key of a row of the file. Raises KeyError, TypeError or ValueError for what is none."""
    where = row["namespaces"]
    texts = [row[name] for name in ("name", "id", "digest", "created_at")] + list(where or ())
    whole = where is None or (isinstance(where, list) and bool(where))
    if not whole or row["right"] not in ("read", "write") or not all(isinstance(text, str) for text in texts):
        raise ValueError("no key")
    return Key(**{**row, "namespaces": None if where is None else tuple(where)})


def _digest(secret: str) -> str:
    return sha256(secret.encode()).hexdigest()
