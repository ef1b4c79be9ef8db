"""Mutants: small changes of the code that some test must notice, one after the other, in a copy of the checkout.

    python -m eval.mutants [--drawn [LIST]] [--only PART] [--jobs N] [--list] [--record]

The list is ``eval/mutants.toml``: a file, the text that stands there once, the text in its place, and the tests that
ought to fail then. A mutant whose tests fail is dead, one whose tests pass has survived; where the list gives a
reason, it is known to survive. Before the first mutant of some tests these run without a change, the baseline: a
mutant of tests that fail anyway is not run, and the time of the baseline limits that of its mutants, in place of limits
for single tests. One that goes on beyond it counts as dead, but is recorded as *timed out*: a busy machine could be the
reason. Where pytest itself breaks off or is killed, the mutant is neither dead nor kept.

``--drawn`` runs ``eval/mutants-drawn.toml`` instead, or another list of changes that ``eval/draw_mutants.py`` draws at
random by the operators of cosmic-ray: their share in a room stands for all places of its files, with an interval
(adr/0073). Their outcomes are recorded beside their list, in a .json of its name.

Two things are kept in ``eval/runs/mutants.jsonl``, so that an interrupted run resumes: the outcome of a mutant, by the
contents of its file, of the tests and of what these import of tests/; and a baseline that passed, with its seconds, by
the same of the tests, all of semmem/ and eval/, pyproject.toml and the versions of the installed packages. Neither
knows the data that a test reads: delete the file where they have changed. The checkout is not changed, except
``eval/mutants.json`` by ``--record``: how many died, which survived, and the commit.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import distributions
from itertools import count
from pathlib import Path
from queue import Queue
from threading import Event, Lock, Timer
from typing import Any, Literal, TypeAlias

from scipy.stats import binomtest

from eval.experiments.evidence.provenance import COMMIT, clean
from semmem.stores.embedded.server import EmbeddedServer

__all__ = ["Mutant", "Outcome", "Tests", "main", "mutants", "run_all"]

ROOT = Path(__file__).resolve().parents[1]
LIST = Path(__file__).with_name("mutants.toml")
DRAWN = Path(__file__).with_name("mutants-drawn.toml")
KEPT = Path(__file__).with_name("runs") / "mutants.jsonl"
SHARE = 0.92
"""Of those that no reason is given for, so many must die in each room."""
LONGEST = 900.0
"""The seconds that a baseline, and any mutant, may take."""
_FROM_TESTS = re.compile(r"^ *from (tests(?:\.\w+)*) import (\([^)]*\)|[\w, ]+)", re.MULTILINE)
_TIMES = count(1)
"""The times that files with a change get, in seconds since 1970."""
Outcome: TypeAlias = Literal["dead", "timed out", "survived", "out of date", "tests fail without it", "broke off"]
Tests: TypeAlias = tuple[str, ...]
DEAD = ("dead", "timed out")
_FAILED = (1, 2, 4)  # exit codes of pytest: a test fails, or a module or a conftest.py cannot be imported


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change: in ``file`` the text ``old``, which stands there once, becomes ``new``; ``tests`` ought to notice."""

    file: str
    old: str
    new: str
    tests: Tests
    reason: str | None = None

    @property
    def room(self) -> str:
        """The folder of the file."""
        return self.file.rpartition("/")[0]

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
                todo += [beside.with_suffix(".py"), *(beside / f"{n.strip()}.py" for n in names.strip("()").split(","))]
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


def limit(baseline: float) -> float:
    """Return the seconds that a mutant may take where its tests take ``baseline`` without it."""
    return min(LONGEST, 5 * baseline + 60)


