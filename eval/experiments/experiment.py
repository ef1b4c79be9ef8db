"""Run one experiment: measure conditions on a corpus, compare them in pairs, judge, and write aggregates.

Every file with a text or with the result of a single question goes under ``private/`` of the output folder;
``result.json`` holds aggregate numbers only and is what an ADR may cite.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from eval import SCHEMA
from eval.baselines import BASELINES
from eval.datasets import Corpus, Query
from eval.experiments.conditions import Condition
from eval.experiments.evidence.provenance import role
from eval.experiments.fingerprint import ASKS, extracting, fingerprint
from eval.experiments.fusion import fused_places
from eval.experiments.lists import ask_all, asking, group_key, grouped, shallow
from eval.experiments.other_edges.dense_neighbours import over_vectors
from eval.experiments.other_edges.random_graph import rewired
from eval.experiments.probes import dropping_stage, live_witnesses
from eval.experiments.runner import dated, ingest, place, token_counts
from eval.experiments.vector_cache import KeptVectors
from eval.reports.cost import cost, environment
from eval.statistics.ceilings import ceilings
from eval.statistics.clusters import clusters, described
from eval.statistics.comparison import Comparison, ExperimentError, Lists, compare, cutoff
from eval.statistics.linkage import linkage
from eval.statistics.measures import Measured, Run, measure, write_qrels, write_run
from eval.statistics.preflight import preflight
from semmem.files import new_file
from semmem.model.errors import NotFound

__all__ = ["Experiment", "conduct", "fuse_all", "means", "write"]

DEEP = 100
SAMPLE = 20
_DETAILED = 12  # conditions of a long sweep get no ceilings and components of their own


@dataclass(slots=True)
class Experiment:
    """The outcome of an experiment: ``result`` holds aggregates, JSON-ready; the other fields are private.

    ``queries`` are the questions as they were asked, with their times.
    """

    result: dict[str, Any]
    runs: dict[str, Run] = field(default_factory=dict)
    measured: dict[str, Measured] = field(default_factory=dict)
    lists: dict[str, Lists] = field(default_factory=dict)
    comparisons: Sequence[Comparison] = ()
    queries: Sequence[Query] = ()

    @property
    def refused(self) -> list[str]:
        """Names of the comparisons whose headline was refused, by the first metric."""
        first = self.result["metrics"][0]
        judged = [c for c in self.result["comparisons"] if c["group"] == "headline" and c["metric"] == first]
        return [c["name"] for c in judged if "paired" not in c]


Progress = Callable[[str, int, int], None]


def conduct(
    mem: Any,
    corpus: Corpus,
    conditions: Sequence[Condition],
    comparisons: Sequence[Comparison],
    *,
    out: Path,
    metrics: Sequence[str] = ("R@10",),
    seed: int = 0,
    baselines: bool = True,
    command: str = "",
    line: str = "",
    progress: Progress | None = None,
    remember: bool = True,
) -> Experiment:
    """Run an experiment and write ``result.json`` and private files under ``out``.

    ``line`` is the command line of the experiment. Called again with the same ``out``, it resumes where it was
    interrupted. Raises ExperimentError when no question can be scored, a metric is not known, the folder belongs to
    another corpus, or the fast path and recall disagree.
    """
    say = progress or (lambda what, done, of: None)
    for metric in metrics:
        cutoff(metric)  # now, and not after everything was measured
    private = out / "private"
    private.mkdir(parents=True, exist_ok=True)
    _claim(private, corpus)
    if corpus.stored:
        corpus = present(mem, corpus)
    if not corpus.headline:
        raise ExperimentError(
            f"No question of {corpus.name} can be scored; give some of them gold_ids, and another stratum than "
            "unanswerable, abstention or adversarial."
        )
    report = None
    if remember:
        check_no_others(mem, corpus)
        total = len(corpus.memories)
        report = ingest(mem, corpus, progress=lambda r: say("remembering", r.read, total))
    corpus = replace(corpus, queries=dated(mem, corpus.queries))
    sizes = dict(corpus.sizes) if not corpus.stored else {n: mem.stats(namespace=n).memories for n in corpus.namespaces}
    smallest = min((n for n in sizes.values() if n), default=0)
    conditions = [replace(c, recipe=shallow(c.recipe, smallest)) for c in conditions]
    lists = _lists(mem, corpus, conditions, private, say)
    agreed_lists = check_fast_path(mem, corpus, conditions, lists)
    witnesses = live_witnesses(mem, {c.name: c for c in conditions}, comparisons, cutoff(metrics[0]), say)
    tokens = token_counts(corpus) if not corpus.stored else stored_tokens(mem, corpus)
    runs: dict[str, Run] = {}
    for number, condition in enumerate(conditions, start=1):
        if condition.recipe.rerank is None:
            runs[condition.name] = fuse_all(condition, corpus.queries, lists[condition.name])
        else:  # a reranker reads texts: only recall itself can run it
            runs[condition.name] = recall_all(mem, condition, corpus.queries)
        say("fusing", number, len(conditions))
    if baselines and not corpus.stored:
        runs |= {name: baseline(corpus, limit=DEEP, seed=seed) for name, baseline in BASELINES.items()}
    measured = {name: measure(corpus.queries, run, token_counts=tokens) for name, run in runs.items()}
    by_name = {c.name: c for c in conditions}
    with_gold = [q for q in corpus.queries if q.gold]
    headline = list(corpus.headline)
    # ceilings count memories: they mean nothing where any one memory of a session is enough
    detailed = len(by_name) <= _DETAILED and not any(q.any_of for q in headline)
    result: dict[str, Any] = {
        "schema": SCHEMA,
        "command": command,
        "line": line,
        "corpus": corpus.describe() | {"standing": role(corpus)},
        "draws": described(headline),
        "environment": environment(mem.stats().embedder, seed)
        | {"extractor": mem._here.extractor.name, "vectors": origin(mem, corpus)},
        "metrics": list(metrics),
        "seed": seed,
        "fast path agreed with recall on": agreed_lists,
        "conditions": {},
        "baselines": {n: means(m) for n, m in measured.items() if n not in by_name},
        "comparisons": [],
        "linkage": {} if corpus.stored else _cached_linkage(private / "linkage.json", corpus),
        # of the first group of lists: for later groups the vectors of the questions are cached
        "cost": cost(mem, report, list(lists[conditions[0].name].asked.values())),
    }
    for name, condition in by_name.items():
        own = lists[name].asked
        before = preflight(condition, with_gold, own, sizes)
        if not all(before["witness holds"].values()):
            raise ExperimentError(
                f"A witness of reach under {name} does not come out of the fusion as the arithmetic says; nothing of "
                "this run can be trusted. Please report the recipe."
            )
        result["conditions"][name] = {
            **condition.as_dict(),
            "preflight": before
            | {"live witness": [one for (holder, _), of in witnesses.items() if holder == name for one in of]},
            "measures": means(measured[name]),
            "components": componentmeans(condition, headline, lists[name]) if len(by_name) <= _DETAILED else [],
            "ceilings": {str(k): ceilings(condition.recipe, headline, own, k).as_dict() for k in (5, 10) if detailed},
        }
    dropped = {name: stage for name, of in witnesses.items() if (stage := dropping_stage(of))}
    result["comparisons"] = compare(
        comparisons, metrics, by_name, runs, measured, lists, with_gold, sizes, seed=seed, dropped=dropped
    )
    experiment = Experiment(result, runs, measured, lists, comparisons, corpus.queries)
    write(out, experiment, corpus)
    return experiment


def fuse_all(condition: Condition, queries: Sequence[Query], lists: Lists, *, limit: int = DEEP) -> Run:
    """Fuse the cached lists of every question as the condition says."""
    return {
        q.id: fused_places(
            condition.recipe,
            lists.asked[q.id],
            lists.found.get(q.namespace, {}),
            limit=limit,
            excluded=condition.excluded,
        ).places
        for q in queries
    }


def recall_all(mem: Any, condition: Condition, queries: Sequence[Query], *, limit: int = DEEP) -> Run:
    """Recall every question in full, for recipes with a step that reads texts; slower than ``fuse_all``."""
    return {
        q.id: [
            place(h) for h in mem.recall(q.text, namespace=q.namespace, limit=limit, recipe=condition.recipe, now=q.now)
        ]
        for q in queries
    }


def componentmeans(condition: Condition, queries: Sequence[Query], lists: Lists, places: int = 10) -> list[Any]:
    """Return the mean share of every component at each of the first places, over the questions."""
    sums: list[dict[str, float]] = [defaultdict(float) for _ in range(places)]
    for query in queries:
        fused = fused_places(
            condition.recipe,
            lists.asked[query.id],
            lists.found.get(query.namespace, {}),
            limit=places,
            excluded=condition.excluded,
        )
        for index, components in enumerate(fused.components):
            for name, share in components.items():
                sums[index][name] += share / len(queries)
    return [dict(sorted(shares.items())) for shares in sums if shares]


def check_fast_path(mem: Any, corpus: Corpus, conditions: Sequence[Condition], lists: Mapping[str, Lists]) -> int:
    """Compare recall with the fused lists on a sample of questions and conditions; return how many lists were equal.

    Raises ExperimentError at the first list that differs: then every number of the experiment is in doubt.
    """
    plain = [c for c in conditions if c.excluded is None and c.recipe.rerank is None and c.elsewhere == (None, False)]
    spread = plain if len(plain) <= 4 else [plain[0], plain[len(plain) // 2], plain[-2], plain[-1]]
    step = max(1, len(corpus.queries) // SAMPLE)
    equal_lists = 0
    for query in corpus.queries[::step][:SAMPLE]:
        for condition in spread:
            own = lists[condition.name]
            recall = mem.recall(query.text, namespace=query.namespace, limit=20, recipe=condition.recipe, now=query.now)
            if recall.degraded or own.asked[query.id].degraded:
                continue
            fused = fused_places(condition.recipe, own.asked[query.id], own.found.get(query.namespace, {}), limit=20)
            if tuple(place(hit) for hit in recall) != fused.places:
                raise ExperimentError(
                    f"Question {query.id} under {condition.name} comes out of recall in another order than out of the "
                    "cached lists; delete the output folder and run again, and report it if it stays."
                )
            equal_lists += 1
    return equal_lists


def present(mem: Any, corpus: Corpus) -> Corpus:
    """Return the corpus with the gold ids its store holds; others are dropped and counted, as in a published set.

    Raises ExperimentError when the store holds none of them: then the namespace or the store is another one.
    """
    absent, queries = 0, []
    for query in corpus.queries:
        gold = []
        for id in query.gold:
            try:
                mem.get(id, namespace=query.namespace)
            except NotFound:
                absent += 1
            else:
                gold.append(id)
        if gold or not query.gold:
            queries.append(replace(query, gold=tuple(gold)))
    if not any(q.gold for q in queries):
        raise ExperimentError("The store holds none of the gold memories; check --store and --namespace.")
    notes = dict(corpus.notes) | ({"gold ids that do not exist": absent} if absent else {})
    return replace(corpus, queries=tuple(queries), notes=notes)


def check_no_others(mem: Any, corpus: Corpus) -> None:
    """Raise ExperimentError where a namespace of the corpus holds other memories: they would be found too."""
    ids = {(str(memory["namespace"]), str(memory["id"])) for memory in corpus.memories}
    for namespace in () if corpus.stored else corpus.namespaces:
        if other := next((m.id for m in _stored(mem, namespace) if (namespace, m.id) not in ids), None):
            raise ExperimentError(
                f"The namespace {namespace!r} of the store holds memories that are not of {corpus.name}, such as "
                f"{other!r}; pass a store without them, or leave out --store."
            )


def stored_tokens(mem: Any, corpus: Corpus) -> dict[str, dict[str, int]]:
    """Return the tokens of every memory of the corpus's namespaces, read page by page from the store."""
    from eval.statistics.measures import tokens

    return {
        namespace: {m.id: tokens(f"{m.title or ''} {m.text}".strip()) for m in _stored(mem, namespace)}
        for namespace in corpus.namespaces
    }


