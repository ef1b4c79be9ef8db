"""The mixed load: every system gets the same calls, a run says what each did and goes on where it stopped."""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby, islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
from typer.testing import CliRunner

import semmem
from eval.bench import measures, others
from eval.bench.measures import loop_ms, processor_s, tail
from eval.bench.mixed import load, run, systems
from eval.bench.mixed.load import Plan, Write, filled, loaded, summed, writes
from eval.bench.mixed.report import markdown, picture
from eval.bench.mixed.systems import SYSTEMS, Item, System, absent
from eval.cli import app

FEW = Plan(memories=40, namespaces=3, seconds=0.6, readers=2, writers=2, pace=20, upkeep_s=0.2)


def ids(made: list[Write], kind: str) -> list[str]:
    return [item.id for write in made if write.kind == kind for item in write.items]


@pytest.mark.slow
def test_the_writes_of_a_writer_are_the_same_every_time_and_others_of_another_writer() -> None:
    first, again, other = (list(islice(writes(FEW, writer), 20)) for writer in (0, 0, 1))
    assert [(write.kind, [item.text for item in write.items]) for write in first] == [
        (write.kind, [item.text for item in write.items]) for write in again
    ]
    assert ids(first, "remember")[:2] == ["m1000000000", "m1000000001"]
    assert ids(other, "remember")[:2] == ["m2000000000", "m2000000001"]


@pytest.mark.slow
def test_no_writer_changes_what_another_forgets_and_each_memory_is_forgotten_once() -> None:
    plan = Plan(memories=10, namespaces=1, writers=2)
    made = [list(islice(writes(plan, writer), 90)) for writer in (0, 1)]
    assert [ids(one, "forget") for one in made] == [["m2", "m6"], ["m3", "m7"]]
    assert [set(ids(one, "update")) for one in made] == [{"m0", "m4", "m8"}, {"m1", "m5", "m9"}]


def test_a_batch_is_of_one_namespace_and_an_update_keeps_that_of_its_memory() -> None:
    made = list(islice(writes(FEW, 0), 60))
    batches = [write.items for write in made if write.kind == "remember"]
    assert {len(batch) for batch in batches} == {8}
    assert {len({item.namespace for item in batch}) for batch in batches} == {1}
    changed = next(write.items[0] for write in made if write.kind == "update")
    stored = FEW.generator.memory(int(changed.id[1:]))
    assert changed.namespace == stored["namespace"]
    assert changed.text.startswith(stored["text"] + " Change ")


def test_the_tail_has_three_percentiles_and_the_most_and_no_call_has_none() -> None:
    assert tail([number / 1000 for number in range(1, 101)]) == {
        "p50_ms": 50.5, "p95_ms": 96.0, "p99_ms": 100.0, "most_ms": 100.0,
    }  # fmt: skip
    assert tail([]) == {}


def test_seconds_on_a_processor_are_those_of_the_system_and_none_of_a_process_that_has_ended() -> None:
    assert processor_s(os.getpid()) > 0
    assert processor_s(2**30) == 0


def turn(**more: Any) -> dict[str, Any]:
    """Return what a turn of ten seconds measured: a recall of 10 ms and one of 30 in the second minute."""
    looks = [{"s": float(s), "process_mb": 50.0 + s, "server_mb": 1.0} for s in (0, 5, 10)]
    return {
        "at": "now", "commit": "c0ffee", "load_average": [1.0],
        "loop_ms": [29.0, 30.0], "opened_s": 0.5, "elapsed": 10.0, "calls": {
            "recall": [0.01, 0.03], "remember": [0.02], "update": [], "forget": [0.04]
        }, "ended": [1.0, 61.0], "found": 1, "findable": 2, "forgotten": [], "errors": {"recall: OSError": 1},
        "upkeep": [1.26], "upkeep_late": False, "memory": looks, "processor_s": {"process": 3.04, "server": 1.0},
        "degraded": {"graph: late": 2}, "bytes": 100, **more,
    }  # fmt: skip


