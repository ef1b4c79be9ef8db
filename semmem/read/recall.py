"""Recall memories: ask the legs side by side, fuse their rankings, fold copies and parts, and fetch the hits."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from math import isfinite
from operator import index
from typing import Any

from semmem.embedders.binding import QuestionVectors
from semmem.embedders.fitted import FittedCurve, kept
from semmem.legs import Legs
from semmem.model.errors import EmbedderReplaced, LegFailed
from semmem.model.exchange import CandidateMetadata, Question, Ranking, Scope, Turn
from semmem.model.failure import reason
from semmem.model.process.fair_semaphore import FairSemaphore
from semmem.model.protocols import Embedder, Reranker
from semmem.model.recipe import Recipe, deep_enough
from semmem.model.store import Moved, Snapshot, SnapshotSource, Store
from semmem.model.types import Filters, MinConfidence, SortBy
from semmem.read.candidates import (
    Candidates,
    Cut,
    apart,
    auto_floor,
    confidence,
    deeper,
    gather,
    settle,
    total,
)
from semmem.read.context import check_budget
from semmem.read.hits import fetched, hits_of
from semmem.read.overrides import Tailor
from semmem.read.periods import used_by, with_periods
from semmem.read.question import NamePlaces, as_conversational, checked, parse, to_embed
from semmem.read.rankings import Asking, Begun
from semmem.read.recall_plan import RecallPlan, any_reads_vector, plan_of
from semmem.read.regimes import regime_of
from semmem.read.result import StoreRecall
from semmem.read.steps import cut, page
from semmem.read.superseding import with_newer
from semmem.read.tracing import observed_search
from semmem.rerankers import load as load_reranker
from semmem.text.tokens import check_language

__all__ = ["Recaller"]


_NO_ROW_ID = 2**63
"""The first number that is no row id, because columns have 64 bits."""
_AGAIN = 5
"""How often a recall is answered again because a memory was changed while it was being read."""
_COMPUTING = FairSemaphore(2, patience_s=5.0)
"""The recalls of a process that compute at a time: more would take the interpreter from each other, and from writers.

