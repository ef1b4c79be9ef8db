"""The view Activity in a real Chromium: who was given what, the question again, and what was useful."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import semmem
from semmem.client.memory import Semmem
from semmem.interfaces.http.keys import Key
from semmem.interfaces.http.server import Server
from semmem.model.process.asker import asked_through
from tests.interfaces.explorer.browser import MISSING, chromium, expect, watched
from tests.serving import running

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(MISSING), reason=MISSING), pytest.mark.timeout(300)]

OWNER = Key("explore", "explore", "", "admin", None, "2026-01-01T00:00:00+00:00")
QUESTION = "when does the ferry leave?"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as browser:
        yield browser


@pytest.fixture
def mem() -> Iterator[Semmem]:
    with semmem.connect("sqlite::memory:", recall_log=True) as mem:
        mem.remember("The ferry leaves at nine.", id="nine", namespace="team")
        mem.remember("The ferry costs two crowns.", id="crowns", namespace="team")
        yield mem


@pytest.fixture
def page(browser: Any, mem: Semmem) -> Iterator[Any]:
    """The page at Activity; at the end it has said no error and asked no other host."""
    with running(mem, owner=OWNER) as server, watched(browser) as page:
        opened(page, server)
        yield page
        assert page.errors == []
        assert page.hosts == {server.url.removeprefix("http://")}


def opened(page: Any, server: Server) -> None:
    page.goto(f"{server.url}/?token={server.sessions.invite()}#/activity?ns=team")
    page.get_by_role("heading", name="Activity").wait_for()


def asked(mem: Semmem, question: str = QUESTION, agent: str | None = "cursor", **more: Any) -> str:
    with asked_through("mcp", agent):
        return str(mem.recall(question, namespace="team", **more).id)


def reload(page: Any) -> None:
    page.get_by_role("button", name="Look again").click()


def test_an_empty_log_says_how_it_is_switched_on(page: Any) -> None:
    page.get_by_text("No recall is logged here.").wait_for()
    expect(page.locator("main")).to_contain_text("SEMMEM_RECALL_LOG=true")


def test_entries_say_who_was_given_what_and_a_filter_narrows_them(page: Any, mem: Semmem) -> None:
    asked(mem)
    asked(mem, "crowns", agent="codex", min_confidence=1.0)
    reload(page)
    entries = page.locator("main li")
    expect(entries).to_have_count(2)
    expect(entries.first).to_contain_text("crowns")
    expect(entries.first).to_contain_text("recall through mcp by codex")
    entries.last.locator("summary").click()
    rows = entries.last.locator("tbody tr")
    expect(rows).to_have_count(2)
    expect(rows.first).to_contain_text("nine")
    expect(rows.first).to_contain_text("given")
    entries.first.locator("summary").click()
    expect(entries.first.locator("tbody tr").first).to_contain_text("withheld: not sure enough")
    page.get_by_label("By the agent").fill("cursor")
    page.get_by_label("By the agent").press("Enter")
    expect(entries).to_have_count(1)
    expect(entries.first).to_contain_text(QUESTION)
    page.get_by_label("That gave the memory").fill("nobody")
    page.get_by_label("That gave the memory").press("Enter")
    page.get_by_text("No logged recall meets these conditions.").wait_for()


def test_a_judgment_is_a_label_for_eval(page: Any, mem: Semmem) -> None:
    id = asked(mem)
    reload(page)
    page.locator("summary").first.click()
    page.get_by_role("button", name="nine was useful").click()
    page.get_by_role("status").filter(has_text="nine is noted as useful").wait_for()
    page.get_by_role("button", name="crowns was not useful").click()
    page.get_by_role("status").filter(has_text="crowns is noted as not useful").wait_for()
    labels = [(one.recall_id, one.id, one.useful) for one in mem.judgments(namespace="team")]
    assert labels == [(id, "nine", True), (id, "crowns", False)]
    page.reload()
    page.locator("summary").first.click()
    expect(page.locator("tbody tr").first.locator("b")).to_have_text("useful")


def test_a_replay_shows_what_differs_and_a_memory_opens_from_it(page: Any, mem: Semmem) -> None:
    asked(mem)
    reload(page)
    page.locator("summary").first.click()
    page.get_by_role("button", name="Replay now").click()
    page.get_by_text("The same memories have the same ranks").wait_for()
    mem.forget("crowns", namespace="team")
    mem.remember("The ferry leaves, and the ferry leaves again.", id="again", namespace="team")
    page.get_by_role("button", name="Replay now").click()
    page.get_by_text("The ranks differ").wait_for()
    changes = page.locator("li [role=status] tbody tr")
    expect(changes.last).to_contain_text("forgotten")
    expect(changes.filter(has_text="again")).to_contain_text("new")
    assert len(mem.recalls(namespace="team")) == 1
    changes.filter(has_text="again").get_by_role("button").click()
    page.get_by_role("dialog").filter(has_text="and the ferry leaves again").wait_for()


def test_hostile_questions_show_as_text_and_long_logs_go_on(page: Any, mem: Semmem) -> None:
    asked(mem, "<img src=x onerror=alert(1)> \u202e ferry", agent="<b>eve</b>")
    for number in range(60):
        asked(mem, f"ferry {number}")
    reload(page)
    entries = page.locator("main li")
    expect(entries).to_have_count(50)
    page.get_by_role("button", name="Show more").click()
    expect(entries).to_have_count(61)
    expect(entries.last).to_contain_text("<img src=x onerror=alert(1)> ⟨202e⟩ ferry")
    expect(entries.last).to_contain_text("by <b>eve</b>")


def test_a_reader_sees_the_log_and_judges_nothing(browser: Any, mem: Semmem) -> None:
    asked(mem)
    reader = Key("reads", "reads", "", "read", ("team",), "2026-01-01T00:00:00+00:00")
    with running(mem, owner=reader) as server, watched(browser, viewport={"width": 360, "height": 740}) as page:
        opened(page, server)
        page.locator("summary").first.click()
        expect(page.locator("tbody tr").first).to_contain_text("given")
        expect(page.get_by_role("button", name="nine was useful")).to_have_count(0)
        assert page.evaluate("document.documentElement.scrollWidth <= 360")
        assert page.errors == []
