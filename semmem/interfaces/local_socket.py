"""Which process of this user answers for a store: the address of its socket, and how it is asked.

Hooks, and commands that only read, wait for this module each time, so it imports almost nothing. Whoever has a store
open, as `semmem mcp` and `semmem serve` do, listens at a socket of the state folder that only its owner reaches. The
socket's name follows from what the answers depend on: the version and place of the program, the variables and files of
settings, the variables of libpq, and the URL. So a process of another version, or with other settings, is never asked.
"""

from __future__ import annotations

import os
import socket
import stat
import struct
import sys
from zlib import crc32

from semmem import __version__

__all__ = ["COMMAND", "HERE", "Address", "address_of", "ask", "connected", "is_own", "short_path"]

COMMAND = "command"
"""The first word of a request to answer a command; that of a hook is its event."""

HERE = b"\n"
"""What a listener sends at once; one that was stopped, as by Ctrl-Z, takes connections but says nothing."""

_RELATIVE = ("CONFIG", "HOME", "LLM_CACHE", "MODEL", "TRIPLES", "URL")
"""The settings that may hold a path relative to the working folder."""

_FOLDERS = ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")
_LONGEST = 100
"""Bytes of a path that every system takes as the address of a socket."""

_CONNECT_S = 1.0
_HERE_S = 2.0


class Address:
    """Where the process for a store listens.

    ``facts`` are what its answers depend on; ``local``: the working folder is one of them.
    """

    __slots__ = ("facts", "folder", "local", "name")

    def __init__(self, facts: str, local: bool) -> None:
        self.facts = facts
        self.local = local
        self.folder = os.path.join(_platform_folder("XDG_STATE_HOME", ".local/state"), "semmem", "hooks")
        both = (text.encode(errors="surrogatepass") for text in (facts, facts[::-1]))
        self.name = "".join(f"{crc32(one):08x}" for one in both)  # two of one name tell each other apart by the facts

    @property
    def path(self) -> str:
        """The path of the socket."""
        return os.path.join(self.folder, f"{self.name}.sock")

    @property
    def lock(self) -> str:
        """The path of the file that the listening process keeps locked."""
        return os.path.join(self.folder, f"{self.name}.lock")


def address_of(url: str | None = None, recipe: str | None = None) -> Address:
    """Return where the process listens that answers for the store of ``url``, None being that of the settings."""
    values = {name[7:].upper(): value for name, value in os.environ.items() if name[:7].upper() == "SEMMEM_"}
    values |= {name: value for name, value in (("URL", url), ("RECIPE", recipe)) if value is not None}
    files = [values["CONFIG"]] if "CONFIG" in values else [_users_file(), "semmem.toml"]
    local = _exists("semmem.toml") and "CONFIG" not in values
    local |= any(values.get(name) and not _anchored(name, values[name]) for name in _RELATIVE)
    all_facts = [
        __version__,
        __file__,
        sys.prefix,
        *(f"{name}={value}" for name, value in sorted(values.items())),
        *(f"{name}={value}" for name, value in sorted(os.environ.items()) if name.startswith("PG")),  # libpq reads them
        *(f"{name}={os.environ.get(name)}" for name in _FOLDERS),
        *map(_state, files),
        os.getcwd() if local else "",
    ]
    return Address("\n".join(all_facts), local)


def connected(address: Address, within_s: float) -> socket.socket:
    """Return a connection to the process at ``address``. Raises OSError where no process of this user listens there."""
    mine = os.lstat(address.path)
    if mine.st_uid != os.getuid() or not stat.S_ISSOCK(mine.st_mode):
        raise PermissionError("The socket is not this user's.")
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(_CONNECT_S)
        with short_path(address) as path:
            connection.connect(path)
        if not is_own(connection):  # a folder that others may write to can be changed since the look at it
            raise PermissionError("The process that listens is not this user's.")
        connection.settimeout(_HERE_S)
        if connection.recv(len(HERE)) != HERE:
            raise ConnectionError("The process at the socket does not listen.")
        connection.settimeout(within_s)
    except BaseException:
        connection.close()
        raise
    return connection


def is_own(connection: socket.socket) -> bool:
    """Return whether the process at the other end is this user's; elsewhere than on Linux the file's rights say so."""
    if not hasattr(socket, "SO_PEERCRED"):
        return True
    _, user, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return bool(user == os.getuid())


def ask(address: Address, words: list[str], raw: bytes, within_s: float) -> tuple[bytes, bytes] | None:
    """Return what the process at ``address`` prints on standard output and error; None where none answers whole.

    ``words`` hold no zero byte, ``raw`` is what the client gave.
    """
    head = "\x00".join((address.facts, *words)).encode(errors="surrogatepass")
    try:
        with connected(address, within_s) as connection:
            connection.sendall(b"%d %d\n" % (len(head), len(raw)) + head + raw)
            reply = bytearray()
            while piece := connection.recv(1 << 16):
                reply += piece
    except (OSError, ValueError):
        return None
    sizes, _, rest = bytes(reply).partition(b"\n")
    out, _, err = sizes.partition(b" ")
    if not (out.isdigit() and err.isdigit() and len(rest) == int(out) + int(err)):
        return None
    return rest[: int(out)], rest[int(out) :]


class short_path:  # a context manager without contextlib, which takes as long to import as all of this
    """Give a path of the socket that is short enough for the system, while the block runs."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._handle: int | None = None

    def __enter__(self) -> str:
        path = self._address.path
        if len(os.fsencode(path)) <= _LONGEST:
            return path
        self._handle = os.open(self._address.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        return f"/proc/self/fd/{self._handle}/{self._address.name}.sock"

    def __exit__(self, *_: object) -> None:
        if self._handle is not None:
            os.close(self._handle)


def _anchored(name: str, value: str) -> bool:
    """Return whether a path does not depend on the working folder."""
    if name == "URL":
        scheme, colon, rest = value.partition(":")
        value = rest if colon and scheme.isalnum() else value
    return value.startswith(("/", "~"))


def _users_file() -> str:
    return os.path.join(_platform_folder("XDG_CONFIG_HOME", ".config"), "semmem", "semmem.toml")


def _platform_folder(variable: str, usual: str) -> str:
    """Return the folder that platformdirs has for it, without the time that platformdirs takes."""
    own = os.environ.get(variable, "").strip()
    if own:
        return own
    return os.path.expanduser("~/Library/Application Support" if sys.platform == "darwin" else f"~/{usual}")


def _state(file: str) -> str:
    try:
        stat = os.stat(file)
    except (OSError, ValueError):
        return f"{file}: none"
    return f"{os.path.abspath(file)}: {stat.st_mtime_ns} {stat.st_size}"


def _exists(file: str) -> bool:
    return os.path.exists(file)
