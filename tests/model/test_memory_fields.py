"""The table of a memory's fields: what it describes, and that a new field is a line of it and a migration."""

from __future__ import annotations

import dataclasses
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import semmem
from semmem.model.memory_fields import DEFAULTS, FIELDS, FILTERS, STORED
from semmem.stores.sql_files import migrations

ROOT = Path(__file__).resolve().parents[2]

FIELD_LINES = """
    language: Annotated[str | None, Field(Text(35), "The language of its text, such as de.")]
    topics: Annotated[Sequence[str] | None, Field(Tags(), "What it is about, in words.")]
    reviewed: Annotated[bool, Field(Switch(), "Whether a person has read it.")]
    due_at: Annotated[datetime | date | str | None, Field(Time(), "When somebody should look at it again.")]
"""
FILTER_LINE = """
    languages: Annotated[str | Sequence[str] | None, Filter("any", "language", "Only in one of these.", "any of")]
"""
COLUMNS = {
    "postgres": ('language text COLLATE "C"', "topics text[] NOT NULL DEFAULT '{}'",
                 "reviewed boolean NOT NULL DEFAULT false", "due_at timestamptz"),
    "sqlite": ("language TEXT", "topics TEXT NOT NULL DEFAULT '[]'",
               "reviewed INTEGER NOT NULL DEFAULT 0", "due_at INTEGER"),
}  # fmt: skip


def behind(file: Path, line: str, new: str) -> None:
    """Write new lines into a file behind the only place of another text."""
    text = file.read_text(encoding="utf-8")
    assert text.count(line) == 1, line
    file.write_text(text.replace(line, line + new), encoding="utf-8")


def with_new_fields(folder: Path) -> None:
    """Copy semmem and add four fields and a filter, as somebody would who works on it."""
    shutil.copytree(ROOT / "semmem", folder / "semmem", ignore=shutil.ignore_patterns("__pycache__"))
    table, types = folder / "semmem/model/memory_fields.py", folder / "semmem/model/types.py"
    last_field = table.read_text(encoding="utf-8").partition("# fmt: on")[0].rstrip()
    behind(table, last_field, FIELD_LINES)
    last_filter = table.read_text(encoding="utf-8").rpartition("# fmt: on")[0].rstrip()
    behind(table, last_filter, FILTER_LINE)
    behind(
        types,
        "    pinned: bool = False\n    source_type: SourceType | None = None\n",
        "    topics: tuple[str, ...] = ()\n    language: str | None = None\n"
        "    reviewed: bool = False\n    due_at: datetime | None = None\n",
    )
    behind(types, "    source_types: tuple[SourceType, ...] = ()\n", "    languages: tuple[str, ...] = ()\n")
    for backend, columns in COLUMNS.items():
        number = migrations(backend)[-1][0] + 1
        lines = [f"ALTER TABLE {one} ADD COLUMN {column};\n" for one in ("memory", "history") for column in columns]
        script = folder / f"semmem/stores/sql/{backend}/migrations/{number:04}_new_fields.sql"
        script.write_text("-- Four fields.\n" + "".join(lines), encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("store", ["PostgreSQL", "SQLite"])
def test_a_new_field_is_a_line_of_the_table_a_type_and_a_migration(
    store: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    with_new_fields(tmp_path)
    url = f"sqlite:{tmp_path}/notes.db" if store == "SQLite" else request.getfixturevalue("store_url")
    settings = {name: value for name, value in os.environ.items() if not name.startswith("SEMMEM_")}
    done = subprocess.run(
        [sys.executable, "-m", "tests.model.new_fields", url, str(tmp_path)],
        cwd=tmp_path,
        env={**settings, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}", "SEMMEM_EMBEDDER": "none"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith(f"every interface has them: {tmp_path}/semmem\n")


def test_every_stored_field_is_a_field_of_a_memory_in_the_same_order() -> None:
    names = [one.name for one in dataclasses.fields(semmem.Memory)]
    assert [name for name in names if name in STORED] == list(STORED)
    assert set(FIELDS) - set(names) == {"vector", "ttl"}
    assert set(names) - set(FIELDS) == {
        "updated_at", "version", "parent_id", "seen_count", "last_seen", "contradicts", "access_count",
        "last_accessed", "older",
    }  # fmt: skip


def test_a_field_that_a_call_leaves_out_has_the_default_of_a_memory() -> None:
    given = {name: value for name, value in DEFAULTS.items() if value is not None}
    assert given == {"tags": (), "importance": 0.5, "sensitive": False, "pinned": False}


def test_every_filter_compares_a_field_of_a_memory() -> None:
    assert [(name, row.how, row.field) for name, row in FILTERS.items()] == [
        ("sessions", "any", "session"),
        ("authors", "any", "author"),
        ("tags", "all", "tags"),
        ("metadata", "contains", "metadata"),
        ("created_after", "from", "created_at"),
        ("created_before", "before", "created_at"),
        ("titles", "any", "title"),
        ("sensitive", "is", "sensitive"),
        ("source_types", "any", "source_type"),
    ]
