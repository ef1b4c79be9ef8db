"""What decides whether an old store may be used again: all that reading and writing import, and nothing of asking."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from types import FrameType

import pytest

import semmem
from eval.commands.interface import opened
from eval.datasets import load
from eval.experiments.fingerprint import ASKS, STORES, extracting, fingerprint, sources
from eval.experiments.runner import ingest
from semmem.extractors import Rules
from semmem.extractors.precomputed import Precomputed

ROOT = Path(__file__).resolve().parents[2]
TOY = ROOT / "eval" / "data" / "toy"
WIRING = {
    "semmem/client/memory.py",
    "semmem/client/admin.py",
    "semmem/client/connection.py",
    "semmem/read/tracing.py",
    "eval/experiments/runner.py",
}
"""What passes a write on and decides nothing about it."""


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """Return a copy of the sources, which a test may change."""
    for package in ("eval", "semmem"):
        shutil.copytree(
            ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("runs", "data", "__pycache__")
        )
    return tmp_path


def under(root: Path) -> dict[str, Path]:
    return {package: root / package for package in ("eval", "semmem")}


def names(*roots: str) -> set[str]:
    return set(sources(*roots))


@pytest.mark.slow
@pytest.mark.parametrize(
    "module",
    [
        "eval/datasets/source.py",
        "semmem/write/sync.py",
        "semmem/write/items.py",
        "semmem/embedders/minilm.py",
        "semmem/extractors/llm.py",
        "semmem/importers/note.py",
        "semmem/embedders/binding.py",
        "semmem/text/passages.py",
        "semmem/text/tokens.py",
        "semmem/write/rebuild.py",
    ],
)
def test_a_change_on_the_way_into_a_store_changes_the_fingerprint(copied: Path, module: str) -> None:
    before = fingerprint(*STORES, packages=under(copied))
    assert before == fingerprint(*STORES)
    with (copied / module).open("a", encoding="utf-8") as out:
        out.write("# changed\n")
    assert fingerprint(*STORES, packages=under(copied)) != before


def test_so_does_a_change_of_sql_and_of_a_module_that_is_new(copied: Path) -> None:
    before = fingerprint(*STORES, packages=under(copied))
    statements = sorted((copied / "semmem" / "stores").rglob("*.sql"))[0]
    statements.write_text(statements.read_text(encoding="utf-8") + "-- changed\n", encoding="utf-8")
    of_sql = fingerprint(*STORES, packages=under(copied))
    assert of_sql != before
    (copied / "semmem" / "new.py").write_text("import semmem.newer\n", encoding="utf-8")
    (copied / "semmem" / "newer.py").write_text("NUMBER = 1\n", encoding="utf-8")
    assert fingerprint(*STORES, packages=under(copied)) == of_sql  # nobody imports it yet
    with (copied / "semmem" / "write" / "items.py").open("a", encoding="utf-8") as out:
        out.write("def later():\n    from semmem import new\n")
    imported = fingerprint(*STORES, packages=under(copied))
    (copied / "semmem" / "newer.py").write_text("NUMBER = 2\n", encoding="utf-8")
    assert fingerprint(*STORES, packages=under(copied)) != imported != of_sql


@pytest.mark.slow
@pytest.mark.parametrize(
    "module", ["semmem/read/recall.py", "semmem/fusion.py", "semmem/legs/graph.py", "eval/reports/charts.py"]
)
def test_a_change_of_how_a_store_is_asked_leaves_the_store_as_it_is(copied: Path, module: str) -> None:
    stored, asked = fingerprint(*STORES, packages=under(copied)), fingerprint(*ASKS, packages=under(copied))
    with (copied / module).open("a", encoding="utf-8") as out:
        out.write("# changed\n")
    assert fingerprint(*STORES, packages=under(copied)) == stored
    assert (fingerprint(*ASKS, packages=under(copied)) != asked) is module.startswith("semmem")


def ran_while_a_corpus_is_remembered(url: str) -> set[str]:
    """Return our own modules that run while the toy set is read and remembered, in a process that does nothing else."""
    ran: set[str] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        path = Path(frame.f_code.co_filename)
        if path.is_relative_to(ROOT) and path.relative_to(ROOT).parts[0] in ("eval", "semmem"):
            ran.add(path.relative_to(ROOT).as_posix())

    with semmem.connect(url, embedder="hashing") as mem:
        threading.setprofile(note)
        sys.setprofile(note)
        try:
            corpus = load(TOY)
            assert ingest(mem, replace(corpus, memories=corpus.memories[:12])).remembered == 12
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
    return ran


@pytest.mark.slow
def test_all_code_that_runs_while_a_corpus_is_read_and_remembered_is_counted(tmp_path: Path, store_url: str) -> None:
    ran: set[str] = set()
    for url in (store_url, f"sqlite:///{tmp_path / 'notes.db'}"):
        asked = f"import {__name__} as here; print(*here.ran_while_a_corpus_is_remembered({url!r}), sep='\\n')"
        done = subprocess.run([sys.executable, "-c", asked], cwd=ROOT, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        ran |= set(done.stdout.split("\n")) - {""}
    assert {
        "eval/datasets/source.py",
        "semmem/write/ingest.py",
        "semmem/write/rebuild.py",
        "semmem/stores/postgres/write.py",
    } <= ran
    assert ran - WIRING - names(*STORES) == set()


def test_installed_packages_that_do_not_lie_side_by_side_have_the_fingerprint_of_the_clone(tmp_path: Path) -> None:
    installed = {"eval": tmp_path / "semmem_eval" / "eval", "semmem": tmp_path / "semmem"}
    for package, folder in installed.items():
        shutil.copytree(ROOT / package, folder, ignore=shutil.ignore_patterns("runs", "data", "__pycache__"))
    assert fingerprint(*STORES, packages=installed) == fingerprint(*STORES)


def test_a_root_that_is_gone_is_named() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"There is no module semmem\.no_such"):
        fingerprint("semmem.no_such")


def test_rules_of_another_language_and_a_later_file_of_names_make_another_graph(tmp_path: Path) -> None:
    triples = tmp_path / "triples.json"
    triples.write_text('{"docs": []}', encoding="utf-8")
    first = Precomputed(triples)
    triples.write_text('{"docs": [ ]}', encoding="utf-8")
    made = [(Rules(), "english"), (Rules("german"), "german"), (first, "english"), (Precomputed(triples), "english")]
    assert len({extracting(*by) for by in made}) == 4
    assert extracting(Rules(), "english") == extracting(Rules(), "english")


@pytest.mark.slow
def test_a_store_with_the_graph_of_another_extractor_is_not_asked_for_that_of_the_rules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    triples = tmp_path / "triples.json"
    triples.write_text('{"docs": []}', encoding="utf-8")
    monkeypatch.setattr("eval.commands.interface.RUNS", tmp_path)
    corpus, urls = load(TOY), []
    for extractor in ("rules", "precomputed", "rules"):
        monkeypatch.setenv("SEMMEM_EXTRACTOR", extractor)
        monkeypatch.setenv("SEMMEM_TRIPLES", str(triples))
        with opened(corpus, None, "hashing") as mem:
            urls.append(mem.store.url)
    assert urls[0] == urls[2] != urls[1]
