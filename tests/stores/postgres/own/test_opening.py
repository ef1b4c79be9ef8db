"""Opening a store on a server of one's own: URLs, passwords, rights, versions, and the sentence of each refusal.

The server is a second PostgreSQL with TCP and SCRAM passwords; its users have the rights that people give a program.
"""

from __future__ import annotations

import contextlib
import warnings
from pathlib import Path
from typing import Any

import psycopg
import pytest

import semmem
from semmem.client.memory import Semmem
from semmem.interfaces.http.limits import Limits
from semmem.interfaces.http.shared_rates import rates_of
from semmem.model.errors import InvalidInput, SchemaTooOld, StoreUnavailable
from semmem.stores import masked, migrate_store, parse_url
from semmem.stores.postgres.errors import OLDEST_SERVER, too_old, without
from tests.stores.postgres.own.opening import NOTE, connect, database, refused, whole
from tests.stores.postgres.own_server import PASSWORD, Own
from tests.waiting import until


def test_an_ordinary_user_remembers_recalls_and_forgets(own: Own, url: str) -> None:
    with connect(url) as mem:
        mem.remember(NOTE, id="key")
        found = mem.recall("Where is the key?")
        assert ([hit.memory.id for hit in found], dict(found.degraded)) == (["key"], {})
        assert mem.configure(prior=False) == {"prior": False}
        assert mem.maintain()["folded"] == 1
        assert mem.forget("key") == 1
    whole(own, url)


def test_libpqs_variables_complete_a_bare_url(own: Own, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"HOST": "127.0.0.1", "PORT": str(own.port), "USER": "ada", "PASSWORD": PASSWORD, "DATABASE": database(url)}
    for name, value in given.items():
        monkeypatch.setenv(f"PG{name}", value)
    monkeypatch.setenv("SEMMEM_URL", "postgresql://")
    with semmem.connect(embedder="hashing") as mem:
        assert mem.store.url == "postgresql://"
        mem.remember(NOTE, id="key")
    with connect(url) as mem:
        assert mem.get("key").text == NOTE


def test_a_service_and_a_password_file_will_do(
    own: Own, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    services, passwords = tmp_path / "services", tmp_path / "passwords"
    services.write_text(
        f"[mine]\nhost=127.0.0.1\nport={own.port}\nuser=ada\ndbname={database(url)}\n", encoding="utf-8"
    )
    passwords.write_text(f"127.0.0.1:*:*:ada:{PASSWORD.replace(':', chr(92) + ':')}\n", encoding="utf-8")
    passwords.chmod(0o600)
    monkeypatch.setenv("PGSERVICEFILE", str(services))
    monkeypatch.setenv("PGPASSFILE", str(passwords))
    connect("postgresql://?service=mine").close()
    monkeypatch.setenv("PGSERVICE", "mine")
    connect("postgresql://").close()
    monkeypatch.setenv("PGSERVICE", "absent")
    assert refused("postgresql://") == "There is no service absent; correct PGSERVICE, or PGSERVICEFILE."


# ---------------------------------------------------------------------- what is said when it cannot be reached

HELP = "check the one in the URL, in PGPASSWORD or in your password file (PGPASSFILE, ~/.pgpass)."


def test_each_way_not_to_get_in_is_one_sentence(own: Own, url: str) -> None:
    name = database(url)
    wrong = "The database server refuses the password of the user ada; " + HELP
    assert refused(own.url(name, "ada", "wrong")) == wrong
    assert refused(own.url(name, "ada", None)) == "The database server wants a password and none was given; " + HELP
    assert refused(own.url("absent", "ada")) == (
        "There is no database absent on this server; make it with: createdb absent"
    )
    own.sql(f"REVOKE CONNECT ON DATABASE {name} FROM PUBLIC")
    assert refused(own.url(name, "guest")) == (
        f"This user may not connect to the database {name}; let its owner grant CONNECT on it."
    )
    assert refused(url + "?sslmode=require") == (
        "The database server offers no encryption and sslmode asks for it; enable ssl there, or lower sslmode."
    )
    assert refused(url.replace(f":{own.port}/", ":1/")) == (
        "No database server answers at 127.0.0.1 port 1; start it there, or correct the address."
    )
    assert refused(url.replace("127.0.0.1", "nowhere.invalid")) == (
        "There is no machine named nowhere.invalid; correct the host in the store URL or in PGHOST."
    )


def test_an_address_that_the_server_does_not_admit_is_told(own: Own, url: str) -> None:
    rules = own.data / "pg_hba.conf"
    before = rules.read_text(encoding="utf-8")
    try:
        rules.write_text(f"host {database(url)} ada 127.0.0.1/32 reject\n{before}", encoding="utf-8")
        own.sql("SELECT pg_reload_conf()")
        until(lambda: own.sql("SELECT count(*) FROM pg_hba_file_rules WHERE auth_method = 'reject'") == [(1,)])
        assert refused(url).startswith("The database server cannot be reached: connection failed: ")
    finally:
        rules.write_text(before, encoding="utf-8")
        own.sql("SELECT pg_reload_conf()")


def test_a_server_without_connections_to_spare_says_so_and_serves_those_it_has(own: Own, mem: Semmem, url: str) -> None:
    held: list[Any] = []
    try:
        with contextlib.suppress(psycopg.OperationalError):
            while len(held) < 30:
                held.append(psycopg.connect(url))
        assert 3 < len(held) < 20
        assert refused(url) == (
            "The database server has no connection left; close other programs, lower SEMMEM_POOL_SIZE in each process, "
            "or raise max_connections on the server."
        )
        assert len(mem.recall("key")) == 1
    finally:
        for connection in held:
            connection.close()


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ada:pass@word@host/db",
        "postgresql://ada:pass/word@host/db",
        "postgresql://ada:pass%word@host/db",
    ],
)
def test_a_password_that_a_url_cuts_in_two_is_refused_before_half_of_it_is_quoted(url: str) -> None:
    with pytest.raises(InvalidInput, match="has to be percent-encoded: @ is %40, / is %2F, % is %25") as caught:
        parse_url(url, home=None)
    assert "word" not in str(caught.value).replace("password", "")