class Runner:
    """Run tests in copies of a checkout, as many at a time as there are copies, until somebody stops it.

    With ``warm`` they run in forks of a process for each copy, which suits changes of SQL alone; see eval/warm.py.
    """

    def __init__(self, copies: Sequence[Path], *, warm: bool = False) -> None:
        self._warm = warm
        self._forking: dict[Path, subprocess.Popen[bytes]] = {}
        self._copies: Queue[Path] = Queue()
        for copy in copies:
            self._copies.put(copy)
        self._running: set[subprocess.Popen[bytes]] = set()
        self._lock = Lock()
        self._stopped = False

    def passes(self, tests: Tests, seconds: float, mutant: Mutant | None = None) -> bool | None:
        """Return whether ``tests`` pass, with the change of ``mutant``; None where they take longer than ``seconds``.

        Raises KeyboardInterrupt once the runner is stopped, and ChildProcessError where pytest broke off or was killed.
        """
        copy = self._copies.get()
        try:
            with (
                _changed(copy, mutant),
                tempfile.TemporaryDirectory(prefix="semmem-mutant-", ignore_cleanup_errors=True) as base,
            ):
                return self._pytest([f"--basetemp={base}/t", "--timeout=0", *tests], copy, seconds)
        finally:
            self._copies.put(copy)

    def _pytest(self, arguments: Sequence[str], copy: Path, seconds: float) -> bool | None:
        arguments = ["-x", "-q", "-p", "no:cacheprovider", *arguments]
        code = self._in_fork(arguments, copy, seconds) if self._warm else self._in_process(arguments, copy, seconds)
        if self._stopped:
            raise KeyboardInterrupt
        if code not in (None, 0, *_FAILED):
            raise ChildProcessError(f"pytest ended with {code}")
        return None if code is None else code == 0

    def _in_process(self, arguments: Sequence[str], copy: Path, seconds: float) -> int | None:
        process = self._start(["-m", "pytest", *arguments], copy, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        code: int | None = None
        try:
            with suppress(subprocess.TimeoutExpired):
                code = process.wait(seconds)
        finally:
            _kill(process)
            with self._lock:
                self._running.discard(process)
        return code

    def _in_fork(self, arguments: Sequence[str], copy: Path, seconds: float) -> int | None:
        """Let the process of eval/warm.py in this copy run the tests; its next run waits for the end of this one."""
        process = self._forking.get(copy)
        if process is None or process.poll() is not None:
            process = self._start(["-m", "eval.warm"], copy, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            self._forking[copy] = process
        assert process.stdin is not None
        assert process.stdout is not None
        with suppress(BrokenPipeError):
            process.stdin.write(json.dumps(arguments).encode() + b"\n")
            process.stdin.flush()
        if not (told := process.stdout.readline()):  # that process has ended, and there is no fork to end
            process.communicate()
            return -signal.SIGKILL
        child, ended = int(told), Event()

        def end() -> None:
            ended.set()
            with suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)

        timer = Timer(seconds, end)
        timer.start()
        code = int(process.stdout.readline() or -signal.SIGKILL)
        timer.cancel()
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)  # what the tests have started and left
        return None if ended.is_set() else code

    def _start(self, arguments: Sequence[str], copy: Path, *, stdin: int, stdout: int) -> subprocess.Popen[bytes]:
        environment = {
            **os.environ,
            "PYTHONPATH": str(copy),
            "PYTHONDONTWRITEBYTECODE": "",  # compiled once in each copy, the rewritten tests too
            "CI": "1",
            "SEMMEM_TEST_SEED": "",
        }
        if self._warm:
            environment["SEMMEM_TEST_SERVER"] = str(_server(copy))
        with self._lock:
            if self._stopped:
                raise KeyboardInterrupt
            # in a session of its own: an interrupt of the runner is not a failure of these tests
            process = subprocess.Popen(
                [sys.executable, *arguments],
                cwd=copy,
                env=environment,
                start_new_session=True,
                stderr=subprocess.DEVNULL,
                stdin=stdin,
                stdout=stdout,
            )
            self._running.add(process)
        return process

    def close(self) -> None:
        """End the processes that run tests in forks, and their servers."""
        for copy, process in self._forking.items():
            _kill(process)
            process.communicate()
            EmbeddedServer(_server(copy)).stop("immediate")
        self._forking.clear()

    def stop(self) -> None:
        """End the tests that run, and start none after them."""
        with self._lock:
            self._stopped = True
            for process in self._running:
                _kill(process)


