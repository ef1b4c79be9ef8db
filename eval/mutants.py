"""Mutants: small changes of the code that some test must notice, one after the other, in a copy of the checkout.

    python -m eval.mutants [--only PART] [--jobs N] [--list] [--record]

The list is ``eval/mutants.toml``: a file, the text that stands there once, the text in its place, and the tests that
ought to fail then. A mutant whose tests fail is dead, one whose tests pass has survived; where the list gives a
reason, it is known to survive. Outcomes are written to ``eval/runs/mutants.jsonl`` by the contents of the file, of the
tests and of what these import of tests/, so that an interrupted run resumes and an unchanged mutant is not run again.
The checkout is not changed, except ``eval/mutants.json`` by ``--record``: how many died, which survived, and the
commit.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import Queue
from threading import Lock
from typing import Any, Literal, TypeAlias

from eval.experiments.evidence.provenance import COMMIT

__all__ = ["Mutant", "Outcome", "main", "mutants", "outcome", "run_all"]

ROOT = Path(__file__).resolve().parents[1]
LIST = Path(__file__).with_name("mutants.toml")
KEPT = Path(__file__).with_name("runs") / "mutants.jsonl"
RECORD = Path(__file__).with_name("mutants.json")
SHARE = 0.92
"""Of those that no reason is given for, so many must die."""
_SECONDS = 900
_FROM_TESTS = re.compile(r"^from (tests(?:\.\w+)*) import ([\w, ]+)", re.MULTILINE)
Outcome: TypeAlias = Literal["dead", "survived", "out of date", "tests fail without it"]


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change: in ``file`` the text ``old``, which stands there once, becomes ``new``; ``tests`` ought to notice."""

    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    reason: str | None = None

    @property
    def name(self) -> str:
        """The file, the old text and the new text, in a line."""
        short = [" ".join(text.split())[:50] for text in (self.old, self.new)]
        return f"{self.file}: {short[0]} → {short[1] or '(nothing)'}"

    def applied(self, root: Path) -> str | None:
        """Return the changed file, None where the text does not stand there exactly once."""
        path = root / self.file
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
        return text.replace(self.old, self.new) if text.count(self.old) == 1 and self.old != self.new else None

    def key(self, root: Path) -> str:
        """Return a hash of the change, the file, the tests and their imports, on which the outcome depends."""
        total = hashlib.sha256(json.dumps([self.file, self.old, self.new, self.tests]).encode())
        total.update((root / self.file).read_bytes() if (root / self.file).is_file() else b"")
        for file in sorted(_with_imports(root, self.tests)):
            total.update(file.read_bytes())
        return total.hexdigest()[:16]


def _with_imports(root: Path, tests: Iterable[str]) -> set[Path]:
    """Return the files of ``tests``, the modules of tests/ that they import, directly or not, and each conftest.py."""
    found: set[Path] = set()
    todo = [root / name.partition("::")[0] for name in tests]
    while todo:
        path = todo.pop()
        if path.is_dir():
            todo += path.rglob("*.py")
        elif path.is_file() and path not in found:
            found.add(path)
            todo += [folder / "conftest.py" for folder in path.parents if folder.is_relative_to(root / "tests")]
            for module, names in _FROM_TESTS.findall(path.read_text(encoding="utf-8")):
                beside = root.joinpath(*module.split("."))
                todo += [beside.with_suffix(".py"), *(beside / f"{name.strip()}.py" for name in names.split(","))]
    return found


def mutants(path: Path = LIST) -> list[Mutant]:
    """Read the list: groups of changes of one file under the tests of the group."""
    content = tomllib.loads(path.read_text(encoding="utf-8"))
    return [
        Mutant(
            group["file"],
            change["old"],
            change["new"],
            tuple(change.get("tests", group["tests"])),
            change.get("reason"),
        )
        for group in content["of"]
        for change in group["change"]
    ]


def outcome(mutant: Mutant, copy: Path, *, plain: bool = False) -> Outcome:
    """Run the tests of one mutant in ``copy``, without the change where ``plain``; the copy is as before afterwards."""
    text = mutant.applied(copy)
    if text is None:
        return "out of date"
    path = copy / mutant.file
    before = path.read_text(encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1", "CI": "1"}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-p", "no:randomly"]
    with tempfile.TemporaryDirectory(prefix="semmem-mutant-") as base:
        try:
            if not plain:
                path.write_text(text, encoding="utf-8")
            process = subprocess.run(
                [*command, f"--basetemp={base}/t", *mutant.tests], cwd=copy, env=environment, capture_output=True,
                timeout=_SECONDS, check=False,
            )  # fmt: skip
            passed = process.returncode == 0
        except subprocess.TimeoutExpired:
            passed = False
        finally:
            path.write_text(before, encoding="utf-8")
    if plain:
        return "survived" if passed else "tests fail without it"
    return "survived" if passed else "dead"


def copied(root: Path, to: Path) -> Path:
    """Copy what the tests need of the checkout to ``to`` and return it."""
    ignored = shutil.ignore_patterns("__pycache__", "runs", ".*_cache", ".venv*", ".git", "private")
    for name in ("semmem", "eval", "tests", "adr", "examples"):
        if (root / name).is_dir():
            shutil.copytree(root / name, to / name, ignore=ignored)
    for path in root.iterdir():
        if path.is_file() and path.suffix in (".toml", ".md", ".txt", "") and path.name != ".git":
            shutil.copy(path, to / path.name)
    return to


