"""What the README shows can be typed: its commands and code run, and its tables leave nothing out."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

import semmem
from semmem.doors import wire
from semmem.doors.cli.app import app, run
from semmem.rank_cap.places import ASSUMPTIONS

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.DOTALL | re.MULTILINE)


COMMANDS = [line for block in blocks("console") for line in block.splitlines() if line.startswith("semmem ")]


def command_names() -> list[str]:
    names = [command.name for command in app.registered_commands]
    names += [
        f"{group.name} {command.name}"
        for group in app.registered_groups
        if group.typer_instance is not None
        for command in group.typer_instance.registered_commands
    ]
    return sorted(filter(None, names))


FILES = {
    "talk.jsonl": '{"role": "Ada", "content": "Where is the key?", "timestamp": "2026-05-01T09:00:00Z"}\n',
    "tickets.csv": "Body,Subject,Labels\nThe key is lost.,Heron House,key;house\n",
    "vault/Kestrel.md": "---\naliases: [KL-7]\n---\nOur logger, designed by [[Petra Lindqvist|Petra]].\n",
    "vault/Petra Lindqvist.md": "She grew up in Norrbeck.\n",
}


@pytest.fixture
def _own_store(store_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Give the commands a store, and a folder of their own with the files that they name."""
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.setenv("SEMMEM_URL", store_url)
    monkeypatch.setenv("SEMMEM_EMBEDDER", "hashing")


@pytest.mark.usefixtures("_own_store")
def test_the_commands_run_in_the_order_in_which_they_stand(capfd: pytest.CaptureFixture[str]) -> None:
    typed = [line for line in COMMANDS if not line.startswith(("semmem demo", "semmem server"))]
    assert len(typed) >= 8
    for line in typed:
        assert run(shlex.split(line)[1:]) == 0, line
        out, err = capfd.readouterr()
        assert out, line
        assert err == "", line


@pytest.mark.usefixtures("_own_store")
def test_the_python_examples_run(capsys: pytest.CaptureFixture[str]) -> None:
    for block in blocks("python"):
        if "http://" in block:  # of a server, see test_readme_http.py
            continue
        exec(compile(block, "README.md", "exec"), {})  # the examples are ours
    printed = capsys.readouterr().out
    assert "'regex': " in printed
    assert "Petra Lindqvist" in printed
    assert "every leg answered" in printed


@pytest.mark.parametrize("name", command_names())
def test_every_command_is_described(name: str) -> None:
    assert f"`semmem {name}" in README


def test_no_command_is_described_that_does_not_exist() -> None:
    groups = {group.name for group in app.registered_groups}
    described = re.findall(r"`semmem ([a-z]+(?: (?:status|stop|merge|split)\b)?)", README)
    assert set(described) <= {*command_names(), *groups}


def test_every_recipe_has_a_row() -> None:
    for name in semmem.RECIPES:
        assert re.search(rf"^\|[^|]*`{name}`", README, re.MULTILINE), name


@pytest.mark.parametrize("document", ["README.md", "adr/0003-rank-cap-reach-and-reserve.md"])
def test_every_assumption_of_reach_is_named(document: str) -> None:
    words = " ".join((ROOT / document).read_text(encoding="utf-8").split())
    assert [name for name in ASSUMPTIONS if name not in words] == []


def test_every_setting_has_a_row() -> None:
    from semmem.config import Settings

    rows = set(re.findall(r"^\| `SEMMEM_([A-Z_]+)`", README, re.MULTILINE))
    assert rows == {name.upper() for name in Settings.model_fields}


def test_the_file_of_settings_that_is_shown_can_be_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from semmem.config import ANYWHERE, Settings
    from semmem.read.overrides import recipe_of

    (shown,) = blocks("toml")
    (tmp_path / "semmem.toml").write_text(shown, encoding="utf-8")
    found = Settings.load(config=tmp_path / "semmem.toml")
    assert found.pool_size == 4
    assert (recipe_of(found).weights["graph"], recipe_of(found).lexical.k1) == (0.5, 0.9)
    sentence = re.search(r"so it may set only (.*?): never", README, re.DOTALL)
    assert sentence is not None
    assert set(re.findall(r"`(\w+)`", sentence[1])) == ANYWHERE


def test_every_error_is_described_with_its_exit_code() -> None:
    from semmem.model import errors

    rows = dict(re.findall(r"^\| `([A-Z][a-z]\w+)` \|.*\| (\d+) \|$", README, re.MULTILINE))
    assert rows == {name: str(wire.answer(getattr(errors, name)()).exit_code) for name in errors.__all__}


def test_every_exit_code_is_explained() -> None:
    sentence = re.search(r"^Exit codes: (.*?)\n\n", README, re.DOTALL | re.MULTILINE)
    assert sentence is not None
    explained = {int(code) for code in re.findall(r"(?:^|· ?)\s*(\d+) ", sentence[1])}
    used = {answer.exit_code for answer in wire.ERRORS.values()} | {0, wire.EXIT_REACH, wire.EXIT_INTERRUPTED}
    assert explained == used


def test_every_make_target_that_is_named_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert set(re.findall(r"(?:^|`)make ([a-z-]+)", README, re.MULTILINE)) <= targets


def test_every_link_to_a_file_leads_somewhere() -> None:
    for document in (
        ROOT / "README.md",
        ROOT / "REFERENCE.md",
        ROOT / "CONTEXT.md",
        ROOT / "CHANGELOG.md",
        *ROOT.glob("adr/*.md"),
    ):
        for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text(encoding="utf-8")):
            assert (document.parent / target).exists(), f"{document.name}: {target}"


def test_the_changelog_knows_this_version() -> None:
    assert f"\n## {semmem.__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