See adr/0120 and 0124.
"""


def _each(question: Question, change: Callable[[Question], Question]) -> Question:
    """Return the question with ``change`` applied to it and to its version for each namespace."""
    return replace(change(question), narrowed={n: change(one) for n, one in question.narrowed.items()})


@dataclass(frozen=True, slots=True)
class _Asked:
    """One question as it was put, checked: what is the same for each snapshot from which it is answered.

    ``text`` is the query, ``names`` are its runs of words that may name an author, and ``started`` is when it came.
    """

    text: str
    names: NamePlaces
    recipe: Recipe
    window: Cut
    vector: Any
    min_confidence: MinConfidence
    tailor: bool
    now: datetime | None
    started: float


class Recaller:
    """Connects the snapshots of a store with its legs and answers questions; holds no state of a call.

    ``source`` makes the snapshots, by default the store itself.
    """

    def __init__(
        self,
        store: Store,
        legs: Legs,
        embedder: Callable[[], Embedder | str],
        language: str,
        renewed: Callable[[], bool] = lambda: False,
        source: SnapshotSource | None = None,
        load_reranker: Callable[[str], Reranker] = load_reranker,
    ) -> None:
        self._store = store
        self._source = store if source is None else source
        self._load_reranker = load_reranker
        self._legs = legs
        self.language = language
        self._tailor = Tailor(legs)
        self._rerankers: dict[str, Reranker] = {}
        self._vectors = QuestionVectors(store, embedder, renewed)
        self._asking = Asking(self._source, self._vectors.renewed)

    def close(self) -> None:
        """Stop the threads; legs that still run finish by themselves."""
        self._asking.close()

    def recall(
        self,
        query: str,
        namespaces: tuple[str, ...],
        recipe: Recipe,
        *,
        limit: int = 10,
        offset: int = 0,
        filters: Filters,
        exclude: Sequence[str] = (),
        sort_by: SortBy = "relevance",
        vector: Any = None,
        fold_parts: bool = True,
        min_confidence: MinConfidence = 0.0,
        token_budget: int | None = None,
        tailor: bool = False,
        at: datetime | None = None,
        now: datetime | None = None,
    ) -> StoreRecall:
        """Answer one question; see Semmem.recall. With ``tailor`` the settings of the namespaces change the recipe.

        A snapshot from memory may turn out to be outdated once the hits are read. Then the recall begins again, with a
        snapshot that is checked before it is read. It is also answered again where a memory that a leg found, or
        the row ids of its scope, were changed meanwhile.
        """
        started = time.perf_counter()
        text = checked(query, limit, offset, sort_by, min_confidence)
        if token_budget is not None:
            check_budget("token_budget", token_budget)
        window = Cut(limit, offset, sort_by, fold_parts, token_budget)
        asked = _Asked(
            text, NamePlaces(text, self.language), recipe, window, vector, min_confidence, tailor, now, started
        )
        snapshot = partial(self._source.snapshot, tuple(namespaces), filters, exclude, asked.names, at)
        try:
            used = snapshot()
            answer, whole = self._answer(asked, used)
        except Moved:
            used = snapshot(checked=True)
            answer, whole = self._answer(asked, used)
        for _ in range(_AGAIN):
            if whole or _are_alike((newer := snapshot(checked=True)).scope, used.scope):
                break
            used = newer
            answer, whole = self._answer(asked, used)
        return answer

    def _answer(self, asked: _Asked, snapshot: Snapshot) -> tuple[StoreRecall, bool]:
        """Answer one question from a snapshot; say whether nothing that a leg found, or its scope, changed meanwhile.

        What is gone may have been forgotten, or changed: then it is stored again, and only another snapshot has it.
        Raises Moved where the snapshot is outdated.
        """
        recipe, window = asked.recipe, asked.window
        timings: dict[str, float] = {}
        scope = snapshot.scope
        for namespace, language in scope.languages.items():
            check_language(namespace, language, self.language)
        settings: Mapping[str, Any] = {}
        wrong: str | None = None
        if asked.tailor and scope.settings is not None:
            recipe, settings, wrong = self._tailor.fit(recipe, scope.namespaces, scope.settings)
        plan = plan_of(deep_enough(recipe, window.limit + window.offset), self._legs)
        kinds = scope.kinds or {}
        conversational_queries = as_conversational(asked.text, asked.names, kinds, plan.recipe, self.language)
        embedded = self._embedded(to_embed(asked.text, conversational_queries), plan, asked.vector, timings)
        question = parse(asked.text, kinds, conversational_queries, plan.recipe, self.language)
        if plan.recipe.period_floor is not None:
            question = with_periods(question, asked.now)
            plan = plan.by(used_by(plan.recipe, question))
        found = self._asked(question, snapshot, plan, timings, asked.vector, embedded)
        candidates = _accessed(found, snapshot, window)
        groups = cut(candidates, window)
        if len(groups) < window.limit + window.offset and (again := deeper(candidates)) is not None:
            found = self._asked(candidates.question, snapshot, plan.by(again), timings, asked.vector)
            candidates = _accessed(found, snapshot, window)
            groups = cut(candidates, window)
        matched, is_exact = total(candidates, [fused.key for fused, _ in groups] if candidates.newer else ())
        if plan.recipe.reranker_in(candidates.regime) is not None:
            candidates = self._reranked(candidates, snapshot, asked, timings)
            groups = cut(candidates, window)
        sure = confidence(candidates)
        least = asked.min_confidence
        floor = auto_floor(candidates) if least == "auto" else float(least)
        hits, left_out, withheld = hits_of(snapshot, candidates, window, groups, self.language, withhold=sure < floor)
        snapshot.confirm()  # where no memory was read for a hit
        all_read = not candidates.vanished and len(hits) + len(left_out) + withheld == len(page(groups, window))
        whole = all_read and snapshot.scope_holds()
        spent = time.perf_counter() - asked.started
        timings = {**timings, "total": spent}  # a copy: a late leg still writes to the old dict
        degraded = {**candidates.degraded, "settings": wrong} if wrong else candidates.degraded
        answer = StoreRecall(
            hits=hits,
            total=matched,
            total_is_exact=is_exact,
            degraded=degraded,
            regime=candidates.regime,
            timings=timings,
            confidence=sure,
            cut=window,
            settings=settings,
            min_confidence=floor,
            withheld=withheld,
            left_out=left_out,
            scope_size=scope.searched,
            _candidates=candidates,
            _store=self._store,
            _snapshot=snapshot.stored,
            _language=self.language,
        )
        return answer, whole

    def candidates(self, recall: StoreRecall, recipe: Recipe) -> Candidates:
        """Ask the legs the question of an earlier recall again, by ``recipe``, without fetching texts."""
        return self._asked(recall.candidates.question, recall._snapshot, plan_of(recipe, self._legs), {})

    def _asked(
        self,
        question: Question,
        snapshot: Snapshot,
        plan: RecallPlan,
        timings: dict[str, float],
        vector: Any = None,
        embedded: Callable[[Question], Question] | None = None,
    ) -> Candidates:
        """Ask the legs and fuse their rankings, without fetching texts.

        ``vector`` is the caller's vector of the question; it is used again where another embedder takes over meanwhile.
        ``embedded`` waits for the vector, if that is still being made, and puts it into the question.
        """
        try:
            return self._candidates(question, snapshot, plan, timings, embedded)
        except EmbedderReplaced:  # another embedder filled the store and this process has it: ask again with its vector
            texts = sorted({one.to_embed for one in (question, *question.narrowed.values())})
            question = self._embedded(texts, plan, vector, timings)(question)
            return self._candidates(question, snapshot, plan, timings)

    def _candidates(
        self,
        question: Question,
        snapshot: Snapshot,
        plan: RecallPlan,
        timings: dict[str, float],
        embedded: Callable[[Question], Question] | None = None,
    ) -> Candidates:
        degraded = dict(plan.absent)
        at_once = plan.at_once if snapshot.in_memory and not question.phrases else frozenset()  # phrases are in texts
        called = {*plan.legs, *([plan.last] if plan.last else [])}
        place = _COMPUTING.place if called <= at_once else nullcontext
        begun: dict[str, Begun[Any]] = {}
        if embedded is not None:  # what needs no vector runs while the model does
            with place():
                work = self._work(plan.early, plan, question, snapshot)
                begun = self._asking.begin(work, degraded, timings, at_once)
            question, called = embedded(question), called - plan.early
        with place():
            return self._fused(question, snapshot, plan, called, begun, at_once, degraded, timings)

    def _fused(
        self,
        question: Question,
        snapshot: Snapshot,
        plan: RecallPlan,
        called: Collection[str],
        begun: dict[str, Begun[Any]],
        at_once: Collection[str],
        degraded: dict[str, str],
        timings: dict[str, float],
    ) -> Candidates:
        """Ask the legs ``called``, then the one that follows, and fuse what they and those ``begun`` answer."""
        recipe = plan.recipe
        work = self._work(called, plan, question, snapshot)
        begun |= self._asking.begin(work, degraded, timings, at_once)
        answers = self._asking.answers(begun, recipe, degraded, timings)
        prepared = answers.pop(plan.last, None) if plan.last else None
        degraded |= {part: why for ranking in answers.values() for part, why in ranking.degraded.items()}
        turns = {row_id: turn for ranking in answers.values() for row_id, turn in ranking.turns.items()}
        metadata, whole = _metadata(snapshot, answers.values(), {}, turns)
        rankings = {leg: settle(r, metadata, recipe.depths.get(leg, 100)) for leg, r in answers.items()}
        regime = "unnamed"
        if plan.last is not None and plan.last not in degraded:
            lists = apart(question.narrowed, answers, metadata, recipe)
            each = {n: replace(q, rankings=lists[n]) for n, q in question.narrowed.items()}
            seeded = replace(question, rankings=dict(rankings), narrowed=each, prepared=prepared)
            last = {plan.last: partial(self._search, plan.last, seeded, snapshot, recipe)}
            for leg, ranking in self._asking.ask(last, recipe, degraded, timings, at_once).items():
                degraded |= ranking.degraded
                regime = ranking.regime or regime
                metadata, is_whole = _metadata(snapshot, [ranking], metadata, turns)
                whole = whole and is_whole
                rankings[leg] = settle(ranking, metadata, recipe.depths.get(leg, 100))
        regime = regime_of(regime, question, rankings, snapshot.scope.searched)
        regime = regime if regime in (regimes := recipe.regimes) else regimes[-1]
        gathered = gather(
            question,
            snapshot.scope,
            recipe,
            regime,
            rankings,
            metadata,
            degraded,
            vanished=not whole,
            fitted=_fitted(question.vector),
        )
        return with_newer(gathered, snapshot) if snapshot.scope.superseding else gathered

    def _search(self, name: str, question: Question, snapshot: Snapshot, recipe: Recipe) -> Ranking:
        def search() -> Ranking:
            ranking = self._legs[name].search(question, snapshot, recipe)  # a leg of the user's is loaded here
            if not isinstance(ranking, Ranking):
                raise LegFailed(f"The leg {name!r} must return a Ranking, not {type(ranking).__name__}.")
            if len(ranking.row_ids) != len(ranking.scores) or not all(map(isfinite, ranking.scores)):
                raise LegFailed(f"The leg {name!r} must give each memory one score that is a finite number.")
            if not _are_row_ids(ranking.row_ids):
                raise LegFailed(f"The leg {name!r} must name memories by their row ids, which are whole numbers.")
            return ranking

        return observed_search(name, search)

    def _work(
        self, called: Collection[str], plan: RecallPlan, question: Question, snapshot: Snapshot
    ) -> dict[str, Callable[[], Any]]:
        """Return what each of the legs ``called`` first does: it searches, or prepares if it follows the others."""
        return {
            name: partial(self._legs[name].prepare, question, snapshot, plan.recipe)
            if name == plan.last
            else partial(self._search, name, question, snapshot, plan.recipe)
            for name in called
        }

    def _embedded(
        self, texts: Sequence[str], plan: RecallPlan, numbers: Any, timings: dict[str, float]
    ) -> Callable[[Question], Question]:
        """Begin to embed ``texts`` where a called leg reads their vectors; return what puts these into the question.

        Where a vector cannot be made, the legs that need it are degraded. ``numbers`` is used instead of all of them.
        Raises InvalidInput or EmbedderMismatch where it cannot be used.
        """
        if numbers is not None:
            vector = self._vectors.from_numbers(numbers)
            return lambda question: _each(question, lambda one: replace(one, vector=vector))
        if not plan.readers:
            return lambda question: question

        def embed() -> dict[str, Any]:
            if not any_reads_vector(plan, self._legs):
                return {}
            return {text: self._vectors.embedded(text) for text in texts}

        result = self._asking.once(plan.readers[0], embed, plan.recipe, timings)

        def embedded(question: Question) -> Question:
            try:
                vectors = result()
            except Exception as error:  # noqa: BLE001  # the dense leg raises it later; the others answer
                why = error
                return _each(question, lambda one: replace(one, vector=None, no_vector=why))
            return _each(question, lambda one: replace(one, vector=vectors.get(one.to_embed), no_vector=None))

        return embedded

    def _reranked(
        self,
        candidates: Candidates,
        snapshot: Snapshot,
        asked: _Asked,
        timings: dict[str, float],
    ) -> Candidates:
        """Let the recipe's reranker, if any, reorder the head of the list; where it fails, the fused order stays."""
        recipe, window, now = candidates.recipe, asked.window, asked.now
        name = recipe.reranker_in(candidates.regime)
        if name is None or window.sort_by != "relevance":
            return candidates
        started = time.perf_counter()
        try:
            head = [fused for fused, _ in cut(candidates, window)[: recipe.rerank_depth]]
            shown = fetched(snapshot, candidates, head)
            rows = [(fused, *shown[fused.key]) for fused in head if fused.key in shown]
            if name not in self._rerankers:
                self._rerankers[name] = self._load_reranker(name)
            reranker = self._rerankers[name]
            terms = reranker.rerank(
                asked.text,
                [memory for _, memory, _ in rows],
                [fused.score for fused, _, _ in rows],
                passages=[passage.text for _, _, passage in rows],
                now=datetime.now(UTC) if now is None else now,
            )
            return replace(
                candidates, reranked={fused.key: of_key for (fused, _, _), of_key in zip(rows, terms, strict=True)}
            )
        except Moved:
            raise
        except Exception as error:  # noqa: BLE001  # the fused order is a complete answer
            return replace(candidates, degraded={**candidates.degraded, "rerank": reason(error)})
        finally:
            timings["rerank"] = time.perf_counter() - started


