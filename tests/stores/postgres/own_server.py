"""A PostgreSQL server as people have it: TCP, SCRAM passwords, users with and without rights; made from the wheel."""

from __future__ import annotations

import secrets
import shutil
import socket
import subprocess
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from urllib.parse import quote

import psycopg

from semmem.stores.embedded import data_directory

PASSWORD = "S3cret/with@signs%and:more"
_numbers = count(1)
_CONFIGURATION = """
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
dynamic_shared_memory_type = mmap
io_method = sync
shared_buffers = 16MB
max_connections = 20
superuser_reserved_connections = 3
fsync = off
max_wal_size = 256MB
logging_collector = off
"""


@dataclass(frozen=True)
class Own:
    """A running server, and how to reach it as one user or another."""

    folder: Path
    port: int
    who: data_directory.Owner

    @property
    def data(self) -> Path:
        """The data folder of the cluster."""
        return self.folder / "data"

    def url(self, database: str = "postgres", user: str = "admin", password: str | None = PASSWORD) -> str:
        """The URL of a database, with the password percent-encoded as a URL needs it."""
        secret = "" if password is None else f":{quote(password, safe='')}"
        return f"postgresql://{user}{secret}@127.0.0.1:{self.port}/{database}"

    def sql(self, statement: str, database: str = "postgres") -> list[tuple[object, ...]]:
        """Run one statement as the administrator."""
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def database(self, *, owner: str = "ada", extension: bool = True) -> str:
        """Make an empty database of an ordinary user, for whom an administrator made the extension; return its name."""
        name = f"own_{next(_numbers)}"
        self.sql(f"CREATE DATABASE {name} OWNER {owner} STRATEGY file_copy")
        if extension:
            self.sql("CREATE EXTENSION vector SCHEMA public", name)
        return name

    def control(self, *arguments: str) -> None:
        """Run pg_ctl as the server's user, and wait for what it does."""
        command = [str(data_directory.programs() / "pg_ctl"), "-D", str(self.data), "-w", "-s", "-t", "60", *arguments]
        subprocess.run(command, check=True, capture_output=True, **self.who.process)

    def start(self) -> None:
        """Start it, with its log beside its data."""
        self.control("start", "-l", str(self.folder / "log"))

    def stop(self) -> None:
        """Stop it as a restart of the machine would: sessions are ended, data are kept."""
        self.control("stop", "-m", "fast")

    def extensions(self, version: str) -> Path:
        """Make a folder of extension files in which pgvector calls itself ``version``, to point a server at."""
        found = next(data_directory.programs().parent.glob("share/**/extension/vector.control"))
        script = max(found.parent.glob("vector--?.?.?.sql"))
        folder = self.folder / f"extensions-{version}" / "extension"
        folder.mkdir(parents=True, exist_ok=True)
        control = (
            f"default_version = '{version}'\nmodule_pathname = '$libdir/vector'\nrelocatable = true\ntrusted = true\n"
        )
        (folder / "vector.control").write_text(control, encoding="utf-8")
        (folder / f"vector--{version}.sql").write_bytes(script.read_bytes())
        for path in (folder.parent, folder, *folder.iterdir()):
            path.chmod(0o755 if path.is_dir() else 0o644)
        return folder.parent


def make() -> Own:
    """Make a cluster with SCRAM passwords in a folder of its own, and start it."""
    who = data_directory.owner(create=True)
    assert who is not None
    folder = Path(tempfile.mkdtemp(prefix="semmem-own-"))
    folder.chmod(0o711)
    who.give(folder)
    own = Own(folder, free_port(), who)
    secret = folder / "password"
    secret.write_text(PASSWORD, encoding="utf-8")
    who.give(secret)
    command = [str(data_directory.programs() / "initdb"), "-D", str(own.data), "-U", "admin", "--auth=scram-sha-256"]
    command += [f"--pwfile={secret}", "--encoding=UTF8", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
    command += ["--no-sync", "--no-instructions", "--set=dynamic_shared_memory_type=mmap", "--set=io_method=sync"]
    subprocess.run(command, check=True, capture_output=True, **who.process)
    with (own.data / "postgresql.conf").open("a", encoding="utf-8") as out:
        out.write(f"{_CONFIGURATION}port = {own.port}\n")
    own.start()
    own.sql(f"CREATE ROLE ada LOGIN PASSWORD '{PASSWORD}'")
    own.sql(f"CREATE ROLE guest LOGIN PASSWORD '{PASSWORD}'")
    return own


def unmake(own: Own) -> None:
    """Stop it and leave nothing."""
    try:
        own.control("stop", "-m", "immediate")
    finally:
        shutil.rmtree(own.folder, ignore_errors=True)


def free_port() -> int:
    """Return a free port below those of connections, one of which could have it while the server restarts."""
    while True:
        port = 10_000 + secrets.randbelow(20_000)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
