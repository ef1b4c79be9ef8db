"""A process that is forked while a server is started holds none of its locks."""

from __future__ import annotations

import subprocess
import sys

import pytest

from semmem.stores.embedded import postmaster
from semmem.stores.embedded.server import EmbeddedServer
from tests.stores.embedded.clients import eventually

PROGRAM = """
import os, subprocess, sys, threading, time, warnings
from pathlib import Path
from semmem.model.process.forks import undivided
from semmem.stores.embedded.server import EmbeddedServer
warnings.simplefilter("ignore", DeprecationWarning)  # of fork in a process with threads, which is the subject here

server = EmbeddedServer(Path(sys.argv[1]), idle_stop_s=60)
children = []
run = subprocess.run

def fork():
    if (child := os.fork()) == 0:
        sys.stdin.read()  # until the test has looked
        os._exit(0)
    children.append(child)

def run_while_another_thread_forks(command, **options):
    if sys.argv[2] not in command:
        return run(command, **options)
    thread = threading.Thread(target=fork)
    thread.start()
    while not children and not undivided._forking:  # it has forked, or waits
        time.sleep(0.001)
    done = run(command, **options)
    threads.append(thread)
    return done

threads = []
subprocess.run = run_while_another_thread_forks
server.ensure_running()
for thread in threads:
    thread.join()
print(len(children), flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("lock", "argument"), [("alive", "-D"), ("watch", postmaster.__file__)])
def test_a_child_forked_while_a_server_starts_holds_no_lock_of_it(
    own: EmbeddedServer, lock: str, argument: str
) -> None:
    command = [sys.executable, "-c", PROGRAM, str(own.data), argument]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as forking:
        assert forking.stdout is not None
        assert forking.stdout.readline() == "1\n"
        forking.wait(60)  # the child lives on
        own.stop()
        eventually(lambda: postmaster.free(str(own.data / "postgresql" / lock)), 20)