def test_the_turns_of_a_load_are_summed_and_each_is_told() -> None:
    late = turn(at="later", opened_s=0.7, elapsed=20.0, bytes=130, upkeep_late=True, found=2, loop_ms=[31.0, 32.0])
    late["calls"] = {**late["calls"], "recall": [0.02, 0.05]}
    late["memory"] = [{"s": float(s), "process_mb": 50.0 + 2 * s, "server_mb": 1.0} for s in (0, 5, 20)]
    load = summed([turn(), late])
    assert load["recall"] == {"p50_ms": 25.0, "p95_ms": 50.0, "p99_ms": 50.0, "most_ms": 50.0}
    assert (load["seconds"], load["recalls"], load["recalls_per_s"], load["found"]) == (30.0, 4, 0.1, 0.75)
    assert {kind: one["calls"] for kind, one in load["writes"].items()} == {"remember": 2, "update": 0, "forget": 2}
    assert (load["writes_per_s"], load["memories_per_s"], load["upkeep_s"]) == (0.13, 0.5, [1.3, 1.3])
    assert [minute["recalls"] for minute in load["by_minute"]] == [1, 1, 1, 1]
    assert (load["errors"], load["errors_in_all"]) == ({"recall: OSError": 2}, 2)
    assert (load["degraded"], load["upkeep_late"], load["bytes"]) == ({"graph: late": 4}, True, 130)
    assert [look["s"] for look in load["memory"]] == [0.0, 5.0, 10.0, 10.0, 15.0, 30.0]
    assert (load["grown_mb"], load["processor_s"]) == (30.0, {"process": 6.1, "server": 2.0})
    assert load["loop_ms"] == [29.0, 30.0, 31.0, 32.0]
    assert (load["at"], load["commit"], load["load_average"]) == ("later", "c0ffee", [1.0])
    assert [one["recalls_per_s"] for one in load["turns"]] == [0.2, 0.1]
    assert [(one["at"], one["opened_s"]) for one in load["turns"]] == [("now", 0.5), ("later", 0.7)]
    assert load["turns"][0]["processor_s"] == {"process": 3.04, "server": 1.0}
    alone = summed([turn(findable=0, found=0)])
    assert "turns" not in alone
    assert alone["found"] is None


def test_no_writer_of_a_later_turn_writes_what_one_of_an_earlier_turn_did() -> None:
    plan = Plan(memories=16, namespaces=1, writers=2, turns=2)
    made = [list(islice(writes(plan, writer), 90)) for writer in range(4)]
    assert [ids(one, "forget") for one in made] == [["m4", "m12"], ["m5", "m13"], ["m6", "m14"], ["m7", "m15"]]
    assert [set(ids(one, "update")) for one in made] == [{"m0", "m8"}, {"m1", "m9"}, {"m2", "m10"}, {"m3", "m11"}]
    assert len({id for one in made for id in ids(one, "remember")}) == sum(len(ids(one, "remember")) for one in made)