def _stored(mem: Any, namespace: str) -> Iterator[Any]:
    cursor = None
    while True:
        page = mem.list(namespace=namespace, limit=1_000, cursor=cursor)
        yield from page
        cursor = page.cursor
        if cursor is None:
            return


def _lists(mem: Any, corpus: Corpus, conditions: Sequence[Condition], private: Path, say: Progress) -> dict[str, Lists]:
    graph_by = extracting(mem._here.extractor, mem._here.settings.language)
    made_by = f"{fingerprint(*ASKS)}-{_embedder_key(mem)}-{graph_by}"
    out: dict[str, Lists] = {}
    shared: dict[Any, Any] = {}
    for graph, neighbours in dict.fromkeys(c.elsewhere for c in conditions):
        recipes = {c.name: c.recipe for c in conditions if c.elsewhere == (graph, neighbours)}
        for names in grouped(recipes):
            members = [recipes[name] for name in names]
            wide = asking(members)
            # Lists belong to the code, the vectors and the graph that made them: another of these asks anew.
            about = "-".join([group_key(members[0]), *(f"{leg[0]}{wide.depths[leg]}" for leg in wide.legs), made_by])
            about += ("" if graph is None else f"-random{graph}") + "-neighbours" * neighbours
            with rewired(mem, graph), over_vectors(mem, neighbours):
                lists, memories = ask_all(
                    mem,
                    corpus.queries,
                    members,
                    cache=private / f"lists-{about}.jsonl",
                    progress=lambda done, of: say("asking", done, of),
                    shared=shared,
                )
            out |= {name: Lists(lists, memories) for name in names}
    return out


