"""Judge runs of any retriever like our own conditions: same statistics, same refusals, same report.

A run is a condition whose only leg returned that list. The lists of a system's legs are fused again with and without
each leg, by the formula that is given or modelled, so all that is known of our legs is computed of theirs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eval import SCHEMA
from eval.datasets import Corpus, Query, refuse_sealed
from eval.experiments.conditions import Condition, ablations
from eval.experiments.experiment import Experiment, fuse_all, means, write
from eval.experiments.lists import Asked, Found, Key
from eval.foreign.files import Ranked, digest, judgments, run
from eval.reports.cost import environment
from eval.statistics.ceilings import ceilings
from eval.statistics.clusters import described
from eval.statistics.comparison import Comparison, ExperimentError, Lists, compare, cutoff
from eval.statistics.measures import Run, measure
from eval.statistics.preflight import preflight
from eval.systems.model import Fusion, Leg
from eval.systems.verdicts import as_recipe
from semmem.model.leg_scores import BY_RANK
from semmem.model.recipe import Recipe

__all__ = ["FORMAT", "Files", "ablated", "compared", "plain_fusion"]

FORMAT = "runs"
"""What a report calls the form of a data set of which only runs and judgments are known."""
_REGIME = "any"


@dataclass(frozen=True, slots=True)
class Files:
    """What is compared: runs and legs by name, the judgments, and how many documents there were to find, if known."""

    runs: Mapping[str, Path]
    legs: Mapping[str, Path]
    qrels: Path
    documents: int | None = None


def compared(
    files: Files, metrics: Sequence[str], *, out: Path | None = None, seed: int = 0, line: str = ""
) -> Experiment:
    """Compare every run after the first with the first. Raises DatasetError and ExperimentError."""
    if len(files.runs) < 2:
        raise ExperimentError("One run compares with nothing; pass --run twice, or the lists of two legs with --leg.")
    lists, queries, notes = _read(files, files.runs)
    _answered(files.runs, lists, [query.id for query in queries if query.gold])
    _as_deep(files.runs, lists, max(map(cutoff, metrics)))
    # a run is the list of the only leg of its condition
    conditions = [Condition(name, _recipe(name, plain_fusion([name]), [name], lists)) for name in files.runs]
    first, *others = files.runs
    comparisons = [Comparison(f"{other} against {first}", first, other) for other in others]
    return _judged(files, conditions, comparisons, lists, queries, notes, metrics, out, seed)


def _answered(runs: Mapping[str, Path], lists: Lists, scored: Sequence[str]) -> None:
    """Raise ExperimentError for a run without a result for most of the ``scored`` questions."""
    for name, path in runs.items():
        answered = sum(bool(lists.asked[id].legs[name]) for id in scored)
        if 2 * answered < len(scored):
            raise ExperimentError(
                f"{path} has results for {answered} of {len(scored)} questions; a run that was cut short would be "
                "measured as a worse retriever, so write all, or judge those that were asked."
            )


def _as_deep(names: Collection[str], lists: Lists, k: int) -> None:
    """Raise ExperimentError where a run was cut off before ``k``, and another one goes on."""
    lengths = {name: [len(asked.legs[name]) for asked in lists.asked.values() if asked.legs[name]] for name in names}
    deepest = max(max(of) for of in lengths.values())
    for name, of in lengths.items():
        end = sorted(of)[9 * len(of) // 10]  # a few that go on do not hide an end
        alike = 2 * of.count(end) >= len(of) and 2 * len(of) >= len(lists.asked)  # a leg that finds few has no end
        if alike and end < min(k, deepest):
            raise ExperimentError(
                f"Most lists of {name} end at {end}, and others go on, so a cut-off of {k} would compare their "
                f"lengths; write all runs at least {k} deep, or choose metrics up to @{end}."
            )


def ablated(
    files: Files, fusion: Fusion, metrics: Sequence[str], *, out: Path | None = None, seed: int = 0, line: str = ""
) -> Experiment:
    """Compare the fusion of the legs' lists with itself without each leg.

    Where the system's own run is there too, the fusion must give its first places for most questions: else it is not
    this system that is measured. Raises DatasetError, ExperimentError, and InvalidInput for a fusion that is no sum.
    """
    if len(files.legs) < 2:
        raise ExperimentError("One leg alone has nothing to be compared with; pass --leg once for each leg.")
    lists, queries, notes = _read(files, files.legs)
    whole = Condition(fusion.name, _recipe(fusion.name, fusion, list(files.legs), lists))
    if whole.recipe.fusion not in BY_RANK:
        _with_scores(files.legs, lists, fusion.name)
    lesser = ablations(whole)
    comparisons = [
        Comparison(f"{leg} in {whole.name}", without.name, whole.name, leg)
        for leg, without in zip(files.legs, lesser, strict=True)
    ]
    for name, path in files.runs.items():
        notes |= _agreement(name, run(path), fuse_all(whole, queries, lists), queries, cutoff(metrics[0]), fusion.name)
    return _judged(files, [whole, *lesser], comparisons, lists, queries, notes, metrics, out, seed)


def _with_scores(names: Collection[str], lists: Lists, fusion: str) -> None:
    """Raise ExperimentError for a leg whose scores follow from the place alone, of a fusion that reads scores."""
    for name in names:
        of = [[score for _, score in asked.legs[name]] for asked in lists.asked.values() if asked.legs[name]]
        longest = max(of, key=len)
        if len(of) > 1 and all(scores == longest[: len(scores)] for scores in of):
            raise ExperimentError(
                f"The fusion {fusion!r} reads scores, and those of {name} are the same at each place for every "
                "question, so they are made of ranks; write the scores that the leg gave, or name a fusion of ranks."
            )


def plain_fusion(legs: Sequence[str], weights: Sequence[float] = (), constant: float = 60) -> Fusion:
    """Return reciprocal rank fusion of ``legs``. Raises ExperimentError for another number of weights than legs."""
    if weights and len(weights) != len(legs):
        raise ExperimentError(f"There are {len(legs)} legs and {len(weights)} weights; give one for each --leg.")
    own = tuple(Leg(name, weight) for name, weight in zip(legs, weights or [1.0] * len(legs), strict=True))
    return Fusion("rrf", "as asked", "rrf", "yours", own, "", "", "", constant=constant)


def _recipe(name: str, fusion: Fusion, legs: Sequence[str], lists: Lists) -> Recipe:
    named = [leg.name for leg in fusion.legs]
    if set(named) != set(legs):
        raise ExperimentError(
            f"The fusion {fusion.name!r} has the legs {', '.join(named)}, and the lists are of {', '.join(legs)}; "
            "name each list after its leg."
        )
    deepest = {leg: max(len(asked.legs.get(leg, ())) for asked in lists.asked.values()) for leg in legs}
    return as_recipe(fusion, {leg: max(deepest[leg], 1) for leg in named}, name=name)


def _read(files: Files, ranked_in: Mapping[str, Path]) -> tuple[Lists, list[Query], dict[str, int]]:
    """Return the lists by question, the questions with judgments, and what was left out of which file."""
    queries = judgments(files.qrels)
    refuse_sealed(files.qrels, queries)
    every: dict[str, Ranked] = {name: run(path) for name, path in ranked_in.items()}
    ids = {query.id for query in queries}
    notes: dict[str, int] = {}
    for name, ranked in every.items():
        if not ids & ranked.keys():
            raise ExperimentError(
                f"{ranked_in[name]} and {files.qrels} share no question: one has {next(iter(ranked))!r}, the other "
                f"{next(iter(queries)).id!r}; give both the same ids."
            )
        if unknown := len(ranked.keys() - ids):
            notes[f"questions of {name} without a judgment"] = unknown
        if absent := sum(bool(q.gold) and q.id not in ranked for q in queries):
            notes[f"questions without a result in {name}, which count 0"] = absent
    asked: dict[str, Asked] = {}
    found: dict[str, dict[Key, Found]] = {}
    for query in queries:
        legs = {name: [((id, 0), score) for id, score in ranked.get(query.id, ())] for name, ranked in every.items()}
        asked[query.id] = Asked(query.id, _REGIME, legs)
        found.setdefault(query.namespace, {}).update(
            {key: Found(0.5, key[0].encode().hex()) for pairs in legs.values() for key, _ in pairs}
        )
    most = max(len(of) for of in found.values())
    if files.documents is not None and files.documents < most:
        raise ExperimentError(f"--documents {files.documents} is fewer than the {most} documents of these results.")
    return Lists(asked, found), queries, notes


def _agreement(name: str, own: Ranked, fused: Run, queries: Sequence[Query], k: int, fusion: str) -> dict[str, int]:
    """Return for how many questions the fusion gives the first ``k`` that the system itself returned, as a set."""
    asked = [query for query in queries if query.id in own]
    alike = sum({id for id, _ in own[q.id][:k]} == set(fused[q.id][: min(k, len(own[q.id]))]) for q in asked)
    if 2 * alike < len(asked):
        raise ExperimentError(
            f"The fusion {fusion!r} of these lists gives the first {k} of {name} for {alike} of {len(asked)} "
            "questions, so it is not what the system does; name its --fusion, --weights and --constant, give the lists "
            "at their full depth, or compare its runs with and without the leg by --run."
        )
    return {f"of {len(asked)} questions, the fusion gives the first {k} of {name}": alike}


def _judged(
    files: Files,
    conditions: Sequence[Condition],
    comparisons: Sequence[Comparison],
    lists: Lists,
    queries: Sequence[Query],
    notes: Mapping[str, int],
    metrics: Sequence[str],
    out: Path | None,
    seed: int,
) -> Experiment:
    by_name = {condition.name: condition for condition in conditions}
    sizes = dict.fromkeys({query.namespace for query in queries}, files.documents) if files.documents else {}
    every = dict.fromkeys(by_name, lists)
    runs = {name: fuse_all(condition, queries, lists) for name, condition in by_name.items()}
    measured = {name: measure(queries, ranked) for name, ranked in runs.items()}
    with_gold = [query for query in queries if query.gold]
    corpus = Corpus(
        files.qrels.resolve().parent.name if files.qrels.stem == "queries" else files.qrels.stem,
        (),
        tuple(queries),
        notes,
        digest([files.qrels, *files.runs.values(), *files.legs.values()]),
        FORMAT,
    )
    if not corpus.headline:
        raise ExperimentError(f"No question of {files.qrels} can be scored; each is of a stratum that is kept apart.")
    result: dict[str, Any] = {
        "schema": SCHEMA,
        "command": "compare",
        "line": "",
        "corpus": corpus.describe() | {"memories": files.documents or 0},
        "draws": described(corpus.headline),
        "environment": environment(None, seed),
        "metrics": list(metrics),
        "seed": seed,
        "conditions": {},
        "baselines": {},
        "comparisons": compare(comparisons, metrics, by_name, runs, measured, every, with_gold, sizes, seed=seed),
        "linkage": {},
        "cost": {},
    }
    for name, condition in by_name.items():
        fused = len(condition.recipe.legs) > 1 or bool(files.legs)
        before = preflight(condition, with_gold, lists.asked, sizes)
        result["conditions"][name] = {
            **condition.as_dict(),
            "preflight": before if fused else before | {"regimes": {}, "legs": {}},
            "measures": means(measured[name]),
            "components": [],
            "ceilings": {
                str(k): ceilings(condition.recipe, corpus.headline, lists.asked, k).as_dict() for k in (5, 10) if fused
            },
        }
    experiment = Experiment(result, runs, measured, every, comparisons)
    if out is not None:
        write(out, experiment, corpus)
    return experiment
