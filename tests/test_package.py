"""What is published beside the code is valid, says one version, and installs: metadata, packages, plugin, workflows."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

import semmem
from semmem.interfaces.coding_agents.clients import client_of, hook_commands

ROOT = Path(__file__).resolve().parents[1]
PLUGIN = ROOT / "plugins" / "claude-code"


def tool(name: str, *arguments: str | Path, cwd: Path = ROOT) -> None:
    """Run a program of this environment; its output is the message of a failure."""
    program = Path(sys.executable).with_name(name)
    if not program.is_file():
        pytest.skip(f"{name} is not installed; make install-dev brings it")
    done = subprocess.run([program, *arguments], cwd=cwd, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def read(path: str) -> dict[str, object]:
    parsed = json.loads((ROOT / path).read_text(encoding="utf-8"))
    assert isinstance(parsed, dict)
    return parsed


def test_every_file_that_repeats_the_version_repeats_that_of_the_package() -> None:
    server = read("server.json")
    (package,) = server["packages"]  # type: ignore[misc]
    cited = re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)
    assert cited is not None
    repeated = {
        "server.json": server["version"],
        "its package": package["version"],  # type: ignore[index]
        "the plugin": read("plugins/claude-code/.claude-plugin/plugin.json")["version"],
        "CITATION.cff": cited[1],
    }
    assert repeated == dict.fromkeys(repeated, semmem.__version__)


def test_the_plugin_of_claude_code_has_the_hooks_that_install_writes() -> None:
    written = json.loads((PLUGIN / "hooks" / "hooks.json").read_text(encoding="utf-8"))["hooks"]
    assert {event: entries[0]["hooks"][0]["timeout"] for event, entries in written.items()} == {
        event: entry["hooks"][0]["timeout"] for event, entry in hook_commands(client_of("claude-code"), []).items()
    }
    for event, entry in hook_commands(client_of("claude-code"), []).items():
        installed = shlex.split(entry["hooks"][0]["command"])
        shipped = shlex.split(written[event][0]["hooks"][0]["command"])
        assert shipped[0] == "semmem"
        assert shipped[1:] == installed[installed.index("hook") :]


@pytest.mark.parametrize(
    ("schema", "files"),
    [
        ("github-workflows", ".github/workflows/*.yml"),
        ("github-workflows", "examples/github-action.yml"),
        ("github-issue-forms", ".github/ISSUE_TEMPLATE/[!c]*.yml"),
        ("github-issue-config", ".github/ISSUE_TEMPLATE/config.yml"),
        ("citation-file-format", "CITATION.cff"),
        ("compose-spec", "examples/*/compose.yaml"),
    ],
)
def test_a_file_for_another_program_is_valid_by_its_schema(schema: str, files: str) -> None:
    found = sorted(ROOT.glob(files))
    assert found
    tool("check-jsonschema", "--builtin-schema", f"vendor.{schema}", *found)


def test_systemd_understands_the_unit(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    program = tmp_path / ".local" / "bin" / "semmem"
    program.parent.mkdir(parents=True)
    program.symlink_to(sys.executable)
    done = subprocess.run(
        ["systemd-analyze", "verify", "--user", "--man=no", ROOT / "examples" / "deploy" / "semmem.service"],
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path)},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_the_workflows_have_no_known_weakness() -> None:
    tool("zizmor", "--offline", "--no-progress", "--quiet", ".github")


def test_the_entry_of_the_mcp_registry_keeps_the_limits_of_the_registry() -> None:
    entry = read("server.json")
    assert re.fullmatch(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+", str(entry["name"]))
    assert len(str(entry["description"])) <= 100
    (package,) = entry["packages"]  # type: ignore[misc]
    assert (package["registryType"], package["transport"]) == ("pypi", {"type": "stdio"})  # type: ignore[index]
    words = [one["value"] for one in package["runtimeArguments"]]  # type: ignore[index]
    assert words == ["semmem[mcp,minilm]", "semmem"]


def test_the_readme_names_the_server_of_the_entry_which_proves_to_the_registry_whose_package_it_is() -> None:
    marker = f"mcp-name: {read('server.json')['name']}"
    assert re.search(rf"{re.escape(marker)}(?![\w./-])", (ROOT / "README.md").read_text(encoding="utf-8"))


def test_the_image_copies_only_files_that_its_context_holds() -> None:
    allowed = re.findall(r"^!(.+)$", (ROOT / ".dockerignore").read_text(encoding="utf-8"), re.MULTILINE)
    dockerfile = (ROOT / "examples" / "deploy" / "Dockerfile").read_text(encoding="utf-8")
    copied = [
        name
        for line in re.findall(r"^COPY (?!--from)(?:--\S+ )?(.+)$", dockerfile, re.MULTILINE)
        for name in line.split()[:-1]
    ]
    assert sorted(name.removeprefix("./") for name in copied) == sorted(allowed)
    assert all((ROOT / name).exists() for name in allowed)


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return the wheel and the sdist of this tree."""
    folder = tmp_path_factory.mktemp("dist")
    done = subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    if "No module named build" in done.stderr:
        pytest.skip("build is not installed; make install-dev brings it")
    assert done.returncode == 0, done.stderr
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, sdist