def _embedder_key(mem: Any) -> str:
    """Return a short hash of the embedder that makes the vectors of questions, or of why there is none."""
    embedder = mem._here.embedder_binding.embedder_or_reason()
    parts = [embedder] if isinstance(embedder, str) else [embedder.name, str(getattr(embedder, "fingerprint", ""))]
    return sha256("\0".join(parts).encode()).hexdigest()[:8]


def origin(mem: Any, corpus: Corpus) -> dict[str, Any]:
    """Return the origin of the vectors of a run: model, commits, sha256 of stored and of computed vectors."""
    embedder = mem._here.embedder_binding.embedder_or_reason()
    if isinstance(embedder, KeptVectors):
        made_by = embedder.origin()
    else:
        made_by = {"model": None if isinstance(embedder, str) else embedder.name}
    if mem.store.vectors is None or mem.store.url.startswith("sqlite:"):  # only PostgreSQL hashes what it holds
        return made_by
    total = sha256()
    for namespace, of in sorted(mem.hashes().items()):
        if namespace in corpus.namespaces:
            total.update(f"{namespace}\0{of.vector}\0".encode())
    return {"stored sha256": total.hexdigest()} | made_by


def means(measured: Measured) -> dict[str, dict[str, float]]:
    """Return the mean of every measure, by group of questions."""
    return {
        group: {"questions": len(measured.rows(group)), **{n: measured.mean(n, group) for n in measured.values}}
        for group in measured.groups
        if len(measured.rows(group))
    }


