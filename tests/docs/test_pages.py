"""The pages name everything that exists and nothing else, and no link leads nowhere."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from html.parser import HTMLParser
from itertools import chain
from pathlib import Path

import pytest
import yaml

import semmem
from semmem.interfaces import wire
from semmem.interfaces.cli.app import app
from semmem.rank_cap.places import ASSUMPTIONS
from tests.docs.pages import PAGES, ROOT, everything, text


def command_names() -> list[str]:
    names = [command.name for command in app.registered_commands]
    names += [
        f"{group.name} {command.name}"
        for group in app.registered_groups
        if group.typer_instance is not None
        for command in group.typer_instance.registered_commands
    ]
    return sorted(filter(None, names))


def test_the_readme_is_read_in_three_minutes() -> None:
    tables = r"<!-- (?P<name>.*?): made by make docs -->.*?<!-- end of (?P=name) -->"
    written = re.sub(tables, "", text("README.md"), flags=re.DOTALL)
    assert len(written.split()) <= 546
    lines = [len(found[0].splitlines()) - 2 for found in re.finditer(tables, text("README.md"), re.DOTALL)]
    assert max(lines) <= 12, "ten lines below the head of a table"
    parts = re.findall(r"^## (.*)$", text("README.md"), re.MULTILINE)
    assert parts[:2] == ["Install", "Ten lines"]


def test_no_command_is_described_that_does_not_exist() -> None:
    groups = {group.name for group in app.registered_groups}
    described = re.findall(r"`semmem ([a-z]+(?:-[a-z]+)*(?: (?:status|merge|split)\b)?)", everything())
    assert set(described) <= {*command_names(), *groups}


def test_every_command_is_described() -> None:
    page = text("docs/command-line.md")
    assert [name for name in command_names() if f"`semmem {name}" not in page] == []


def test_every_recipe_has_a_row() -> None:
    for name in semmem.RECIPES:
        assert re.search(rf"^\|[^|]*`{name}`", text("docs/recipes.md"), re.MULTILINE), name


@pytest.mark.parametrize("document", ["docs/recipes.md", "adr/0003-rank-cap-reach-and-reserve.md"])
def test_every_assumption_of_reach_is_named(document: str) -> None:
    words = " ".join(text(document).split())
    assert [name for name in ASSUMPTIONS if name not in words] == []


def test_every_setting_has_a_row() -> None:
    from semmem.config import Settings

    rows = set(re.findall(r"^\| `[a-z_]+`<br>`SEMMEM_([A-Z_]+)`", text("docs/settings.md"), re.MULTILINE))
    assert rows == {name.upper() for name in Settings.model_fields}


def test_every_error_is_described_with_its_exit_code() -> None:
    from semmem.model import errors

    rows = dict(re.findall(r"^\| `([A-Z][a-z]\w+)` \|.*\| (\d+) \|$", text("docs/troubleshoot.md"), re.MULTILINE))
    assert rows == {name: str(wire.answer(getattr(errors, name)()).exit_code) for name in errors.__all__}


def test_every_exit_code_is_explained() -> None:
    sentence = re.search(r"^Exit codes: (.*?)\n\n", text("docs/command-line.md"), re.DOTALL | re.MULTILINE)
    assert sentence is not None
    explained = {int(code) for code in re.findall(r"(?:^|· ?)\s*(\d+) ", sentence[1])}
    used = {answer.exit_code for answer in wire.ERRORS.values()} | {0, wire.EXIT_REACH, wire.EXIT_INTERRUPTED}
    assert explained == used


def test_every_client_has_a_row() -> None:
    from semmem.interfaces.coding_agents.clients import CLIENTS

    assert set(re.findall(r"`semmem install ([a-z-]+)` \|", text("docs/coding-agents.md"))) == set(CLIENTS)


def test_every_format_of_import_has_a_row() -> None:
    from semmem import importers

    table = text("docs/import-export.md").split("| format | file |")[1].split("\n\n")[0]
    cells = [row.split("|")[1] for row in table.splitlines() if "|" in row]
    assert {name for cell in cells for name in re.findall(r"`(\w+)`", cell)} == set(importers.FORMATS)


def test_every_example_that_runs_is_on_a_page() -> None:
    for file in sorted((ROOT / "examples").glob("*.py")):
        assert f"examples/{file.name}" in everything(), file.name


def test_every_make_target_that_is_named_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert set(re.findall(r"(?:^|`)make ([a-z-]+)", everything(), re.MULTILINE)) <= targets


def test_every_link_to_a_file_leads_somewhere() -> None:
    documents = [ROOT / name for name in (*PAGES, "CONTEXT.md", "CHANGELOG.md", "eval/README.md")]
    lost = [
        f"{document.name}: {target}"
        for document in (*documents, *sorted((ROOT / "adr").glob("*.md")))
        for target in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", document.read_text(encoding="utf-8"))
        if not (document.parent / target).exists()
    ]
    assert lost == []


def test_every_library_has_a_row_in_the_record_of_libraries() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    asked = [*project["dependencies"], *chain(*project["optional-dependencies"].values())]
    names = {re.split(r"[\[<>=]", one)[0].lower() for one in asked} - {"semmem"}
    assert len(names) > 40
    record = (ROOT / "adr" / "0081-libraries-used-and-not.md").read_text(encoding="utf-8")
    rows = " ".join(line for line in record.splitlines() if line.startswith("| "))
    assert sorted(name for name in names if name not in rows.lower()) == []


def test_the_changelog_knows_this_version() -> None:
    assert f"\n## {semmem.__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_llms_txt_names_every_page_of_the_site() -> None:
    nav = re.findall(r": ([\w-]+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE)
    listed = re.findall(r"\]\(([\w-]+)\.html\)", (ROOT / "docs" / "llms.txt").read_text(encoding="utf-8"))
    assert {f"{name}.md" for name in listed} >= {name for name in nav if (ROOT / "docs" / name).exists()}
    assert all((ROOT / "docs" / f"{name}.md").exists() for name in listed)


class _Requests(HTMLParser):
    """Collects what a browser would load of a page by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag in ("script", "img", "iframe", "source"):
            self.found.add(given.get("src") or "")
        if tag == "link" and given.get("rel") != "canonical":
            self.found.add(given.get("href") or "")


@pytest.mark.slow
def test_the_site_builds_strictly_and_no_page_of_it_asks_another_host(tmp_path: Path) -> None:
    pytest.importorskip("material", reason="the site needs: pip install 'semmem[docs]'")
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    pages = sorted((tmp_path / "site").rglob("*.html"))
    assert len(pages) >= len(PAGES)
    for page in pages:
        parser = _Requests()
        parser.feed(page.read_text(encoding="utf-8"))
        assert [one for one in parser.found if "//" in one] == [], page.name
    for sheet in (tmp_path / "site").rglob("*.css"):
        assert not re.search(r"(?:url\(|@import)\s*['\"]?(?:https?:)?//", sheet.read_text(encoding="utf-8")), sheet.name
    for picture in (tmp_path / "site").rglob("*.svg"):
        assert not re.search(r"(?:href|src)=\"http|url\(\"?http", picture.read_text(encoding="utf-8")), picture.name
    assert (tmp_path / "site" / "llms.txt").exists()


def test_the_configuration_of_the_site_asks_for_no_font() -> None:
    words = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert yaml.safe_load(words)["theme"]["font"] is False