class Fake:
    """The processes of a run: what they were asked for, and a clock that a fill moves on by 50 s, a turn by 10."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.now, self.fails = 0.0, ("", 0)

    def monotonic(self) -> float:
        return self.now

    def in_process(self, phase: Any, name: str, plan: Plan, folder: Path, patience_s: float) -> dict[str, Any]:
        if phase is run.filled:
            self.now += 50
            self.calls.append((name, "filled", patience_s))
            return {"memories_per_s": 1.0, "bytes": 1}
        number = phase.keywords["turn"]
        self.now += 10
        self.calls.append((name, number, list(phase.keywords["forgotten"]), patience_s))
        if (name, number) == self.fails:
            raise run._Failed("failed: OSError: full")
        measured = turn(forgotten=[*phase.keywords["forgotten"], f"m{number}"])
        return {key: measured[key] for key in measured if key not in ("at", "commit", "load_average")}


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Fake:
    made = Fake()
    monkeypatch.setattr(run, "absent", lambda name: None)
    monkeypatch.setattr(run, "_in_process", made.in_process)
    monkeypatch.setattr(run, "time", SimpleNamespace(monotonic=made.monotonic))
    return made


IN_TURNS = Plan(memories=60, seconds=30, turns=3, patience_s=7)
BOTH = ["semmem", "txtai"]


def test_the_systems_take_turns_and_one_that_fails_is_not_asked_again(tmp_path: Path, fake: Fake) -> None:
    said: list[str] = []
    fake.fails = "txtai", 1
    result = run.mixed(IN_TURNS, tmp_path, BOTH, say=said.append)
    assert fake.calls == [
        ("semmem", "filled", 7), ("semmem", 0, [], 17.0), ("txtai", "filled", 7), ("txtai", 0, [], 17.0),
        ("semmem", 1, ["m0"], 17.0), ("txtai", 1, ["m0"], 17.0), ("semmem", 2, ["m0", "m1"], 17.0),
    ]  # fmt: skip
    assert "semmem: 8 readers and 2 writers for 10 s, turn 2 of 3 …" in said
    assert result["systems"]["semmem"]["load"]["recalls"] == 6
    assert result["systems"]["txtai"] == {"skipped": "txtai failed: OSError: full"}
    again = run.mixed(IN_TURNS, tmp_path, ["semmem"], say=said.append)
    assert (said[-1], again["systems"]) == ("semmem: measured already, in measured.json.", result["systems"])


def test_no_turn_begins_that_would_end_too_late_though_its_store_is_filled_and_the_next_call_goes_on(
    tmp_path: Path, fake: Fake
) -> None:
    said: list[str] = []
    waits = [f"{name}: its next turn waits for the same command." for name in BOTH]
    result = run.mixed(IN_TURNS, tmp_path, BOTH, within_s=60, say=said.append)
    assert [call[:2] for call in fake.calls] == [("semmem", "filled"), ("semmem", 0), ("txtai", "filled")]
    assert [line for line in said if "waits" in line] == [waits[1], waits[0]]
    assert result["systems"] == {name: {"fill": {"memories_per_s": 1.0, "bytes": 1}} for name in BOTH}
    fake.calls.clear()
    result = run.mixed(IN_TURNS, tmp_path, BOTH, within_s=50, say=said.append)
    assert [call[:2] for call in fake.calls] == [
        ("txtai", 0), ("semmem", 1), ("txtai", 1), ("semmem", 2), ("txtai", 2),
    ]  # fmt: skip
    assert set(result["systems"]["txtai"]) == {"fill", "load"}


def test_a_turn_that_is_interrupted_begins_its_system_anew(tmp_path: Path, fake: Fake) -> None:
    fake.fails = "semmem", 1

    def interrupted(*arguments: Any) -> dict[str, Any]:
        try:
            return fake.in_process(*arguments)
        except run._Failed:
            raise KeyboardInterrupt from None

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "_in_process", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run.mixed(IN_TURNS, tmp_path, ["semmem"], say=[].append)
    fake.fails = "", 0
    fake.calls.clear()
    run.mixed(IN_TURNS, tmp_path, ["semmem"], say=[].append)
    assert [call[:2] for call in fake.calls] == [("semmem", "filled"), ("semmem", 0), ("semmem", 1), ("semmem", 2)]


@pytest.mark.slow
def test_a_turn_has_readers_and_writers_of_its_own_for_its_share_of_the_seconds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, list[str]] = {}
    stored: list[str] = []

    class Heard(Noted):
        def recall(self, namespace: str, text: str, vector: Any) -> list[str]:
            asked.setdefault(threading.current_thread().name, []).append(text)
            return []

        def remember(self, items: Sequence[Item]) -> None:
            stored.extend(item.id for item in items)

    monkeypatch.setitem(SYSTEMS, "heard", Heard)  # type: ignore[misc]
    plan = Plan(memories=400, namespaces=3, seconds=90_000, turns=45_000, readers=1, writers=2, pace=0)
    firsts = []
    for number in (0, 1):
        asked.clear()
        stored.clear()
        measured = loaded("heard", plan, tmp_path, turn=number, forgotten=["m399"])
        assert set(stored) >= {f"m{(2 * number + 1) * 10**9}", f"m{(2 * number + 2) * 10**9}"}
        assert "m399" in measured["forgotten"]
        assert measured["elapsed"] >= 2
        texts = max((texts for name, texts in asked.items() if name != threading.current_thread().name), key=len)
        firsts.append(texts[:10])
    assert firsts[0] != firsts[1]


def test_upkeep_of_a_later_turn_is_due_when_it_would_be_in_one_long_turn() -> None:
    class Over:
        """The end of a load, after the third look; it notes how long each look waits."""

        def __init__(self) -> None:
            self.waits: list[float] = []

        def wait(self, timeout: float) -> bool:
            self.waits.append(timeout)
            return len(self.waits) == 3

        def is_set(self) -> bool:
            return False

    waits = []
    for number, seconds in ((0, 90), (1, 90), (2, 90), (1, 75)):
        plan = replace(FEW, seconds=seconds, turns=3, upkeep_s=10)
        keeping = load._Load(Noted(Path()), plan, [], number)
        keeping._over = Over()  # type: ignore[assignment]
        keeping._keep()
        waits.append(keeping._over.waits)  # type: ignore[attr-defined]
    assert waits == [[10, 10, 10], [0, 10, 10], [0, 10, 10], [5, 10, 10]]


def test_the_loop_that_tells_the_speed_of_a_machine_is_the_fastest_of_five(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = iter([0.03, 0.0291, 0.04, 0.05, 0.06])
    monkeypatch.setattr(measures, "timed_calls", lambda work, numbers, at_most_s: [next(seconds) for _ in numbers])
    assert loop_ms() == 29.1


@pytest.mark.slow
def test_a_system_under_load_has_what_the_writers_stored_and_nothing_that_they_forgot(tmp_path: Path) -> None:
    fill = filled("semmem, SQLite", FEW, tmp_path)
    assert fill["memories_per_s"] > 0
    with semmem.connect(f"sqlite:{tmp_path}/semmem.db", embedder="none") as mem:
        assert mem.stats().memories == 40
    when = {"at": "now", "commit": "c0ffee", "load_average": [1.0]}
    row = summed([{**when, **loaded("semmem, SQLite", FEW, tmp_path)}])
    assert (row["errors"], row["degraded"], row["errors_in_all"]) == ({}, {}, 0)
    calls = {kind: row["writes"][kind]["calls"] for kind in ("remember", "update", "forget")}
    with semmem.connect(f"sqlite:{tmp_path}/semmem.db", embedder="none") as mem:
        assert mem.stats().memories == 40 + 8 * calls["remember"] - calls["forget"]
    assert row["recalls"] == sum(minute["recalls"] for minute in row["by_minute"]) > 0
    assert row["found"] > 0.9
    assert set(row["recall"]) == {"p50_ms", "p95_ms", "p99_ms", "most_ms"}
    assert len(row["memory"]) >= 2
    assert row["bytes"] > 0
    assert all(took > 0 for took in row["loop_ms"])


class Noted(System):
    """A system that notes what it is filled with."""

    items: ClassVar[list[Item]] = []

    def __init__(self, folder: Path) -> None: ...

    def fill(self, items: Iterator[Item]) -> None:
        self.items[:] = items

    def recall(self, namespace: str, text: str, vector: Any) -> list[str]:
        return []

    def remember(self, items: Sequence[Item]) -> None: ...

    def forget(self, namespace: str, id: str) -> None: ...

    def upkeep(self) -> None: ...


def test_a_system_is_filled_with_each_memory_once_and_one_namespace_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SYSTEMS, "noted", Noted)  # type: ignore[misc]
    filled("noted", FEW, tmp_path)
    assert sorted(int(item.id[1:]) for item in Noted.items) == list(range(40))
    assert [name for name, _ in groupby(item.namespace for item in Noted.items)] == ["n0", "n1", "n2"]


@pytest.mark.slow
def test_upkeep_that_ends_only_after_the_load_is_said_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Over(threading.Event):
        """The end of a load, which the second look at it finds."""

        looks = 0

        def wait(self, timeout: float | None = None) -> bool:
            assert timeout == FEW.upkeep_s
            self.looks += 1
            return self.looks == 2

    class Keeps:
        def upkeep(self) -> None:
            if is_late:
                keeping._over.set()

    for is_late in (True, False):
        keeping = load._Load(Keeps(), FEW, [])  # type: ignore[arg-type]
        keeping._over = Over()
        assert len(keeping._keep().seconds["upkeep"]) == 1
        assert keeping._late is is_late

    def keep(self: load._Load) -> load.Calls:
        self._late = is_late
        return load.Calls()

    monkeypatch.setitem(SYSTEMS, "noted", Noted)  # type: ignore[misc]
    monkeypatch.setattr(load._Load, "_keep", keep)
    for is_late in (True, False):
        assert loaded("noted", FEW, tmp_path)["upkeep_late"] is is_late


def test_what_fails_under_load_is_counted_by_verb_and_reason_and_the_thread_goes_on() -> None:
    calls = load.Calls()
    assert [calls.timed("recall", 0.0, partial(divmod, 7, number)) for number in (0, 2, 0)] == [None, (3, 1), None]
    assert dict(calls.errors) == {"recall: ZeroDivisionError: integer division or modulo by zero": 2}
    assert len(calls.seconds["recall"]) == 1
    calls.timed("upkeep", 0.0, partial(open, "/of/this/machine"))
    assert "upkeep: FileNotFoundError: [Errno 2] No such file or directory: 'FILE'" in calls.errors


def test_what_a_system_says_when_it_cannot_be_filled_names_no_file_of_the_machine() -> None:
    def phase(name: str, plan: Plan, folder: Path) -> dict[str, Any]:
        raise OSError(f"{folder}/x.db is locked")

    ours, theirs = multiprocessing.Pipe(duplex=False)
    run._answer(theirs, phase, "semmem", FEW, Path("/of/this/machine"))
    assert json.loads(ours.recv()) == "failed: OSError: FILE is locked"


def test_a_memory_that_a_writer_has_forgotten_is_no_miss_of_the_recall_that_asks_for_it() -> None:
    class Forgetful:
        def recall(self, namespace: str, text: str, vector: Any) -> list[str]:
            over.set()
            return ["m1"]

    questions = [(FEW.generator.question(number, 40), "n0") for number in range(2)]
    answers = []
    for about, forgotten in (("m1", set()), ("m2", set()), ("m2", {"m2"})):
        asking = load._Load(Forgetful(), FEW, [(replace(questions[0][0], about=about), "n0")])  # type: ignore[arg-type]
        over, asking._forgotten = asking._over, forgotten
        calls = asking._read(0)
        answers.append((calls.found, calls.findable))
    assert answers == [(1, 1), (0, 1), (0, 0)]


_RUN = """
import time
from pathlib import Path
from eval.bench.mixed import systems
from eval.bench.mixed.load import Plan
from eval.bench.mixed.run import _in_process

