"""The harness end to end, on the committed corpus, a real store and the embedder that needs no model."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import semmem
from eval.cli import app
from eval.commands import interface
from eval.datasets import Corpus, load
from eval.experiments import experiment
from eval.experiments.conditions import named, turned
from eval.experiments.experiment import check_fast_path, conduct
from eval.experiments.lists import ask_all
from eval.experiments.plan import of_ablation, of_run
from eval.experiments.runner import evaluate, ingest
from eval.statistics.comparison import ExperimentError
from semmem.model.recipe import RECIPES
from semmem.read import recall
from semmem.write import items
from tests.eval.small import small

TOY = Path(__file__).resolve().parents[2] / "eval" / "data" / "toy"
pytestmark = pytest.mark.filterwarnings("ignore:The leg:UserWarning")


def invoke(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    return done.exit_code, done.output


def ablate(store_url: str, out: Path, recipe: str, *more: str) -> tuple[int, str]:
    given = ("--data", str(TOY), "--store", store_url, "--embedder", "hashing", "--out", str(out), "--recipe", recipe)
    return invoke("ablate", "--leg", "graph", *given, "--metric", "R@10", "--no-controls", *more)


def headline(out: Path) -> dict[str, Any]:
    result = json.loads((out / "result.json").read_text(encoding="utf-8"))
    row: dict[str, Any] = next(c for c in result["comparisons"] if c["group"] == "headline")
    return row


@pytest.mark.slow
def test_the_default_recipe_is_judged_with_its_uncertainty(store_url: str, tmp_path: Path) -> None:
    code, output = ablate(store_url, tmp_path, "default", "--strict")
    assert code == 0
    at = headline(tmp_path)
    assert at["verdict"] in ("helps", "hurts", "not separated")
    assert at["paired"]["n"] == 34
    assert at["paired"]["low"] <= at["paired"]["delta"] <= at["paired"]["high"]
    assert at["paired"]["mde"] > 0
    assert at["turnover"]["leg-only"] > 0
    assert "On toy, the graph leg in default" in output


@pytest.mark.slow
@pytest.mark.parametrize(
    ("recipe", "verdict"),
    [
        ("seed", "ruled out"),
        pytest.param("default!graph", "not evaluable", marks=pytest.mark.slow),
        pytest.param("seed!graph", "not evaluable", marks=pytest.mark.slow),
    ],
)
def test_what_cannot_be_asked_is_refused_and_nothing_anywhere_looks_like_a_finding(
    store_url: str, tmp_path: Path, recipe: str, verdict: str
) -> None:
    code, output = ablate(store_url, tmp_path, recipe, "--strict")
    assert code == 3
    assert verdict in output
    assert headline(tmp_path)["verdict"] == verdict
    assert "paired" not in headline(tmp_path)
    if verdict == "ruled out":
        # what its votes change is told, under that name
        at = headline(tmp_path)["reranking"]
        assert f"by its votes: R@10 {at['delta']:+.3f}".replace("0.", ".") in output
        assert "By its votes it changes the share of the wanted memories among the first 10 (R@10) by " in output
        assert headline(tmp_path)["turnover"]["leg-only"] == 0
        return
    page = re.sub(r"<svg.*?</svg>|<style>.*?</style>", "", (tmp_path / "report.html").read_text(), flags=re.DOTALL)
    for text in (output, (tmp_path / "summary.md").read_text(encoding="utf-8"), page):
        assert not re.search(r"[+\u2212-]\d*\.\d", text), "a signed number stands beside a refusal"
        assert not re.search(r"\bp = |\bwon \d", text)
    assert ablate(store_url, tmp_path, recipe)[0] == 0  # without --strict a refusal is an answer, not a failure


@pytest.mark.slow
def test_the_reports_hold_no_text_of_the_corpus_and_no_address(store_url: str, tmp_path: Path) -> None:
    ablate(store_url, tmp_path, "default")
    corpus = load(TOY)
    texts = [m["text"] for m in corpus.memories] + [q.text for q in corpus.queries]
    for name in ("result.json", "summary.md", "report.html"):
        written = (tmp_path / name).read_text(encoding="utf-8")
        assert not [t for t in texts if t in written], name
        assert not re.search(r"(?:src|href)=\"(?!#)|https?://(?!www\.w3\.org/)|<script", written), name
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert page.index('class="verdict') < page.index("<svg")
    # the texts are kept for the owner, where git does not look
    assert any(t in (tmp_path / "private" / "moved.md").read_text(encoding="utf-8") for t in texts)


@pytest.mark.slow
def test_a_sweep_draws_its_zones_and_counts_leg_only_memories_from_the_bound_on(store_url: str, tmp_path: Path) -> None:
    given = ("--data", str(TOY), "--store", store_url, "--embedder", "hashing", "--out", str(tmp_path))
    code, _ = invoke("sweep", "graph.weight=.25,.5,.75,1,5", *given, "--recipe", "seed", "--metric", "R@10")
    assert code == 0
    result = json.loads((tmp_path / "result.json").read_text(encoding="utf-8"))
    points = [c for c in result["comparisons"] if c["group"] == "headline"]
    by_weight = {c["values"]["graph.weight"]: c for c in points}
    # the bound at k = 10: 61/70 = .871. Below it not one, whatever the data; above it some.
    assert [by_weight[w]["turnover"]["leg-only"] for w in (0.25, 0.5, 0.75)] == [0, 0, 0]
    assert by_weight[1.0]["turnover"]["leg-only"] > 0
    assert by_weight[5.0]["turnover"]["leg-only"] >= by_weight[1.0]["turnover"]["leg-only"]
    # the importances of the lists are known, and the best of them does not make up for what .75 lacks
    assert [by_weight[w]["verdict"] for w in (0.25, 0.5, 0.75)] == ["ruled out"] * 3
    assert by_weight[0.75]["reach"] == {"any": "boost-only"}
    assert re.search(r"keeps all \d+ finds of graph out of the first 10", by_weight[0.75]["sentence"])
    assert by_weight[1.0]["reach"] == {"any": "possible"}
    assert "<svg" in (tmp_path / "report.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_an_interrupted_run_takes_up_where_it_stopped(store_url: str, tmp_path: Path) -> None:
    corpus = load(TOY)
    conditions, comparisons = of_run(["hybrid", "lexical"])

    class Stop(Exception):
        pass

    def stop(what: str, done: int, of: int) -> None:
        if what == "asking" and done == 7:
            raise Stop

    with semmem.connect(store_url, embedder="hashing") as mem:
        with pytest.raises(Stop):
            conduct(mem, corpus, conditions, comparisons, out=tmp_path, progress=stop)
        (cache,) = (tmp_path / "private").glob("lists-*.jsonl")
        with cache.open("a", encoding="utf-8") as lines:
            lines.write('{"namespace": "toy", "asked": {"id": "tq')  # a line that the interrupt cut short
        steps: list[int] = []
        conduct(
            mem,
            corpus,
            conditions,
            comparisons,
            out=tmp_path,
            progress=lambda w, d, o: steps.append(d) if w == "asking" else None,
        )
        assert steps == list(range(8, 41))
        assert len(cache.read_text(encoding="utf-8").splitlines()) == 40


def test_a_run_that_ends_while_it_writes_leaves_the_former_result_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = load(small(tmp_path / "small"))
    out = tmp_path / "out"

    def files() -> dict[str, bytes]:
        return {name: (out / name).read_bytes() for name in ("result.json", "private/per-question.jsonl")}

    def fail(*_: object) -> None:
        raise KeyboardInterrupt

    with semmem.connect("sqlite::memory:", embedder="none") as mem:
        conduct(mem, corpus, *of_run(["lexical"]), out=out)
        former = files()
        monkeypatch.setattr(experiment, "write_run", fail)
        with pytest.raises(KeyboardInterrupt):
            conduct(mem, corpus, *of_run(["lexical", "graph"]), out=out)
        assert files() == former
        monkeypatch.undo()
        conduct(mem, corpus, *of_run(["lexical", "graph"]), out=out)
    assert files() != former
    assert list(out.rglob("*.part")) == []


def test_a_folder_belongs_to_one_corpus(store_url: str, tmp_path: Path) -> None:
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "corpus.sha256").write_text("of another", encoding="utf-8")
    with (
        semmem.connect(store_url, embedder="hashing") as mem,
        pytest.raises(ExperimentError, match="other questions or memories than toy has now"),
    ):
        conduct(mem, load(TOY), *of_ablation("default", ["graph"]), out=tmp_path)


def test_the_fast_path_is_recall_and_a_difference_stops_the_experiment(store_url: str) -> None:
    from eval.experiments.conditions import named
    from eval.experiments.experiment import shallow
    from eval.statistics.comparison import Lists

    corpus = load(TOY)
    with semmem.connect(store_url, embedder="hashing") as mem:
        ingest(mem, corpus)
        conditions = [named(n) for n in ("default-0.1", "seed", "hybrid", "lexical", "dense")]
        answers, memories = ask_all(mem, corpus.queries, [c.recipe for c in conditions])
        lists = {c.name: Lists(answers, memories) for c in conditions}
        assert check_fast_path(mem, corpus, conditions, lists) == 80  # 20 questions under 4 of the conditions
        assert shallow(RECIPES["seed"], 60).depths["dense"] == 15
        turned = {
            id: type(a)(a.id, a.regime, {leg: tuple(reversed(p)) for leg, p in a.legs.items()})
            for id, a in answers.items()
        }
        with pytest.raises(ExperimentError, match="in another order"):
            check_fast_path(mem, corpus, conditions, {c.name: Lists(turned, memories) for c in conditions})


@pytest.mark.slow
def test_the_history_replayed(store_url: str, tmp_path: Path) -> None:
    given = (
        "--data",
        str(TOY),
        "--store",
        store_url,
        "--embedder",
        "hashing",
        "--out",
        str(tmp_path),
        "--metric",
        "R@10",
    )
    assert invoke("history", *given)[0] == 0
    result = json.loads((tmp_path / "result.json").read_text(encoding="utf-8"))
    at = {c["name"]: c for c in result["comparisons"] if c["group"] == "headline"}
    first = at["1 seed, graph's list thrown away"]
    # zero difference on every question, and nobody may call that a finding
    assert first["turnover"] == {"leg-only": 0, "boosted in": 0, "demoted out": 0}
    assert first["verdict"] == "not evaluable"
    assert at["2 seed, exclusion lifted"]["verdict"] == "ruled out"
    assert at["2 seed, exclusion lifted"]["turnover"]["leg-only"] == 0
    swept = [at[f"3 seed, graph.weight={w}"]["turnover"]["leg-only"] for w in ("0.25", "0.5", "0.75", "1", "2", "5")]
    assert swept[:3] == [0, 0, 0]
    assert 0 < swept[3] <= swept[4] <= swept[5]
    assert "paired" in at["4 default, with reach"]


@pytest.mark.slow
def test_a_setting_that_can_do_nothing_on_these_data_is_refused(store_url: str, tmp_path: Path) -> None:
    given = (
        "--data",
        str(TOY),
        "--store",
        store_url,
        "--embedder",
        "hashing",
        "--out",
        str(tmp_path),
        "--metric",
        "R@10",
    )
    assert invoke("sweep", "dedup=0", *given)[0] == 0  # no two memories of the toy corpus are equal
    assert headline(tmp_path)["sentence"] == "not evaluable: no two memories are equal, so nothing folds"
    # importances differ in it, so the prior can be asked about
    assert invoke("sweep", "prior=0", *given)[0] == 0
    assert "paired" in headline(tmp_path)


def test_questions_about_a_store_of_ones_own(store_url: str, tmp_path: Path) -> None:
    rows = [
        {"id": "1", "question": "What does TB-2207 mean?", "gold_ids": ["t14", "gone"]},
        {"id": "2", "question": "Who runs support?", "gold_ids": ["gone too"]},
        {"question": "Which port is Lantern on?", "memory_id": "t13", "grade": 2},
    ]
    path = tmp_path / "mine.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    with semmem.connect(store_url, embedder="hashing") as mem:
        ingest(mem, load(TOY))
        corpus = load(path, namespace="toy")
        result = conduct(mem, corpus, *of_run(["hybrid", "lexical"]), out=tmp_path / "out").result
        assert result["corpus"]["notes"] == {"gold ids that do not exist": 2}
        assert result["conditions"]["lexical"]["measures"]["headline"]["questions"] == 2
        assert result["conditions"]["lexical"]["measures"]["headline"]["R@5"] == 1.0
        assert result["baselines"] == {}
        with pytest.raises(ExperimentError, match="none of the gold memories"):
            conduct(mem, load(path, namespace="elsewhere"), *of_run(["hybrid", "lexical"]), out=tmp_path / "other")


OLD, NEW = "heron heron heron", "heron and reed"
COMPOSITE = turned(named("lexical"), "rerank=composite")


def asked_on(day: datetime, mem: semmem.Semmem, corpus: Corpus, out: Path) -> tuple[float, float]:
    """Return nDCG@10 of the reranker ``composite`` in a run that begins on ``day``, and in ``evaluate``."""
    ahead = day - datetime.now(UTC)

    class OfDay(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Any:
            return datetime.now(tz) + ahead

    with pytest.MonkeyPatch.context() as clock:
        for module in (items, recall):
            clock.setattr(module, "datetime", OfDay)
        run = conduct(mem, corpus, [COMPOSITE], [], out=out, baselines=False).result
        short = evaluate(mem, corpus, COMPOSITE.recipe, show=False)
    measures = run["conditions"][COMPOSITE.name]["measures"]
    return measures["headline"]["nDCG@10"], short["headline"]["nDCG@10"]


DAYS = datetime(2026, 2, 1, tzinfo=UTC), datetime(2027, 2, 1, tzinfo=UTC)


@pytest.mark.parametrize("day", DAYS)
def test_questions_about_a_store_of_ones_own_have_the_same_numbers_on_any_day(day: datetime, tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text('{"id": "1", "question": "heron?", "gold_ids": ["new"]}\n', encoding="utf-8")
    with semmem.connect("sqlite::memory:", embedder="none") as mem:
        mem.remember(OLD, id="old", created_at="2026-01-01T00:00:00Z")
        mem.remember(NEW, id="new", created_at="2026-01-31T00:00:00Z")
        # asked when "new" was created. old: .8 + .05 / 2 + .075 = .9; new: .8 x 61/62 + .05 + .075 = .912. A year
        # later recency would be nothing, and "old" first: .875 against .862
        assert asked_on(day, mem, load(path), tmp_path / "out") == (1.0, 1.0)


@pytest.mark.parametrize("times", [(), ("2026-01-01T00:00:00Z", "2026-01-31T00:00:00Z")])
@pytest.mark.parametrize("day", DAYS)
def test_a_data_set_has_the_same_numbers_whatever_day_a_store_is_filled_with_it(
    day: datetime, times: tuple[str, ...], tmp_path: Path
) -> None:
    rows = [{"id": id, "text": text} for id, text in (("old", OLD), ("new", NEW))]
    for row, at in zip(rows, times, strict=False):
        row["created_at"] = at
    folder = tmp_path / "set"
    folder.mkdir()
    (folder / "documents.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    (folder / "queries.jsonl").write_text('{"id": "1", "question": "heron?", "gold_ids": ["new"]}\n', encoding="utf-8")
    with semmem.connect("sqlite::memory:", embedder="none") as mem:
        # of one age, "old" is first by relevance: 1 / log2(3)
        found = 1.0 if times else pytest.approx(0.63093, abs=1e-5)
        assert asked_on(day, mem, load(folder), tmp_path / "out") == (found, found)


def test_evaluate_is_the_short_way(store_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    corpus = load(TOY)
    with semmem.connect(store_url, embedder="hashing") as mem:
        ingest(mem, corpus)
        table = evaluate(mem, corpus, "lexical")
    assert table["headline"]["questions"] == 34
    assert table["exact"]["R@10"] == 1.0  # every code, port and version is a term of its memory
    assert "unanswerable" not in table
    assert "multi-hop" in capsys.readouterr().out


@pytest.mark.slow
def test_two_results_on_the_same_questions_are_paired(store_url: str, tmp_path: Path) -> None:
    given = ("--data", str(TOY), "--store", store_url, "--embedder", "hashing", "--out", str(tmp_path / "a"))
    assert invoke("run", "--recipes", "hybrid,lexical", *given)[0] == 0
    code, output = invoke("compare", str(tmp_path / "a"), f"{tmp_path / 'a'}:lexical", "--metric", "R@10", "--json")
    assert code == 0
    (row,) = json.loads(output)
    assert (row["a"], row["b"], row["paired"]["n"]) == ("hybrid", "lexical", 34)
    assert invoke("compare", str(tmp_path / "a"), f"{tmp_path / 'a'}:nose")[0] == 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("run", "--data", "no-such-set"), "There is no data set at no-such-set"),
        (("ablate", "--data", str(TOY), "--leg", "nose"), "has no leg 'nose'"),
        (("sweep", "nose=1", "--data", str(TOY)), "There is no setting 'nose'"),
        (("run", "--data", str(TOY), "--recipes", "nonesuch"), "There is no recipe named 'nonesuch'"),
        (("report", "no-such-folder"), "holds no result.json"),
        (("run", "--data", str(TOY), "--sha256", "0" * 64), "has the sha256"),
        (
            ("run", "--data", "{small}", "--store", "{store}", "--out", "{file}/out"),
            "/private: Not a directory; pass",
        ),
        (("run", "--data", "{small}", "--store", "{store}", "--metric", "foo@10"), "There is no metric 'foo@10'; take"),
        (("run", "--data", "{small}", "--store", "{store}", "--metric", "R@3"), "out of 1, 2, 5, 10, 20, such as R@10"),
        (("run", "--data", "{nothing}", "--store", "{store}"), "No question of nothing can be scored; give some of"),
    ],
)
def test_bad_input_is_one_sentence_and_code_two(arguments: tuple[str, ...], words: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    nothing = small(tmp_path / "nothing")
    (nothing / "queries.jsonl").write_text('{"id": "a", "question": "Why?", "gold_ids": []}\n', encoding="utf-8")
    places = {
        "small": small(tmp_path / "small"),
        "store": "sqlite::memory:",
        "file": tmp_path / "file",
        "nothing": nothing,
    }
    done = CliRunner().invoke(app, [argument.format(**places) for argument in arguments])
    assert done.exit_code == 2
    assert words in " ".join(done.stderr.split())
    assert "Traceback" not in done.output


def test_a_store_that_holds_other_memories_in_the_namespace_is_refused_before_anything_is_written(
    tmp_path: Path,
) -> None:
    corpus = load(small(tmp_path / "small"))
    with semmem.connect("sqlite::memory:", embedder="none") as mem:
        mem.remember("Mine.", id="of mine", namespace="small")
        with pytest.raises(ExperimentError, match=r"not of small, such as 'of mine'; pass a store without them"):
            conduct(mem, corpus, *of_run(["lexical"]), out=tmp_path / "out")
        assert mem.stats(namespace="small").memories == 1


def test_no_store_is_made_for_an_embedder_that_does_not_exist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interface, "RUNS", tmp_path / "runs")
    given = ("--data", str(small(tmp_path / "small")), "--embedder", "nosuch", "--out", str(tmp_path / "out"))
    done = CliRunner().invoke(app, ["run", *given])
    assert done.exit_code == 2
    assert "There is no embedder named 'nosuch'" in done.stderr
    assert not (tmp_path / "runs").exists()


def test_what_was_left_out_of_the_data_is_said_beside_the_verdict(tmp_path: Path) -> None:
    path = small(tmp_path / "small")
    with (path / "queries.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"id": "lost", "question": "Where?", "gold_ids": ["no-such-id"]}\n')
    given = ("--data", str(path), "--store", "sqlite::memory:", "--embedder", "none", "--out", str(tmp_path / "out"))
    done = CliRunner().invoke(app, ["run", "--recipes", "lexical", *given])
    assert done.exit_code == 0
    assert (
        "note: left out of small: gold ids that do not exist: 1, questions without any gold that exists: 1."
        in " ".join(done.stderr.split())
    )


def test_reach_needs_no_store_and_names_the_class_of_every_leg() -> None:
    code, output = invoke("reach", "seed", "--k", "10", "--json")
    assert code == 0
    legs = json.loads(output)["regimes"]["any"]["legs"]
    assert {leg: at["class"] for leg, at in legs.items()} == {
        "lexical": "possible",
        "dense": "possible",
        "graph": "boost-only",
    }
