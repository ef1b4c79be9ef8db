"""Recall memories: ask the legs side by side, fuse their rankings, fold copies and parts, and fetch the hits."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar, copy_context
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial, wraps
from math import isfinite
from typing import Any, ParamSpec, TypeVar

from semmem.embedders.binding import QuestionVectors
from semmem.legs import Absent
from semmem.model.errors import EmbedderReplaced, InvalidInput, LegFailed, SemmemError
from semmem.model.exchange import Head, Question, Ranking, Scope, Turn
from semmem.model.protocols import Embedder, Leg, Reranker
from semmem.model.recipe import Recipe, deep_enough
from semmem.model.store import Moved, Store
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
from semmem.read.question import Candidates as NameCandidates
from semmem.read.question import checked, heard, parse, spoken
from semmem.read.rankings import Asking, reason
from semmem.read.regimes import regime_of
from semmem.read.result import Recall
from semmem.read.steps import cut
from semmem.read.superseding import with_newer
from semmem.rerankers import load as load_reranker
from semmem.text.tokens import check_language

__all__ = ["Recaller"]

P = ParamSpec("P")
T = TypeVar("T")

_OURS = ("lexical", "dense", "graph")
_LAST = "graph"
"""The leg that starts from the results of other legs."""

_TRIES = 3
"""How often a recall is answered from memory at most, before it asks the database alone."""

_asked_first: ContextVar[bool] = ContextVar("asked_first", default=False)
"""Whether this recall asks the database for everything: then it asks for its scope without names."""


def _called(recipe: Recipe) -> set[str]:
    """Return the names of the legs to ask: those with a weight, and those that seed the graph leg."""
    return {*recipe.legs, *(recipe.graph.seeders if _LAST in recipe.legs else ())}


def _each(question: Question, change: Callable[[Question], Question]) -> Question:
    """Return the question with ``change`` applied to it and to its version for each namespace."""
    return replace(change(question), narrowed={n: change(one) for n, one in question.narrowed.items()})


def _in_its_own_context(work: Callable[P, T]) -> Callable[P, T]:
    """Run a recall and its legs in a context of their own, which fixes the state of the store that they read.

    A store may learn only afterwards that this state was outdated and raise Moved. Then the recall is repeated: a few
    times in the same way, and at last from the database alone, which cannot be outdated.
    """

    @wraps(work)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        for _ in range(_TRIES):
            with suppress(Moved):  # when repeated, the store checks its state first
                return copy_context().run(work, *args, **kwargs)
        last = copy_context()
        last.run(_asked_first.set, True)
        return last.run(work, *args, **kwargs)

    return run


class Recaller:
    """Connects a store with its legs and answers questions; holds no state of a call."""

    def __init__(
        self,
        store: Store,
        legs: Mapping[str, Leg],
        embedder: Callable[[], Embedder | str],
        language: str,
        renewed: Callable[[], bool] = lambda: False,
        explained_by: Store | None = None,
        load_reranker: Callable[[str], Reranker] = load_reranker,
    ) -> None:
        self._store = store
        self.load_reranker = load_reranker
        self._explained_by = store if explained_by is None else explained_by
        self._legs = legs
        self._language = self.language = language
        self._tailor = Tailor(legs)
        self._rerankers: dict[str, Reranker] = {}
        self._vectors = QuestionVectors(store, embedder, renewed)
        self._asking = Asking(store, self._vectors.renewed)

    def close(self) -> None:
        """Stop the threads; legs that still run finish by themselves."""
        self._asking.close()

    @_in_its_own_context
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
        now: datetime | None = None,
    ) -> Recall:
        """Answer one question; see Semmem.recall. With ``tailor`` the settings of the namespaces change the recipe."""
        started = time.perf_counter()
        text = checked(query, limit, offset, sort_by, min_confidence)
        if token_budget is not None:
            check_budget("token_budget", token_budget)
        window = Cut(limit, offset, sort_by, fold_parts, token_budget)
        timings: dict[str, float] = {}
        names = NameCandidates(text)
        scope = self._store.scope(namespaces, filters, exclude, None if _asked_first.get() else names)
        for namespace, language in scope.languages.items():
            check_language(namespace, language, self._language)
        scope = replace(scope, filters=filters, exclude=tuple(exclude))
        settings: Mapping[str, Any] = {}
        wrong: str | None = None
        if tailor and scope.settings is not None:
            recipe, settings, wrong = self._tailor.fit(recipe, namespaces, scope.settings)
        recipe = deep_enough(recipe, limit + offset)
        self._check_legs(recipe)
        kinds = scope.kinds
        if kinds is None:
            kinds = self._store.conversation_facts(namespaces, names)
        talks = heard(text, names, kinds, recipe)
        embedded = self._embedded(spoken(text, talks), recipe, vector, timings)
        question = parse(text, kinds, talks, recipe, self._language)
        if recipe.period_floor is not None:
            question = with_periods(question, now)
            recipe = used_by(recipe, question)
        candidates = self._accessed(self.candidates(question, scope, recipe, timings, vector, embedded), window)
        groups = cut(candidates, window)
        if len(groups) < limit + offset and (again := deeper(candidates)) is not None:
            candidates = self._accessed(self.candidates(candidates.question, scope, again, timings, vector), window)
            groups = cut(candidates, window)
        matched, is_exact = total(candidates, [fused.key for fused, _ in groups] if candidates.newer else ())
        if recipe.rerank is not None:
            candidates = self._reranked(candidates, window, text, timings)
            groups = cut(candidates, window)
        sure = confidence(candidates)
        floor = auto_floor(candidates) if min_confidence == "auto" else float(min_confidence)
        hits, left_out, withheld = hits_of(
            self._store, candidates, window, groups, self._language, withhold=sure < floor
        )
        self._store.confirm()  # an answer from memory is checked afterwards
        timings = {**timings, "total": time.perf_counter() - started}  # a copy: a late leg still writes to the old dict
        degraded = {**candidates.degraded, "settings": wrong} if wrong else candidates.degraded
        fields = (
            hits, matched, is_exact, degraded, candidates.regime, timings, sure, candidates, self._explained_by,
            window, settings,
        )  # fmt: skip
        return Recall(*fields, floor, withheld, self._language, left_out, scope_size=candidates.scope.size)

    def candidates(
        self,
        question: Question,
        scope: Scope,
        recipe: Recipe,
        timings: dict[str, float] | None = None,
        vector: Any = None,
        embedded: Callable[[Question], Question] | None = None,
    ) -> Candidates:
        """Ask the legs and fuse their rankings, without fetching texts.

        ``vector`` is the caller's vector of the question; it is used again where another embedder takes over meanwhile.
        ``embedded`` waits for the vector, if that is still being made, and puts it into the question.
        """
        timings = {} if timings is None else timings
        try:
            return self._candidates(question, scope, recipe, timings, embedded)
        except EmbedderReplaced:  # another embedder filled the store and this process has it: ask again with its vector
            texts = sorted({one.spoken for one in (question, *question.narrowed.values())})
            question = self._embedded(texts, recipe, vector, timings)(question)
            return self._candidates(question, scope, recipe, timings)

    def _candidates(
        self,
        question: Question,
        scope: Scope,
        recipe: Recipe,
        timings: dict[str, float],
        embedded: Callable[[Question], Question] | None = None,
    ) -> Candidates:
        called = _called(recipe)
        legs = {name: self._legs[name] for name in called.intersection(_OURS)}
        degraded = {name: leg.reason for name, leg in legs.items() if isinstance(leg, Absent)}
        called -= degraded.keys()
        begun = {}
        if embedded is not None:  # what needs no vector runs while the model does
            first = {
                n for n, leg in legs.items() if n in called and (n == _LAST or not getattr(leg, "reads_vector", 1))
            }
            first -= {*self._readers(recipe)[:1]}  # the model has the time of this leg
            begun = self._asking.begin(self._work(first, question, scope, recipe), degraded, timings)
            question, called = embedded(question), called - first
        begun |= self._asking.begin(self._work(called, question, scope, recipe), degraded, timings)
        answers = self._asking.answers(begun, recipe, degraded, timings)
        prepared = {"prepared": answers.pop(_LAST)} if _LAST in answers else {}
        degraded |= {part: why for ranking in answers.values() for part, why in ranking.degraded.items()}
        turns = {ord: turn for ranking in answers.values() for ord, turn in ranking.turns.items()}
        heads = self._heads(scope, answers.values(), {}, turns)
        rankings = {leg: settle(r, heads, recipe.depths.get(leg, 100)) for leg, r in answers.items()}
        regime = "unnamed"
        if _LAST in legs and _LAST not in degraded:
            lists = apart(question.narrowed, answers, heads, recipe)
            each = {n: replace(q, heads=lists[n]) for n, q in question.narrowed.items()}
            seeded = replace(question, heads=dict(rankings), narrowed=each)
            last = {_LAST: partial(self._search, _LAST, seeded, scope, recipe, **prepared)}
            for leg, ranking in self._asking.ask(last, recipe, degraded, timings).items():
                degraded |= ranking.degraded
                regime = ranking.regime or regime
                heads = self._heads(scope, [ranking], heads, turns)
                rankings[leg] = settle(ranking, heads, recipe.depths.get(leg, 100))
        regime = regime_of(regime, question, rankings)
        regime = regime if regime in recipe.regimes else recipe.regimes[-1]
        gathered = gather(question, scope, recipe, regime, rankings, heads, degraded)
        return with_newer(gathered, self._store) if scope.superseding else gathered

    def _accessed(self, candidates: Candidates, window: Cut) -> Candidates:
        """Return ``candidates`` with the times of last access where hits are sorted by them; asks the store once."""
        life = self._store.life
        if window.sort_by != "accessed" or life is None:
            return candidates
        ids: dict[str, set[str]] = {}
        for id, _, namespace in candidates.heads:
            ids.setdefault(namespace, set()).add(id)
        each = {namespace: life.accesses(namespace, of) for namespace, of in ids.items()}
        last = {(id, n): access.last.timestamp() for n, of in each.items() for id, access in of.items()}
        return replace(candidates, accessed=last)

    def _search(self, leg: str, question: Question, scope: Scope, recipe: Recipe, **prepared: Any) -> Ranking:
        ranking = self._legs[leg].search(question, scope, recipe, **prepared)
        if leg not in _OURS and (len(ranking.ords) != len(ranking.scores) or not all(map(isfinite, ranking.scores))):
            raise LegFailed(f"The leg {leg!r} must give each memory one score that is a finite number.")
        return ranking

    def _work(
        self, called: Collection[str], question: Question, scope: Scope, recipe: Recipe
    ) -> dict[str, Callable[[], Any]]:
        """Return what each of the legs ``called`` first does: it searches, or looks up the names in the question."""
        work: dict[str, Callable[[], Any]] = {
            name: partial(self._search, name, question, scope, recipe) for name in called if name != _LAST
        }
        prepare = getattr(self._legs[_LAST], "prepare", None) if _LAST in called else None
        if prepare is not None:
            work[_LAST] = partial(prepare, question, scope, recipe)
        return work

    def _embedded(
        self, texts: Sequence[str], recipe: Recipe, numbers: Any, timings: dict[str, float]
    ) -> Callable[[Question], Question]:
        """Begin to embed ``texts`` where a called leg reads their vectors; return what puts these into the question.

        Where a vector cannot be made, the legs that need it are degraded. ``numbers`` is used instead of all of them.
        Raises InvalidInput or EmbedderMismatch where it cannot be used.
        """
        if numbers is not None:
            vector = self._vectors.from_numbers(numbers)
            return lambda question: _each(question, lambda one: replace(one, vector=vector))
        readers = self._readers(recipe)
        if not readers:
            return lambda question: question

        def embed() -> dict[str, Any]:
            if not any(map(self._reads_vector, readers)):  # a leg registered by the program is loaded here
                return {}
            return {text: self._vectors.embedded(text) for text in texts}

        result = self._asking.once(readers[0], embed, recipe, timings)

        def embedded(question: Question) -> Question:
            try:
                vectors = result()
            except Exception as error:  # noqa: BLE001  # the dense leg raises it later; the others answer
                why = error
                return _each(question, lambda one: replace(one, vector=None, no_vector=why))
            return _each(question, lambda one: replace(one, vector=vectors.get(one.spoken), no_vector=None))

        return embedded

    def _readers(self, recipe: Recipe) -> list[str]:
        """Return the called legs that read the question's vector, or may: those that are not loaded yet."""
        return [name for name in sorted(_called(recipe)) if name not in _OURS or self._reads_vector(name)]

    def _reads_vector(self, name: str) -> bool:
        """Return whether a leg reads the question's vector; a leg that cannot be loaded reads none."""
        try:
            return bool(getattr(self._legs[name], "reads_vector", True))
        except SemmemError:
            return False

    def _check_legs(self, recipe: Recipe) -> None:
        """Raise InvalidInput for a leg of ``recipe`` that is not registered; a registered broken leg is degraded."""
        if unknown := [name for name in recipe.legs if name not in self._legs]:
            beginning = f"There is no leg named {unknown[0]!r}; choose one of {', '.join(self._legs)}."
            raise InvalidInput(f"{beginning} Add yours with register_leg, or install the package that brings it.")

    def _heads(
        self, scope: Scope, rankings: Any, heads: Mapping[int, Head], turns: Mapping[int, Turn]
    ) -> dict[int, Head]:
        """Return the heads of all ords of ``rankings``; the store is asked for those that no leg has read."""
        ords = {o for ranking in rankings for o in ranking.ords} - set(heads)
        at_hand = {o: turns[o].head for o in ords if o in turns}
        missing = sorted(ords - at_hand.keys())
        return {**heads, **at_hand, **(self._store.candidate_info(scope.namespaces, missing) if missing else {})}

    def _reranked(self, candidates: Candidates, window: Cut, query: str, timings: dict[str, float]) -> Candidates:
        """Let the recipe's reranker, if any, reorder the head of the list; where it fails, the fused order stays."""
        recipe = candidates.recipe
        if recipe.rerank is None or window.sort_by != "relevance":
            return candidates
        started = time.perf_counter()
        try:
            head = [fused for fused, _ in cut(candidates, window)[: recipe.rerank_depth]]
            shown = fetched(self._store, candidates, head)
            rows = [(fused, *shown[fused.key]) for fused in head if fused.key in shown]
            if recipe.rerank not in self._rerankers:
                self._rerankers[recipe.rerank] = self.load_reranker(recipe.rerank)
            reranker = self._rerankers[recipe.rerank]
            terms = reranker.rerank(
                query, [memory for _, memory, _ in rows], [fused.score for fused, _, _ in rows],
                passages=[passage.text for _, _, passage in rows], now=datetime.now(UTC),
            )  # fmt: skip
            return replace(
                candidates, reranked={fused.key: of_key for (fused, _, _), of_key in zip(rows, terms, strict=True)}
            )
        except Exception as error:  # noqa: BLE001  # the fused order is a complete answer
            return replace(candidates, degraded={**candidates.degraded, "rerank": reason(error)})
        finally:
            timings["rerank"] = time.perf_counter() - started