def loaded(*_):
    print("loaded", flush=True)
    time.sleep(60)

def maintained(*_):
    systems._maintained = loaded
    system = systems.Embedded.__new__(systems.Embedded)
    system._folder = Path("nowhere")
    system.upkeep()

if __name__ == "__main__":
    _in_process({phase}, "semmem", Plan(), Path("nowhere"), 600)
"""


@pytest.mark.slow
@pytest.mark.parametrize("phase", ["loaded", "maintained"])
def test_a_run_that_is_killed_leaves_no_load_and_no_upkeep_behind(tmp_path: Path, phase: str) -> None:
    (tmp_path / "run.py").write_text(_RUN.replace("{phase}", phase), encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [sys.executable, tmp_path / "run.py"], stdout=subprocess.PIPE, cwd=tmp_path, env=environment, text=True
    ) as killed:
        assert killed.stdout is not None
        assert killed.stdout.readline() == "loaded\n"
        start = time.monotonic()
        killed.kill()
        assert killed.stdout.read() == ""  # nobody holds its other end any more
        assert time.monotonic() - start < 50


_ENDS = """
import os, signal
from pathlib import Path
from eval.bench.mixed.load import Plan
from eval.bench.mixed.run import _Failed, _in_process

def killed(*_):
    os.kill(os.getpid(), signal.SIGKILL)

