"""System calls of a process and of all its children, as strace writes them: what was asked of whom, and written where.

Calls within the machine are no findings: Unix sockets but those of a name service, and loopback addresses but port 53.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

__all__ = ["lookups", "sent", "traced", "tracing", "written"]

_CALLS = (
    "connect,sendto,sendmsg,sendmmsg,open,openat,creat,mkdir,mkdirat,"
    "rename,renameat,renameat2,link,linkat,symlink,symlinkat"
)
_ADDRESS = re.compile(r'sin6?_port=htons\((\d+)\).*?(?:inet_addr\("([^"]+)"\)|inet_pton\(AF_INET6, "([^"]+)")')
_LOOPBACK = re.compile(r"127\.|::1$|::ffff:127\.|0\.0\.0\.0$|::$")
_RESOLVERS = ("/etc/resolv.conf", "/etc/hosts", "/run/systemd/resolve/", "/var/run/avahi", "/run/avahi")
_WRITES = re.compile(r"O_WRONLY|O_RDWR|O_CREAT")
_OPENED = re.compile(r"= \d+<(/[^>]*)>")
_NAMED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_NO_FILES = ("/dev/null", "/dev/tty", "/dev/pts/", "/dev/shm/", "/dev/urandom", "/proc/")


@cache
def tracing() -> str:
    """Return why no process can be traced here; empty where one can."""
    if shutil.which("strace") is None:
        return "strace is not installed (apt-get install strace)"
    tried = subprocess.run(["strace", "-f", "-e", "trace=connect", "true"], capture_output=True, text=True, check=False)
    return "" if tried.returncode == 0 else f"strace may not trace here: {tried.stderr.strip()[:100]}"


def traced(command: Sequence[str], log: Path) -> list[str]:
    """Return ``command`` under strace, which writes into ``log``; as it is where no process can be traced."""
    if tracing():
        return list(command)
    return [
        "strace",
        "-f",
        "--seccomp-bpf",
        "-qq",
        "-y",
        "-s",
        "300",
        "-e",
        f"trace={_CALLS}",
        "-o",
        str(log),
        *command,
    ]


def sent(log: Path) -> list[str]:
    """Return the calls that reach for an address beyond this machine."""
    return [line for line in _lines(log) if (to := _ADDRESS.search(line)) and not _LOOPBACK.match(to[2] or to[3])]


def lookups(log: Path) -> list[str]:
    """Return the calls that look up a name: a name server is asked, or the files are read that say which one to ask."""
    asked = [line for line in _lines(log) if (to := _ADDRESS.search(line)) and to[1] in ("53", "5353")]
    return asked + [line for line in _lines(log) if any(f'"{one}' in line for one in _RESOLVERS)]


def written(log: Path, allowed: Sequence[Path]) -> set[str]:
    """Return the paths outside the ``allowed`` folders that were opened to write, made, or named anew."""
    roots = tuple(f"{folder.resolve()}/" for folder in allowed)
    return {path for path in _targets(log) if not f"{path}/".startswith((*roots, *_NO_FILES))}


def _targets(log: Path) -> Iterator[str]:
    for line in _lines(log):
        call = line.split("(", 1)[0].split()[-1]
        if " = -1 " in line:  # nothing was made
            continue
        if call in ("open", "openat", "creat"):
            opened = _OPENED.search(line)
            if opened and (call == "creat" or _WRITES.search(line)):
                yield opened[1]
        elif call.startswith(("mkdir", "rename", "link", "symlink")):
            target = _NAMED.findall(line)[-1]
            if target.startswith("/"):  # else it is in a folder of PostgreSQL's, whose files are seen above
                yield target


def _lines(log: Path) -> list[str]:
    """Return the calls, each whole: strace cuts one in two where another process comes between."""
    begun: dict[str, str] = {}
    out = []
    for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
        process, _, rest = line.partition(" ")
        if rest.endswith("<unfinished ...>"):
            begun[process] = rest.removesuffix("<unfinished ...>")
        elif (resumed := re.match(r"\s*<\.\.\. \w+ resumed>", rest)) is not None:
            out.append(begun.pop(process, "") + rest[resumed.end() :])
        else:
            out.append(rest.strip())
    return out