def _server(copy: Path) -> Path:
    """Return the folder of the server of PostgreSQL that the forks of a copy share."""
    return copy.with_name(f"{copy.name}-server")


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End a run of tests with the processes that it started and left."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@contextmanager
def _changed(copy: Path, mutant: Mutant | None) -> Iterator[None]:
    """Let ``copy`` hold the change of ``mutant`` for a while.

    Each text has a time of its own, a second and more from the others: by it and by the size Python tells bytecode of
    another text.
    """
    text = None if mutant is None else mutant.applied(copy)
    if mutant is None or text is None:
        yield
        return
    path = copy / mutant.file
    before, time_before = path.read_text(encoding="utf-8"), path.stat().st_mtime
    try:
        path.write_text(text, encoding="utf-8")
        os.utime(path, (time_before, next(_TIMES)))
        yield
    finally:
        path.write_text(before, encoding="utf-8")
        os.utime(path, (time_before, time_before))


def copied(root: Path, to: Path) -> Path:
    """Copy what the tests need of the checkout to ``to`` and return it."""
    ignored = shutil.ignore_patterns("__pycache__", "runs", ".*_cache", ".venv*", ".git", "private")
    for name in ("semmem", "semmem_eval", "eval", "tests", "adr", "docs", "examples", "plugins"):
        if (root / name).is_dir():
            shutil.copytree(root / name, to / name, ignore=ignored)
    for path in root.iterdir():
        if path.is_file() and path.suffix in (".toml", ".md", ".txt", "") and path.name != ".git":
            shutil.copy(path, to / path.name)
    return to


def run_all(chosen: Sequence[Mutant], root: Path, file: Path, *, jobs: int = 1) -> dict[Mutant, Outcome]:
    """Return the outcome of every mutant; what ``file`` keeps is not run again, baselines included."""
    rows = _earlier_rows(file)
    keys = {mutant: mutant.key(root) for mutant in chosen}
    out: dict[Mutant, Outcome] = {m: rows[key]["outcome"] for m, key in keys.items() if key in rows}
    out |= {m: "out of date" for m in chosen if m not in out and m.applied(root) is None}
    groups: dict[Tests, list[Mutant]] = {}
    for mutant in chosen:
        if mutant not in out:
            groups.setdefault(mutant.tests, []).append(mutant)
    if not groups:
        return {mutant: out[mutant] for mutant in chosen}
    code = _code(root)
    lock = Lock()
    file.parent.mkdir(parents=True, exist_ok=True)

    def keep(**row: Any) -> None:
        with lock, file.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(row, ensure_ascii=False) + "\n")

    def baseline(tests: Tests) -> float | None:
        """Return the seconds that ``tests`` take without a change, None where they fail."""
        key = baseline_key(root, tests, code)
        if key not in rows:
            before = time.monotonic()
            passed = None
            with suppress(ChildProcessError):
                passed = runner.passes(tests, LONGEST)
            seconds = time.monotonic() - before
            print(
                f"[without a change] {'pass' if passed else 'FAIL'} in {seconds:.0f} s: {' '.join(tests)}",
                file=sys.stderr,
                flush=True,
            )
            if not passed:
                return None
            rows[key] = {"seconds": round(seconds, 1)}
            keep(key=key, outcome="baseline", seconds=round(seconds, 1), name=" ".join(tests))
        return float(rows[key]["seconds"])

    def one(mutant: Mutant, seconds: Future[float | None]) -> None:
        result: Outcome = "tests fail without it"
        if (of_tests := seconds.result()) is not None:
            result = "broke off"
            with suppress(ChildProcessError):
                passed = runner.passes(mutant.tests, limit(of_tests), mutant)
                result = "timed out" if passed is None else "survived" if passed else "dead"
                keep(key=keys[mutant], outcome=result, name=mutant.name)
        out[mutant] = result
        print(f"[{len(out)}/{len(chosen)}] {result:10s} {mutant.name}", file=sys.stderr, flush=True)

    with tempfile.TemporaryDirectory(prefix="semmem-mutants-") as folder, ThreadPoolExecutor(max(1, jobs)) as pool:
        copies = [copied(root, Path(folder) / str(number)) for number in range(max(1, jobs))]
        runner = Runner(copies, warm=all(m.file.endswith(".sql") for tests in groups.values() for m in tests))
        order = list(groups)
        baselines: dict[Tests, Future[float | None]] = {}
        started: list[Future[None]] = []
        for position, tests in enumerate(order):
            # Baselines come first in the queue, so one is always running or known before a mutant waits for it.
            for ahead in order[position : position + max(1, jobs)]:
                if ahead not in baselines:
                    baselines[ahead] = pool.submit(baseline, ahead)
            started += [pool.submit(one, mutant, baselines[tests]) for mutant in groups[tests]]
        try:
            for future in started:
                future.result()
        except BaseException:
            runner.stop()
            pool.shutdown(wait=True, cancel_futures=True)
            raise
        finally:
            runner.close()
    return {mutant: out[mutant] for mutant in chosen}