def test_a_password_is_masked_wherever_it_would_stand() -> None:
    url = "postgresql://ada:s%40same@host/db?sslpassword=other&password=third"
    assert masked(url) == "postgresql://ada:***@host/db?sslpassword=***&password=***"
    assert masked("embedded:///folder") == "embedded:///folder"
    assert without("it said s@same, s%40same, third and other", url) == "it said ***, ***, *** and ***"
    assert without("thirdly, the user ada", url) == "thirdly, the user ada"
    assert without('no database "ada"', "postgresql://ada:ada@host/db") == 'no database "ada"'


# ---------------------------------------------------------------------- what the server lacks


def test_a_server_without_pgvector_is_told_what_to_install(own: Own) -> None:
    name = own.database(extension=False)
    own.sql(f"ALTER DATABASE {name} SET extension_control_path = '/nonexistent'")
    assert refused(own.url(name, "ada")) == (
        "This PostgreSQL server has no pgvector extension; install pgvector on it (0.8 or newer), or leave out the URL "
        "to use the embedded server."
    )
    assert own.sql("SELECT 1 FROM pg_namespace WHERE nspname = 'semmem'", name) == []


def test_a_user_who_may_not_make_the_extension_is_told_the_line_for_an_administrator(own: Own) -> None:
    name = own.database(extension=False)
    assert refused(own.url(name, "ada")) == (
        "This database user may not make the pgvector extension; let an administrator run once, in this database: "
        "CREATE EXTENSION vector SCHEMA public"
    )
    own.sql("CREATE EXTENSION vector SCHEMA public", name)
    connect(own.url(name, "ada")).close()


def test_a_user_who_may_not_make_tables_is_told_what_to_grant(own: Own, url: str) -> None:
    guest = own.url(database(url), "guest")
    assert "grant CREATE on the database and USAGE on the schema semmem" in refused(guest)
    connect(url).close()
    assert "grant CREATE on the database and USAGE on the schema semmem" in refused(guest)