def _cached_linkage(cache: Path, corpus: Corpus) -> dict[str, Any]:
    """Return the linkage of the corpus from ``cache``, computed where there is none: it reads every text."""
    if not cache.is_file():
        _write_whole(cache, json.dumps({group: found.as_dict() for group, found in linkage(corpus).items()}))
    linkages: dict[str, Any] = json.loads(cache.read_text(encoding="utf-8"))
    return linkages


def _claim(private: Path, corpus: Corpus) -> None:
    mark = private / "corpus.sha256"
    if mark.is_file() and mark.read_text(encoding="utf-8") != corpus.sha256:
        raise ExperimentError(
            f"{private.parent} holds results of other questions or memories than {corpus.name} has now; give the new "
            f"results a folder of their own (--out {private.parent}-2), or delete the old folder."
        )
    _write_whole(mark, corpus.sha256)


def _write_whole(path: Path, text: str) -> None:
    """Write a file that has its name once all of it is there: whoever is interrupted leaves the former one."""
    with new_file(path, force=True) as out:
        out.write(text.encode())


def write(out: Path, experiment: Experiment, corpus: Corpus) -> None:
    """Write ``result.json`` and the private files of an experiment under ``out``."""
    private = out / "private"
    private.mkdir(parents=True, exist_ok=True)
    write_qrels(private / "qrels.txt", corpus.queries)
    for name, run in experiment.runs.items():
        safe = "".join(c if c.isalnum() or c in "-_.=" else "_" for c in name)
        write_run(private / f"{safe}.run", run, corpus.queries, name)
    asked = [{"id": q.id, "question": q.text, "namespace": q.namespace, "gold_ids": q.gold} for q in corpus.queries]
    _write_whole(private / "questions.jsonl", "".join(json.dumps(row) + "\n" for row in asked))
    labels = clusters(corpus.queries)
    lines = []
    for name, measured in experiment.measured.items():
        for i, id in enumerate(measured.ids):
            values = {m: float(v[i]) for m, v in measured.values.items()}
            row = {"condition": name, "id": id, "stratum": measured.strata[i], "apart": measured.apart[i]}
            lines.append(json.dumps(row | {"cluster": labels[id], **values}) + "\n")
    _write_whole(private / "per-question.jsonl", "".join(lines))
    text = json.dumps(experiment.result, indent=1, sort_keys=False, allow_nan=False)
    _write_whole(out / "result.json", text + "\n")  # last: it speaks of the files above
