"""The page's files and the sessions of browsers, spoken to in plain HTTP."""

from __future__ import annotations

import hashlib
import os
import re
import socket
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import httpx
import pytest

import semmem
from semmem.client.memory import Semmem
from semmem.interfaces.cli.app import run
from semmem.interfaces.http.explorer import POLICY
from semmem.interfaces.http.keys import Key, Keys
from semmem.interfaces.http.peer import user_of
from semmem.interfaces.http.runs import Runs
from semmem.interfaces.http.sessions import Sessions
from tests.interfaces.http.test_routes import problem
from tests.serving import running

STATIC = Path(semmem.__file__).parent / "interfaces" / "explorer" / "static"
OWNER = Key("explore", "explore", "", "admin", None, "2026-01-01T00:00:00+00:00")
BROWSER = {"accept": "text/html"}


@pytest.fixture
def mem() -> Iterator[Semmem]:
    with semmem.connect("sqlite::memory:", embedder="none") as mem:
        mem.remember("The tide is high at noon.", id="tide")
        yield mem


def test_the_page_and_its_files_come_with_a_policy_that_loads_nothing_from_elsewhere(mem: Semmem) -> None:
    with running(mem) as server, httpx.Client(base_url=server.url, trust_env=False, timeout=60) as browser:
        page = browser.get("/", headers=BROWSER)
        assert page.headers["content-type"] == "text/html; charset=utf-8"
        named = set(re.findall(r'(?:src|href)="(/page/[^"]+)"', page.text))
        for file in STATIC.glob("*.js"):
            named |= set(re.findall(r'"(/page/[^"]+)"', file.read_text(encoding="utf-8")))
        assert {"/page/app.js", "/page/vendor/cytoscape.js", "/page/style.css"} <= named
        for path in ["/", *sorted(named)]:
            answer = browser.get(path, headers=BROWSER)
            assert answer.status_code == 200, path
            assert answer.headers["content-security-policy"] == POLICY
            again = browser.get(path, headers=BROWSER | {"if-none-match": answer.headers["etag"]})
            assert (again.status_code, again.content) == (304, b"")
        assert "unsafe" not in POLICY
        assert problem(browser.get("/page/../page/secret.js")) == (404, "NotFound")
        assert problem(browser.get("/page/vendor/README.md")) == (404, "NotFound")
        assert browser.get("/").json()["name"] == "semmem"


def test_the_files_of_others_are_those_whose_hashes_are_written_beside_them_and_all_weigh_less_than_600_kilobytes() -> (
    None
):
    for folder in (STATIC / "vendor", Path(__file__).with_name("vendor")):
        table = (folder / "README.md").read_text(encoding="utf-8")
        rows = dict(re.findall(r"^\| (\S+\.js) \|.*\| ([0-9a-f]{64}) \|$", table, re.MULTILINE))
        assert rows == {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in folder.glob("*.js")}
    sent = [file for file in STATIC.rglob("*.*") if file.suffix not in (".md", ".txt")]
    assert sum(file.stat().st_size for file in sent) < 600_000


def test_a_link_opens_one_session_and_works_once(mem: Semmem) -> None:
    with running(mem, owner=OWNER) as server, httpx.Client(base_url=server.url, trust_env=False, timeout=60) as browser:
        assert problem(browser.get("/v1/stats")) == (401, "KeyRequired")
        assert browser.get("/", headers=BROWSER).status_code == 200  # the page shows how to come in, and no memory
        link = f"/?token={server.sessions.invite()}"
        opened = browser.get(link, headers=BROWSER)
        assert (opened.status_code, opened.headers["location"]) == (303, "/")
        cookie = opened.headers["set-cookie"]
        assert re.fullmatch(r"semmem_\d+=[\w-]{43}; Path=/; HttpOnly; SameSite=Strict", cookie)
        assert browser.get("/v1/stats").json()["memories"] == 1
        assert browser.get("/session").json() == {"name": "explore", "right": "admin", "namespaces": None}
        with httpx.Client(base_url=server.url, trust_env=False, timeout=60) as other:
            again = other.get(link, headers=BROWSER)
            assert (again.status_code, "set-cookie" in again.headers) == (303, False)
            assert problem(other.get("/v1/stats")) == (401, "KeyRequired")
        assert browser.delete("/session").status_code == 204
        assert problem(browser.get("/v1/stats")) == (401, "KeyRequired")
        browser.headers["cookie"] = cookie.split(";")[0]  # the session has ended at the server too
        assert problem(browser.get("/v1/stats")) == (401, "KeyRequired")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says whose connection it is")
