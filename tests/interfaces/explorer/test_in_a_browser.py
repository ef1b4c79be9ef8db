"""The page in a real Chromium, used as a person uses it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

import semmem
from semmem.client.memory import Semmem
from semmem.interfaces.http.keys import Key, Keys
from semmem.interfaces.http.runs import Runs
from semmem.interfaces.http.server import Server
from semmem.model.errors import InvalidInput, NotFound
from tests.interfaces.explorer.browser import MISSING, barriers, chromium, expect, watched
from tests.serving import running
from tests.waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(MISSING), reason=MISSING), pytest.mark.timeout(300)]

OWNER = Key("explore", "explore", "", "admin", None, "2026-01-01T00:00:00+00:00")
NOTES = [
    ("kestrel", "The Kestrel is our logger. Petra Lindqvist designed it.", "Kestrel", "Ana", 1),
    ("petra", "Her childhood was spent above a bakery in Norrbeck.", "Petra Lindqvist", "Ana", 2),
    ("norrbeck", "The bakery burned down in spring.", "Norrbeck", "Bo", 3),
    ("port", "The Kestrel listens on port 6543.", "Port", "Bo", 4),
    ("harbour", "The harbour office opens at nine.", "Harbour", "Ana", 5),
    ("tide", "High tide is at noon on Fridays.", "Tide", "Bo", 6),
]
VIEWS = ("recall", "browse", "graph", "time", "inbox", "evaluation", "health")
QUESTION = "In which town did the designer of the Kestrel grow up?"


def refuses(url: str) -> bool:
    """Return whether nobody listens at the address of a server any more."""
    try:
        httpx.get(f"{url}/healthz", timeout=60, trust_env=False)
    except httpx.TransportError:
        return True
    return False


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as browser:
        yield browser


@pytest.fixture
def mem(store_url: str) -> Iterator[Semmem]:
    with semmem.connect(store_url, embedder="hashing") as mem:
        for id, text, title, author, day in NOTES:
            mem.remember(
                text, id=id, title=title, author=author, namespace="team", created_at=f"2026-03-0{day}T09:00:00+00:00"
            )
        yield mem


@pytest.fixture
def site(mem: Semmem) -> Iterator[Server]:
    with running(mem, owner=OWNER) as server:
        yield server


@pytest.fixture
def page(browser: Any, site: Server) -> Iterator[Any]:
    """The page, opened by its link; at the end it has said no error and asked no other host."""
    with watched(browser) as page:
        page.goto(f"{site.url}/?token={site.sessions.invite()}#/recall?ns=team")
        page.get_by_label("Question").wait_for()
        yield page
        assert page.errors == []
        assert page.hosts == {site.url.removeprefix("http://")}


def ask(page: Any, question: str = QUESTION) -> None:
    page.get_by_label("Question").fill(question)
    page.get_by_role("button", name="Recall", exact=True).click()
    page.locator(".hit").first.wait_for()


def leg(page: Any, name: str) -> Any:
    return page.locator("fieldset").filter(has=page.locator("legend", has_text=name))


def titles(page: Any) -> Any:
    """Return what waits until the titles of the hits are those expected."""
    return expect(page.locator(".hit .title"))


def sign_in(where: Any, key: str) -> None:
    """Give a key to the page, or to the dialog of a session that has ended."""
    where.get_by_label("Key").fill(key)
    where.get_by_role("button", name="Open").click()


def edit_tide(page: Any, server: Server, key: str, text: str) -> None:
    """Sign in, and type another text of the memory ``tide``, without saving it."""
    page.goto(f"{server.url}/#/browse?ns=team")
    sign_in(page, key)
    page.get_by_role("button", name="Tide", exact=True).click()
    page.get_by_role("tab", name="edit").click()
    page.get_by_role("dialog").get_by_label("Text", exact=True).fill(text)


def settled(page: Any, sentence: str) -> None:
    page.get_by_role("status").filter(has_text=sentence).wait_for()


def undo(page: Any) -> None:
    """Take the last change back, and wait for the answer: the page may still show what it showed before the change."""
    with page.expect_response(lambda answer: answer.request.method != "GET"):
        page.get_by_role("button", name="Undo").click()


def test_a_question_shows_hits_with_their_legs_and_a_reload_keeps_it(page: Any, mem: Semmem) -> None:
    ask(page)
    expected = [hit.title for hit in mem.recall(QUESTION, namespace="team")]
    titles(page).to_have_text(expected)
    page.get_by_text("Question: named (it names something that the graph knows). First 10 hits.").wait_for()
    expect(leg(page, "graph").locator(".own")).to_contain_text("rank constant 0 for named questions")
    page.get_by_text("The importance of a memory (0 to 1, among its fields) multiplies its score.").wait_for()
    bar = page.locator(".hit .bars").first.get_attribute("aria-label")
    assert re.match(r"Score: lexical \.\d{3}, ", bar)
    assert page.locator(".hit mark").first.inner_text()
    page.reload()
    page.locator(".hit").first.wait_for()
    titles(page).to_have_text(expected)


def test_the_weight_of_a_leg_changes_the_list_and_its_reach_and_can_be_kept_and_undone(page: Any, mem: Semmem) -> None:
    page.get_by_label("Hits", exact=True).fill("2")
    page.get_by_label("Hits", exact=True).press("Tab")
    ask(page, "bakery in spring")
    lexical = leg(page, "lexical")
    lexical.get_by_label("guaranteed slot as a number").fill("0")
    lexical.get_by_label("weight as a number").fill("0.001")
    lexical.locator("legend .badge.boost-only").wait_for()
    lexical.get_by_label("weight as a number").fill("5")
    for other in ("dense", "graph"):
        leg(page, other).get_by_label("weight as a number").fill("0")
        leg(page, other).locator(".badge.off").wait_for()
    lexical.locator("legend .badge.guaranteed").wait_for()
    alone = [hit.title for hit in mem.recall("bakery in spring", namespace="team", limit=2, recipe="lexical")]
    expect(page.locator(".hit .title")).to_have_text(alone)
    page.get_by_role("button", name="Keep for team").click()
    settled(page, "Kept for the namespace team")
    kept = mem.settings_of(namespace="team")
    assert (kept["weights.graph"], kept["weights.dense"], kept["weights.lexical"]) == (0, 0, 5)
    undo(page)
    settled(page, "Undone")
    assert mem.settings_of(namespace="team") == {}


def test_the_settings_of_one_kind_of_question_are_moved_with_its_reach_kept_and_undone(page: Any, mem: Semmem) -> None:
    page.get_by_label("Hits", exact=True).fill("3")
    page.get_by_label("Hits", exact=True).press("Tab")
    ask(page)
    graph = leg(page, "graph")
    graph.get_by_role("button", name="Change the rank constant of graph").click()
    expect(page.get_by_label("Settings for")).to_have_value("named")
    page.get_by_text("Questions of other kinds keep their settings.").wait_for()
    graph.get_by_label("rank constant as a number").fill("100")
    graph.get_by_label("guaranteed slot as a number").fill("0")
    graph.get_by_label("weight as a number").fill("0.001")
    expect(graph.locator(".kinds span", has_text=re.compile("^named")).locator(".badge")).to_have_text("boost-only")
    expect(graph.locator(".kinds span", has_text=re.compile("^unnamed")).locator(".badge")).to_have_text("guaranteed")
    expect(graph.locator("legend .badge")).to_have_text("boost-only")
    page.get_by_role("button", name="Keep for team").click()
    settled(page, "Kept for the namespace team")
    plan = mem.searched_by(namespace="team")[0]
    assert (plan.weights_in("named")["graph"], plan.weights_in("unnamed")["graph"]) == (0.001, 0.35)
    assert (plan.constants("named")["graph"], plan.constants("unnamed")["graph"]) == (100, 8)
    assert ("graph" in plan.reserve_in("named"), plan.reserve_in("unnamed")["graph"]) == (False, 3)
    undo(page)
    settled(page, "Undone")
    assert mem.settings_of(namespace="team") == {}


def test_a_weight_keeps_the_four_digits_of_its_certificate_and_a_slot_says_that_it_needs_none(page: Any) -> None:
    ask(page)
    graph = leg(page, "graph")
    graph.get_by_label("weight as a number").fill("0.0194")
    graph.get_by_label("weight as a number").press("Tab")
    expect(graph.get_by_label("weight as a number")).to_have_value("0.0194")
    graph.locator("summary").click()
    graph.get_by_text("its guaranteed slot lets its first find in at any weight").wait_for()


# What a busy browser does late: frames, and timers, in which a page does what can wait.
BUSY = """{ const [timer, frame] = [setTimeout, requestAnimationFrame];
  window.setTimeout = (work, ms, ...more) => timer(work, (ms || 0) + 500, ...more);
  window.requestAnimationFrame = (work) => frame(() => timer(() => work(performance.now()), 500)); }"""
DRAWN = "() => new Promise((go) => requestAnimationFrame(() => setTimeout(go)))"


def test_what_is_typed_chosen_or_opened_before_the_next_frame_stays(page: Any, mem: Semmem, site: Server) -> None:
    page.add_init_script(BUSY)
    page.reload()
    question = page.get_by_label("Question")
    question.fill(QUESTION)
    page.evaluate(DRAWN)
    expect(question).to_have_value(QUESTION)
    ask(page)
    page.get_by_role("button", name="Why? petra", exact=True).press("Enter")
    told = page.get_by_role("region", name="Why petra")
    expect(told).to_be_focused()
    page.evaluate(DRAWN)
    expect(told).to_be_focused()
    page.get_by_role("link", name="Graph", exact=True).press("Enter")
    page.get_by_role("checkbox", name="paths of the last question").wait_for()  # the graph was told it in time
    page.get_by_role("combobox", name="Around").select_option("a session")
    page.evaluate(DRAWN)
    page.get_by_label("The session").wait_for()
    page.get_by_role("link", name="Browse", exact=True).press("Enter")
    page.locator(".rows").get_by_role("button", name="Harbour", exact=True).press("Enter")
    page.get_by_role("dialog").get_by_role("tab", name="edit").press("Enter")
    page.evaluate(DRAWN)
    page.get_by_role("tab", name="edit", selected=True).wait_for()


def test_a_view_that_is_still_loaded_is_not_stood_for_by_the_last_one(page: Any, site: Server) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url.removeprefix(site.url)))
    page.goto(f"{site.url}/#/graph?ns=team&around=Kestrel&q=tide")
    page.get_by_role("heading", name="Kestrel").wait_for()
    page.get_by_role("checkbox", name="paths of the last question").wait_for()
    assert ("/v1/recall/paths" in asked, "/v1/recall" in asked) == (True, False)


def test_a_view_that_cannot_be_loaded_says_so_and_another_one_opens(page: Any) -> None:
    page.route("**/page/graph.js", lambda route: route.abort())
    page.get_by_role("link", name="Graph", exact=True).click()
    page.get_by_role("alert").filter(has_text="This view could not be loaded.").wait_for()
    page.get_by_role("link", name="Browse", exact=True).click()
    page.locator(".rows .title").first.wait_for()
    expect(page.get_by_role("alert")).to_have_count(0)
    page.errors.clear()  # the browser itself notes the file that was lost


def test_a_slider_that_moves_faster_than_the_server_answers_ends_with_the_list_of_its_last_place(
    page: Any, mem: Semmem
) -> None:
    ask(page)
    lexical = leg(page, "lexical").get_by_role("slider", name="weight")
    lexical.evaluate(
        """(one) => { for (let n = 1; n <= 40; n += 1) {
            one.value = n / 8; one.dispatchEvent(new Event('input', { bubbles: true })); } }"""
    )
    plan = mem.recall(QUESTION, namespace="team").recipe
    last = mem.recall(QUESTION, namespace="team", recipe=replace(plan, weights={**plan.weights, "lexical": 5.0}))
    expect(page.locator(".hit .under > b").first).to_have_text(f"{last[0].score:.3f}"[1:])
    expect(page.locator(".hit .title")).to_have_text([hit.title for hit in last])


def test_why_not_says_what_would_let_a_memory_in_and_a_button_sets_it(page: Any, mem: Semmem) -> None:
    page.get_by_label("Hits", exact=True).fill("1")
    page.get_by_label("Hits", exact=True).press("Tab")
    ask(page)
    first, second = mem.recall(QUESTION, namespace="team", limit=2)
    titles(page).to_have_text([first.title])
    other = second.id
    page.get_by_label("Why not another memory?").fill(other)
    page.get_by_role("button", name="Explain").click()
    told = page.get_by_role("region", name=f"Why {other}")
    told.get_by_text("the last of the first 1 has").wait_for()
    page.get_by_label("Why not another memory?").fill("nobody")
    page.get_by_role("button", name="Explain").click()
    page.get_by_role("alert").filter(has_text="No memory here has the id nobody, nor such words.").wait_for()
    page.errors.clear()  # the browser itself notes an answer with status 404


def test_a_memory_is_written_edited_compared_forgotten_and_taken_back(page: Any, mem: Semmem) -> None:
    page.get_by_role("link", name="Browse", exact=True).click()
    page.get_by_role("button", name="New memory").click()
    page.get_by_label("Text", exact=True).fill("The ferry leaves at ten.")
    page.get_by_label("Title", exact=True).last.fill("Ferry")
    page.get_by_role("button", name="Save").click()
    settled(page, "Stored as")
    ferry = next(one for one in mem.list(namespace="team").memories if one.title == "Ferry")
    page.locator(".rows").get_by_role("button", name="Ferry", exact=True).click()
    page.get_by_role("tab", name="edit").click()
    page.get_by_label("Text", exact=True).fill("The ferry leaves at eleven.")
    page.get_by_role("button", name="Save").click()
    settled(page, "is changed")
    assert mem.get(ferry.id, namespace="team").text == "The ferry leaves at eleven."
    page.get_by_role("tab", name="history").click()
    page.locator(".versions ins", has_text="eleven.").wait_for()
    expect(page.locator(".versions del")).to_have_text("ten.")
    page.get_by_role("tab", name="edit").click()
    page.get_by_label("Text", exact=True).fill("The ferry leaves at two.")
    mem.update(ferry.id, namespace="team", text="The ferry leaves at one.", author="Cleo")
    page.get_by_role("button", name="Save").click()
    page.get_by_role("alert").filter(has_text="Somebody changed this memory meanwhile").wait_for()
    assert mem.get(ferry.id, namespace="team").text == "The ferry leaves at one."
    expect(page.locator(".theirs ins")).to_have_text(["one.", "Cleo"])
    expect(page.get_by_label("Text", exact=True)).to_have_value("The ferry leaves at two.")
    page.get_by_role("button", name="Save").click()
    page.get_by_role("tab", name="memory", selected=True).wait_for()
    saved = mem.get(ferry.id, namespace="team")
    assert (saved.text, saved.author) == ("The ferry leaves at two.", "Cleo")
    page.get_by_role("dialog").get_by_role("button", name="Forget").click()
    settled(page, "is forgotten")
    assert mem.list(namespace="team", filters={"titles": ["Ferry"]}).memories == ()
    undo(page)
    page.locator(".rows").get_by_role("button", name="Ferry", exact=True).wait_for()
    assert mem.get(ferry.id, namespace="team").text == "The ferry leaves at two."
    page.errors.clear()  # the browser itself notes the answer with status 412


def test_a_memory_without_a_title_is_called_by_its_text_where_semmem_made_its_id(page: Any, mem: Semmem) -> None:
    text = "The loft opens at eight in winter."
    mem.remember(text, namespace="team")
    mem.remember("The key of the loft " + "hangs behind the tide table " * 5, namespace="team")
    ask(page, "When does the loft open?")
    first = page.locator(".hit").first
    expect(first.get_by_role("button", name=text, exact=True).locator("mark").first).to_have_text("loft")
    expect(first.locator(".snippet")).to_have_count(0)
    page.get_by_role("link", name="Browse", exact=True).click()
    rows = page.locator(".rows tbody tr")
    expect(rows.nth(0).locator(".title")).to_have_text(
        "The key of the loft" + " hangs behind the tide table" * 4 + " hangs b…"
    )
    expect(rows.nth(0).locator(".first")).to_have_count(1)
    expect(rows.nth(1).locator(".first")).to_have_count(0)
    rows.nth(1).get_by_role("button", name=text, exact=True).click()
    page.get_by_role("dialog", name=text).get_by_role("button", name="Forget").click()
    settled(page, "“The loft opens at eight in winter.” is forgotten.")


def test_an_empty_namespace_says_so_and_names_others_and_the_question_goes_along(page: Any, mem: Semmem) -> None:
    mem.remember("The cat is called Bosun.", namespace="home", title="Cat")
    page.goto(page.url.split("#")[0] + "#/recall?ns=nobody")
    page.reload()
    told = page.get_by_text(
        "The namespace nobody holds no memory yet. Write the first one in Browse, or look at home, team."
    )
    told.wait_for()
    page.get_by_label("Question").fill("What is the cat called?")
    page.get_by_role("button", name="Recall", exact=True).click()
    expect(page.get_by_label("Question")).to_have_value("What is the cat called?")
    home = told.get_by_role("link", name="home", exact=True)
    expect(home).to_have_attribute("href", re.compile("q=What"))
    home.click()
    expect(page.locator(".hit .title")).to_have_text(["Cat"])
    expect(told).to_have_count(0)
    page.get_by_label("Namespace").select_option("team")
    page.get_by_text("6 memories searched").wait_for()
    expect(page.get_by_role("searchbox", name="Question")).to_have_value("What is the cat called?")


def test_hits_are_asked_again_after_an_edit(page: Any) -> None:
    ask(page, "When is high tide?")
    page.get_by_role("button", name="Tide", exact=True).click()
    page.get_by_role("tab", name="edit").click()
    page.get_by_role("textbox", name="Text").fill("High tide is at one on Fridays.")
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".hit .snippet").first).to_have_text("High tide is at one on Fridays.")


def test_two_filters_that_change_before_the_next_frame_both_hold(page: Any) -> None:
    page.get_by_role("link", name="Browse", exact=True).click()
    page.locator(".rows .title").first.wait_for()
    page.evaluate(
        """() => { for (const [name, value] of [["Author", "Bo"], ["Title", "Tide"]]) {
            const label = [...document.querySelectorAll("label")].find((one) => one.textContent === name);
            const field = label.querySelector("input");
            field.value = value;
            for (const kind of ["input", "change"]) field.dispatchEvent(new Event(kind, { bubbles: true })); } }"""
    )
    expect(page.locator(".rows tbody .title")).to_have_text(["Tide"])
    assert page.url.endswith("ns=team&author=Bo&title=Tide")


def test_a_credential_is_told_when_it_is_stored_marked_as_sensitive_and_forgotten_for_good(
    page: Any, mem: Semmem
) -> None:
    page.get_by_role("link", name="Browse", exact=True).click()
    page.get_by_role("button", name="New memory").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("textbox", name="Text").fill("Photos: AKIAQ7XRT4LW8ZP3VB6N is the key.")
    dialog.get_by_role("button", name="Save").click()
    settled(page, "store it with sensitive=True, or take it out.")
    page.locator(".rows").get_by_role("button", name="Photos: ").click()
    page.get_by_role("tab", name="edit").click()
    dialog.get_by_label("sensitive").check()
    dialog.get_by_role("button", name="Save").click()
    settled(page, "is changed")
    (found,) = mem.list(namespace="team", filters={"sensitive": True}).memories
    page.get_by_role("tab", name="memory").click()
    dialog.get_by_role("button", name="Forget").click()
    settled(page, "is forgotten.")
    page.get_by_text("Forgotten memories").click()
    page.get_by_role("button", name="for good").click()
    assert len(mem.forgotten(namespace="team")) == 1
    page.get_by_role("button", name="Sure? Nothing brings it back").click()
    settled(page, "is forgotten for good.")
    page.get_by_text("No forgotten memory can be taken back.").wait_for()
    assert mem.forgotten(namespace="team") == []
    with pytest.raises(NotFound):
        mem.history(found.id, namespace="team")


def test_a_file_of_another_program_is_not_stored_as_a_text(page: Any, mem: Semmem, tmp_path: Path) -> None:
    file = tmp_path / "list.csv"
    file.write_text("text,author\nTwo boxes of sandpaper,Bo\n", encoding="utf-8")
    page.get_by_role("link", name="Browse", exact=True).click()
    page.locator("input[type=file]").set_input_files(str(file))
    page.get_by_role("alert").filter(has_text="list.csv is not stored: the page reads .jsonl, .ndjson, .md").wait_for()
    assert mem.stats(namespace="team").memories == 6


def test_a_memory_is_found_by_words_of_its_text_to_ask_why_not_and_to_link_it(page: Any, mem: Semmem) -> None:
    page.get_by_label("Hits", exact=True).fill("1")
    page.get_by_label("Hits", exact=True).press("Tab")
    ask(page, "When is high tide?")
    page.get_by_label("Why not another memory?").fill("bakery")
    page.get_by_role("button", name="Explain").click()
    offered = page.locator("ul.beside li")
    expect(offered).to_have_text(["Norrbeck", "Petra Lindqvist"])
    offered.get_by_role("button", name="Petra Lindqvist").click()
    page.get_by_role("region", name="Why petra").get_by_role("table").wait_for()
    expect(offered).to_have_count(0)
    expect(page.get_by_label("Why not another memory?")).to_have_value("petra")
    page.get_by_role("button", name="Tide", exact=True).click()
    page.get_by_role("tab", name="links").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("the memory", exact=True).fill("tide at noon")
    dialog.get_by_role("button", name="Link", exact=True).click()
    dialog.get_by_role("alert").filter(
        has_text="No other memory here has the id tide at noon, nor such words."
    ).wait_for()
    dialog.get_by_label("the memory", exact=True).fill("harbour office")
    dialog.get_by_role("button", name="Link", exact=True).click()
    dialog.get_by_role("button", name="Harbour", exact=True).click()
    settled(page, "tide see-also harbour.")
    expect(dialog.locator(".links li")).to_have_text(["Tide see-also Harbour Remove"])
    assert [(one.from_id, one.type, one.to_id) for one in mem.links("tide", namespace="team")] == [
        ("tide", "see-also", "harbour")
    ]
    page.errors.clear()  # the browser itself notes an answer with status 404


def test_an_earlier_version_is_taken_back_with_undo(page: Any, mem: Semmem) -> None:
    mem.update("tide", text="High tide is at one on Fridays.", tags=["sea"], namespace="team")
    mem.update("tide", text="High tide is at two on Fridays.", namespace="team")
    page.get_by_role("link", name="Browse", exact=True).click()
    page.get_by_text("6 memories", exact=True).wait_for()
    page.locator(".rows").get_by_role("button", name="Tide", exact=True).click()
    page.get_by_role("tab", name="history").click()
    expect(page.get_by_role("button", name="Take version")).to_have_count(2)
    page.get_by_role("button", name="Take version 1 back").click()
    settled(page, "tide is as in version 1 again.")
    page.get_by_role("dialog").get_by_text("High tide is at noon on Fridays.").wait_for()
    now = mem.get("tide", namespace="team")
    assert (now.text, now.tags, now.version) == ("High tide is at noon on Fridays.", (), 4)
    undo(page)
    page.get_by_role("dialog").get_by_text("High tide is at two on Fridays.").wait_for()
    assert mem.get("tide", namespace="team").tags == ("sea",)


def test_the_graph_tells_names_from_words_and_merges_names_alone(page: Any, mem: Semmem, site: Server) -> None:
    mem.remember("The Kestrel opens at nine.", id="hours", title="Hours", namespace="team")
    page.goto(f"{site.url}/#/graph?ns=team&around=Kestrel")
    page.get_by_text("Squares are memories, circles names, rings words.").wait_for()
    page.get_by_text("name, in 3 memories").wait_for()
    page.get_by_role("button", name="Merge").wait_for()
    page.get_by_label("Find in the picture").fill("opens nine")
    page.get_by_role("button", name="Next").click()
    page.get_by_text("two words, in 2 memories; the same ones have nine, opens").wait_for()
    expect(page.get_by_role("button", name="Merge")).to_have_count(0)


def test_several_memories_are_filtered_pinned_and_forgotten_at_once(page: Any, mem: Semmem) -> None:
    page.get_by_role("link", name="Browse", exact=True).click()
    page.get_by_label("Author").fill("Bo")
    page.get_by_label("Author").press("Tab")
    expect(page.locator(".rows tbody tr")).to_have_count(3)
    for id in ("port", "tide"):
        page.get_by_label(f"Choose {id}").check()
    page.get_by_role("button", name="Pin", exact=True).click()
    settled(page, "2 memories pinned")
    assert [one.id for one in mem.list(namespace="team").memories if one.pinned] == ["tide", "port"]
    page.locator(".rows .tag", has_text="pinned").first.wait_for()
    page.get_by_label("Choose norrbeck").check()
    page.get_by_role("button", name="Forget", exact=True).click()
    settled(page, "1 memory forgotten: norrbeck.")
    assert mem.stats(namespace="team").memories == 5
    expect(page.locator(".rows tbody tr")).to_have_count(2)
    page.get_by_label("Choose all shown").check()
    page.get_by_role("button", name="Forget", exact=True).click()
    settled(page, "2 memories forgotten: tide, port.")
    assert [one.author for one in mem.list(namespace="team").memories] == ["Ana"] * 3


def test_of_three_memories_forgotten_at_once_one_is_taken_back_and_their_undo_waits(page: Any, mem: Semmem) -> None:
    page.clock.install()
    page.get_by_role("link", name="Browse", exact=True).click()
    for id in ("port", "tide", "petra"):
        page.get_by_label(f"Choose {id}").check()
    page.get_by_role("button", name="Forget", exact=True).click()
    settled(page, "3 memories forgotten: port, tide, petra.")
    page.clock.fast_forward(60_000)
    page.get_by_role("button", name="Undo").wait_for()
    page.get_by_text("Forgotten memories").click()
    expect(page.locator("details li")).to_have_count(3)
    expect(page.locator("details li", has_text="High tide is at noon on Fridays.")).to_contain_text(
        "tide · forgotten 2"
    )
    page.get_by_role("button", name="Take tide back").click()
    settled(page, "tide is taken back.")
    page.get_by_label("Choose tide").wait_for()
    expect(page.locator("details li")).to_have_count(2)
    assert {one.id for one in mem.list(namespace="team").memories} == {"kestrel", "norrbeck", "harbour", "tide"}
    undo(page)
    expect(page.locator("details li")).to_have_count(3)


def test_memories_are_found_by_words_of_their_text_within_the_filters_and_the_export_obeys_those(
    page: Any, mem: Semmem
) -> None:
    mem.remember("The Kestrel listens on port 6543.", id="copy", namespace="team", author="Cy")
    page.get_by_role("link", name="Browse", exact=True).click()
    words = page.get_by_label("Words of the text")
    words.fill("kestrels listening")
    words.press("Enter")
    expect(page.locator(".rows tbody tr")).to_have_count(3)  # a copy is no hit of a recall, and is shown here
    page.get_by_text("3 found by such words. Sensitive memories are not searched.").wait_for()
    expect(page.get_by_label("Order")).to_be_disabled()
    page.get_by_label("Author").fill("Bo")
    page.get_by_label("Author").press("Tab")
    expect(page.locator(".rows tbody .title")).to_have_text(["Port"])
    expect(page.get_by_role("link", name="Export")).to_have_count(0)
    words.fill("")
    words.press("Enter")
    expect(page.locator(".rows tbody tr")).to_have_count(3)
    with page.expect_download() as download:
        page.get_by_role("link", name="Export these").click()
    lines = [json.loads(line) for line in Path(download.value.path()).read_text(encoding="utf-8").splitlines()]
    assert [one["id"] for one in lines] == ["tide", "port", "norrbeck"]


def test_a_hit_is_said_to_be_superseded_by_another_hit(page: Any, mem: Semmem) -> None:
    mem.remember("The Kestrel listens on port 7000.", id="new-port", title="New port", namespace="team")
    ask(page, "On which port does the Kestrel listen?")
    page.get_by_role("button", name="Port", exact=True).click()
    page.get_by_role("tab", name="links").click()
    page.locator("dialog #known option[value='new-port']").wait_for(state="attached")
    page.get_by_label("This memory").select_option("is superseded by")
    page.get_by_label("the memory", exact=True).fill("new-port")
    page.get_by_role("button", name="Link", exact=True).click()
    settled(page, "new-port supersedes port.")
    (link,) = [one for one in mem.links("port", namespace="team") if one.type == "supersedes"]
    assert (link.from_id, link.to_id) == ("new-port", "port")
    undo(page)
    expect(page.locator("dialog .links li", has_text="supersedes")).to_have_count(0)


def test_memories_of_one_source_type_are_listed_and_words_that_none_has_say_so(page: Any, mem: Semmem) -> None:
    mem.remember("A gull.", id="gull", namespace="team", source_type="agent")
    page.get_by_role("link", name="Browse", exact=True).click()
    page.get_by_label("Comes from").select_option("agent")
    expect(page.locator(".rows tbody .title")).to_have_text(["gull"])
    page.get_by_label("Words of the text").fill("zeppelin")
    page.get_by_label("Words of the text").press("Enter")
    page.get_by_text("No memory here has such words.").wait_for()


def test_a_new_namespace_begins_with_the_first_memory_that_is_written_there(page: Any, mem: Semmem) -> None:
    page.get_by_label("Namespace").select_option("a new one…")
    page.get_by_role("dialog").get_by_label("Its name").fill("birds & boats")
    page.keyboard.press("Enter")
    page.get_by_text("No memory here.").wait_for()
    page.get_by_role("button", name="New memory").click()
    page.get_by_role("dialog").get_by_label("Text", exact=True).fill("A gull.")
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".rows tbody tr")).to_have_count(1)
    assert mem.stats(namespace="birds & boats").memories == 1


def test_metadata_and_what_is_sensitive_filter_the_list(page: Any, mem: Semmem) -> None:
    mem.remember("A note.", id="note", namespace="team", metadata={"kind": "note", "pages": 3})
    mem.remember("A letter.", id="letter", namespace="team", metadata={"kind": "letter"}, sensitive=True)
    page.get_by_role("link", name="Browse", exact=True).click()
    metadata, titles = page.get_by_label("Metadata"), page.locator(".rows tbody .title")
    metadata.fill("kind=note, pages=3")
    metadata.press("Enter")
    expect(titles).to_have_text(["note"])
    metadata.fill("kind")
    metadata.press("Enter")
    page.get_by_text("Metadata are written as name=value").wait_for()
    metadata.fill("")
    metadata.press("Enter")
    expect(titles).to_have_count(8)
    page.get_by_label("Sensitive").select_option("alone")
    expect(titles).to_have_text(["letter"])
    page.get_by_label("Sensitive").select_option("left out")
    expect(titles).to_have_count(7)


FOCUSED = "(name) => document.activeElement.closest('section, dialog, main')?.localName === name"


def test_the_focus_stays_where_a_decision_was_made(page: Any, mem: Semmem) -> None:
    mem.remember("The Kestrel listens on port 7000.", id="new-port", namespace="team")
    mem.link("new-port", "contradicts", "port", namespace="team")
    ask(page)
    leg(page, "dense").get_by_label("weight as a number").fill("2")
    page.get_by_role("button", name="Keep for team").press("Enter")
    settled(page, "Kept for the namespace team")
    expect(page.get_by_role("button", name="Keep for team")).to_be_disabled()
    page.wait_for_function(FOCUSED, arg="section")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="What this namespace keeps now")).to_be_focused()
    page.get_by_role("link", name="Browse", exact=True).press("Enter")
    page.get_by_label("Choose tide").press("Space")
    page.get_by_role("button", name="Forget", exact=True).press("Enter")
    settled(page, "1 memory forgotten: tide.")
    expect(page.get_by_label("Choose tide")).to_have_count(0)
    page.wait_for_function(FOCUSED, arg="section")
    page.locator(".rows").get_by_role("button", name="Harbour", exact=True).press("Enter")
    page.get_by_role("tab", name="edit").press("Enter")
    page.get_by_label("Text", exact=True).fill("The harbour office is closed.")
    page.get_by_role("button", name="Save").press("Enter")
    settled(page, "harbour is changed")
    page.wait_for_function(FOCUSED, arg="dialog")
    page.get_by_role("button", name="Undo").press("Enter")  # it stands in the dialog: nothing else can be reached
    expect(page.get_by_role("dialog")).to_contain_text("opens at nine")
    page.wait_for_function(FOCUSED, arg="dialog")
    page.keyboard.press("Escape")
    page.get_by_role("link", name="Inbox", exact=True).press("Enter")
    page.get_by_role("button", name="Both hold").press("Enter")
    page.get_by_text("No contradictions wait").wait_for()
    page.wait_for_function(FOCUSED, arg="section")


def test_a_dialog_that_goes_away_takes_the_focus_from_nothing_that_was_chosen_since(page: Any) -> None:
    page.get_by_role("link", name="Browse", exact=True).press("Enter")
    page.locator(".rows").get_by_role("button", name="Harbour", exact=True).press("Enter")
    page.get_by_role("tab", name="edit").wait_for()
    page.evaluate(
        "() => { document.querySelector('dialog').close(); document.querySelector('nav a[href*=inbox]').focus(); }"
    )
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.get_by_role("link", name="Inbox", exact=True)).to_be_focused()
    page.locator(".rows").get_by_role("button", name="Harbour", exact=True).press("Enter")
    page.get_by_role("tab", name="edit").wait_for()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.locator(".rows").get_by_role("button", name="Harbour", exact=True)).to_be_focused()


def test_the_keyboard_alone_opens_why_and_closing_it_comes_back_to_its_hit(page: Any) -> None:
    ask(page)
    why = page.get_by_role("button", name="Why? petra", exact=True)
    for leave in ("Escape", "Enter"):
        why.focus()
        page.keyboard.press("Enter")
        told = page.get_by_role("region", name="Why petra")
        expect(told).to_be_focused()
        told.get_by_role("table").wait_for()
        if leave == "Enter":
            page.get_by_role("button", name="Close").focus()
        page.keyboard.press(leave)
        expect(told).to_have_count(0)
        expect(why).to_be_focused()


def test_a_memory_leads_to_all_of_its_author_and_to_the_reason_why_the_last_question_lacks_it(page: Any) -> None:
    page.get_by_label("Hits", exact=True).fill("1")
    page.get_by_label("Hits", exact=True).press("Tab")
    ask(page, "When is high tide?")
    page.get_by_role("link", name="Browse", exact=True).click()
    page.locator(".rows").get_by_role("button", name="Norrbeck", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Bo", exact=True).click()
    expect(page.locator(".rows tbody .title")).to_have_text(["Tide", "Port", "Norrbeck"])
    page.locator(".rows").get_by_role("button", name="Norrbeck", exact=True).click()
    page.get_by_role("button", name="Why, or why not, for “When is high tide?”").click()
    page.get_by_role("region", name="Why norrbeck").get_by_role("table").wait_for()


def test_a_memory_that_no_leg_found_says_what_can_bring_it(page: Any, mem: Semmem) -> None:
    mem.configure(namespace="team", depths={"lexical": 1, "dense": 1, "graph": 1})
    page.get_by_label("Hits", exact=True).fill("1")
    page.get_by_label("Hits", exact=True).press("Tab")
    ask(page, "When is high tide?")
    page.get_by_label("Why not another memory?").fill("norrbeck")
    page.get_by_role("button", name="Explain").click()
    page.get_by_text("No leg found it, so no weight can bring it in. More hits make the legs look deeper").wait_for()


def test_a_file_is_imported_and_its_refused_lines_are_told(page: Any, mem: Semmem, tmp_path: Path) -> None:
    file = tmp_path / "more.jsonl"
    file.write_text('{"id": "a", "text": "One."}\n{"id": "b", "text": ""}\n', encoding="utf-8")
    page.get_by_role("link", name="Browse", exact=True).click()
    page.locator("input[type=file]").set_input_files(str(file))
    settled(page, "more.jsonl: 1 stored, 0 unchanged, 1 refused")
    assert mem.get("a", namespace="team").text == "One."
    file.write_text('{"id": "c", "text": "Photos: AKIAQ7XRT4LW8ZP3VB6N is the key."}\n', encoding="utf-8")
    page.locator("input[type=file]").set_input_files(str(file))
    settled(page, "more.jsonl: 1 stored, 0 unchanged. A credential (aws access key) seems to be in the memory 'c'")


def test_a_file_is_imported_where_it_is_dropped(page: Any, mem: Semmem) -> None:
    page.get_by_role("link", name="Browse", exact=True).click()
    file = page.evaluate_handle(
        """() => { const all = new DataTransfer();
            all.items.add(new File(['The gull is grey.'], 'gull.md'));
            return all; }"""
    )
    page.get_by_text("Import, or drop a file here").dispatch_event("drop", {"dataTransfer": file})
    settled(page, "gull.md is stored as one memory.")
    assert mem.get("gull.md", namespace="team").text == "The gull is grey."


def test_the_graph_shows_a_name_its_neighbours_and_merges_with_undo(page: Any, mem: Semmem) -> None:
    page.get_by_role("link", name="Graph", exact=True).click()
    page.get_by_label("A name or the id of a memory").fill("Petra Lindqvist")
    page.get_by_role("button", name="Show", exact=True).click()
    page.get_by_role("heading", name="Petra Lindqvist").wait_for()
    page.locator(".canvas canvas").first.wait_for()
    page.locator(".beside").get_by_role("button", name="Kestrel", exact=True).first.wait_for()
    page.get_by_label("Is the same as").fill("Norrbeck")
    page.get_by_role("button", name="Merge").click()
    settled(page, "is taken for Norrbeck")
    undo(page)
    page.get_by_role("heading", name="Petra Lindqvist").wait_for()


# The texts in the picture, each with the place that it takes on the screen.
LABELS = """() => {
  const { cy } = document.querySelector('.canvas > div')._cyreg;
  const part = { includeNodes: false, includeEdges: false, includeLabels: true };
  return cy.elements().filter((one) => one.style('label')).map((one) => {
    const { x1, x2, y1, y2 } = one.renderedBoundingBox(part);
    return [one.style('label'), x1, x2, y1, y2];
  });
}"""


# The same of a picture that stands, with the paths of a question over it or without any.
STANDING = f"""(ways) => {{
  const cy = document.querySelector('.canvas > div')?._cyreg?.cy;
  if (!cy || cy.animated() || cy.nodes().some((one) => one.animated())) return null;
  const labels = ({LABELS})();
  return labels.length > 3 && cy.nodes('[way = 1]').nonempty() === ways && labels;
}}"""


def test_memories_of_a_small_graph_have_labels_and_no_label_covers_another(page: Any, site: Server) -> None:
    for rest in ("", "&q=In+which+town+did+the+designer+of+the+Kestrel+grow+up"):
        page.goto(f"{site.url}/#/graph?ns=team&around=Kestrel{rest}")
        page.reload()  # a view that is open shows paths only if it did so before
        labels = page.wait_for_function(STANDING, arg=bool(rest)).json_value()
        assert {"Kestrel", "Petra Lindqvist", "Port"} <= {name for name, *_ in labels}
        for at, (name, left, right, top, bottom) in enumerate(labels):
            over = [
                other
                for other, x1, x2, y1, y2 in labels[at + 1 :]
                if min(right, x2) - max(left, x1) > 4 and min(bottom, y2) - max(top, y1) > 4  # beside its outline
            ]
            assert over == [], name


# Counts how often two nodes of the picture lie on each other.
HEAPS = """() => {
  window.heaps = 0;
  setInterval(() => {
    const at = document.querySelector('.canvas > div')._cyreg.cy.nodes().map((one) => JSON.stringify(one.position()));
    if (new Set(at).size < at.length) window.heaps += 1;
  }, 5);
}"""


def test_a_picture_stays_until_the_places_of_the_next_one_are_known(page: Any, site: Server) -> None:
    page.goto(f"{site.url}/#/graph?ns=team&around=Kestrel")
    page.wait_for_function(f"() => document.querySelector('.canvas > div')?._cyreg && ({LABELS})().length > 3")
    page.evaluate(HEAPS)
    page.goto(f"{site.url}/#/graph?ns=team&around=Tide")
    page.get_by_role("heading", name="Tide").wait_for()
    page.wait_for_function(f"() => ({LABELS})().map(([name]) => name).includes('Tide')")
    assert "Kestrel" not in {name for name, *_ in page.evaluate(LABELS)}
    assert (
        page.evaluate("() => document.querySelector('.canvas > div')._cyreg.cy.$(':selected').data('name')") == "Tide"
    )
    assert page.evaluate("() => window.heaps") == 0


def test_a_merged_name_is_split_and_merged_again(page: Any, mem: Semmem, site: Server) -> None:
    mem.merge_concepts("Kestrel", "Petra Lindqvist", namespace="team")
    page.goto(f"{site.url}/#/graph?ns=team&around=Petra+Lindqvist")
    page.get_by_text("Also the name Kestrel, merged by hand.").wait_for()
    page.get_by_role("button", name="Split").click()
    settled(page, "are names of different things again")
    assert all(one.aliases == () for one in mem.concepts(namespace="team"))
    undo(page)
    page.get_by_text("Also the name Kestrel, merged by hand.").wait_for()
    assert [one.aliases for one in mem.concepts(namespace="team") if one.aliases] == [("Kestrel",)]


def test_the_paths_of_the_last_question_are_drawn_over_the_graph_and_a_node_is_found_in_it(
    page: Any, site: Server
) -> None:
    ask(page)
    page.get_by_role("link", name="Graph", exact=True).click()
    page.get_by_role("checkbox", name="paths of the last question").wait_for()
    page.get_by_label("Find in the picture").fill("the question")
    page.get_by_role("button", name="Next").click()
    page.get_by_role("heading", name="The question").wait_for()
    page.locator(".beside li", has_text="kestrel").first.wait_for()
    page.get_by_label("Find in the picture").fill("zebra")
    page.get_by_role("button", name="Next").click()
    page.get_by_role("alert").filter(has_text="Nothing in the picture contains “zebra”").wait_for()
    page.get_by_role("checkbox", name="paths of the last question").uncheck()
    page.get_by_text("The names that most memories mention").wait_for()


def test_the_graph_begins_with_a_session_and_leaves_out_hubs(page: Any, mem: Semmem) -> None:
    mem.remember_many(
        [{"text": f"Kestrel report {n} came in.", "session": "log", "id": f"r{n}"} for n in range(14)], namespace="team"
    )
    page.get_by_role("link", name="Graph", exact=True).click()
    page.get_by_role("combobox", name="Around").select_option("a session")
    page.get_by_label("The session").fill("log")
    page.get_by_role("button", name="Show", exact=True).click()
    page.locator(".facts").get_by_text("nodes").wait_for()
    page.get_by_label("hide hubs").check()
    page.get_by_text("hubs hidden").wait_for()
    page.get_by_label("The session").fill("none")
    page.get_by_role("button", name="Show", exact=True).click()
    page.get_by_role("alert").filter(has_text="No memory of this namespace is in the session").wait_for()


def test_a_contradiction_is_marked_on_both_hits_and_decided_in_the_inbox(page: Any, mem: Semmem) -> None:
    mem.remember("The Kestrel listens on port 7000.", id="new-port", namespace="team")
    mem.link("new-port", "contradicts", "port", namespace="team")
    ask(page, "On which port does the Kestrel listen?")
    marks = page.locator(".hit .warn")
    expect(marks).to_have_count(2)
    for other in ("port", "new-port"):
        expect(marks.get_by_text(f"contradicts {other}", exact=True)).to_have_count(1)
    marks.first.click()
    page.get_by_text("1 contradiction waits").wait_for()
    page.get_by_role("button", name="The first one holds").click()
    page.get_by_text("No contradictions wait").wait_for()
    assert [link.type for link in mem.links("port", namespace="team")] == ["contradicts", "supersedes"]
    undo(page)
    page.get_by_text("1 contradiction waits").wait_for()
    page.go_back()
    expect(marks).to_have_count(2)


def test_a_near_duplicate_is_decided_beside_the_contradictions(page: Any, mem: Semmem) -> None:
    ladder = "Please carry the long ladder back to the boat shed before the evening bell rings"
    mem.remember(f"{ladder}.", id="once", namespace="team")
    mem.remember(f"{ladder} today.", id="again", namespace="team")
    page.get_by_role("link", name="Inbox", exact=True).click()
    page.get_by_text("1 near-duplicate waits").wait_for()
    page.get_by_role("button", name="Keep both").click()
    page.get_by_text("No near-duplicates wait").wait_for()
    assert mem.links("again", namespace="team") == []
    undo(page)
    page.get_by_text("1 near-duplicate waits").wait_for()  # semmem's own link again, so it waits
    page.get_by_role("button", name="Forget the second").click()
    page.get_by_text("No near-duplicates wait").wait_for()
    assert "once" not in {one.id for one in mem.list(namespace="team").memories}
    undo(page)
    page.get_by_text("1 near-duplicate waits").wait_for()
    page.get_by_role("button", name="The first supersedes").click()
    page.get_by_text("No near-duplicates wait").wait_for()
    assert [(link.from_id, link.type) for link in mem.links("once", namespace="team")][1] == ("again", "supersedes")


def a_run(folder: Path, recipe: dict[str, Any]) -> Path:
    """Write a small run of `python -m eval`: one comparison, of three questions one moved."""
    paired = {"n": 3, "delta": -0.25, "low": -0.5, "high": 0.125, "won": 0, "lost": 1}
    compared = {
        "base": "default",
        "other": "default~graph",
        "verdict": "hurts",
        "sentence": "R@10 -.250",
        "paired": paired,
    }
    result = {
        "command": "ablate graph", "metrics": ["R@10"], "corpus": {"name": "team", "queries": 3, "memories": 6},
        "environment": {"embedder": "hashing"},
        "conditions": {
            "default": {"recipe": recipe},
            "default~graph": {"recipe": {**recipe, "weights": {**recipe["weights"], "graph": 0}}},
        },
        "comparisons": [
            {"name": "graph in default", "group": "headline", "metric": "R@10", "paired": paired, **compared}
        ],
    }  # fmt: skip
    values = [
        {"condition": name, "id": id, "stratum": "all", "apart": False, "R@10": value}
        for name, of in (("default", (1, 1, 0.5)), ("default~graph", (0.25, 1, 0.5)))
        for id, value in zip(("q1", "q2", "q3"), of, strict=True)
    ]
    asked = [{"id": "q1", "question": QUESTION, "namespace": "team", "gold_ids": ["petra"]}]
    (folder / "private").mkdir()
    (folder / "result.json").write_text(json.dumps(result), encoding="utf-8")
    for name, rows in (("per-question", values), ("questions", asked)):
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / "private" / f"{name}.jsonl").write_text(text, encoding="utf-8")
    return folder


def test_a_run_of_eval_shows_its_verdicts_and_intervals_and_asks_the_questions_that_moved(
    page: Any, mem: Semmem, tmp_path: Path
) -> None:
    run = a_run(tmp_path, mem.recall(QUESTION, namespace="team").recipe.as_dict())
    page.get_by_role("link", name="Evaluation", exact=True).click()
    single = page.get_by_label("Open result.json")
    single.set_input_files(str(run / "private" / "questions.jsonl"))
    page.get_by_role("alert").filter(has_text="There is no result.json among these files").wait_for()
    single.set_input_files(str(run / "result.json"))
    page.locator(".badge", has_text="hurts").wait_for()
    expect(page.locator(".interval svg")).to_have_attribute("aria-label", "-.250, from -.500 to .125")
    page.get_by_text("open the whole folder").wait_for()
    page.get_by_label("Open a folder").set_input_files(str(run))
    page.locator(".moved", has_text="1.000 → .250").wait_for()
    expect(page.locator(".moved")).to_have_count(1)
    page.get_by_role("button", name="Ask again in team").click()
    page.locator(".moved .gold").first.wait_for()
    expect(page.locator(".moved .side h3")).to_have_text(["default", "default~graph"])
    assert barriers(page) == []


def test_the_runs_of_a_folder_that_the_owner_named_are_opened_by_their_name(
    browser: Any, mem: Semmem, tmp_path: Path
) -> None:
    (tmp_path / "runs" / "monday").mkdir(parents=True)
    a_run(tmp_path / "runs" / "monday", mem.recall(QUESTION, namespace="team").recipe.as_dict())
    (tmp_path / "runs" / "secret.json").write_text("{}", encoding="utf-8")
    with running(mem, owner=OWNER, runs=Runs(tmp_path / "runs")) as server, watched(browser) as page:
        page.goto(f"{server.url}/?token={server.sessions.invite()}#/evaluation?ns=team")
        page.get_by_label("Or a run of the folder").select_option("monday")
        page.locator(".moved", has_text="1.000 → .250").wait_for()
        assert page.errors == []
        for path in ("runs/monday/private", "runs/..%2Fsecret.json/result.json", "runs/tuesday/result.json"):
            assert page.request.get(f"{server.url}/{path}").status == 404
    with pytest.raises(InvalidInput, match="There is no folder "):
        Runs(tmp_path / "nowhere")
    with pytest.raises(InvalidInput, match="neither it nor a folder in it has a result"):
        Runs(tmp_path / "runs" / "monday" / "private")


def test_three_thousand_memories_scroll_with_a_few_rows_in_the_page(page: Any, mem: Semmem, site: Server) -> None:
    mem.remember_many(
        ({"text": f"Note {n} of the log.", "id": f"n{n:04}"} for n in range(3_000)), namespace="long", batch_size=2000
    )
    page.goto(f"{site.url}/#/browse?ns=long")
    for _ in range(600):
        page.evaluate("() => window.scrollTo(0, document.body.scrollHeight)")
        page.wait_for_timeout(50)
        if page.locator(".rows").get_attribute("aria-rowcount") == "3001":
            break
    expect(page.locator(".rows")).to_have_attribute("aria-rowcount", "3001")
    page.evaluate("() => window.scrollTo(0, document.body.scrollHeight)")
    page.locator(".rows tr[aria-rowindex='3001']").wait_for()
    assert page.locator(".rows tbody tr").count() < 200
    page.evaluate("() => window.scrollTo(0, 0)")
    page.locator(".rows tr[aria-rowindex='2']").wait_for()


def test_a_next_page_that_fails_is_asked_again_by_its_button_alone(page: Any, mem: Semmem, site: Server) -> None:
    mem.remember_many(({"text": f"Note {n} of the log.", "id": f"n{n:02}"} for n in range(60)), namespace="short")
    asked: list[str] = []

    def lost(route: Any) -> None:
        asked.append(route.request.url)
        route.abort()

    page.route("**/v1/memories?*cursor=*", lost)
    page.goto(f"{site.url}/#/browse?ns=short")
    page.locator(".rows tr[aria-rowindex='2']").wait_for()
    page.evaluate("() => window.scrollTo(0, document.body.scrollHeight)")
    page.locator(".notice.bad").wait_for()
    page.evaluate("() => window.scrollTo(0, 0)")
    page.evaluate("() => window.scrollTo(0, document.body.scrollHeight)")
    page.wait_for_timeout(500)
    assert len(asked) == 1
    page.unroute("**/v1/memories?*cursor=*")
    page.get_by_role("button", name="More").click()
    expect(page.locator(".rows")).to_have_attribute("aria-rowcount", "61")
    expect(page.locator(".notice.bad")).to_have_count(0)
    page.errors.clear()  # the browser itself notes the request that was lost


@pytest.mark.timeout(600)
def test_ten_thousand_hits_scroll_and_each_comes_once(page: Any, mem: Semmem, site: Server) -> None:
    mem.remember_many(
        ({"text": f"Note {n} of the log.", "id": f"n{n:05}"} for n in range(10_000)), namespace="long", batch_size=2000
    )
    for _ in range(4):
        mem.recall("log", namespace="long")  # until it is in memory, where the dense leg searches exactly
    given: list[str] = []

    def take(answer: Any) -> None:
        if answer.url.endswith("/reweigh") and "depths" in (answer.request.post_data or ""):
            given.extend(hit["id"] for hit in answer.json()["hits"])

    page.on("response", take)
    page.goto(f"{site.url}/#/recall?ns=long&q=log&limit=10000")
    page.locator(".hit[aria-posinset='1']").wait_for()
    for _ in range(600):
        page.evaluate("() => window.scrollTo(0, document.body.scrollHeight)")
        page.wait_for_timeout(50)
        if page.locator(".hit[aria-posinset='10000']").count():
            break
    expect(page.locator(".hit[aria-posinset='10000'] .place b")).to_have_text("10000")
    expect(page.locator(".facts")).to_contain_text("10,000 of at least 10,000 found")
    assert page.locator(".hit").count() < 200
    assert page.get_by_role("button", name="More").count() == 0
    assert (len(given), len(set(given))) == (10_000, 10_000)


def test_days_filter_the_list_and_health_says_what_is_stored(page: Any, mem: Semmem) -> None:
    mem.remember("A gull.", namespace="birds")
    mem.namespace_limits("birds", most_memories=2_000)
    page.get_by_role("link", name="Time", exact=True).click()
    page.get_by_role("button", name="2026-03-04, 1 memory").press("Enter")
    page.get_by_role("button", name="Show 2026-03-04").click()
    expect(page.locator(".rows tbody tr")).to_have_count(1)
    page.get_by_role("link", name="Health", exact=True).click()
    page.get_by_text("6, with 6 vectors of").wait_for()
    page.get_by_role("cell", name="guaranteed").first.wait_for()
    birds = page.locator("tr", has=page.get_by_role("button", name="Health of birds"))
    expect(birds).to_contain_text("most memories 2,000")
    birds.get_by_role("button").click()
    page.get_by_text("1, with 1 vectors of").wait_for()


def test_several_days_are_chosen_by_a_drag_and_by_the_keyboard(page: Any) -> None:
    page.get_by_role("link", name="Time", exact=True).click()
    first, last = (page.get_by_role("button", name=f"2026-03-0{day}, 1 memory") for day in (2, 4))
    begin, end = first.bounding_box(), last.bounding_box()
    page.mouse.move(begin["x"] + 5, begin["y"] + 100)
    page.mouse.down()
    page.mouse.move(end["x"] + 5, end["y"] + 100, steps=8)
    page.mouse.up()
    page.get_by_role("button", name="Show 2026-03-02 to 2026-03-04").wait_for()
    last.press("Enter")
    page.get_by_role("button", name="Show 2026-03-04", exact=True).wait_for()
    page.get_by_role("button", name="2026-03-06, 1 memory").press("Shift+Enter")
    page.get_by_role("button", name="Show 2026-03-04 to 2026-03-06").press("Enter")
    expect(page.locator(".rows tbody .title")).to_have_text(["Tide", "Harbour", "Port"])


def test_the_axis_of_time_names_days_months_and_years_and_a_month_is_chosen_at_once(
    page: Any, mem: Semmem, site: Server
) -> None:
    days = ("2025-11-30", "2026-01-05", "2026-03-01", "2026-03-20", "2026-03-31", "2026-05-02")
    for day in days:
        mem.remember(f"A gull on {day}.", author="Ana", created_at=f"{day}T09:00:00+00:00", namespace="birds")
    mem.remember("Two terns.", author="Bo", created_at="2026-03-20T10:00:00+00:00", namespace="birds")
    page.goto(f"{site.url}/#/time?ns=birds")
    page.get_by_text("Sunday, 30 November 2025 to Saturday, 2 May 2026, the newest 7 memories").wait_for()
    expect(page.locator(".dates span")).to_have_text(["30", "5", "1", "20", "31", "2"])
    # a bar takes 25 pixels, the name of a month 38: that of January begins 25 after November's, and has no room
    expect(page.get_by_role("group", name="Choose a month").get_by_role("button")).to_have_text(["Nov", "Mar", "May"])
    page.get_by_role("button", name="2026-03-20, 2 memories").hover()
    bar = page.locator(".facts")
    expect(bar).to_have_text("Friday, 20 March 2026Bo 1Ana 1")
    page.get_by_role("heading", name="Time").hover()
    expect(bar).to_contain_text("the newest 7 memories")
    page.get_by_role("button", name="2026-01-05, 1 memory").focus()
    expect(bar).to_have_text("Monday, 5 January 2026Ana 1")
    page.get_by_role("button", name="Mar 2026, 4 memories").press("Enter")
    page.get_by_role("button", name="Show 2026-03-01 to 2026-03-31").wait_for()
    page.get_by_role("button", name="2025, 1 memory", exact=True).click()
    page.get_by_role("button", name="Show 2025-11-30", exact=True).click()
    expect(page.locator(".rows tbody tr")).to_have_count(1)


BOXES = """(all) => all.map((one) => {
  const { bottom, height } = one.getBoundingClientRect();
  return [bottom, height];
})"""


def test_fields_choices_and_buttons_of_a_row_have_one_height(page: Any, site: Server) -> None:
    for view in ("recall", "browse", "graph"):
        page.goto(f"{site.url}/#/{view}?ns=team")
        page.get_by_role("heading", level=1, name=view.capitalize()).wait_for()
        rows: dict[float, set[float]] = {}
        fields = page.locator("main .ask").first.locator("input, select, button")
        for bottom, height in fields.evaluate_all(BOXES):  # at one moment: what comes above would move the others
            rows.setdefault(bottom, set()).add(height)
        assert [len(heights) for heights in rows.values()] == [1] * len(rows), view


def test_health_says_what_doctor_finds_and_what_mends_it(page: Any, mem: Semmem) -> None:
    mem.store.change_settings("team", {"weights.lexical": 50}, ())  # as earlier versions did
    page.get_by_role("link", name="Health", exact=True).click()
    page.get_by_role("heading", name="What doctor finds").wait_for()
    settled(page, "Nothing to mend")
    expect(page.locator(".findings .optional").filter(has_text="search settings")).to_contain_text(
        "weights.lexical is 50, and a namespace is now given a number from 0 to 5"
    )
    page.get_by_text(re.compile(r"^\d+ in order$")).click()
    expect(page.locator(".findings .good").filter(has_text=re.compile(r"^\W*vectors"))).to_contain_text(
        "6, made by hashing"
    )
    namespaces = page.get_by_role("row").filter(has=page.get_by_role("cell", name="namespaces", exact=True))
    expect(namespaces).to_contain_text(re.compile(r"namespaces[1-9]\d*[\d.]+ ms"))


def test_health_shows_a_fault_with_its_command(browser: Any, store_url: str) -> None:
    with semmem.connect(store_url, embedder="none") as mem:
        mem.remember("The tide is high at noon.", namespace="team")
    with semmem.connect(store_url, embedder="hashing") as mem:
        mem.remember("The harbour opens at nine.", namespace="team")
        with running(mem, owner=OWNER) as server, watched(browser) as page:
            page.goto(f"{server.url}/?token={server.sessions.invite()}#/health?ns=team")
            page.get_by_role("status").filter(has_text="1 to mend").wait_for()
            expect(page.locator(".findings .bad")).to_have_text(
                "✗ vectors the dense leg does not find 1 of the texts, which were stored without an embedder"
                "mend it with: semmem rebuild"
            )
            assert page.errors == []


def test_hostile_texts_are_shown_as_texts(page: Any, mem: Semmem) -> None:
    hostile = (
        '<img src=x onerror="document.title=1"><script>document.title=2</script> \u202egnp.exe ' + "long " * 200_000
    )
    mem.remember(hostile, id='<b>"id"', title="<i>title</i>\u202e", author="<u>who</u>", namespace="team")
    ask(page, "gnp exe onerror")
    expect(page.locator(".hit .title").first).to_have_text("<i>title</i>⟨202e⟩")
    page.locator(".hit .title").first.click()
    page.get_by_role("button", name="Show all").click()
    page.locator("dialog .text", has_text="⟨202e⟩gnp.exe").wait_for()
    assert page.locator("main img, main script, dialog img, dialog script, dialog b, dialog i, dialog u").count() == 0
    assert page.title() == "Recall · semmem"


def test_a_reader_sees_no_button_that_writes(browser: Any, mem: Semmem, tmp_path: Path) -> None:
    keys = Keys(tmp_path / "keys.json")
    _, text = keys.add("reader", namespaces=["team"])
    with running(mem, keys=keys) as server, watched(browser) as page:
        page.goto(server.url)
        sign_in(page, "semmem_00000000_" + "x" * 43)
        page.get_by_role("alert").filter(has_text="does not know that key").wait_for()
        sign_in(page, text)
        page.get_by_role("link", name="Browse", exact=True).click()
        page.locator(".rows .title").first.click()
        page.get_by_role("tab", name="history").wait_for()
        assert page.get_by_role("tab", name="edit").count() == 0
        assert (
            page.get_by_role("button", name="Forget").count()
            == page.get_by_role("button", name="New memory").count()
            == 0
        )
        page.keyboard.press("Escape")
        page.get_by_role("link", name="Health", exact=True).click()
        page.get_by_text("this needs the right admin").wait_for()


def test_a_link_that_was_used_says_what_to_do_and_a_server_that_went_says_so(browser: Any, mem: Semmem) -> None:
    with running(mem, owner=OWNER) as server, watched(browser) as page, watched(browser) as other:
        link = f"{server.url}/?token={server.sessions.invite()}#/recall?ns=team"
        page.goto(link)
        page.get_by_label("Question").wait_for()
        other.goto(link)
        other.get_by_text("its link was used already").wait_for()
        second = page.context.new_page()  # a second tab of the same browser needs no link
        second.goto(f"{server.url}/#/browse?ns=team")
        second.locator(".rows .title").first.wait_for()
        server.stop()
        until(lambda: refuses(server.url))
        page.get_by_label("Question").fill("tide")
        page.get_by_role("button", name="Recall", exact=True).click()
        page.get_by_role("alert").filter(has_text="The server does not answer").wait_for()


def test_a_session_that_ended_says_so_and_what_was_typed_is_saved_by_the_next(
    browser: Any, mem: Semmem, tmp_path: Path
) -> None:
    keys = Keys(tmp_path / "keys.json")
    _, text = keys.add("first", right="write")
    with running(mem, keys=keys) as server, watched(browser) as page:
        edit_tide(page, server, text, "High tide is at one on Fridays.")
        keys.remove("first")
        page.get_by_role("button", name="Save").click()
        over = page.get_by_role("dialog", name="Your session has ended")
        over.get_by_text("Nothing you typed is lost").wait_for()
        assert barriers(page) == []
        over.get_by_role("button", name="Go on").click()  # no other tab has begun a session
        sign_in(over, keys.add("first", right="write")[1])
        over.wait_for(state="hidden")
        page.get_by_role("button", name="Save").click()
        page.get_by_role("status").filter(has_text="tide is changed").wait_for()
    assert mem.get("tide", namespace="team").text == "High tide is at one on Fridays."


# Answers that refuse the list of namespaces wait until they are let go.
HELD = """() => {
  const [real, held] = [window.fetch, new Promise((go) => { window.release = go; })];
  window.fetch = async (...asked) => {
    const answer = await real(...asked);
    if (asked[0] === "/v1/namespaces" && answer.status === 401) await held;
    return answer;
  };
}"""


def test_what_was_refused_in_the_last_session_is_asked_again_if_the_answer_comes_in_the_next(
    browser: Any, mem: Semmem, tmp_path: Path
) -> None:
    keys = Keys(tmp_path / "keys.json")
    _, text = keys.add("first")
    with running(mem, keys=keys) as server, watched(browser) as page:
        page.goto(f"{server.url}/#/recall?ns=team&q=tide")
        sign_in(page, text)
        page.locator(".hit").first.wait_for()
        page.evaluate(HELD)
        keys.remove("first")
        page.evaluate("() => { import('/page/api.js').then(({ api }) => api.namespaces()); }")
        page.get_by_role("button", name="Recall", exact=True).click()
        over = page.get_by_role("dialog", name="Your session has ended")
        sign_in(over, keys.add("first")[1])
        over.wait_for(state="hidden")
        with page.expect_response(lambda answer: answer.url.endswith("/v1/namespaces") and answer.ok):
            page.evaluate("() => window.release()")
        expect(over).to_have_count(0)


def test_a_key_of_somebody_else_begins_a_new_page_and_neither_shows_nor_sends_what_the_first_person_typed(
    browser: Any, mem: Semmem, tmp_path: Path
) -> None:
    keys = Keys(tmp_path / "keys.json")
    _, text = keys.add("first", right="write")
    with running(mem, keys=keys) as server, watched(browser) as page:
        page.goto(f"{server.url}/#/recall?ns=team")
        sign_in(page, text)
        page.get_by_label("Question").fill("Who is to be dismissed?")
        keys.remove("first")
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.post_data or ""))
        page.get_by_role("button", name="Recall", exact=True).click()
        over = page.get_by_role("dialog", name="Your session has ended")
        over.get_by_label("Key").fill(keys.add("second")[1])
        asked.clear()
        over.get_by_role("button", name="Open").click()
        page.get_by_role("button", name="Sign out second").wait_for()
        expect(page.get_by_role("searchbox")).to_have_value("")
        assert ("dismissed" in page.url, [one for one in asked if "dismissed" in one]) == (False, [])


def test_what_a_page_of_one_person_sends_in_the_session_that_another_began_in_another_tab_is_refused(
    browser: Any, mem: Semmem, tmp_path: Path
) -> None:
    keys = Keys(tmp_path / "keys.json")
    _, text = keys.add("first", right="write")
    _, others = keys.add("second", right="write")
    with running(mem, keys=keys) as server, watched(browser) as page:
        edit_tide(page, server, text, "Written by the first.")
        tab = page.context.new_page()
        tab.goto(f"{server.url}/#/browse?ns=team")
        tab.get_by_role("button", name="Sign out first").click()
        sign_in(tab, others)
        tab.get_by_role("button", name="Sign out second").wait_for()
        page.get_by_role("button", name="Save").click()
        over = page.get_by_role("dialog", name="Your session has ended")
        over.get_by_text("somebody else has begun one in another tab").wait_for()
        assert mem.get("tide", namespace="team").text != "Written by the first."
        over.get_by_role("button", name="Go on").click()
        page.get_by_role("button", name="Sign out second").wait_for()  # a new page
        page.errors.clear()  # the browser itself notes the answer that refused


def test_a_session_of_explore_that_ended_goes_on_with_that_of_another_tab(
    browser: Any, site: Server, mem: Semmem, monkeypatch: pytest.MonkeyPatch
) -> None:
    with watched(browser) as page:
        page.goto(f"{site.url}/?token={site.sessions.invite()}#/recall?ns=team")
        page.get_by_label("Question").fill("When is high tide?")
        with monkeypatch.context() as patch:
            patch.setattr("semmem.interfaces.http.sessions.Sessions.LASTING_S", 0.0)
            page.get_by_role("button", name="Recall", exact=True).click()
            over = page.get_by_role("dialog", name="Your session has ended")
            over.get_by_text(f"semmem explore --port {site.url.rpartition(':')[2]}").wait_for()
        other = page.context.new_page()
        other.goto(f"{site.url}/?token={site.sessions.invite()}#/browse?ns=team")
        other.locator(".rows .title").first.wait_for()
        over.get_by_role("button", name="Go on").click()
        over.wait_for(state="hidden")
        page.locator(".hit").first.wait_for()  # the question is asked again by itself
        expect(page.get_by_role("searchbox")).to_have_value("When is high tide?")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 360])
def test_every_view_fits_its_window_and_axe_finds_no_barrier(
    browser: Any, site: Server, mem: Semmem, scheme: str, width: int
) -> None:
    mem.remember("The Kestrel listens on port 7000.", id="new-port", namespace="team")
    mem.link("new-port", "contradicts", "port", namespace="team")
    mem.link("tide", "supersedes", "harbour", namespace="team")
    with watched(browser, viewport={"width": width, "height": 740}, color_scheme=scheme) as page:

        def check(what: str) -> None:
            page.wait_for_load_state("networkidle")
            too_wide = page.evaluate(
                "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
            )
            assert too_wide <= 0, what
            assert barriers(page) == [], what

        page.goto(f"{site.url}/?token={site.sessions.invite()}#/recall?ns=team&q=harbour+tide")
        page.locator(".hit").first.wait_for()
        for view in VIEWS:
            page.goto(f"{site.url}/#/{view}?ns=team&q=harbour+tide&around=Kestrel")
            page.get_by_role("heading", level=1, name=view.capitalize()).wait_for()
            check(view)
        page.goto(f"{site.url}/#/recall?ns=team&q=harbour+tide")
        page.get_by_role("button", name="Why?").first.click()
        page.get_by_role("region", name="Why").get_by_role("table").wait_for()
        leg(page, "dense").get_by_label("weight as a number").fill("0")
        leg(page, "dense").locator(".badge.off").wait_for()
        check("an explanation")
        page.locator(".hit .title").first.click()
        for tab in ("memory", "edit", "history", "links"):
            page.get_by_role("tab", name=tab).click()
            check(tab)
        assert page.errors == []


def test_the_keyboard_alone_asks_opens_a_memory_and_comes_back(page: Any) -> None:
    expect(page.get_by_label("Question")).to_be_focused()
    page.keyboard.type(QUESTION)
    page.keyboard.press("Enter")
    page.locator(".hit").first.wait_for()
    for _ in range(30):
        page.keyboard.press("Tab")
        if page.evaluate("() => document.activeElement.classList.contains('title')"):
            break
    page.keyboard.press("Enter")
    page.get_by_role("dialog").wait_for()
    page.keyboard.press("Escape")
    page.get_by_role("dialog").wait_for(state="hidden")
    page.wait_for_function("() => document.activeElement.classList.contains('title')")