@pytest.mark.parametrize("made", [False, True])
def test_a_pgvector_that_is_too_old_is_refused_with_both_versions(own: Own, made: bool) -> None:
    name = own.database(extension=False)
    own.sql(f"ALTER DATABASE {name} SET extension_control_path = '{own.extensions('0.7.4')}'")
    if made:
        own.sql("CREATE EXTENSION vector SCHEMA public", name)
    assert refused(own.url(name, "ada")) == (
        "This database has pgvector 0.7.4 and semmem needs 0.8 or newer; install that on the server, then: "
        "ALTER EXTENSION vector UPDATE"
    )
    assert own.sql("SELECT 1 FROM pg_namespace WHERE nspname = 'semmem'", name) == []


@pytest.mark.parametrize(
    ("server", "vector", "told"),
    [
        (180004, "0.8.5", None),
        (150000, None, None),
        (170002, "0.10.0", None),
        (170002, "1.0", None),
        (149999, "0.8.0", "PostgreSQL 14.9999 and semmem needs 15 or newer"),
        (130023, None, "PostgreSQL 13.23 and semmem needs 15 or newer"),
        (90624, "0.8.0", "PostgreSQL 9 and semmem needs 15"),
        (180004, "0.7.4", "pgvector 0.7.4 and semmem needs 0.8 or newer"),
        (180004, "0.4", "pgvector 0.4 and semmem needs 0.8 or newer"),
    ],
)
def test_versions_are_compared_as_numbers(server: int, vector: str | None, told: str | None) -> None:
    sentence = too_old(server, vector)
    assert (sentence is None) == (told is None)
    assert told is None or told in str(sentence)
    assert OLDEST_SERVER == 15


# ---------------------------------------------------------------------- a role that migrates, and one that may not


def granted(own: Own, name: str) -> None:
    """Let guest use the tables that ada makes, by the lines of docs/operate.md."""
    page = (Path(__file__).parents[4] / "docs" / "operate.md").read_text(encoding="utf-8")
    lines = page.partition("<!-- grants -->\n```sql\n")[2].partition("```")[0]
    assert lines.count(";") == 3
    with psycopg.connect(own.url(name, "ada"), autocommit=True) as connection:
        connection.execute(lines.replace("semmem_app", "guest"))  # type: ignore[call-overload]  # of our own page


def test_a_user_without_the_right_to_create_tables_uses_those_that_another_one_has_migrated(own: Own, url: str) -> None:
    name = database(url)
    guests = own.url(name, "guest")
    unmigrated = "This store has no tables of semmem, this semmem needs schema 26, and the setting migrate is false; "
    with pytest.raises(SchemaTooOld) as caught:
        connect(guests, migrate=False)
    assert str(caught.value) == unmigrated + "run `semmem migrate` once, as a user who may create tables."
    migrate_store(url, to=21)
    granted(own, name)
    with pytest.raises(SchemaTooOld, match=r"^This store has schema 21, this semmem needs schema 26, and the setting"):
        connect(guests, migrate=False)
    with pytest.raises(StoreUnavailable, match=r"^This database user may not use or create semmem's tables .*; grant"):
        migrate_store(guests, backup_before_migration=False)
    assert migrate_store(url).after == 26
    with connect(guests, migrate=False) as mem:
        mem.remember(NOTE, id="key")
        mem.remember_many([{"text": f"Note {n} of Ada Lovelace.", "id": f"n{n}"} for n in range(5)])
        assert [hit.id for hit in mem.recall("Where is the key?", limit=1)] == ["key"]
        mem.update("n1", text="Another text.")
        mem.configure(prior=False)
        assert mem.maintain()["indexed"] == 0
        assert mem.forget("key") == 1
        with pytest.raises(StoreUnavailable, match=r"may not rewrite the table .*; forget with hard as its owner"):
            mem.forget("n0", hard=True)
        assert mem.recall("Where is the key?").degraded == {}
    whole(own, url)


def test_a_server_whose_user_may_not_use_the_shared_buckets_warns_that_it_counts_by_itself(own: Own, url: str) -> None:
    migrate_store(url)
    granted(own, database(url))
    limits = Limits(shared=True)
    with connect(own.url(database(url), "guest"), migrate=False) as mem:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            rates_of(limits, lambda: mem)
        own.sql("REVOKE ALL ON semmem.rate_bucket FROM guest", database(url))
        said = r"^The limit of rate is not shared until .* by itself: .*permission denied for table rate_bucket\); let"
        with pytest.warns(UserWarning, match=said):
            rates_of(limits, lambda: mem)
