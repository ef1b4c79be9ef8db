"""Nothing that is tracked may hold text of a corpus that is not ours."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from eval.datasets import FORMATS, data_root, load

ROOT = Path(__file__).resolve().parents[2]
LENGTH = 50  # characters in a row, blanks folded: long enough that no two people write them by chance


def tracked() -> dict[str, str]:
    try:
        output = subprocess.run(
            ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            capture_output=True, timeout=30, check=True,
        )  # fmt: skip
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this is not a git checkout")
    out = {}
    for name in output.stdout.decode().split("\0"):
        path = ROOT / name
        if name and path.is_file() and path.stat().st_size < 5_000_000:
            out[name] = " ".join(path.read_bytes().decode("utf-8", "replace").lower().split())
    return out


def windows(text: str) -> set[str]:
    """Return pieces of a text, one from each stretch of ``LENGTH`` characters, so that any long quotation holds one."""
    plain = " ".join(text.lower().split())
    return {plain[i : i + LENGTH] for i in range(0, max(1, len(plain) - LENGTH + 1), LENGTH) if len(plain) >= LENGTH}


@pytest.mark.slow
def test_no_tracked_file_holds_text_of_a_shared_corpus() -> None:
    root = data_root()
    sets = sorted(p for p in root.iterdir() if any(f.recognises(p) for f in FORMATS.values())) if root.is_dir() else []
    if not sets:
        pytest.skip("no shared sets here; set SEMMEM_EVAL_DATA to where they lie")
    files = tracked()
    everything = "\n".join(files.values())
    of_set: dict[str, str] = {}
    for path in sets:
        corpus = load(path)
        for text in [*(str(m["text"]) for m in corpus.memories), *(q.text for q in corpus.queries)]:
            of_set |= dict.fromkeys(windows(text), path.name)
    assert of_set
    places = range(len(everything) - LENGTH + 1)
    leaked = {piece for i in places if (piece := everything[i : i + LENGTH]) in of_set}
    # the text itself is not printed: the test must not leak either
    guilty = sorted(name for name, content in files.items() if any(piece in content for piece in leaked))
    origins = sorted({of_set[piece] for piece in leaked})
    assert not guilty, f"text of {', '.join(origins)} stands in {', '.join(guilty)}"


def test_the_search_finds_what_it_looks_for() -> None:
    readme = (ROOT / "eval" / "data" / "toy" / "documents.jsonl").read_text(encoding="utf-8")
    text = load(ROOT / "eval" / "data" / "toy").memories[0]["text"]
    assert any(piece in " ".join(readme.lower().split()) for piece in windows(text))


@pytest.mark.parametrize("path", ["eval/runs/x/result.json", "eval/data/private/labels.jsonl", "runs/x.run"])
def test_results_and_judgments_lie_where_git_does_not_look(path: str) -> None:
    done = subprocess.run(["git", "-C", str(ROOT), "check-ignore", "-q", path], timeout=30, check=False)
    if done.returncode == 128:
        pytest.skip("this is not a git checkout")
    assert done.returncode == 0


def test_queries_of_the_own_store_are_ignored_by_name() -> None:
    ignored = (ROOT / ".gitignore").read_text(encoding="utf-8")
    assert re.search(r"^/eval/data/private/$", ignored, re.MULTILINE)
