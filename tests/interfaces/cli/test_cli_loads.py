"""A command loads its own modules and no others; what it must not load is said here by name, not in milliseconds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer

import semmem
from semmem.interfaces.cli import app as program_module
from semmem.interfaces.cli.app import COMMANDS, GROUPS, program, run

MODELS = {"onnxruntime", "tokenizers", "torch", "sentence_transformers", "transformers", "spacy"}
NEVER = {"torch", "sentence_transformers", "transformers", "spacy", "onnx", "safetensors", "sympy", "scipy", "sklearn"}
SHOWS = {"rich.markdown", "rich.traceback", "markdown_it", "pygments", "typer.rich_utils"}
WRITES = {
    *("semmem.write.ingest", "semmem.write.plan", "semmem.write.likeness", "semmem.write.rebuild"),
    *("semmem.write.screening", "semmem.write.versions", "semmem.concepts.claims", "semmem.concepts.likeness"),
}
OTHERS = {
    *(
        "semmem.interfaces.cli.demo",
        "semmem.interfaces.cli.commands.doctor",
        "semmem.interfaces.cli.commands.import_export",
    ),
    "semmem.interfaces.cli.commands.write",
    *(
        "semmem.interfaces.mcp",
        "semmem.interfaces.model",
        "semmem.importers.note",
        "semmem.transfer",
        "semmem.client.probe.prober",
    ),
    *("semmem.write.sync", "semmem.read.graph_view", "semmem.stores.sqlite", "semmem.stores.postgres.moving.copy"),
}


def loaded(*lines: tuple[str, ...]) -> set[str]:
    """Return every module that a process has loaded at the end of these commands."""
    code = (
        "import json, sys\nfrom semmem.interfaces.cli.app import run\n"
        "codes = [run(line) for line in json.loads(sys.argv[1])]\n"
        "sys.stderr.write(json.dumps([codes, sorted(sys.modules)]))"
    )
    given = [sys.executable, "-c", code, json.dumps(lines)]
    done = subprocess.run(given, capture_output=True, text=True, check=True)
    codes, modules = json.loads(done.stderr.splitlines()[-1])
    assert codes == [0] * len(lines), done.stderr
    return set(modules)


HOOK_NEVER = {
    *("typer", "click", "rich", "pydantic", "pydantic_core", "networkx", "http.client", "secrets", "configparser"),
    *(
        "semmem.interfaces.cli",
        "semmem.interfaces.mcp",
        "semmem.interfaces.http",
        "semmem.client.http",
        "semmem.read.explanation",
    ),
    *("semmem.model.pictures", "semmem.model.tables", "semmem.importers.transcript", "semmem.importers.note"),
}
SQLITE_NEVER = {"psycopg", "psycopg_pool", "semmem.stores.postgres", "semmem.stores.embedded", "asyncio", "ssl"}


@pytest.fixture(scope="module")
def filled(module_url: str) -> str:
    with semmem.connect(module_url, embedder="minilm") as mem:
        mem.remember("The Kestrel is our logger.", id="kestrel", title="Kestrel")
    return module_url


def test_the_help_loads_no_store_no_settings_and_no_model() -> None:
    found = loaded(("--help",))
    heavy = {"numpy", "pydantic", "pydantic_settings", "psycopg", "networkx", "Stemmer", "asyncio", "semmem.config"}
    assert found & (heavy | MODELS | {"semmem.client.memory", "semmem.stores", "semmem.read"}) == set()


@pytest.mark.slow
def test_a_recall_loads_the_runtime_of_the_model_and_nothing_of_other_commands(filled: str) -> None:
    found = loaded(("--url", filled, "recall", "which logger do we have?"))
    assert {"onnxruntime", "tokenizers", "semmem.embedders.onnx_runtime"} <= found
    assert found & (NEVER | SHOWS | OTHERS | WRITES | {"networkx"}) == set()
    assert found & {"pydantic_settings", "dotenv", "argparse"} == set()


@pytest.mark.slow
def test_what_needs_no_vector_loads_no_model(filled: str) -> None:
    asked = ("recall", "logger", "--recipe", "lexical"), ("get", "kestrel"), ("list",), ("stats",), ("namespaces",)
    found = loaded(*(("--url", filled, *line) for line in asked))
    assert found & (MODELS | NEVER | SHOWS | OTHERS | {"semmem.embedders.minilm", "networkx"}) == set()


def test_json_draws_nothing(filled: str) -> None:
    found = loaded(("--url", filled, "recall", "logger", "--recipe", "lexical", "--json"))
    assert found & {"rich", "semmem.interfaces.cli.terminal", *SHOWS} == set()


def loaded_by_hook(url: str, folder: Path, **variables: str) -> set[str]:
    """Return every module that the hook of a prompt has loaded at its end, where no process answers it."""
    code = (
        "import atexit, gc, json, sys\nfrom semmem.__main__ import main\nsys.argv = json.loads(sys.argv[1])\n"
        "atexit.register(lambda: sys.stderr.write(f'{gc.isenabled()}\\n' + json.dumps(sorted(sys.modules))))\nmain()"
    )
    line = ["semmem", "hook", "prompt", "--url", url, "--namespace", "default"]
    none = {"SEMMEM_HOOK_PROCESS_S": "0", "XDG_STATE_HOME": str(folder), "SEMMEM_AGENT_MIN_CONFIDENCE": "0"}
    done = subprocess.run(
        [sys.executable, "-c", code, json.dumps(line)],
        env={**os.environ, **none, **variables}, capture_output=True, text=True, check=True,
        input=json.dumps({"prompt": "which logger do we have?", "session_id": "s", "cwd": str(folder)}),
    )  # fmt: skip
    assert "Kestrel" in done.stdout, done.stderr
    *_, collects, modules = done.stderr.splitlines()
    assert collects == "False"
    return set(json.loads(modules))


def test_a_hook_by_itself_loads_no_options_no_checks_of_types_and_nothing_that_draws(
    filled: str, tmp_path: Path
) -> None:
    found = loaded_by_hook(filled, tmp_path)
    assert {"onnxruntime", "tokenizers", "psycopg"} <= found
    assert found & (NEVER | SHOWS | OTHERS | WRITES | HOOK_NEVER) == set()


def test_a_hook_by_the_lexical_leg_over_one_file_loads_neither_a_model_nor_psycopg(tmp_path: Path) -> None:
    url = f"sqlite:{tmp_path}/notes.db"
    with semmem.connect(url, embedder="none") as mem:
        mem.remember("The Kestrel is our logger.", title="Kestrel")
    found = loaded_by_hook(url, tmp_path, SEMMEM_HOOK_LEGS="lexical")
    others = OTHERS - {"semmem.stores.sqlite"}
    assert found & (MODELS | NEVER | SHOWS | others | WRITES | HOOK_NEVER | SQLITE_NEVER) == set()
    assert found & {"email", "importlib.metadata"} == set()


def test_a_recall_draws_nothing_explains_nothing_and_loads_no_checks_of_types(tmp_path: Path) -> None:
    code = (
        "import json, sys, semmem\nwith semmem.connect(sys.argv[1], embedder='none') as mem:\n"
        "    mem.recall('which logger?')\nprint(json.dumps(sorted(sys.modules)))"
    )
    given = [sys.executable, "-c", code, f"sqlite:{tmp_path}/notes.db"]
    found = set(json.loads(subprocess.run(given, capture_output=True, text=True, check=True).stdout))
    assert found & (MODELS | NEVER | SHOWS | HOOK_NEVER | SQLITE_NEVER) == set()


def test_a_command_that_asks_by_itself_proves_nothing_draws_no_picture_and_collects_no_garbage(tmp_path: Path) -> None:
    url = f"sqlite:{tmp_path}/notes.db"
    with semmem.connect(url, embedder="none") as mem:
        mem.remember("The Kestrel is our logger.")
    code = (
        "import atexit, gc, json, os, sys\nfrom semmem.__main__ import main\nsys.argv = json.loads(sys.argv[1])\n"
        "less = lambda: [os.environ[name] for name in ('OPENBLAS_NUM_THREADS', 'PYDANTIC_DISABLE_PLUGINS')]\n"
        "said = lambda: [gc.isenabled(), less(), sorted(sys.modules)]\n"
        "atexit.register(lambda: sys.stderr.write(json.dumps(said())))\nmain()"
    )
    line = ["semmem", "recall", "logger", "--json", "--url", url]
    names = {"OPENBLAS_NUM_THREADS", "PYDANTIC_DISABLE_PLUGINS"}
    env = {name: value for name, value in os.environ.items() if name not in names}
    done = subprocess.run(
        [sys.executable, "-c", code, json.dumps(line)], capture_output=True, text=True, check=True, env=env
    )
    assert "Kestrel" in done.stdout
    collects, less, found = json.loads(done.stderr)
    assert (collects, less) == (False, ["1", "1"])
    proofs = {f"semmem.rank_cap.{name}" for name in ("reaching", "classes", "contest", "bounds", "report", "shares")}
    others = OTHERS - {"semmem.stores.sqlite"} | {"semmem.model.pictures", "rich"}
    assert set(found) & (proofs | others | WRITES | SQLITE_NEVER) == set()


# ---------------------------------------------------------------------- the table of commands


def names_of(made: typer.Typer) -> list[str | None]:
    return [one.name for one in made.registered_commands] + [one.name for one in made.registered_groups]


def test_a_command_by_its_name_is_the_one_of_the_whole_program() -> None:
    assert [names_of(program(name)) for name in (*COMMANDS, *GROUPS)] == [[name] for name in (*COMMANDS, *GROUPS)]


def test_the_table_names_every_command_that_is_added_and_in_that_order() -> None:
    assert names_of(program()) == [*COMMANDS, *GROUPS] == names_of(program_module.app)
    assert names_of(program("recal")) == names_of(program())


@pytest.mark.parametrize(
    ("args", "name"),
    [
        ([], None),
        (["--help"], None),
        (["recall", "get"], "recall"),
        (["--url", "get", "-n", "list", "--json", "recall", "stats"], "recall"),
        (["--url=get", "--recipe", "lexical", "stats"], "stats"),
        (["-nlist", "stats"], "stats"),
        (["--url"], None),
    ],
)
def test_the_command_is_the_first_word_that_no_option_takes(args: list[str], name: str | None) -> None:
    assert program_module._named(args) == name


def test_options_before_a_command_reach_it_and_a_misspelt_one_is_told(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    url = f"sqlite:{tmp_path}/list.db"
    assert run(["--url", url, "--namespace", "get", "remember", "The key is red.", "--id", "a"]) == 0
    assert run(["--namespace", "get", "--url", url, "--json", "list"]) == 0
    assert '"The key is red."' in capfd.readouterr().out
    assert run(["recal", "key"]) == 2
    assert "No such command 'recal'" in capfd.readouterr().err


def test_a_start_hardly_collects_garbage(tmp_path: Path) -> None:
    program = """if True:
        import gc, sys
        from semmem.__main__ import main
        before = gc.get_stats()[0]["collections"]
        try:
            main()
        except SystemExit:
            sys.stderr.write(str(gc.get_stats()[0]["collections"] - before))
    """
    done = subprocess.run(
        [sys.executable, "-c", program, "stats", "--url", f"sqlite:{tmp_path}/notes.db"],
        capture_output=True, text=True,
    )  # fmt: skip
    assert int(done.stderr.rpartition("\n")[2] or done.stderr) <= 10, done.stderr
