"""The parts of the command line that need no store: reach, wrong input, streams, bars and filters."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from semmem.interfaces.cli import options, show
from semmem.interfaces.cli.app import app, run
from semmem.interfaces.cli.commands.write import items
from semmem.interfaces.cli.demo import data
from semmem.interfaces.cli.progress import line
from semmem.model.reports import counted


def call(capfd: pytest.CaptureFixture[str], *args: str) -> tuple[int, str, str]:
    """Run the program in this process; return its exit code and its two streams."""
    code = run(list(args))
    out, err = capfd.readouterr()
    return code, out, err


def test_the_seed_recipe_keeps_the_graph_boost_only_at_ten(capfd: pytest.CaptureFixture[str]) -> None:
    # .35/(60 + 1) = .0057 is below 1/(60 + 10) = .0143, the least that a tenth place of a full leg earns.
    code, out, err = call(capfd, "reach", "--recipe", "seed", "-k", "10", "--json")
    told = json.loads(out)
    graph = told["regimes"]["any"]["legs"]["graph"]
    assert (code, err) == (0, "")
    assert (told["recipe"], told["k"], graph["class"]) == ("seed", 10, "boost-only")
    assert graph["value"] == pytest.approx(0.35 / 61)
    assert graph["lower_bar"] == pytest.approx(1 / 70)


def test_every_leg_of_the_default_recipe_is_possible_or_better_at_five(capfd: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capfd, "reach", "--recipe", "default", "-k", "5", "--json", "--require", "possible")
    classes = {
        (regime, leg): of_leg["class"]
        for regime, legs in json.loads(out)["regimes"].items()
        for leg, of_leg in legs["legs"].items()
    }
    assert code == 0
    assert {leg for _, leg in classes} == {"lexical", "dense", "graph"}
    assert {regime for regime, _ in classes} == {"anchored", "described", "named", "unnamed"}
    assert set(classes.values()) <= {"possible", "guaranteed"}


def test_bare_numbers_need_no_recipe(capfd: pytest.CaptureFixture[str]) -> None:
    code, out, err = call(
        capfd, *["reach", "--weights", "1,1,.35", "--rank-constants", "60,60,60", "-k", "10", "--require", "possible"]
    )
    assert code == 3
    assert "boost-only" in out
    assert err == "graph is boost-only in regime any, short of possible at k = 10.\n"


def test_legs_can_be_named(capfd: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(
        capfd,
        *["reach", "--weights", "words=1,meaning=1", "--rank-constants", "words=60,meaning=60", "-k", "3", "--json"],
    )
    assert code == 0
    assert set(json.loads(out)["regimes"]["any"]["legs"]) == {"words", "meaning"}


def test_a_range_of_cosines_bounds_the_places_of_the_dense_leg_in_tm2c2(capfd: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capfd, "reach", "--recipe", "tm2c2", "--scores", "dense=0:1", "--json")
    found = json.loads(out)
    # the tenth dense place earns .5 x (0 + 1)/(1 + 1)
    assert (code, found["regimes"]["any"]["legs"]["lexical"]["lower_bar"]) == (0, 0.25)
    assert found["assumptions"][-1] == "scores within their ranges"


@pytest.mark.parametrize(
    ("args", "code", "sentence"),
    [
        ("reach --recipe nope", 2, "There is no recipe named 'nope'"),
        ("reach --weights 1,1", 2, "--weights and --rank-constants go together"),
        ("reach --weights 1,x --rank-constants 60,60", 2, "must be numbers such as 1,1,.35, not 'x'"),
        ("reach --weights 1,1 --rank-constants 60,60 --recipe seed", 2, "not both"),
        ("reach -k 0", 2, "k must be 1 or more"),
        ("reach --recipe convex --scores dense=0:1", 2, "in which a range of scores proves nothing"),
        ("reach --recipe tm2c2 --scores dense", 2, "--scores must be a leg and a range such as dense=0:1, not 'dense'"),
        ("reach --recipe tm2c2 --scores dense=1:0", 2, "must be a range such as 0:1, the least first, not 1.0:0.0"),
        ("reach --recipe tm2c2 --scores graph=0:1", 2, "asks no leg graph; give ranges for lexical, dense"),
        ("reach --weights 1,1 --rank-constants 60,60 --scores dense=0:1", 2, "--scores are for the fusion tm2c2"),
        ("forget", 2, "Say what to forget"),
        ("remember", 2, "Give one text to remember"),
        ("remember missing.md", 2, "There is no file missing.md"),
        ("remember text --metadata 7", 2, "--metadata must be a JSON object"),
        ("remember text --created-at yesterday", 2, "--created-at must be a time in ISO 8601"),
        ("remember text --vector 7", 2, "--vector must be a JSON list of numbers"),
        ("demo --data no-such-folder", 2, "There is no folder no-such-folder"),
        ("server status --url postgresql://localhost/x", 2, "This command works only on the embedded server"),
    ],
)
def test_wrong_input_is_one_sentence_on_standard_error(
    capfd: pytest.CaptureFixture[str], args: str, code: int, sentence: str
) -> None:
    got, out, err = call(capfd, *args.split())
    assert (got, out) == (code, "")
    assert sentence in err
    assert err.count("\n") == 1
    assert "Traceback" not in err


def test_a_paragraph_of_a_help_is_one_line_for_terminals_of_any_width() -> None:
    def helps(one: Any) -> Iterator[str]:
        yield one.help or ""
        for each in getattr(one, "commands", {}).values():
            yield from helps(each)

    found = list(helps(typer.main.get_command(app)))
    assert len(found) > 40
    assert [text for text in found if "\n" in text.replace("\n\n", "")] == []


def test_debug_shows_where_an_error_came_from(capfd: pytest.CaptureFixture[str]) -> None:
    code, out, err = call(capfd, "--debug", "reach", "--recipe", "nope")
    assert (code, out) == (2, "")
    assert err.startswith("Traceback")
    assert "There is no recipe named 'nope'" in err.splitlines()[-1]


def test_an_error_is_json_too_where_json_was_asked_for(capfd: pytest.CaptureFixture[str]) -> None:
    for args, kind, said in (
        (["reach", "--recipe", "nope", "--json"], "UnknownRecipe", "There is no recipe named 'nope'"),
        (["--json", "reach", "-k", "0"], "InvalidInput", "The cut-off k must be 1 or more"),
        (["reach", "--nope", "--json"], "InvalidInput", "No such option: --nope. See: semmem reach --help"),
    ):
        code, out, err = call(capfd, *args)
        told = json.loads(out)["error"]
        assert (code, told["class"]) == (2, kind)
        assert told["message"].startswith(said)
        assert err == f"{told['message']}\n"


def test_an_option_after_the_command_wins_over_the_same_before_it(capfd: pytest.CaptureFixture[str]) -> None:
    _, out, _ = call(capfd, *["--recipe", "seed", "reach", "--recipe", "hybrid", "--json"])
    assert json.loads(out)["recipe"] == "hybrid"
    _, out, _ = call(capfd, *["--recipe", "seed", "--json", "reach"])
    assert json.loads(out)["recipe"] == "seed"


@given(
    st.dictionaries(st.sampled_from(["lexical", "dense", "graph", "exact", "reserve", "else"]), st.floats(0, 1)),
    st.integers(6, 40),
)
def test_a_bar_is_as_wide_as_asked_and_shows_every_component(components: dict[str, float], width: int) -> None:
    full = sum(components.values()) or 1.0
    cells = show.bar(components, full, width).plain
    assert len(cells) == width
    assert cells.count("█") >= (components.get("lexical", 0) > 0)
    assert cells.count("▒") >= (components.get("graph", 0) > 0)
    if not any(components.values()):
        assert cells == "·" * width


def test_a_bar_shares_its_cells_like_the_score() -> None:
    # .25 + .5 of a full score of 1 over 8 cells: 2 lexical, 4 graph, 2 empty.
    assert show.bar({"lexical": 0.25, "graph": 0.5}, 1.0, 8).plain == "██▒▒▒▒··"


def test_long_text_is_cut_to_one_line() -> None:
    assert show.one_line("two\n  lines", 20) == "two lines"
    assert show.one_line("abcdefgh", 5) == "abcd…"


def test_progress_says_how_many_how_fast_and_how_long_still() -> None:
    # 30 of 90 in 2 s are 15/s; the other 60 take 4 s.
    assert line("notes.jsonl", 30, 90, 2.0) == "notes.jsonl: 30 of 90 memories, 15/s, 4 s left"
    assert line("embedding", 60, 90, 2.0, earlier=60) == "embedding: 60 of 90 memories yet, 2 s"
    assert line("embedding", 70, 90, 2.0, earlier=60) == "embedding: 70 of 90 memories, 5/s, 4 s left"
    assert line("notes.jsonl", 30, None, 2.0) == "notes.jsonl: 30 memories, 15/s"
    assert line("copy", 0, None, 12.3, "rows") == "copy: 0 rows yet, 12 s"


def test_filters_that_were_not_given_are_absent() -> None:
    assert options.narrowed(sessions=None, metadata=None, created_after=None, sensitive=False) is None
    given = {"sessions": ["a"], "authors": None, "tags": [], "metadata": '{"x": 1}', "created_after": "2026-01-02"}
    assert options.narrowed(**given, created_before=None, sensitive=False) == {
        "sessions": ["a"],
        "metadata": {"x": 1},
        "created_after": datetime(2026, 1, 2, tzinfo=UTC),
    }


def test_a_broken_line_of_a_file_is_passed_on_to_be_rejected_with_its_position(tmp_path: Path) -> None:
    file = tmp_path / "notes.jsonl"
    file.write_text('{"text": "one"}\n\nnot json\n{"text": "two"}\n', encoding="utf-8")
    assert list(items(file)) == [{"text": "one"}, "not json\n", {"text": "two"}]


def test_the_story_is_about_sixty_notes_that_remember_many_can_take() -> None:
    notes = data.story()
    assert 55 <= len(notes) <= 65
    assert len({note["id"] for note in notes}) == len(notes)
    assert {"id", "text", "author", "created_at"} <= set.intersection(*(set(note) for note in notes))
    assert {asked.answer for asked in data.QUESTIONS} <= {note["id"] for note in notes}


def test_the_answer_of_a_question_shares_no_word_with_it() -> None:
    from semmem.text.passages import terms

    notes = {note["id"]: note for note in data.story()}
    for asked in data.QUESTIONS:
        answer = notes[asked.answer or ""]
        assert set(terms(asked.query)).isdisjoint(terms(f"{answer.get('title', '')} {answer['text']}")), asked.query


def test_markdown_is_cut_at_its_headings_and_not_inside_code() -> None:
    text = "intro\n# One *thing*\nbody\n```\n# a comment\n```\n## Empty\n## [Two](x.md)\nmore\n"
    assert list(data.sections(text, "notes")) == [
        ("notes", "intro"),
        ("One thing", "body\n```\n# a comment\n```"),
        ("Two", "more"),
    ]


def test_a_folder_gives_its_texts_and_passes_over_what_is_hidden(tmp_path: Path) -> None:
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden" / "a.md").write_text("# A\nx", encoding="utf-8")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "b.txt").write_text("only text", encoding="utf-8")
    (tmp_path / "c.py").write_text("x = 1", encoding="utf-8")
    assert list(data.folder(tmp_path)) == [
        {"id": "sub/b.txt:1", "title": "b", "text": "only text", "source": "sub/b.txt", "position": 1}
    ]


def test_the_reach_of_bare_numbers_is_exact() -> None:
    from semmem.rank_cap import reach_of

    graph = reach_of([1, 1, 0.35], [60, 60, 60], 10).regimes["any"].legs["graph"]
    assert graph.value == Fraction(7, 20) / 61


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        ("remember text --metadata " + '{"a":' * 3000 + "1" + "}" * 3000, "nested"),
        ("recall text --metadata " + '{"a":' * 30000 + "1" + "}" * 30000, "--metadata is nested too deeply"),
        ("recall text --metadata " + '{"a":' * 200 + "1" + "}" * 200, "nested deeper than 100 levels"),
        ("get " + "x" * 140_000 + " --url sqlite::memory:", "There is no memory 'xxx"),
        ("explain 3\ud800 --query what --url sqlite::memory:", "id contains a NUL character or half a surrogate pair"),
        ("export no/such/folder/a.jsonl", "There is no folder no/such/folder; create it first."),
        ("export a.csv", "export writes JSON lines, not .csv; name the file otherwise, such as a.jsonl."),
        ("backup no/such/a.semmem", "There is no folder no/such; create it first."),
        ("restore no.semmem", "There is no file no.semmem."),
        ("graph --out no/such/a.html", "There is no folder no/such; create it first."),
        ("remember --file no.txt", "There is no file no.txt."),
        ("remember --file .", ". is a folder, not a file."),
        ("recall x --offset a", "Invalid value for '--offset': it must be a whole number. See: semmem recall --help"),
        ("remember x --importance a", "Invalid value for '--importance': it must be a number."),
        ("recall x --limit 0 --url sqlite::memory:", "limit must be from 1 to 1000, not 0."),
        ("stats --url notes.db", "Did you mean sqlite:notes.db?"),
        ("stats --url notes", "Did you mean embedded:notes?"),
    ],
    ids=lambda value: value[:40].encode("ascii", "replace").decode() if isinstance(value, str) else None,
)
def test_what_the_inside_would_say_is_told_in_our_words_and_shortly(
    capfd: pytest.CaptureFixture[str], args: str, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SEMMEM_URL", "sqlite::memory:")
    got, out, err = call(capfd, *args.split(" "))
    assert sentence in err
    assert (got, out) == (4 if args.startswith("get") else 2, "")
    assert err.count("\n") == 1
    assert len(err) < 1100
    assert "valid integer" not in err
    assert list(tmp_path.iterdir()) == []


def test_the_url_of_a_store_is_never_repeated_where_a_password_may_stand_in_it(
    capfd: pytest.CaptureFixture[str],
) -> None:
    for url in ("me:secret@host/db", "mysql://me:secret@host", "secret@host"):
        code, _, err = call(capfd, "stats", "--url", url)
        assert code == 2
        assert "secret" not in err


def test_a_number_stands_beside_its_noun() -> None:
    assert [counted(1, "memory"), counted(1200, "memory"), counted(0, "hit")] == [
        "1 memory",
        "1,200 memories",
        "0 hits",
    ]


def test_a_command_that_is_broken_off_ends_as_shells_expect(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken_off(*_: object, **__: object) -> None:
        raise typer.Abort

    monkeypatch.setattr("semmem.interfaces.cli.app.program", lambda _: broken_off)
    assert run(["reach"]) == 130  # 128 + SIGINT
