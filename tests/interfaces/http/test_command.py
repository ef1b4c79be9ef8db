"""The commands: `semmem serve` as a process of its own, and the keys."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import httpx
import pytest

import semmem
from semmem.interfaces.cli.app import run
from semmem.interfaces.http.command import _time
from semmem.interfaces.http.server import Server
from semmem.model.errors import InvalidInput

PROGRAM = [sys.executable, "-m", "semmem"]


@pytest.fixture(autouse=True)
def _own_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SEMMEM_URL", f"sqlite://{tmp_path / 'notes.db'}")


def hears_ctrl_c() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@contextmanager
def process(*options: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Yield the URL of a server in a process of its own, and the process."""
    command = [*PROGRAM, "serve", "--port", "0", "--json", *options]
    with subprocess.Popen(
        command, env=os.environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=hears_ctrl_c
    ) as server:
        try:
            assert server.stdout is not None
            yield json.loads(server.stdout.readline())["url"], server
        finally:
            server.kill()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)])
def test_a_server_answers_and_stops_in_order(number: signal.Signals) -> None:
    with process() as (url, server):
        assert url.startswith("http://127.0.0.1:")
        with semmem.connect(url) as mem:
            assert mem.remember("The key is red.", id="key").version == 1
            assert run(["recall", "key", "--url", url, "--json"]) == 0
        server.send_signal(number)
        out, err = server.communicate(timeout=60)
    assert (server.returncode, out) == (0, "")
    begun = f"semmem answers at {url}, without a key and so to every user of this machine. Ctrl-C stops it."
    assert err.splitlines() == [begun, "Stopped."]


def test_a_verb_that_does_not_end_is_broken_off(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    codes: list[int] = []

    def ends_with_its_grace_over(server: Server) -> bool:
        server._socket.close()  # as the real one does; left open, its warning would fail any later test
        return False

    monkeypatch.setattr(Server, "run", ends_with_its_grace_over)
    monkeypatch.setattr(os, "_exit", codes.append)
    run(["serve", "--port", "0"])
    assert codes == [1]
    assert "a verb that was still running was interrupted" in capfd.readouterr().err.replace("\n", " ")


def test_a_server_with_tokens_alone_names_the_identity_server_and_no_keys(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def ends_at_once(server: Server) -> bool:
        server._socket.close()
        return True

    monkeypatch.setattr(Server, "run", ends_at_once)
    monkeypatch.setenv("SEMMEM_OIDC_ISSUER", "https://login.example.org")
    monkeypatch.setenv("SEMMEM_OIDC_AUDIENCE", "https://memory.example.org")
    assert run(["serve", "--port", "0"]) == 0
    assert ", with a token of https://login.example.org. Ctrl-C stops it." in " ".join(capfd.readouterr().err.split())


@pytest.mark.slow
def test_a_key_is_made_shown_once_used_and_removed(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["serve", "key", "add", "laptop", "--write", "--namespace", "team", "-n", "notes", "--json"]) == 0
    made = json.loads(capfd.readouterr().out)
    assert (made["name"], made["right"], made["namespaces"]) == ("laptop", "write", ["team", "notes"])
    assert run(["serve", "key", "add", "reader"]) == 0
    out, err = capfd.readouterr()
    assert out.startswith("semmem_")
    assert "may read in every namespace" in err
    assert run(["serve", "key", "list"]) == 0
    shown = capfd.readouterr().out
    assert "laptop: read and write in team, notes" in shown
    assert made["key"] not in shown
    assert run(["serve", "key", "list", "--json"]) == 0
    assert "digest" not in capfd.readouterr().out
    with process() as (url, _):
        assert httpx.get(f"{url}/v1/stats", timeout=60).status_code == 401
        with semmem.connect(url, key=made["key"]) as mem:
            assert mem.remember("The key is red.", namespace="team").namespace == "team"
            with pytest.raises(semmem.AccessDenied):
                mem.remember("The key is red.")
    assert run(["serve", "key", "remove", "laptop"]) == 0
    assert run(["serve", "key", "remove", "laptop"]) == 4
    assert "there are reader" in capfd.readouterr().err


@pytest.mark.slow
def test_the_command_line_speaks_with_a_server_by_its_key(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run(["serve", "key", "add", "laptop", "--admin", "--json"])
    key = json.loads(capfd.readouterr().out)["key"]
    with process() as (url, _):
        monkeypatch.setenv("SEMMEM_URL", url)
        assert run(["list"]) == 10
        assert "requires a key" in capfd.readouterr().err
        monkeypatch.setenv("SEMMEM_KEY", key)
        assert run(["remember", "The key is red.", "--id", "key"]) == 0
        assert run(["update", "key", "The key is blue.", "--expected-version", "1"]) == 0
        assert run(["get", "key"]) == 0
        assert "The key is blue." in capfd.readouterr().out
        assert run(["explain", "key", "--query", "key"]) == 0
        assert run(["settings", "set", "weights.lexical", "0.5", "--namespace", "n"]) == 0
        assert run(["settings", "--namespace", "n", "--json"]) == 0
        shown = capfd.readouterr().out
        assert key not in shown
        assert run(["backup", "x.semmem"]) == 2
        assert "call it where the store is" in capfd.readouterr().err
        assert run(["forget", "key", "--yes"]) == 0


@pytest.mark.parametrize(
    ("options", "said", "code"),
    [
        (["--host", "0.0.0.0"], "Others can reach 0.0.0.0, and this server has no key", 2),
        (["--host", ""], "The host is empty", 2),
        (["--port", "70000"], "--port must be a whole number from 0 to 65535, not 70000; 0 takes a free one.", 2),
        (["--timeout", "0"], "--timeout must be a number from 0.001 to 86400, not 0.0.", 2),
        (["--timeout", "inf"], "--timeout must be a number from 0.001 to 86400, not inf.", 2),
        (["--max-body", "-1"], "--max-body must be a whole number from 1 to 1073741824, not -1.", 2),
        (["--rate", "-1"], "--rate must be a number from 0 to 1000000, not -1.0.", 2),
        (["--rate", "nan"], "--rate must be a number from 0 to 1000000, not nan.", 2),
        (["--rate", "inf"], "--rate must be a number from 0 to 1000000, not inf.", 2),
        (["--threads", "0"], "--threads must be a whole number from 1 to 1000, not 0.", 2),
        (["--allow-origin", "example.org"], "An origin is written as https://example.org", 2),
        (["--url", "http://127.0.0.1:1"], "The store is behind a server", 2),
    ],
)
def test_what_cannot_be_served_is_told_in_one_sentence(
    options: list[str], said: str, code: int, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(["serve", *options]) == code
    err = capfd.readouterr().err
    assert said in err.replace("\n", " ")
    assert "Traceback" not in err


def test_a_server_needs_its_extra(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    from semmem.interfaces.http import server

    monkeypatch.setattr(server, "find_spec", lambda name: None)
    assert run(["serve"]) == 7
    assert "pip install 'semmem[http]'" in capfd.readouterr().err


def test_a_time_of_an_option_is_a_number_of_ascii_digits_up_to_100000_and_a_unit() -> None:
    assert [_time(text) for text in ("90d", "100000s", None)] == [timedelta(days=90), timedelta(seconds=100_000), None]
    for text in ("\u0663d", "xd", "d", "0d", "100001d", "3w", ""):
        with pytest.raises(InvalidInput, match=r"A time must be like 90d, 12h, 45m or 30s"):
            _time(text)
