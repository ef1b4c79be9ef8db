"""The read pipeline: legs side by side, each within its scope and time, then fusion, folding and the hits."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from semmem.embedders.binding import QuestionVectors
from semmem.fusion import Fused
from semmem.legs.conversation import takes_turns
from semmem.model.errors import EmbedderReplaced, InvalidInput
from semmem.model.exchange import Head, Kinds, Question, Scope, Talk, Turn
from semmem.model.protocols import Embedder, Leg, Reranker
from semmem.model.recipe import Recipe, deep_enough
from semmem.model.store import Store
from semmem.model.types import Filters, Hit, LegRank, Memory, Passage, SortBy
from semmem.read.candidates import Candidates, Cut, Kept, Key, alone, confidence, deeper, gather, settle, total
from semmem.read.overrides import Tailor
from semmem.read.question import candidates as name_candidates
from semmem.read.question import checked, listen
from semmem.read.rankings import Asking, reason
from semmem.read.result import Recall
from semmem.read.steps import cut, page
from semmem.rerankers import load as load_reranker
from semmem.text.passages import passages, phrases, snippet, terms

__all__ = ["Recaller"]


class Recaller:
    """Wires a store and its legs; keeps no state of a call."""

    def __init__(
        self,
        store: Store,
        legs: Mapping[str, Leg],
        embedder: Callable[[], Embedder | str],
        language: str,
        renewed: Callable[[], bool] = lambda: False,
    ) -> None:
        self._store = store
        self._legs = legs
        self._language = self.language = language
        self._tailor = Tailor(legs)
        self._rerankers: dict[str, Reranker] = {}
        self._vectors = QuestionVectors(store, embedder, renewed)
        self._asking = Asking(store, legs, self._vectors.renewed)

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
        min_confidence: float = 0.0,
        tailor: bool = False,
    ) -> Recall:
        """Answer one question; see Semmem.recall. ``tailor`` lets the settings of the namespaces change the recipe."""
        started = time.perf_counter()
        text = checked(query, limit, offset, sort_by, min_confidence)
        how = Cut(limit, offset, sort_by, fold_parts)
        timings: dict[str, float] = {}
        scope = self._store.scope(namespaces, filters, exclude, name_candidates(text))
        scope = replace(scope, filters=filters, exclude=tuple(exclude))
        settings: Mapping[str, Any] = {}
        wrong: str | None = None
        if tailor and scope.settings is not None:
            recipe, settings, wrong = self._tailor.fit(recipe, namespaces, scope.settings)
        found = self.candidates(text, scope, deep_enough(recipe, limit + offset), vector, timings)
        kept = cut(found, how)
        if len(kept) < limit + offset and (again := deeper(found)) is not None:
            found = self.candidates(text, scope, again, vector, timings)
            kept = cut(found, how)
        matched, is_exact = total(found)
        if recipe.rerank is not None:
            found = self._reranked(found, how, text, timings)
            kept = cut(found, how)
        sure = confidence(found)
        shown = page(kept, how)
        withheld = len(shown) if sure < min_confidence else 0
        hits = () if withheld else self._hits(found, how, shown, terms(text, self._language))
        timings = {**timings, "total": time.perf_counter() - started}  # a leg out of time still writes to the old one
        bad = {**found.degraded, "settings": wrong} if wrong else found.degraded
        known = (hits, matched, is_exact, bad, found.regime, timings, sure, found, self._store, how, settings)
        return Recall(*known, min_confidence, withheld, self._language)

    def candidates(
        self,
        query: str,
        scope: Scope,
        recipe: Recipe,
        vector: Any = None,
        timings: dict[str, float] | None = None,
    ) -> Candidates:
        """Ask the legs and fuse, without fetching a text: what a recall knows before it is cut to its limit."""
        timings = {} if timings is None else timings
        try:
            return self._candidates(query, scope, recipe, vector, timings)
        except EmbedderReplaced:  # by one that this Semmem has: ask with its vector
            return self._candidates(query, scope, recipe, vector, timings)

    def _candidates(
        self, query: str, scope: Scope, recipe: Recipe, vector: Any, timings: dict[str, float]
    ) -> Candidates:
        self._known(recipe)
        quoted, _ = phrases(query)
        question = self._listen(query, tuple(quoted), scope, recipe, vector)
        degraded: dict[str, str] = {}
        called = set(recipe.legs)
        if "graph" in called:
            called |= set(recipe.graph.seeders)
        first = [n for n in called if n != "graph"]
        regime = "unnamed"
        with self._asking.prepared(question, scope, recipe, wanted="graph" in called and bool(first)) as prepared:
            found = self._asking.ask(first, question, scope, recipe, degraded, timings)
            read = {ord: turn for ranking in found.values() for ord, turn in ranking.turns.items()}
            heads = self._heads(scope, found.values(), {}, read)
            rankings = {leg: settle(r, heads, recipe.depths.get(leg, 100)) for leg, r in found.items()}
            if "graph" in called:
                each = {n: replace(q, heads=alone(n, found, heads, recipe)) for n, q in question.narrowed.items()}
                seeded = replace(question, heads=rankings, prepared=prepared, narrowed=each)
                graph = self._asking.ask(["graph"], seeded, scope, recipe, degraded, timings)
                if "graph" in graph:
                    regime = graph["graph"].regime or regime
                    heads = self._heads(scope, graph.values(), heads, read)
                    rankings["graph"] = settle(graph["graph"], heads, recipe.depths.get("graph", 100))
        regime = regime if regime in recipe.regimes else recipe.regimes[-1]
        return gather(question, scope, recipe, regime, rankings, heads, degraded)

    def _known(self, recipe: Recipe) -> None:
        """Raise InvalidInput for a leg of ``recipe`` that nobody knows; one that is known and broken is degraded."""
        if unknown := [name for name in recipe.legs if name not in self._legs]:
            there = f"There is no leg named {unknown[0]!r}; there are {', '.join(self._legs)}."
            raise InvalidInput(f"{there} Add yours with register_leg, or install the package that brings it.")

    def _listen(self, query: str, quoted: tuple[str, ...], scope: Scope, recipe: Recipe, vector: Any) -> Question:
        """Return the question as each namespace is asked it: who is meant by a name depends on who wrote there.

        It says nothing to a conversation where no memory has an author, or the recipe's rules are off.
        """
        rules = recipe.conversation
        places = name_candidates(query) if rules is not None else {}
        kinds = scope.kinds if scope.kinds is not None else self._store.conversation_facts(scope.namespaces, places)
        vectors: dict[str, Callable[[], Any]] = {}

        def of(talk: Talk | None, sessions: bool) -> Question:
            asked, spoken = (talk.text, talk.spoken) if talk is not None else (query, query)
            if spoken not in vectors:
                vectors[spoken] = self._vectors.of(spoken, vector)
            return Question(asked, quoted, vectors[spoken], talk=talk, sessions=sessions, asked=query)

        def heard(at: Kinds) -> Talk | None:
            if rules is None or not at.authors:
                return None
            named = at.named.items()
            meant = {a for a, before in named if not rules.dialogue or takes_turns(a, before)}
            return listen(query, places, meant)

        each = {n: of(heard(at), at.sessions) for n, at in kinds.items()}
        if len(each) == 1:
            return next(iter(each.values()))
        return replace(of(None, any(at.sessions for at in kinds.values())), narrowed=each)

    def _heads(
        self, scope: Scope, rankings: Any, known: Mapping[int, Head], read: Mapping[int, Turn]
    ) -> dict[int, Head]:
        """Return the known heads and those of ``rankings``; what no leg has read is looked up."""
        wanted = {o for ranking in rankings for o in ranking.ords} - set(known)
        at_hand = {o: read[o].head for o in wanted if o in read}
        missing = sorted(wanted - at_hand.keys())
        return {**known, **at_hand, **(self._store.candidate_info(scope.namespaces, missing) if missing else {})}

    def _reranked(self, found: Candidates, how: Cut, query: str, timings: dict[str, float]) -> Candidates:
        """Let the recipe's reranker, if it has one, order the head anew; where it fails, the fused order stays."""
        recipe = found.recipe
        if recipe.rerank is None or how.sort_by != "relevance":
            return found
        started = time.perf_counter()
        try:
            head = [fused for fused, _ in cut(found, how)[: recipe.rerank_depth]]
            shown = self._shown(found, head)
            seen = [(fused, *shown[fused.key]) for fused in head if fused.key in shown]
            if recipe.rerank not in self._rerankers:
                self._rerankers[recipe.rerank] = load_reranker(recipe.rerank)
            reranker = self._rerankers[recipe.rerank]
            its = reranker.rerank(
                query, [memory for _, memory, _ in seen], [fused.score for fused, _, _ in seen],
                passages=[passage.text for _, _, passage in seen], now=datetime.now(UTC),
            )  # fmt: skip
            return replace(found, reranked={fused.key: of_key for (fused, _, _), of_key in zip(seen, its, strict=True)})
        except Exception as error:  # noqa: BLE001  # like a leg: its failure leaves the answer without it
            return replace(found, degraded={**found.degraded, "rerank": reason(error)})
        finally:
            timings["rerank"] = time.perf_counter() - started

    def _hits(self, found: Candidates, how: Cut, shown: Sequence[Kept], asked: Sequence[str]) -> tuple[Hit, ...]:
        known = self._shown(found, [fused for fused, _ in shown])
        hits: list[Hit] = []
        for fused, folded in shown:
            if fused.key not in known:  # forgotten since the legs answered
                continue
            memory, passage = known[fused.key]
            best, matches = snippet(passage.text, asked, self._language)
            legs = {leg: LegRank(r, found.raw[leg][r - 1]) for leg, r in fused.ranks.items()}
            others = dict.fromkeys((id, namespace) for id, _, namespace in folded)
            duplicates = tuple(id for id, namespace in others if (id, namespace) != (memory.id, memory.namespace))
            place, part = how.offset + len(hits) + 1, fused.key[1] or None
            scored = (place, fused.score, fused.components, legs)
            hits.append(Hit(memory, *scored, best, matches, duplicates, part=part, passage=passage))
        return tuple(hits)

    def _shown(self, found: Candidates, ranked: Sequence[Fused[Key]]) -> Mapping[Key, tuple[Memory, Passage]]:
        """Return the whole memory and the passage of each of ``ranked`` that is still there."""
        heads = [found.heads[fused.key] for fused in ranked]
        there = passages(self._store, found.scope.namespaces, heads)
        return {fused.key: there[head.ord] for fused, head in zip(ranked, heads, strict=True) if head.ord in there}