def _are_alike(one: Scope, other: Scope) -> bool:
    """Return whether two scopes of the same question are of the same states, and name the same row ids."""
    return one.states == other.states and one.names_row_ids_of(other)


def _are_row_ids(row_ids: Collection[Any]) -> bool:
    """Return whether a store can look all of these up; an unknown one it does not find."""
    try:
        numbers = list(map(index, row_ids))
    except TypeError:
        return False
    return not numbers or -_NO_ROW_ID < min(numbers) <= max(numbers) < _NO_ROW_ID


def _fitted(vector: Any) -> FittedCurve | None:
    """Return the curve of confidence that was fitted on this machine to the embedder of ``vector``."""
    from semmem.model.store.encoded import vector_embedder

    by = vector_embedder(vector)
    return None if by is None else kept(by["name"], by["fingerprint"])


def _metadata(
    snapshot: Snapshot,
    rankings: Collection[Ranking],
    metadata: Mapping[int, CandidateMetadata],
    turns: Mapping[int, Turn],
) -> tuple[dict[int, CandidateMetadata], bool]:
    """Return the metadata of all row ids of ``rankings``, and whether each has some.

    The snapshot is asked for those that no leg has read.
    """
    row_ids = set[int]().union(*(ranking.row_ids for ranking in rankings)).difference(metadata)
    at_hand = {o: turns[o].candidate for o in row_ids if o in turns}
    missing = sorted(row_ids.difference(at_hand))
    asked = snapshot.metadata(missing) if missing else {}
    return {**metadata, **at_hand, **asked}, len(asked) == len(missing)


def _accessed(candidates: Candidates, snapshot: Snapshot, window: Cut) -> Candidates:
    """Return ``candidates`` with the times of last access where hits are sorted by them; asks once a namespace."""
    if window.sort_by != "accessed":
        return candidates
    ids: dict[str, set[str]] = {}
    for id, _, namespace in candidates.metadata:
        ids.setdefault(namespace, set()).add(id)
    each = {namespace: snapshot.accesses(namespace, of) for namespace, of in ids.items()}
    last = {(id, n): access.last.timestamp() for n, of in each.items() for id, access in of.items()}
    return replace(candidates, accessed=last)
