"""Code on a page can be typed: it runs here, page by page, in the order in which it stands, or where it is said."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from semmem.interfaces.cli.app import run
from tests.docs.pages import PAGES, ROOT, Block, blocks, everything, lines
from tests.importers.test_git import git

EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]

FILES = {
    "talk.jsonl": '{"role": "Ada", "content": "Where is the key?", "timestamp": "2026-05-01T09:00:00Z"}\n',
    "conversations.json": json.dumps(
        [
            {
                "id": "c",
                "current_node": "n",
                "mapping": {
                    "n": {
                        "message": {
                            "author": {"role": "user"},
                            "content": {"content_type": "text", "parts": ["Where is the key?"]},
                        }
                    }
                },
            }
        ]
    ),
    "tickets.csv": "Body,Subject,Labels\nThe key is lost.,Heron House,key;house\n",
    "vault/Kestrel.md": "---\naliases: [KL-7]\n---\nOur logger, designed by [[Petra Lindqvist|Petra]].\n",
    "vault/Petra Lindqvist.md": "She grew up in Norrbeck.\n",
}
"""The files that the commands name."""

ELSEWHERE = {
    "make install": "CI installs this way",
    "make demo": "tests/interfaces/cli/test_demo.py",
    "make test": "CI",
    "pip install": "test_an_extra_exists_and_allows_what_is_installed",
    "semmem model get": "tests/embedders, and CI",
    "semmem model list": "tests/embedders/test_any_encoder.py",
    "semmem model remove": "tests/embedders/test_removed_models.py",
    "semmem rebuild --embedder": "tests/embedders",
    "export SEMMEM_URL": "wants a standby: tests/stores/postgres/standby",
    "export SEMMEM_READ_URL": "as above",
    "semmem audit export": "wants calls that were noted: tests/client/test_audit.py",
    "export SEMMEM_OIDC": "wants an identity server: tests/interfaces/mcp/test_login.py",
    "export SEMMEM_EMBEDDER": "tests/embedders/test_endpoint.py",
    "export SEMMEM_RERANKER": "tests/rerankers/test_rerank_endpoint.py",
    "export SEMMEM_RECIPE": "tests/rerankers/test_rerank_endpoint.py",
    "semmem keys": "tests/docs/test_servers.py",
    "semmem serve": "tests/docs/test_servers.py",
    "semmem mcp": "tests/docs/test_servers.py",
    "curl": "tests/docs/test_servers.py",
    "semmem import documents": "tests/importers/test_documents.py",
    "semmem import mem0": "tests/importers; the page names no file of yours",
    "SEMMEM_MODEL=": "tests/embedders/test_embedders.py",
    "SEMMEM_LANGUAGE=german semmem rebuild": "tests/embedders/test_nano_e5.py",
    "semmem copy": "wants a server: tests/stores",
    "semmem distribute": "wants Citus: tests/stores/postgres/test_distribute.py",
    "semmem row-security": "wants two users: tests/stores/postgres/own",
    "semmem doctor --url": "as above",
    "semmem migrate": "wants two users: tests/stores/postgres/own",
    "semmem export --namespace notes mine": "tests/eval/test_eval_stores_what_users_store.py",
    "mkdir mine": "as above",
    "mkdir -p backups": "tests/interfaces/cli/test_cli_moving.py",
    'echo \'{"prompt"': "tests/interfaces/coding_agents/test_hook.py",
    'echo \'{"source"': "tests/interfaces/coding_agents/test_beginning.py",
    "semmem backup": "tests/interfaces/cli/test_cli_moving.py",
    "semmem restore": "tests/interfaces/cli/test_cli_moving.py",
    "semmem stats --verify": "tests/interfaces/cli/test_cli_moving.py",
    "python -m eval": "tests/eval; test_a_command_of_the_harness_is_one",
    "semmem-eval": "tests/eval; test_a_command_of_the_harness_is_one",
}
"""How lines of a shell begin that are run elsewhere, and where."""

ON_THE_MACHINE = ("semmem demo", "semmem server", "semmem doctor", "semmem explore")
"""Commands that concern the machine, or run until they are stopped: tests/interfaces runs them on its own store."""


def of_a_server(block: Block) -> bool:
    return "http://" in block.code


def runnable(page: str) -> list[Block]:
    return [block for block in blocks(page, "console", "python") if not of_a_server(block)]


def repository(folder: Path) -> None:
    """Make the git repository that a command names."""
    (folder / "engine").mkdir()
    git(folder / "engine", "init")
    git(folder / "engine", "commit", "--allow-empty", "-m", "Ask the lexical leg first")


@pytest.fixture
def _own_store(store_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Give the page a store, a home, and a folder of its own with the files that it names."""
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    repository(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("SEMMEM_URL", store_url)
    monkeypatch.setenv("SEMMEM_EMBEDDER", "hashing")


@pytest.mark.usefixtures("_own_store")
@pytest.mark.parametrize("page", [page for page in PAGES if runnable(page)])
def test_the_code_of_a_page_runs_in_the_order_in_which_it_stands(page: str, capfd: pytest.CaptureFixture[str]) -> None:
    for block in runnable(page):
        if block.language == "python":
            exec(compile(block.code, page, "exec"), {})  # the examples are ours
            assert capfd.readouterr().out, block.code
            continue
        for line in filter(None, map(str.strip, block.code.splitlines())):
            if line.startswith(ON_THE_MACHINE) and "--url" not in line:
                continue
            assert run(shlex.split(line)[1:]) == 0, line
            out, err = capfd.readouterr()
            assert out, line
            assert err == "" or line.startswith(("semmem judgments", "semmem keys")), line


def test_the_ten_lines_of_the_readme_print_the_second_note_and_every_leg(
    store_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SEMMEM_URL", store_url)
    monkeypatch.setenv("SEMMEM_EMBEDDER", "hashing")
    (code,) = [block.code for block in blocks("README.md", "python")]
    assert code.count("\n") <= 11
    exec(compile(code, "README.md", "exec"), {})
    printed = capsys.readouterr().out
    assert "above a bakery in Norrbeck" in printed
    assert "every leg answered" in printed


def test_every_line_of_a_console_is_a_command_of_semmem() -> None:
    assert [line for page in PAGES for line in lines(page, "console") if not line.startswith("semmem ")] == []


def test_every_line_of_a_shell_is_run_elsewhere_and_the_place_is_named() -> None:
    typed = [line for page in PAGES for line in lines(page, "sh")]
    assert [line for line in typed if not line.startswith(tuple(ELSEWHERE))] == []
    assert [start for start in ELSEWHERE if not any(line.startswith(start) for line in typed)] == []


def test_every_block_says_what_it_is() -> None:
    known = {"console", "sh", "python", "json", "toml", "sql", "text"}
    assert {block.language for page in PAGES for block in blocks(page)} <= known


@pytest.mark.parametrize(
    "line",
    [line for page in PAGES for line in lines(page, "sh") if "-m eval" in line or line.startswith("semmem-eval ")],
)
def test_a_command_of_the_harness_is_one(line: str) -> None:
    import typer

    from eval.cli import app

    args = shlex.split(line)[1:] if line.startswith("semmem-eval ") else shlex.split(line)[3:]
    command = typer.main.get_command(app)
    _, chosen, rest = command.resolve_command(command.make_context("eval", args), args)  # type: ignore[attr-defined]
    chosen.make_context("eval", rest)  # raises for an option that is none


def test_the_data_set_that_is_shown_can_be_read(tmp_path: Path) -> None:
    from eval.datasets import folder

    documents, queries = (block.code for block in blocks("docs/does-the-graph-help.md", "json"))
    (tmp_path / "documents.jsonl").write_text(documents, encoding="utf-8")
    (tmp_path / "queries.jsonl").write_text(queries, encoding="utf-8")
    found = folder.load(tmp_path)
    assert [(one.text, one.gold) for one in found.headline] == [("Who designed the Kestrel?", ("kestrel",))]


def test_the_file_of_settings_that_is_shown_can_be_used(tmp_path: Path) -> None:
    from semmem.config import ANYWHERE, Settings
    from semmem.read.overrides import recipe_of

    (shown,) = [block.code for block in blocks("docs/settings.md", "toml")]
    (tmp_path / "semmem.toml").write_text(shown, encoding="utf-8")
    found = Settings.load(config=tmp_path / "semmem.toml")
    assert found.pool_size == 4
    assert (recipe_of(found).weights["graph"], recipe_of(found).lexical.k1) == (0.5, 0.9)
    sentence = re.search(r"so it may set only (.*?):", everything(), re.DOTALL)
    assert sentence is not None
    assert set(re.findall(r"`(\w+)`", sentence[1])) == ANYWHERE


def named_extras() -> set[str]:
    return {
        name
        for names in re.findall(r"(?:semmem|clone)\[([\w,-]+)\]", everything())
        for name in names.split(",")
        if name
    }


@pytest.mark.parametrize("extra", sorted(named_extras()))
def test_an_extra_exists_and_allows_what_is_installed(extra: str) -> None:
    assert extra in EXTRAS
    if extra in ("local", "spacy"):  # which bring torch, or a pipeline of yours
        return
    if extra == "documents" and find_spec("markitdown") is None:
        pytest.skip("markitdown is not installed; make install-dev brings it")
    if extra == "ray" and find_spec("ray") is None:
        pytest.skip("Ray is not installed; .ci/run brings it")
    for wanted in map(Requirement, EXTRAS[extra]):
        if wanted.name != "semmem" and (wanted.marker is None or wanted.marker.evaluate({"extra": extra})):
            assert wanted.specifier.contains(version(wanted.name), prereleases=True), str(wanted)


@pytest.mark.parametrize(
    ("extra", "package"), [("http", "fastapi"), ("http", "httpx"), ("mcp", "mcp"), ("minilm", "onnxruntime")]
)
def test_an_extra_brings_what_the_documents_say_of_it(extra: str, package: str) -> None:
    assert package in {Requirement(text).name for text in EXTRAS[extra]}


def test_the_configuration_of_a_client_is_json() -> None:
    (shown,) = [block.code for block in blocks("docs/mcp.md", "json")]
    assert json.loads(shown)["mcpServers"]["semmem"] == {"command": "semmem", "args": ["mcp"]}