def run_all(chosen: Sequence[Mutant], root: Path, file: Path, *, jobs: int = 1) -> dict[Mutant, Outcome]:
    """Return the outcome of every mutant; one with an outcome in ``file`` is not run again.

    The tests are run without a change first: a mutant of tests that fail anyway is not run.
    """
    outcomes = _earlier_outcomes(file)
    keys = {mutant: mutant.key(root) for mutant in chosen}
    out: dict[Mutant, Outcome] = {m: outcomes[key] for m, key in keys.items() if key in outcomes}
    todo = [m for m in chosen if m not in out]
    lock = Lock()
    file.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="semmem-mutants-") as folder:
        copies: Queue[Path] = Queue()
        for number in range(max(1, min(jobs, len(todo)))):
            copies.put(copied(root, Path(folder) / str(number)))
        red: set[tuple[str, ...]] = set()
        for tests in dict.fromkeys(m.tests for m in todo if m.applied(root) is not None):
            first = next(m for m in todo if m.tests == tests and m.applied(root) is not None)
            copy = copies.get()
            if outcome(first, copy, plain=True) != "survived":
                red.add(tests)
            copies.put(copy)

        def one(mutant: Mutant) -> None:
            copy = copies.get()
            try:
                result: Outcome = "tests fail without it" if mutant.tests in red else outcome(mutant, copy)
            finally:
                copies.put(copy)
            with lock:
                out[mutant] = result
                if result in ("dead", "survived"):
                    with file.open("a", encoding="utf-8") as lines:
                        lines.write(json.dumps({"key": keys[mutant], "outcome": result, "name": mutant.name}) + "\n")
                print(f"[{len(out)}/{len(chosen)}] {result:10s} {mutant.name}", file=sys.stderr, flush=True)

        with ThreadPoolExecutor(max_workers=max(1, jobs)) as pool:
            list(pool.map(one, todo))
    return {mutant: out[mutant] for mutant in chosen}


def _earlier_outcomes(file: Path) -> dict[str, Outcome]:
    if not file.is_file():
        return {}
    out: dict[str, Outcome] = {}
    for line in file.read_text(encoding="utf-8").splitlines():
        try:
            row = json.loads(line)
        except ValueError:
            continue  # the line an interrupt cut short
        out[row["key"]] = row["outcome"]
    return out


def summary(outcomes: Mapping[Mutant, Outcome]) -> tuple[str, bool]:
    """Return the report, and whether enough mutants without a reason died and none is out of date."""
    lines = []
    by_file: dict[str, Counter[str]] = {}
    for mutant, outcome_ in outcomes.items():
        by_file.setdefault(mutant.file, Counter())[outcome_] += 1
    for file, counts in by_file.items():
        lines.append(f"{counts['dead']:3d} of {sum(counts.values()):3d} dead  {file}")
    tried = [(m, o) for m, o in outcomes.items() if o in ("dead", "survived")]
    without_reason = [(m, o) for m, o in tried if m.reason is None]
    dead = sum(o == "dead" for _, o in without_reason)
    share = dead / len(without_reason) if without_reason else 0.0
    every = sum(o == "dead" for _, o in tried)
    lines.append(
        f"{every} of {len(tried)} dead; without those that a reason is given for, "
        f"{dead} of {len(without_reason)}: {share:.1%}"
    )
    for mutant, outcome_ in outcomes.items():
        if outcome_ != "dead":
            why = f" ({mutant.reason})" if mutant.reason else ""
            lines.append(f"{outcome_}: {mutant.name}{why}")
        elif mutant.reason:
            lines.append(f"dead, so it needs no reason any more: {mutant.name}")
    stale = any(o in ("out of date", "tests fail without it") for o in outcomes.values())
    return "\n".join(lines), share >= SHARE and not stale


def record(outcomes: Mapping[Mutant, Outcome], path: Path, commit: str | None) -> None:
    """Write the outcomes of the mutants of each file, and the commit, to ``path``; rows of other files stay."""
    files: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    for file in {mutant.file for mutant in outcomes}:
        ours = {m: o for m, o in outcomes.items() if m.file == file}
        files[file] = {
            "commit": commit,
            "mutants": len(ours),
            "dead": sum(outcome_ == "dead" for outcome_ in ours.values()),
            "survived, for a reason": sum(o == "survived" and m.reason is not None for m, o in ours.items()),
            "survived": [m.name for m, o in ours.items() if o != "dead" and m.reason is None],
        }
    path.write_text(json.dumps(dict(sorted(files.items())), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def main(argv: Iterable[str] | None = None) -> int:
    """Run the mutants and print their outcomes; return 0 where enough died and none is out of date, else 1."""
    parser = argparse.ArgumentParser(prog="python -m eval.mutants", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default="", help="a part of a file's name")
    parser.add_argument("--jobs", type=int, default=1, help="how many at a time")
    parser.add_argument("--list", action="store_true", help="only list the mutants, and which are out of date")
    parser.add_argument("--record", action="store_true", help="write the outcomes to eval/mutants.json")
    options = parser.parse_args(None if argv is None else list(argv))
    chosen = [m for m in mutants() if options.only in m.file]
    if not chosen:
        print(f"No mutant is of a file with {options.only!r} in its name.", file=sys.stderr)
        return 2
    if options.list:
        for mutant in chosen:
            print("out of date " if mutant.applied(ROOT) is None else "            ", mutant.name)
        return 0
    outcomes = run_all(chosen, ROOT, KEPT, jobs=options.jobs)
    report, good = summary(outcomes)
    if options.record:
        record(outcomes, RECORD, COMMIT)
    print(report)
    return 0 if good else 1


if __name__ == "__main__":
    try:
        raise SystemExit(main())
    except KeyboardInterrupt:
        print("Interrupted. Run the same command again to take up where it stopped.", file=sys.stderr)
        raise SystemExit(130) from None