@pytest.mark.slow
def test_the_packages_pass_the_checks_of_a_package_index(packages: tuple[Path, Path]) -> None:
    tool("twine", "check", "--strict", *packages)
    tool("check-wheel-contents", packages[0])


@pytest.mark.slow
def test_the_wheel_holds_every_file_that_the_program_reads_and_no_tests(packages: tuple[Path, Path]) -> None:
    tracked = subprocess.run(
        ["git", "ls-files", "semmem"], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    ).stdout.split()
    names = zipfile.ZipFile(packages[0]).namelist()
    assert [name for name in tracked if name not in names] == []
    assert [name for name in names if not name.startswith(("semmem/", "semmem-", "semmem_eval/"))] == []
    harness = subprocess.run(
        ["git", "ls-files", "eval", ":!eval/results", ":!eval/mutants*.json", ":!eval/README.md"],
        cwd=ROOT, capture_output=True, text=True, timeout=60, check=False,
    ).stdout.split()  # fmt: skip
    assert [name for name in harness if f"semmem_eval/{name}" not in names] == []
    assert [name for name in names if "/results/" in name or "/runs/" in name or "/private/" in name] == []
    with tarfile.open(packages[1]) as sdist:
        inside = {name.partition("/")[2] for name in sdist.getnames()}
    assert {"Makefile", "constraints.txt", "CHANGELOG.md", "tests/test_package.py", "pyproject.toml"} <= inside


@pytest.mark.slow
def test_the_installed_wheel_answers_away_from_its_sources(packages: tuple[Path, Path], tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=False)
    (site,) = (tmp_path / "venv").glob("lib/python3*/site-packages")
    zipfile.ZipFile(packages[0]).extractall(site)
    (site / "others.pth").write_text("\n".join(entry for entry in sys.path if entry.endswith("site-packages")))
    asked = (
        "import semmem, sys; assert 'venv' in semmem.__file__; mem = semmem.connect(sys.argv[1], embedder='hashing');"
        "mem.remember('The ferry leaves at noon.'); print(mem.recall('when does the ferry leave?')[0].text)"
    )
    done = subprocess.run(
        [tmp_path / "venv" / "bin" / "python", "-I", "-c", asked, f"sqlite:{tmp_path}/notes.db"],
        cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
    )  # fmt: skip
    assert done.stdout == "The ferry leaves at noon.\n", done.stderr
    (tmp_path / "qrels").write_text("q1 0 a 1\n")
    (tmp_path / "a.trec").write_text("q1 Q0 b 1 1 mine\n")
    (tmp_path / "b.trec").write_text("q1 Q0 a 1 1 mine\n")
    done = subprocess.run(
        [tmp_path / "venv" / "bin" / "python", "-I", "-m", "semmem_eval", "compare", "--run", "a.trec", "--run",
         "b.trec", "--qrels", "qrels", "--metric", "R@1"],
        cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
    )  # fmt: skip
    assert "described only: R@1 +1.000, 1 question, won 1" in " ".join(done.stdout.split()), done.stderr
    # and a data set of one's own, which a clone is not needed for
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "documents.jsonl").write_text(
        '{"id": "a", "text": "The ferry leaves at noon."}\n{"id": "b", "text": "The bakery opens at six."}\n'
    )
    (tmp_path / "mine" / "queries.jsonl").write_text('{"id": "q1", "question": "the ferry", "gold_ids": ["a"]}\n')
    done = subprocess.run(
        [tmp_path / "venv" / "bin" / "python", "-I", "-m", "semmem_eval", "run", "--recipes", "default,lexical",
         "--data", "mine", "--embedder", "hashing", "--metric", "R@1"],
        cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    (result,) = (tmp_path / "semmem-eval" / "runs").rglob("result.json")
    assert json.loads(result.read_text())["environment"]["commit"] is None
