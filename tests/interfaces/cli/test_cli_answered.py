"""A command that only reads is answered by the process that has the store open, as it would answer by itself."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import socket
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

import semmem
from semmem.interfaces import local_socket
from semmem.interfaces.cli.app import COMMANDS, run
from semmem.interfaces.cli.asking import READS, quick
from semmem.interfaces.local_socket import COMMAND, address_of, ask
from tests.interfaces.coding_agents.answering import answering, listens
from tests.interfaces.mcp.clients import ROOT, over_stdio
from tests.waiting import until

LOOK = ["", "100", "utf-8", "", "", "", "", ""]
"""What a process says of its output that is a file."""


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the URL of a store with two memories, which is that of the settings."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("SEMMEM_URL", f"sqlite:{tmp_path}/notes.db")
    monkeypatch.setenv("SEMMEM_EMBEDDER", "hashing")
    monkeypatch.setenv("SEMMEM_COUNT_ACCESSES", "false")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    with semmem.connect() as mem:
        mem.remember("The ferry leaves at nine, für alle.", id="ferry", title="Ferry")
        mem.remember("The train leaves at ten.", id="train")
    return f"sqlite:{tmp_path}/notes.db"


@contextmanager
def listener(url: str | None = None) -> Iterator[None]:
    """Answer at the address of the settings, from the store of ``url``; None: from that of the settings."""
    with semmem.connect(url) as mem, answering(mem):
        yield


@pytest.fixture
def told_apart(url: str, tmp_path: Path) -> Iterator[None]:
    """Let another store than that of the settings answer, so that it is seen who answered."""
    other = f"sqlite:{tmp_path}/other.db"
    with semmem.connect(other) as mem:
        mem.remember("The ferry of the listener leaves at ten.", id="at-the-listener")
    with listener(other):
        yield


def without_times(printed: bytes) -> bytes:
    """Return what a command printed without the seconds that it took."""
    return re.sub(rb'"timings": \{[^}]*\}', b"", printed)


@pytest.mark.parametrize(
    "command",
    [
        ["recall", "when does the ferry leave?"],
        ["recall", "when does the ferry leave?", "--json", "--limit=1", "-n", "default"],
        ["recall", "ferry", "--recipe", "lexical", "--full"],
        ["recall", "ferry", "-n", "nowhere"],
        ["context", "when does the ferry leave?", "--budget", "200"],
        ["explain", "train", "--query", "when does the ferry leave?"],
        ["get", "ferry"],
        ["list", "--sort-by", "importance", "--json"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_the_answer_is_byte_for_byte_that_of_the_command_alone(
    url: str, capfdbinary: pytest.CaptureFixture[bytes], command: list[str]
) -> None:
    assert run(command) == 0
    alone = capfdbinary.readouterr()
    assert alone.out
    with listener():
        assert quick(command) == 0
    answered = capfdbinary.readouterr()
    assert (without_times(answered.out), answered.err) == (without_times(alone.out), alone.err)


def drawn(command: list[str], columns: int, *, said: IO[bytes] | None = None, **variables: str) -> str:
    """Return what a new process prints on a terminal so wide; ``said`` gets its standard error, else the terminal."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", 24, columns, 0, 0))
    env = {name: value for name, value in os.environ.items() if name != "COLUMNS"} | {"TERM": "xterm"} | variables
    process = subprocess.Popen(
        [sys.executable, "-m", "semmem", *command], stdout=theirs, stderr=said or theirs, env=env
    )
    os.close(theirs)
    printed = bytearray()
    try:
        while piece := os.read(ours, 1 << 16):
            printed += piece
    except OSError:  # how Linux tells that nobody writes to it any more
        pass
    os.close(ours)
    assert process.wait(60) == 0, printed
    return printed.decode()


@pytest.mark.slow
def test_a_terminal_gets_its_colours_and_its_width(url: str) -> None:
    command = ["recall", "when does the ferry leave?"]
    wide, plain = drawn(command, 90), drawn(command, 40, NO_COLOR="1", TERM="dumb")
    with listener():
        assert (drawn(command, 90), drawn(command, 40, NO_COLOR="1", TERM="dumb")) == (wide, plain)
        quick_one = subprocess.run([sys.executable, "-m", "semmem", *command], capture_output=True, check=True).stdout
    assert "\x1b[" in wide
    assert b"\x1b[" not in quick_one


def test_a_file_of_what_is_said_gets_no_colours_though_a_terminal_gets_the_answer(url: str, tmp_path: Path) -> None:
    with listener(), (tmp_path / "said.txt").open("wb") as said:
        drawn(["context", "when does the ferry leave?", "--budget", "1"], 90, said=said)
    text = (tmp_path / "said.txt").read_text(encoding="utf-8")
    assert "Left out of 1 tokens" in text
    assert "\x1b" not in text


