"""A pooler before the server: PgBouncer in session mode works, and in transaction mode `connect` refuses it.

SEMMEM_TEST_PGBOUNCER names the program; without it, it is looked for on the path.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest

from semmem.stores.postgres.migrate import migrate
from tests.stores.postgres.own.opening import NOTE, connect, database, refused
from tests.stores.postgres.own_server import PASSWORD, Own, free_port
from tests.waiting import until

PROGRAM = os.environ.get("SEMMEM_TEST_PGBOUNCER") or shutil.which("pgbouncer")

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="There is no PgBouncer here.")


@contextmanager
def pooled(own: Own, url: str, mode: str) -> Iterator[str]:
    """Yield the URL of a database behind PgBouncer, which takes one connection to the server at most per client."""
    folder, port, name = own.folder / f"pgbouncer-{mode}", free_port(), database(url)
    folder.mkdir()
    (folder / "users").write_text(f'"ada" "{PASSWORD}"\n', encoding="utf-8")
    (folder / "ini").write_text(
        f"[databases]\n{name} = host=127.0.0.1 port={own.port} user=ada password='{PASSWORD}'\n[pgbouncer]\n"
        f"listen_addr = 127.0.0.1\nlisten_port = {port}\nauth_type = plain\nauth_file = {folder}/users\n"
        f"pool_mode = {mode}\nunix_socket_dir =\nlogfile = {folder}/log\n",
        encoding="utf-8",
    )
    for path in (folder, *folder.iterdir()):
        own.who.give(path)
    assert PROGRAM is not None
    surroundings = {**own.who.process.get("env", {}), "LD_LIBRARY_PATH": os.environ.get("LD_LIBRARY_PATH", "")}
    how = {**own.who.process, "env": surroundings}
    process = subprocess.Popen([PROGRAM, "-q", str(folder / "ini")], **how)
    try:
        pooler = url.replace(f":{own.port}/", f":{port}/")
        until(lambda: answers(pooler))
        yield pooler
    finally:
        process.terminate()
        process.wait(60)


def answers(url: str) -> bool:
    try:
        psycopg.connect(url).close()
    except psycopg.OperationalError:
        return False
    return True


def test_a_pooler_in_transaction_mode_is_refused_in_one_sentence(own: Own, url: str) -> None:
    with pooled(own, url, "transaction") as pooler:
        sentence = refused(pooler)
    assert sentence == (
        "This URL leads to a pooler in transaction mode, such as PgBouncer, and semmem needs sessions of its own for "
        "prepared statements, settings and locks; set pool_mode = session there, or name the server itself."
    )
    assert migrate(url) == 20  # the server itself is none


def test_a_pooler_in_session_mode_is_as_the_server_itself(own: Own, url: str) -> None:
    with pooled(own, url, "session") as pooler, connect(pooler, pool_size=4) as mem:
        for n in range(8):  # a statement is prepared when it is run for the fourth time
            mem.remember(f"{NOTE} {n}", id=f"key{n}")
            assert mem.recall(f"Where is the key {n}?").degraded == {}
        assert mem.maintain()["folded"] == 8
        assert mem.forget("key1", hard=True) == 1
        assert mem.stats().memories == 7
