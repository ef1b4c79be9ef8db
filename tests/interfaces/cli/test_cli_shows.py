"""What people see in a terminal: enough of a hit to judge it, and no table that cuts the words it is about."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import semmem
from semmem.interfaces.cli import progress, show
from semmem.interfaces.cli.app import run
from semmem.interfaces.cli.context import CommandLine
from semmem.interfaces.cli.demo import show as demo_recipes
from semmem.interfaces.cli.terminal import terminal
from semmem.model.errors import InvalidInput
from semmem.model.looks import LOOKS
from semmem.model.recipe import RECIPES, recipe
from semmem.rank_cap import reach
from semmem.text.control_characters import encodable
from tests.interfaces.cli.program import in_process

TALK = "How lovely! Priya teaches physics in Leeds. She cycles there. It rains a lot. The school is old."


@pytest.fixture
def call(
    capfd: pytest.CaptureFixture[str], store_url: str, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[int, str, str]]:
    """Run the program on an empty store, in a terminal of 80 columns."""
    monkeypatch.setenv("SEMMEM_URL", store_url)
    monkeypatch.setenv("SEMMEM_EMBEDDER", "hashing")
    monkeypatch.setenv("COLUMNS", "80")
    terminal.cache_clear()
    return in_process(capfd)


@pytest.fixture(autouse=True)
def _afterwards() -> Any:
    yield
    terminal.cache_clear()


def test_an_excerpt_has_the_sentences_beside_the_match() -> None:
    # The sentence, then the two after it; of five the first and the last are left out.
    assert show.excerpt(TALK, "Priya teaches physics in Leeds.") == (
        "… Priya teaches physics in Leeds. She cycles there. It rains a lot. …"
    )
    assert show.excerpt(TALK, "How lovely!") == "How lovely! Priya teaches physics in Leeds. She cycles there. …"
    assert show.excerpt(TALK, "The school is old.") == "… She cycles there. It rains a lot. The school is old."
    assert show.excerpt("# Heron House\n\nThe key hangs\nbehind the radio.", "# Heron House") == (
        "# Heron House The key hangs behind the radio."
    )


def test_an_excerpt_takes_no_more_than_fits() -> None:
    # 16 + 1 + 30 characters are within 50, the third sentence is not.
    text = f"{'a' * 15}. {'b' * 29}. {'c' * 40}."
    assert show.excerpt(text, f"{'a' * 15}.", 50) == f"{'a' * 15}. {'b' * 29}. …"
    assert show.excerpt("no end " * 100, "no end no end", 50).startswith("no end no end")
    assert len(show.excerpt("no end " * 100, "no end no end", 50)) <= 52
    assert show.excerpt("", "") == ""


def test_a_hit_shows_what_is_around_the_match_and_all_of_it_on_demand(
    call: Callable[..., tuple[int, str, str]],
) -> None:
    call(
        "remember", f"{TALK} " + "Nothing else is said of her. " * 9 + "The end.", "--id", "a", "--title", "Priya " * 9
    )
    code, out, err = call("recall", "Where does Priya teach physics?", "-k", "1")
    assert (code, err) == (0, "")
    assert "confidence 0." in out.splitlines()[0]
    assert "Priya teaches physics in Leeds. She cycles there. It rains a lot." in " ".join(out.split())
    assert "The end." not in out
    assert max(map(len, out.splitlines())) <= 80
    _, whole, _ = call("recall", "Where does Priya teach physics?", "--full")
    assert "The end." in whole
    lines = whole.splitlines()
    text = lines[next(at for at, line in enumerate(lines) if "How lovely!" in line) : -1]
    assert len(text) > 3
    assert all(line.startswith("      ") for line in text)


def test_the_id_that_was_made_is_shown_whole_beside_a_long_title(call: Callable[..., tuple[int, str, str]]) -> None:
    memory = json.loads(call("remember", "The key is red.", "--title", "The colour of the key " * 3, "--json")[1])
    _, out, _ = call("recall", "key")
    assert memory["id"] in out
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize("name", [*RECIPES])
def test_reach_fits_eighty_columns_with_its_words_whole(call: Callable[..., tuple[int, str, str]], name: str) -> None:
    code, out, _ = call("reach", "--recipe", name)
    assert code == 0
    assert max(map(len, out.splitlines())) <= 80
    assert "…" not in out
    classes = {leg.class_ for of in reach(recipe(name), 10).regimes.values() for leg in of.legs.values()}
    assert all(word in out for word in classes)


def test_a_probe_fits_eighty_columns_with_its_words_whole(call: Callable[..., tuple[int, str, str]]) -> None:
    code, out, _ = call("probe", "--recipe", "seed")
    assert code == 3
    assert max(map(len, out.splitlines())) <= 80
    assert "…" not in out
    for word in ("boost-only", "fused", "lexical", "graph", "yes", "no"):
        assert word in out


def test_the_recipes_of_the_demonstration_fit_eighty_columns(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = []
    for name, plan in RECIPES.items():
        regimes = reach(plan, 10).regimes
        classes = {regime: {leg: its.class_ for leg, its in of.legs.items()} for regime, of in regimes.items()}
        row = {"recipe": name, "fusion": plan.fusion, "ranks": [1, 10, 3, None, 7], "answered": 4, "degraded": {}}
        rows.append({**row, "reach": classes})
    for columns, fusion in ((80, False), (100, True)):
        monkeypatch.setenv("COLUMNS", str(columns))
        terminal.cache_clear()
        demo_recipes.show_compared(CommandLine(), rows)
        out = capfd.readouterr().out
        assert max(map(len, out.splitlines())) <= columns
        assert "…" not in out
        assert ("fusion" in out) is fusion
        for word in ("rank-scaled", "boost-only", "guaranteed", "unnamed", "1 10 3 - 7"):
            assert word in out


def test_both_names_of_a_limit_are_taken(call: Callable[..., tuple[int, str, str]]) -> None:
    for option in ("-k", "--limit"):
        for args in (["reach"], ["recall", "x"], ["list"], ["concepts"]):
            assert call(*args, option, "3")[0] == 0, (args, option)


def test_a_misspelt_leg_is_told_what_was_meant() -> None:
    with pytest.raises(InvalidInput, match=r"The leg grahp has a weight but .* Did you mean graph\?"):
        recipe("default", weights={"grahp": 0.5})


@pytest.mark.slow
def test_the_doctor_shows_the_server_that_the_store_has_started(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    url = f"embedded:{tmp_path}/own"
    try:
        assert run(["doctor", "--url", url, "--json"]) == 0
        found = {one["what"]: one["detail"] for one in json.loads(capfd.readouterr().out)["findings"]}
        assert found["server"].startswith("Running: PostgreSQL")
        assert found["store"].startswith("0 memories in 0 namespaces")
    finally:
        run(["server", "stop", "--url", url])


def test_a_terminal_is_told_that_a_model_is_loaded_and_nobody_else(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    log = logging.getLogger("semmem.embedders.minilm")
    for is_terminal, said in ((True, "Loading the model x\n"), (False, "")):
        monkeypatch.setattr(sys.stderr, "isatty", lambda is_terminal=is_terminal: is_terminal)
        terminal.cache_clear()
        with CommandLine(url="sqlite::memory:").connect(create=True):
            log.info("Loading the model x")
        log.info("Loading the model y")
        assert capfd.readouterr().err == said


def test_a_terminal_shows_a_bar_before_anything_is_done(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr(progress, "_PATIENCE", 0.0)
    terminal.cache_clear()
    with progress.counting(CommandLine(), "[b]notes\x1b[2J.jsonl", 90) as advance:
        for _ in range(2_000):
            if "0/90" in (shown := capfd.readouterr().err):
                break
            time.sleep(0.05)
        advance(30)
    assert "0/90" in shown
    assert "[b]notes\\x1b[2J.jsonl" in shown


@pytest.mark.slow
def test_a_recall_in_a_terminal_says_that_it_loads_the_model(store_url: str) -> None:
    pytest.importorskip("onnxruntime", reason="the dense leg needs: pip install 'semmem[minilm]'")
    import pty

    with semmem.connect(store_url, embedder="minilm") as mem:
        mem.remember("The key is red.")
    ours, its = pty.openpty()
    environment = {**os.environ, "SEMMEM_URL": store_url, "TERM": "dumb"}
    command = [sys.executable, "-m", "semmem", "recall", "key", "--json"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=its) as program:
        os.close(its)
        said = os.read(ours, 1000).decode()
        out, _ = program.communicate(timeout=100)
    assert said.startswith("Loading the model all-MiniLM-L6-v2")
    assert json.loads(out)["total"] == 1


def test_every_component_has_a_sign_of_its_own_also_in_ascii() -> None:
    signs = [look.sign for look in LOOKS.values()]
    assert len(set(signs)) == len(signs)
    plain = [encodable(sign, "ascii") for sign in signs]
    assert len(set(plain)) == len(plain)


def test_a_recall_explains_only_the_signs_that_it_shows(call: Callable[..., tuple[int, str, str]]) -> None:
    call("remember", "The key is red.")
    lines = call("recall", "key", "--recipe", "lexical")[1].splitlines()
    assert lines[0].startswith("1 hit of 1 memory found")
    assert lines[1].strip() == "██ lexical"


def test_terms_of_a_reranker_share_one_sign_that_is_explained() -> None:
    assert show.legend({"importance", "relevance", "recency"}).plain == "◆◆ importance   ▪▪ recency, relevance"


def test_counts_and_sizes_say_what_they_count(call: Callable[..., tuple[int, str, str]]) -> None:
    call("remember", "The key is red.")
    lines = [line.strip() for line in call("stats")[1].splitlines()]
    assert "pending  1: maintain merges them" in lines
    assert "parts  0" in lines
    assert [show.size(count) for count in (512, 35_133, 2**20, 3 * 2**30)] == [
        "0 KiB",
        "34 KiB",
        "1.0 MiB",
        "3,072.0 MiB",
    ]


def test_counts_of_a_large_store_are_about_right_unless_it_is_asked_to_count_exactly(
    call: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    call("remember", "Ada Lovelace met Mary Somerville in Turin.", "--title", "Ada Lovelace")
    monkeypatch.setattr("semmem.stores.postgres.store._COUNTED", 0)
    about = [line.split()[0] for line in call("stats")[1].splitlines() if "about " in line]
    assert about == ["concepts", "mentions"]
    assert json.loads(call("stats", "--json")[1])["estimated"] == ["concepts", "mentions"]
    for exactly in ("--exact", "--verify"):
        assert "about " not in call("stats", exactly)[1]
        assert json.loads(call("stats", exactly, "--json")[1])["estimated"] == []


def test_a_recall_and_the_counts_are_drawn_into_a_new_svg_file(
    call: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    call("remember", "The key is red.", "--id", "a", "--namespace", "team")
    hits, counts = tmp_path / "hits.svg", tmp_path / "counts.svg"
    code, _, err = call("recall", "key", "--namespace", "team", "--plot", str(hits))
    assert (code, f"The picture is in {hits}." in err) == (0, True)
    assert ">1. a</text>" in hits.read_text(encoding="utf-8")
    assert call("stats", "--plot", str(counts))[0] == 0
    assert ">team</text>" in counts.read_text(encoding="utf-8")
    assert "exists already" in call("recall", "key", "--plot", str(hits))[2]
    code, _, err = call("stats", "--plot", "counts.png")
    assert (code, err) == (2, "--plot writes SVG; give a file whose name ends in .svg, not 'counts.png'.\n")


def test_the_help_has_every_command_below_a_heading(call: Callable[..., tuple[int, str, str]]) -> None:
    out = call("--help")[1]
    headings = [line.strip("╭─╮ ") for line in out.splitlines() if line.startswith("╭")]
    assert headings[:3] == ["Options", "Start", "Memories"]
    assert sorted(headings[3:]) == ["Agents and servers", "Import and export", "The graph, and proofs", "The store"]


def test_get_prints_metadata_and_tags_as_json(call: Callable[..., tuple[int, str, str]]) -> None:
    call("remember", "Tea.", "--id", "a", "--metadata", '{"hot": true, "sugar": null}', "--tags", "drink")
    out = call("get", "a")[1]
    assert '   metadata  {"hot": true, "sugar": null}' in out.splitlines()
    assert '       tags  ["drink"]' in out.splitlines()


def test_the_title_is_not_said_again_in_the_text_of_a_hit(call: Callable[..., tuple[int, str, str]]) -> None:
    call("remember", "# Heron House\n\nThe key hangs behind the radio.", "--id", "a", "--title", "Heron House")
    out = call("recall", "key of Heron House")[1]
    assert out.count("Heron House") == 1
    assert "      The key hangs behind the radio." in out.splitlines()


def test_progress_without_a_known_total_shows_the_count_alone() -> None:
    assert [progress._done(*of) for of in ((0, None), (1200, None), (5, 3000))] == ["0", "1,200", "5/3,000"]


def test_a_command_that_is_shown_names_each_namespace_but_the_default_alone() -> None:
    assert show.namespace_options(["default"]) == ""
    assert show.namespace_options(["two words"]) == " --namespace 'two words'"
    assert show.namespace_options(["default", "work"]) == " --namespace default --namespace work"


def test_what_holds_until_a_time_to_come_shows_no_end(call: Callable[..., tuple[int, str, str]]) -> None:
    assert call("remember", "The heron nests in the reeds.", "--id", "a", "--valid-to", "2126-01-31")[0] == 0
    code, out, _ = call("recall", "Where does the heron nest?")
    assert (code, "heron" in out, "held until" in out) == (0, True, False)