def test_an_encoding_that_lacks_a_letter_gets_its_number(url: str) -> None:
    env = {**os.environ, "PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "semmem", "get", "ferry"]
    alone = subprocess.run(command, capture_output=True, check=True, env=env).stdout
    with listener():
        answered = subprocess.run(command, capture_output=True, check=True, env=env).stdout
    assert b"f\\xfcr alle" in alone
    assert answered == alone


def test_the_process_that_has_it_open_answers_and_the_command_loads_only_what_it_takes_to_ask(
    url: str, told_apart: None
) -> None:
    program = """
import atexit, sys
before = set(sys.modules)
sys.argv = ["semmem", "recall", "when does the ferry leave?"]
atexit.register(lambda: sys.stderr.write(" ".join(set(sys.modules) - before)))
from semmem.__main__ import main
main()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "at-the-listener" in done.stdout
    loaded = set(done.stderr.split())
    assert {name for name in loaded if name.startswith("semmem.interfaces.")} == {
        "semmem.interfaces.cli", "semmem.interfaces.cli.asking", "semmem.interfaces.local_socket",
    }  # fmt: skip
    assert loaded.isdisjoint({"typer", "numpy", "json", "pathlib", "pydantic", "semmem.config", "semmem.client"})


@pytest.mark.parametrize(
    ("command", "code", "says"),
    [
        (["recall", "ferry", "--recipe", "none-such"], 2, "There is no recipe named 'none-such'"),
        (["recall", "ferry", "--none-such"], 2, "No such option: --none-such"),
        (["get", "none-such"], 4, "There is no memory 'none-such'"),
        (["recall", "--help"], 0, ""),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_an_error_and_the_help_are_told_by_the_command_itself(
    url: str, told_apart: None, capfd: pytest.CaptureFixture[str], command: list[str], code: int, says: str
) -> None:
    assert quick(command) is None
    assert capfd.readouterr() == ("", "")
    assert run(command) == code
    assert says in capfd.readouterr().err


def test_nothing_else_is_answered(url: str, told_apart: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    picture = tmp_path / "scores.svg"
    assert quick(["recall", "ferry", "--plot", str(picture)]) is None  # the path is one of this process
    assert not picture.exists()
    assert quick(["recall", "ferry", "--url", f"sqlite:{tmp_path}/notes.db2"]) is None
    assert quick(["recall", "ferry", "--url", url]) == 0
    words = [*LOOK, "recall", "--exclude", "--url", "ferry"]
    assert ask(address_of(), [COMMAND, "", *words], b"", 60) is not None
    assert ask(address_of(), [COMMAND, "ferry", *words], b"", 60) is None  # --url is the value of --exclude there
    assert ask(address_of(), [COMMAND, "", *LOOK, "forget", "at-the-listener"], b"", 60) is None
    assert ask(address_of(), [COMMAND, "", *LOOK], b"", 60) is None
    assert ask(address_of(), [COMMAND], b"", 60) is None
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(local_socket, "__file__", "/elsewhere/semmem/interfaces/local_socket.py")
        assert quick(["recall", "ferry"]) is None  # another copy of the program
    monkeypatch.setenv("SEMMEM_RECIPE", "lexical")
    assert quick(["recall", "ferry"]) is None  # the settings are others


def test_without_a_process_or_a_working_folder_nothing_answers(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert quick(["recall", "ferry"]) is None
    monkeypatch.setenv("SEMMEM_HOME", "here")  # so the working folder counts
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert quick(["recall", "ferry"]) is None


def test_the_commands_that_are_answered_are_commands_that_take_a_url() -> None:
    assert [name for name in READS if "url" not in COMMANDS[name]] == []


def test_a_reader_that_goes_away_is_no_error(url: str, told_apart: None) -> None:
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "semmem", "recall", "ferry", "--json"]
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE)
    os.close(write)
    assert (done.returncode, done.stderr) == (0, b"")


def test_what_breaks_off_while_another_is_answered_leaves_the_output_of_the_listener_alone(
    url: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def breaks_off(*_: object, **__: object) -> None:
        raise BrokenPipeError

    monkeypatch.setattr(semmem.Semmem, "get", breaks_off)
    with listener():
        assert quick(["get", "ferry"]) is None
    os.write(1, b"still here")
    assert capfd.readouterr().out == "still here"


def test_nobody_is_answered_from_a_file_that_was_removed_or_replaced(url: str, tmp_path: Path) -> None:
    file = tmp_path / "notes.db"
    with semmem.connect() as mem:
        mem.remember("The tram leaves at eleven.", id="tram")
        with answering(mem) as (_, thread):
            assert quick(["get", "tram"]) == 0
            file.rename(tmp_path / "elsewhere.db")
            assert quick(["get", "tram"]) is None
            with semmem.connect() as new:
                new.remember("The bus leaves at noon.", id="bus")
            assert quick(["get", "bus"]) is None
            thread.join(60)  # it ends by itself, for another to take over
            assert not thread.is_alive()


def test_the_audit_notes_a_command_that_fails_once(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEMMEM_AUDIT", "true")
    with listener():
        command = ["get", "none-such"]
        assert (quick(command), run(command)) == (None, 4)
    with semmem.connect() as mem:
        assert [one.outcome for one in mem.audit() if one.verb == "get"] == ["NotFound"]


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-"])
def test_a_stream_that_is_closed_is_no_error(url: str, closed: str) -> None:
    def ended() -> tuple[int, bytes, bytes]:
        command = ["/bin/sh", "-c", f'"$0" -m semmem get ferry {closed}', sys.executable]
        done = subprocess.run(command, capture_output=True)
        return done.returncode, done.stdout, done.stderr

    code, printed, said = ended()
    assert (code, said) == (0, b"")
    with listener():
        assert ended() == (code, printed, said)


@pytest.mark.parametrize("form", ["", "--json"])
def test_a_disk_that_is_full_is_told_in_one_sentence(url: str, form: str) -> None:
    def ended() -> tuple[int, bytes]:
        command = ["/bin/sh", "-c", f'"$0" -m semmem get ferry {form} >/dev/full', sys.executable]
        done = subprocess.run(command, stderr=subprocess.PIPE)
        return done.returncode, done.stderr

    told = 1, b"OSError: [Errno 28] No space left on device (--debug shows where).\n"
    assert ended() == told
    with listener():
        assert ended() == told


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full, which takes nothing as a full disk does")
def test_what_says_nothing_needs_no_room_for_it(url: str) -> None:
    command = ["/bin/sh", "-c", '"$0" -m semmem get ferry 2>/dev/full', sys.executable]
    env = {**os.environ, "PYTHONUNBUFFERED": "1"}
    assert subprocess.run(command, stdout=subprocess.DEVNULL, env=env).returncode == 0
    with listener():
        assert subprocess.run(command, stdout=subprocess.DEVNULL, env=env).returncode == 0


@pytest.mark.parametrize("named", [True, False], ids=["in the settings", "by --url"])
def test_a_file_that_took_the_place_of_the_one_that_is_open_is_read_by_the_command_itself(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: bool
) -> None:
    if not named:
        monkeypatch.delenv("SEMMEM_URL")
    file, other = tmp_path / "notes.db", tmp_path / "other.db"
    with semmem.connect(f"sqlite:{other}") as mem:
        mem.remember("The ferry leaves at noon.", id="noon")
    monkeypatch.setattr("tests.interfaces.coding_agents.answering.address_of", lambda: local_socket.address_of(url))
    with listener(url):
        assert quick(["get", "ferry", "--url", url]) == 0
        other.replace(file)
        assert quick(["get", "ferry", "--url", url]) is None
        until(lambda: not listens())  # what it has open is not meant by anybody any more


def test_a_file_that_is_gone_is_missed(url: str, tmp_path: Path) -> None:
    with listener():
        (tmp_path / "notes.db").unlink()
        assert quick(["list"]) is None


def test_a_process_that_was_stopped_is_asked_nothing(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_socket, "_HERE_S", 0.05)
    address = address_of()
    Path(address.folder).mkdir(parents=True)
    with socket.socket(socket.AF_UNIX) as stopped:  # a socket of a process takes connections though it is stopped
        with local_socket.short_path(address) as path:
            stopped.bind(path)
        stopped.listen()
        asking = threading.Thread(target=quick, args=(["recall", "ferry"],))
        asking.start()
        connection, _ = stopped.accept()
        with connection:
            assert connection.recv(1) == b""  # gone without a word
        asking.join(60)


@pytest.mark.slow
@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_store_that_an_mcp_client_has_open_is_asked_and_its_session_goes_on(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.interfaces.mcp.clients import environment

    for name in [name for name in os.environ if name.startswith(("XDG_", "SEMMEM_"))]:
        monkeypatch.delenv(name)
    theirs = {**environment(url), "HOME": str(tmp_path)}
    for name, value in theirs.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("tests.interfaces.mcp.clients.environment", lambda url: theirs)
    async with over_stdio(url, tmp_path) as client:
        await client.list_tools()
        until(listens)
        words = [COMMAND, "", *LOOK]
        out, err = ask(address_of(), [*words, "recall", "ferry"], b"", 60) or (b"", b"none")
        assert (b"The ferry leaves at nine" in out, err) == (True, b"")
        assert ask(address_of(), [*words, "recall", "--help"], b"", 60) is None
        assert len((await client.list_tools()).tools) == 5  # nothing else came over the stream of the protocol
    until(lambda: not listens())
