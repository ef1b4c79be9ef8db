"""Where a result comes from: the commit of the code that ran, and how the corpus stands to what was tuned.

The commit is asked when this module is imported, with the code that will run, and not when the result is written.
"""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from eval.datasets import KNOWN_SHA256, SEALED, Corpus, shared_with
from eval.extra import is_clone

__all__ = ["COMMIT", "HELD_OUT", "OURS", "TUNED_ON", "clean", "commit_of", "installed", "now", "role"]

ROOT = Path(__file__).resolve().parents[3]
TUNED_ON = ("agentnotes_a", "hotpotqa100", "locomo3", "longmemeval_mini", "musique100", "vaswani")
"""Sets on which settings of the recipes were chosen."""
HELD_OUT = {"agentnotes_c": "held out, looked at twice"}
OURS = {
    "harbour": "written for this project; no recipe was tuned on it, the curve of confidence was fitted on it too",
    "toy": "written for this project, not tuned on",
}
"""Sets in this repository, written for it: no setting of a recipe was chosen on them, and nobody else wrote them."""
_RECORDS = ("eval/results", "eval/mutants*.json", "tests/rank_cap/differential.json", "adr")


def now() -> str:
    """Return the time at which a result is made, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def installed(package: str) -> str | None:
    """Return the version of an installed package, None where it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def commit_of(root: Path) -> str | None:
    """Return the commit of a checkout, with ``-dirty`` where its code or data differ; None where git does not tell.

    Results and decision records are no code: writing one makes no other one doubtful.
    """
    queries = (
        ("rev-parse", "--short=12", "HEAD"),
        ("status", "--porcelain", "--", ".", *(f":(exclude){path}" for path in _RECORDS)),
    )
    outputs = []
    for words in queries:
        try:
            process = subprocess.run(
                ["git", "-C", str(root), *words], capture_output=True, text=True, timeout=20, check=False
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        if process.returncode:
            return None
        outputs.append(process.stdout.strip())
    commit, changes = outputs
    return f"{commit[:12]}-dirty" if changes else commit[:12]


COMMIT = commit_of(ROOT) if is_clone() else None  # an installation may lie in the repository of somebody else


def clean(commit: str | None) -> bool:
    """Tell whether a result of this commit can be made again: it is known, and no file differed from it."""
    return commit is not None and not commit.endswith("-dirty")


def role(corpus: Corpus) -> str:
    """Return how a corpus stands to what was tuned: by its bytes or its name, and by the questions that it shares."""
    name = next((n for n, sha in {**KNOWN_SHA256, **SEALED}.items() if sha == corpus.sha256), corpus.name).removesuffix(
        ".json"
    )
    if name in TUNED_ON:
        return "tuning set"
    if name in OURS:
        return OURS[name]
    if name in SEALED:
        if corpus.sha256 == SEALED[name]:
            return "written for this project and sealed before its first look (ADR 0072); nothing was chosen on it"
        return "has the name of a sealed set (ADR 0072) and other bytes"
    if name in HELD_OUT:
        return HELD_OUT[name]
    if shared := shared_with(corpus.queries):
        of, count = shared
        return f"shares {count} questions with the {'sealed' if of in SEALED else 'tuning'} set {of}"
    return "not known to this project"