def _code(root: Path) -> bytes:
    """Return a hash of what a baseline depends on: all of semmem/, the modules of eval/, pyproject.toml, packages."""
    files = {path for path in (root / "semmem").rglob("*") if path.is_file() and "__pycache__" not in path.parts}
    files |= {*(root / "eval").rglob("*.py"), *root.glob("pyproject.toml")}
    packages = sorted(f"{package.name} {package.version}" for package in distributions())
    return _of_files(root, files) + hashlib.sha256("\n".join([sys.version, *packages]).encode()).digest()


def _of_files(root: Path, files: Iterable[Path]) -> bytes:
    total = hashlib.sha256()
    for path in sorted(files):
        total.update(f"{path.relative_to(root)} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return total.digest()


def baseline_key(root: Path, tests: Tests, code: bytes) -> str:
    """Return a hash of ``tests``, their imports and the ``code``, on which it depends whether they pass."""
    total = hashlib.sha256(json.dumps(["baseline", *tests]).encode() + code)
    total.update(_of_files(root, _with_imports(root, tests)))
    return total.hexdigest()[:16]


def _earlier_rows(file: Path) -> dict[str, dict[str, Any]]:
    """Return the rows that ``file`` keeps, by key."""
    out: dict[str, dict[str, Any]] = {}
    for line in file.read_text(encoding="utf-8").splitlines() if file.is_file() else ():
        try:
            row = json.loads(line)
        except ValueError:
            continue  # the line an interrupt cut short
        out[row["key"]] = row
    return out


def summary(outcomes: Mapping[Mutant, Outcome]) -> tuple[str, bool]:
    """Return the report, and whether enough mutants without a reason died in each room and none is out of date."""
    lines = []
    by_file: dict[str, Counter[str]] = {}
    for mutant, outcome_ in outcomes.items():
        by_file.setdefault(mutant.file, Counter())[outcome_] += 1
    for file, counts in by_file.items():
        lines.append(f"{sum(counts[o] for o in DEAD):3d} of {counts.total():3d} dead  {file}")
    tried = [(m, o) for m, o in outcomes.items() if o in (*DEAD, "survived")]
    without_reason = [(m, o) for m, o in tried if m.reason is None]
    dead = sum(o in DEAD for _, o in without_reason)
    share = dead / len(without_reason) if without_reason else 0.0
    lines.append(
        f"{sum(o in DEAD for _, o in tried)} of {len(tried)} dead; without those that a reason is given for, "
        f"{dead} of {len(without_reason)}: {share:.1%}"
    )
    rooms = by_room(outcomes)
    for name, (died, of) in rooms.items():
        low, high = interval(died, of)
        short = "" if died >= SHARE * of else f", and {SHARE:.0%} are asked for"
        lines.append(f"{name}: {died} of {of} ({low:.0%} to {high:.0%} at 95 %){short}")
    for mutant, outcome_ in outcomes.items():
        if outcome_ != "dead":
            why = f" ({mutant.reason})" if mutant.reason else ""
            lines.append(f"{outcome_}: {mutant.name}{why}")
        if outcome_ in DEAD and mutant.reason:
            lines.append(f"dead, so it needs no reason any more: {mutant.name}")
    enough = all(died >= SHARE * of for died, of in rooms.values())
    return "\n".join(lines), enough and bool(rooms) and all(o in (*DEAD, "survived") for o in outcomes.values())


def by_room(outcomes: Mapping[Mutant, Outcome]) -> dict[str, tuple[int, int]]:
    """Return, for each room, how many of the mutants without a reason died, and how many ran."""
    out: dict[str, tuple[int, int]] = {}
    for mutant, outcome_ in outcomes.items():
        if mutant.reason is None and outcome_ in (*DEAD, "survived"):
            died, of = out.get(mutant.room, (0, 0))
            out[mutant.room] = (died + (outcome_ in DEAD), of + 1)
    return out


def interval(died: int, of: int) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a share: of the places of a room where those that ran were drawn at random."""
    bounds = binomtest(died, of).proportion_ci(method="wilson")
    return float(bounds.low), float(bounds.high)


def record(outcomes: Mapping[Mutant, Outcome], path: Path, commit: str | None) -> None:
    """Write the outcomes of the mutants of each file, and the commit, to ``path``; rows of other files stay."""
    files: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    for file in {mutant.file for mutant in outcomes}:
        ours = {m: o for m, o in outcomes.items() if m.file == file}
        files[file] = {
            "commit": commit,
            "mutants": len(ours),
            "dead": sum(outcome_ in DEAD for outcome_ in ours.values()),
            "of these, timed out": [m.name for m, o in ours.items() if o == "timed out"],
            "survived, for a reason": sum(o == "survived" and m.reason is not None for m, o in ours.items()),
            "survived": [m.name for m, o in ours.items() if o not in DEAD and m.reason is None],
        }
    path.write_text(json.dumps(dict(sorted(files.items())), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def main(argv: Iterable[str] | None = None) -> int:
    """Run the mutants and print their outcomes; return 0 where enough died and none is out of date, else 1."""
    parser = argparse.ArgumentParser(prog="python -m eval.mutants", description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--drawn",
        type=Path,
        nargs="?",
        const=DRAWN,
        metavar="LIST",
        help="those drawn at random; default: eval/mutants-drawn.toml",
    )
    parser.add_argument("--only", default="", help="a part of a file's name")
    parser.add_argument("--jobs", type=int, default=1, help="how many at a time")
    parser.add_argument("--list", action="store_true", help="only list the mutants, and which are out of date")
    parser.add_argument("--record", action="store_true", help="write the outcomes to the .json beside the list")
    options = parser.parse_args(None if argv is None else list(argv))
    source: Path = options.drawn or LIST
    if not source.is_file():
        print(f"There is no list {source}; eval/draw_mutants.py prints one.", file=sys.stderr)
        return 2
    chosen = [m for m in mutants(source) if options.only in m.file]
    if not chosen:
        print(f"No mutant is of a file with {options.only!r} in its name.", file=sys.stderr)
        return 2
    if options.list:
        for mutant in chosen:
            print("out of date " if mutant.applied(ROOT) is None else "            ", mutant.name)
        return 0
    if options.record and not clean(COMMIT):
        print(
            "Files differ from their commit, so a record could not be made again; commit them first.", file=sys.stderr
        )
        return 2
    outcomes = run_all(chosen, ROOT, KEPT, jobs=options.jobs)
    report, good = summary(outcomes)
    if options.record:
        record(outcomes, source.with_suffix(".json"), COMMIT)
    print(report)
    return 0 if good else 1


if __name__ == "__main__":
    try:
        raise SystemExit(main())
    except KeyboardInterrupt:
        print("Interrupted. Run the same command again to take up where it stopped.", file=sys.stderr)
        raise SystemExit(130) from None