def ended(*_):
    os._exit(3)

if __name__ == "__main__":
    for phase in (killed, ended):
        try:
            _in_process(phase, "semmem", Plan(), Path("nowhere"), 600)
        except _Failed as error:
            print(error)
"""


@pytest.mark.slow
def test_a_system_whose_process_is_killed_or_ends_is_said_to_have_done_so(tmp_path: Path) -> None:
    (tmp_path / "run.py").write_text(_ENDS, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, tmp_path / "run.py"], capture_output=True, cwd=tmp_path, env=environment, text=True, check=True
    )
    assert done.stdout.splitlines() == [
        "was killed by the system, as where a process needs more memory than there is.",
        "ended with the exit code 3 and said nothing.",
    ]


def test_growth_is_counted_from_the_second_look_and_has_the_servers_in_it() -> None:
    looks = [{"s": float(s), "process_mb": a, "server_mb": b} for s, a, b in ((0, 50, 10), (1, 80, 20), (2, 85, 23))]
    assert load._grown(looks) == 8.0
    assert load._grown([{**looks[0], "process_mb": None}] * 2) is None


def test_a_library_that_asks_for_vectors_gets_those_of_its_texts_once() -> None:
    with systems._given({"a": np.array([1.0, 0.0]), "b": np.array([0.0, 1.0])}):
        assert systems.given_lists(["b", "a"]) == [[0.0, 1.0], [1.0, 0.0]]
        with pytest.raises(KeyError):
            systems.given_lists(["a"])


def test_a_system_without_titles_is_given_title_and_text_as_one() -> None:
    vector = np.zeros(2)
    assert Item("m1", "n0", "Kestrel", "Our logger.", vector).shown == "Kestrel\nOur logger."
    assert Item("m1", "n0", None, "Our logger.", vector).shown == "Our logger."


def test_a_system_that_is_not_installed_is_skipped_with_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(others, "find_spec", lambda name: None)
    assert absent("Qdrant, local") == "Qdrant, local is skipped: qdrant_client is not installed."
    assert absent("semmem") is None


def test_a_system_that_is_none_is_refused() -> None:
    done = CliRunner().invoke(app, ["bench", "mixed", "--system", "grep"])
    assert done.exit_code == 2
    assert f"There is no system 'grep'; there are {'; '.join(SYSTEMS)}." in " ".join(done.output.split())


def refused(folder: Path, *options: str) -> str:
    done = CliRunner().invoke(app, ["bench", "mixed", "--memories", "60", *options, "--out", str(folder)])
    assert done.exit_code == 2, done.output
    return " ".join(done.output.split())


def test_a_folder_of_something_else_and_one_of_another_plan_are_left_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    foreign, own = tmp_path / "foreign", tmp_path / "own"
    (foreign / "stores").mkdir(parents=True)
    (foreign / "stores" / "notes.db").touch()
    assert "holds other files; give a new or empty folder by --out." in refused(foreign)
    assert (foreign / "stores" / "notes.db").exists()
    (foreign / "measured.json").write_text("[1, 2]", encoding="utf-8")
    assert "measured.json is no record of such a run; give another folder by --out." in refused(foreign)
    assert (foreign / "measured.json").read_text(encoding="utf-8") == "[1, 2]"
    monkeypatch.setattr(run, "absent", lambda name: f"{name} is skipped.")
    plan = Plan(memories=60)
    run.mixed(plan, own, ["txtai"])
    record = json.loads((own / "measured.json").read_text(encoding="utf-8"))
    (own / "measured.json").write_text(json.dumps({**record, "systems": {"txtai": {"fill": {"bytes": 1}}}}))
    before = (own / "measured.json").read_bytes()
    assert "holds a run with other options; give another folder by --out." in refused(own, "--seconds", "7")
    assert (own / "measured.json").read_bytes() == before
    (own / "measured.json").write_text(before.decode().replace(', "turns": 1', ""))  # as before there were turns
    assert (own / "measured.json").read_bytes() != before
    patient = run.mixed(replace(plan, patience_s=9), own, ["txtai"])  # what the line about patience tells to do
    assert patient["systems"] == {"txtai": {"fill": {"bytes": 1}, "skipped": "txtai is skipped."}}


def measured(**more: Any) -> dict[str, Any]:
    times = {"p50_ms": 10.0, "p95_ms": 20.0, "p99_ms": 30.0, "most_ms": 40.0}
    look = {"s": 0.0, "process_mb": 100.0, "server_mb": 20.0}
    row = {
        "recall": times, "write": times, "recalls_per_s": 80.0, "writes_per_s": 4.0, "found": 0.99, "grown_mb": 5.0,
        "errors": {}, "errors_in_all": 0, "degraded": {}, "memory": [look, look, {**look, "s": 60.0}],
        "processor_s": {"process": 50.0, "server": 12.5}, "bytes": 3 * 2**20, "upkeep_s": [1.5, 2.0], "upkeep_late": 0,
    }  # fmt: skip
    return {"fill": {"memories_per_s": 400.0, "bytes": 2 * 2**20}, "load": {**row, **more}}


def test_the_report_and_the_picture_have_each_system_and_what_failed() -> None:
    failed = measured(errors={"forget: OSError: full": 2}, errors_in_all=2, degraded={"dense: late": 1}, upkeep_late=1)
    failed["load"]["loop_ms"] = [29.1, 30.0]
    failed["load"]["turns"] = [
        {"recalls_per_s": rate, "recall": {"p50_ms": p50, "p95_ms": 2 * p50, "p99_ms": 3 * p50}}
        for rate, p50 in ((17.1, 10.0), (72.0, 1.0))
    ]
    result = {
        "plan": {"memories": 1000, "namespaces": 10, "seconds": 60.0, "readers": 8, "writers": 2, "pace": 2.0,
                 "upkeep_s": 600.0, "turns": 2},
        "versions": {"semmem": "1"}, "machine": "m", "at": "now",
        "systems": {"semmem": measured(), "LanceDB": failed, "txtai": {"skipped": "txtai is skipped."}},
    }  # fmt: skip
    text = markdown(result)
    assert "of at most 2 writes a second each, 60 s in 2 turns, upkeep every 600 s, vectors given." in text
    assert "| semmem | 10 / 20 / 30 | 80 | 0.99 | 10 / 20 / 30 | 4 | 0 |" in text
    assert "| semmem | 400 | 2 | 3 | 120 / 120 | 5 | 62.5 |" in text
    assert "| LanceDB | 10 / 20 / 30 | 80 | 0.99 | 10 / 20 / 30 | 4 | 3 |" in text
    assert "- LanceDB, 2 times: forget: OSError: full\n- LanceDB, 1 times: degraded, dense: late" in text
    assert "maintain is its upkeep, in a process of its own. Upkeep, s: 1.5, 2.\n" in text
    assert "optimize is its upkeep. Upkeep, s: 1.5, 2, the last ended only after the load. A loop" in text
    assert " A loop of a million additions took 29.1 and 30 ms before and after the load. Recalls" in text
    assert " Recalls a second of its turns: 17.1 of 10 / 20 / 30 ms; 72 of 1 / 2 / 3 ms.\n" in text
    assert "- txtai is skipped." in text
    drawn = picture(result)
    assert drawn.count("<svg") == 1
    assert "semmem (finds 0.99)" in drawn
    assert "txtai" not in drawn


@pytest.mark.slow
@pytest.mark.timeout(600)  # processes of their own, on a machine that may be busy
def test_a_run_fills_loads_and_goes_on_where_it_stopped(tmp_path: Path) -> None:
    few = ["bench", "mixed", "--memories", "60", "--namespaces", "3", "--seconds", "1", "--out", str(tmp_path)]
    ours = [*few, "--upkeep", "0.2", "--system", "semmem", "--system", "semmem, SQLite"]
    done = CliRunner().invoke(app, [*ours, "--only-fill"])
    assert done.exit_code == 0, done.output
    assert not (tmp_path / "mixed.svg").exists()
    assert sorted(path.name for path in (tmp_path / "stores").iterdir()) == ["semmem", "semmem-sqlite"]
    done = CliRunner().invoke(app, ours)
    assert done.exit_code == 0, done.output
    assert "storing" not in done.output
    assert list((tmp_path / "stores").iterdir()) == []
    done = CliRunner().invoke(app, ours)
    assert "semmem, SQLite: measured already, in measured.json." in done.output
    result = json.loads((tmp_path / "mixed.json").read_text(encoding="utf-8"))
    assert list(result["systems"]) == ["semmem", "semmem, SQLite"]
    loads = [one["load"] for one in result["systems"].values()]  # several calls make one result: each says its own
    assert [one["commit"] for one in loads] == [result["commit"]] * 2
    assert loads[0]["at"] <= loads[1]["at"] <= result["at"]
    assert all(one["load"]["errors_in_all"] == 0 for one in result["systems"].values())
    assert result["systems"]["semmem"]["load"]["memory"][0]["server_mb"] > 0
    assert all(one["load"]["upkeep_s"] for one in result["systems"].values())
    assert (tmp_path / "mixed.md").read_text(encoding="utf-8") == markdown(result)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_system_that_takes_too_long_is_ended_and_named(tmp_path: Path) -> None:
    few = ["bench", "mixed", "--memories", "100000", "--seconds", "0.1", "--patience", "1", "--out", str(tmp_path)]
    done = CliRunner().invoke(app, [*few, "--system", "semmem, SQLite"])
    assert done.exit_code == 0, done.output
    assert "semmem, SQLite was ended after 1 s; give it more by --patience." in " ".join(done.output.split())