def test_a_link_opens_nothing_for_another_user_of_the_machine_and_stays_good_for_its_own(
    mem: Semmem, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(mem, owner=OWNER) as server, httpx.Client(base_url=server.url, trust_env=False, timeout=60) as browser:
        link = f"/?token={server.sessions.invite()}"
        with monkeypatch.context() as patch:
            me = os.getuid()
            patch.setattr("semmem.interfaces.http.explorer.os.getuid", lambda: me + 1)
            assert "set-cookie" not in browser.get(link, headers=BROWSER).headers
        assert "set-cookie" in browser.get(link, headers=BROWSER).headers


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says whose connection it is")
def test_the_user_of_a_connection_is_told_by_both_of_its_ends() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        at = listener.getsockname()
        mapped = socket.socket(socket.AF_INET6)
        mapped.connect(("::ffff:127.0.0.1", at[1]))  # as a browser does that has one socket for both families
        with mapped, socket.create_connection(at) as plain:
            assert user_of(plain.getsockname(), at) == os.getuid()
            assert user_of(("127.0.0.1", mapped.getsockname()[1]), at) == os.getuid()
            assert user_of(("127.0.0.2", plain.getsockname()[1]), at) is None
            assert user_of(("::1", plain.getsockname()[1]), at) is None


def test_a_page_of_elsewhere_cannot_use_the_cookie(mem: Semmem) -> None:
    with running(mem, owner=OWNER) as server, httpx.Client(base_url=server.url, trust_env=False, timeout=60) as browser:
        browser.get(f"/?token={server.sessions.invite()}", headers=BROWSER)
        for site in ("cross-site", "same-site"):
            assert problem(browser.get("/v1/stats", headers={"sec-fetch-site": site})) == (403, "AccessDenied")
            assert browser.get("/", headers=BROWSER | {"sec-fetch-site": site}).status_code == 200  # a link to it
        assert browser.get("/v1/stats", headers={"sec-fetch-site": "same-origin"}).status_code == 200
        foreign = browser.post("/v1/forget", json={"everything": True}, headers={"origin": "http://example.org"})
        assert problem(foreign) == (403, "AccessDenied")
        assert mem.stats().memories == 1


def test_a_page_that_another_key_opened_cannot_use_the_cookie(mem: Semmem) -> None:
    with running(mem, owner=OWNER) as server, httpx.Client(base_url=server.url, trust_env=False, timeout=60) as browser:
        browser.get(f"/?token={server.sessions.invite()}", headers=BROWSER)
        for name, status in (("explore", 200), ("%65xplore", 200), ("first", 401), ("", 401)):
            assert browser.get("/v1/stats", headers={"semmem-key-name": name}).status_code == status, name
        twice = [("semmem-key-name", "explore"), ("semmem-key-name", "first")]
        assert problem(browser.get("/v1/stats", headers=twice)) == (401, "KeyRequired")
        assert browser.get("/v1/stats").status_code == 200  # another client than the page names no key


@pytest.mark.parametrize("other", ['state={"a": 1}', "path=/", "no value", "a b=1", "x@y=1", 'open="a'])
def test_the_cookies_of_other_ports_do_not_end_a_session(other: str) -> None:
    sessions = Sessions(80, owner=OWNER)
    cookie = sessions.begin(OWNER).split(";")[0]
    assert sessions.find(f"{other}; {cookie}", {}) == OWNER
    assert sessions.find(f"{cookie}; {other}", {}) == OWNER


def test_the_runs_are_for_the_owner_and_keys_that_may_do_all(mem: Semmem, tmp_path: Path) -> None:
    folder = tmp_path / "monday"
    folder.mkdir()
    (folder / "result.json").write_text('{"command": "run"}', encoding="utf-8")
    keys = Keys(tmp_path / "keys.json")
    given = {
        "all": keys.add("all", right="admin")[1],
        "one": keys.add("one", right="admin", namespaces=["default"])[1],
        "reads": keys.add("reads")[1],
    }
    with running(mem, owner=OWNER, keys=keys, runs=Runs(tmp_path)) as server:
        for name, key in given.items():
            asks = httpx.Client(
                base_url=server.url, trust_env=False, headers={"authorization": f"Bearer {key}"}, timeout=60
            )
            with asks as browser:
                seen = browser.get("/runs").json()["runs"], browser.get("/runs/monday/result.json").status_code
                assert seen == ((["monday"], 200) if name == "all" else ([], 404)), name
    with running(mem) as server, httpx.Client(base_url=server.url, trust_env=False, timeout=60) as browser:
        assert browser.get("/runs").json() == {"runs": []}
        assert problem(browser.get("/runs/monday/result.json")) == (404, "NotFound")


@pytest.mark.skipif(sys.platform == "darwin", reason="macOS allows no name of other bytes")
def test_runs_are_listed_beside_folders_that_cannot_be_and_no_link_leads_out_of_a_run(
    mem: Semmem, tmp_path: Path
) -> None:
    runs = tmp_path / "runs"
    for folder in (runs / "monday", runs / os.fsdecode(b"\xff\xfe")):
        folder.mkdir(parents=True)
        (folder / "result.json").write_text("{}", encoding="utf-8")
    (runs / "too long").symlink_to("x" * 300)
    (tmp_path / "diary").write_text("mine", encoding="utf-8")
    (runs / "monday" / "questions.jsonl").symlink_to(tmp_path / "diary")
    with (
        running(mem, runs=Runs(runs)) as server,
        httpx.Client(base_url=server.url, trust_env=False, timeout=60) as browser,
    ):
        assert browser.get("/runs").json() == {"runs": ["monday"]}
        assert browser.get("/runs/monday/result.json").text == "{}"
        assert problem(browser.get("/runs/monday/questions.jsonl")) == (404, "NotFound")


def test_a_session_may_do_what_its_key_may_and_ends_with_it(mem: Semmem, tmp_path: Path) -> None:
    keys = Keys(tmp_path / "keys.json")
    _, reader = keys.add("reader", namespaces=["default"])
    with running(mem, keys=keys) as server, httpx.Client(base_url=server.url, trust_env=False, timeout=60) as browser:
        begun = browser.post("/session", headers={"authorization": f"Bearer {reader}"})
        assert begun.json() == {"name": "reader", "right": "read", "namespaces": ["default"]}
        assert browser.post("/v1/recall", json={"query": "tide"}).json()["hits"][0]["id"] == "tide"
        assert problem(browser.post("/v1/memories", json={"text": "More."})) == (403, "AccessDenied")
        assert problem(browser.get("/v1/stats", params={"namespace": "other"})) == (403, "AccessDenied")
        keys.remove("reader")
        assert problem(browser.get("/v1/stats")) == (401, "KeyRequired")


def test_a_session_ends_when_its_key_expires(mem: Semmem, tmp_path: Path) -> None:
    keys = Keys(tmp_path / "keys.json")
    _, reader = keys.add("reader", lasting=timedelta(hours=1))
    with running(mem, keys=keys) as server, httpx.Client(base_url=server.url, trust_env=False, timeout=60) as browser:
        browser.post("/session", headers={"authorization": f"Bearer {reader}"})
        assert browser.get("/v1/stats").status_code == 200
        keys._change(lambda known: [replace(key, expires_at="2026-01-01T00:00:00+00:00") for key in known])
        assert problem(browser.get("/v1/stats")) == (401, "KeyRequired")


def test_a_server_without_keys_needs_no_session(mem: Semmem) -> None:
    with running(mem) as server, httpx.Client(base_url=server.url, trust_env=False, timeout=60) as browser:
        told = browser.get("/openapi.json").json()["paths"]["/session"]
        assert {method: sorted(one["responses"]) for method, one in told.items()} == {
            "get": ["200", "4XX", "5XX"], "post": ["200", "4XX", "5XX"], "delete": ["204", "4XX", "5XX"],
        }  # fmt: skip
        assert browser.get("/session").json() == {"name": None, "right": "admin", "namespaces": None}
        assert "set-cookie" not in browser.post("/session").headers
        image = browser.get("/v1/recall?query=tide", headers={"sec-fetch-site": "cross-site"})
        assert problem(image) == (403, "AccessDenied")


def test_a_browser_keeps_no_answer_after_its_session(mem: Semmem) -> None:
    with running(mem) as server, httpx.Client(base_url=server.url, trust_env=False, timeout=60) as browser:
        for path in ("/v1/memories/tide", "/v1/recall?query=tide", "/v1/export", "/v1/memories/none"):
            assert browser.get(path).headers["cache-control"] == "no-store"
        tag = {"if-none-match": browser.get("/v1/memories/tide").headers["etag"]}
        assert browser.get("/v1/memories/tide", headers=tag).status_code == 304


def test_a_session_that_is_not_used_ends_and_the_oldest_give_way_to_new_ones() -> None:
    now = [1000.0]
    sessions = Sessions(80, owner=OWNER, clock=lambda: now[0])
    cookies = []
    for _ in range(Sessions.MOST + 2):
        now[0] += 1
        cookies.append(sessions.begin(OWNER).split(";")[0])
    assert [sessions.find(cookie, {}) for cookie in cookies[:3]] == [None, None, OWNER]
    now[0] += Sessions.LASTING_S - 5
    assert sessions.find(cookies[-1], {}) == OWNER
    now[0] += 6
    assert [sessions.find(cookie, {}) for cookie in (cookies[5], cookies[-1])] == [None, OWNER]
    assert sessions.find("semmem_80=; =;;", {}) is None


def test_a_key_that_begins_many_sessions_ends_none_of_another() -> None:
    reader = replace(OWNER, name="reader", id="0a1b2c3d", right="read")
    sessions = Sessions(80, owner=OWNER)
    first = sessions.begin(OWNER).split(";")[0]
    for _ in range(Sessions.MOST + 2):
        last = sessions.begin(reader).split(";")[0]
    assert sessions.find(first, {}) == OWNER
    assert sessions.find(last, {reader.id: reader}) == reader


def test_the_page_of_a_store_behind_a_server_is_that_of_the_server(
    mem: Semmem, capfd: pytest.CaptureFixture[str]
) -> None:
    with running(mem) as server:
        assert run(["explore", "--no-open", "--url", server.url]) == 2
    assert f"which has the page: open {server.url} in a browser" in " ".join(capfd.readouterr().err.split())
