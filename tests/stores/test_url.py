"""A store URL is read into a kind and an absolute place, or refused in one sentence that repeats no password."""

from __future__ import annotations

from pathlib import Path

import pytest

from semmem import files
from semmem.model.errors import InvalidInput
from semmem.stores import Target, parse_url

HOME = Path("/somewhere/else")


@pytest.mark.parametrize("url", [None, "embedded:", "EMBEDDED:", " embedded: "])
def test_no_url_and_a_bare_embedded_mean_the_users_data_folder(url: str | None) -> None:
    assert parse_url(url, home=HOME) == Target("embedded", path=HOME)
    assert parse_url(url, home=None) == Target("embedded", path=files.data_folder())


def test_the_platforms_data_folder_is_absolute_and_named_after_semmem() -> None:
    assert files.data_folder().is_absolute()
    assert files.data_folder().name == "semmem"


@pytest.mark.parametrize(
    ("url", "kind", "path"),
    [
        ("embedded:///var/data", "embedded", Path("/var/data")),
        ("embedded:///var/my data", "embedded", Path("/var/my data")),
        ("embedded:/var/data", "embedded", Path("/var/data")),
        ("embedded:rel/path", "embedded", Path.cwd() / "rel/path"),
        ("embedded:~/notes", "embedded", Path.home() / "notes"),
        ("sqlite:///var/data.db", "sqlite", Path("/var/data.db")),
        ("sqlite:rel.db", "sqlite", Path.cwd() / "rel.db"),
        ("sqlite::memory:", "sqlite", None),
    ],
)
def test_three_slashes_are_absolute_and_none_is_relative(url: str, kind: str, path: Path | None) -> None:
    target = parse_url(url, home=HOME)
    assert (target.kind, target.path, target.dsn) == (kind, path, None)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ada:secret@host:5433/db?sslmode=require", "postgres://host", "postgresql://", "postgresql://host:/db",
        "postgresql:///db?host=/tmp", "postgresql://ada:se?cret@[::1]:5432/db", "postgresql://a:5432,b:5433/db",
        "postgresql://[::1]/db", "postgresql://host?application_name=a:b",
    ],
)  # fmt: skip
def test_a_postgresql_url_is_handed_to_libpq_as_it_stands(url: str) -> None:
    assert parse_url(url, home=HOME) == Target("postgresql", dsn=url)


def test_a_target_does_not_show_the_password_of_its_url() -> None:
    assert "secret" not in repr(parse_url("postgresql://ada:secret@host/db", home=HOME))


@pytest.mark.parametrize(
    "url",
    [
        "",
        "  ",
        "memories.db",
        "/var/data",
        "ada:secret@host/db",
        "secret:",
        "mysql://ada:secret@host/db",
        "postgresql+psycopg://ada:secret@host/db",
        "postgres:secret",
        "host=h password=secret",
        "embedded://host/secret",
        "embedded:///var/sec\0ret",
        "sqlite://secret.db",
        "sqlite:",
        "sqlite://",
        "embedded:~nobody-of-that-name-secret/x",
    ],
)
def test_anything_else_is_one_sentence_that_repeats_nothing(url: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_url(url, home=HOME)
    assert "secret" not in str(refused.value)
    assert "\n" not in str(refused.value)
    assert str(refused.value).endswith((".", "?"))


@pytest.mark.parametrize("port", ["notaport", "5432x", "0", "65536", "-1", "54 33"])
def test_a_port_that_is_no_number_is_named(port: str) -> None:
    named = rf"^The port '{port}' in the store URL is not a number from 1 to 65535; correct it"
    for place in (f"localhost:{port}/db", f"a:5432,b:{port}/db", f"[::1]:{port}", f"host/db?user=a&port={port}"):
        with pytest.raises(InvalidInput, match=named):
            parse_url(f"postgresql://u:p@{place}", home=HOME)
        with pytest.raises(
            InvalidInput, match=(r"^The port in the store URL is not a number from 1 to " r"65535; correct it")
        ):
            parse_url(f"postgresql://{place}", home=HOME)  # it may be a password whose host was forgotten
