"""What people see in a terminal: enough of a hit to judge it, and no table that cuts the words it is about."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from semmem.config import RECIPES, recipe
from semmem.errors import InvalidInput
from semmem.interfaces.cli import demo_recipes, show
from semmem.interfaces.cli.app import run
from semmem.interfaces.cli.door import Door
from semmem.interfaces.cli.terminal import terminal
from semmem.rank_cap import reach

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

    def program(*args: str) -> tuple[int, str, str]:
        code = run(list(args))
        out, err = capfd.readouterr()
        return code, out, err

    return program


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
        demo_recipes.show_compared(Door(), rows)
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
