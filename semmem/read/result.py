"""The result of one recall: its hits, and the data that explain them."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from reprlib import repr as brief
from typing import TYPE_CHECKING, Any

from semmem.model.errors import InvalidInput
from semmem.model.recipe import Recipe
from semmem.model.recipe import recipe as find_recipe
from semmem.model.reports import LeftOut
from semmem.model.store import Snapshot, Store
from semmem.model.types import Hit
from semmem.read.again import fused_by
from semmem.read.candidates import Candidates, Cut, confidence, total
from semmem.read.hits import hits_of
from semmem.read.steps import cut, lists_by_regime

if TYPE_CHECKING:  # a command that only asks draws, explains and proves nothing
    from semmem.rank_cap.report import Reach
    from semmem.read.explanation import Explanation

__all__ = ["Recall", "StoreRecall"]


@dataclass(frozen=True)
class Recall(Sequence[Hit]):
    """The hits of one question, best first, and how they came about.

    ``total`` counts the memories that any leg matched, and the memories shown because they supersede a match; it is
    exact if ``total_is_exact``, that is, if no leg was cut at its depth. ``degraded`` maps a leg that could not answer
    to the reason, ``regime`` is the regime of the question, ``timings`` are seconds, and ``settings`` are the settings
    of the namespace that changed the recipe.

    ``confidence`` in [0, 1] says how well the best memories match the question. It is a curve over the lexical leg's
    share of the best possible BM25 score and the dense leg's cosine, fitted on questions with and without an answer,
    half and half (semmem.read.candidates). Unlike scores, it compares across questions. It tells a question about
    something else; it cannot tell that the answer to a question about these memories is not among them (adr/0038).

    ``withheld`` counts the hits that were not returned because the confidence is below ``min_confidence``, which is a
    number even if "auto" was given. ``left_out`` are the hits for which a ``token_budget`` had no room. ``id`` is the
    recall's id in the log of recalls, None without a log. ``scope_size`` counts the memories that were searched, a
    long one once for each of its parts: those of its namespaces that match the filters, without excluded and expired
    ones, and with ``as_of`` those valid then, of which a version that was replaced since counts once; 0 for a
    namespace that holds none.
    """

    hits: tuple[Hit, ...]
    total: int
    total_is_exact: bool
    degraded: Mapping[str, str]
    regime: str
    timings: Mapping[str, float]
    confidence: float
    cut: Cut = field(default_factory=Cut)
    settings: Mapping[str, Any] = field(default_factory=dict)
    min_confidence: float = 0.0
    withheld: int = 0
    left_out: tuple[LeftOut, ...] = ()
    id: str | None = None
    scope_size: int = 0

    def __repr__(self) -> str:
        first = ", ".join(f"{brief(hit.id)} {hit.score:.3f}" for hit in self.hits[:3])
        more = ", …" if len(self.hits) > 3 else ""
        parts = [f"confidence {self.confidence:.2f}"]
        if self.withheld:
            parts.append(f"{self.withheld} withheld below {self.min_confidence:g}")
        if self.left_out:
            parts.append(f"{len(self.left_out)} left out of {self.token_budget} tokens")
        if self.degraded:
            parts.append(f"degraded: {', '.join(sorted(self.degraded))}"[:80])
        shown = f": {first}{more}" if first else "" if self.scope_size else ", nothing in scope"
        return f"Recall({len(self.hits)} of {self.total}{shown}; {', '.join(parts)})"

    def to_pandas(self) -> Any:
        """Return the hits as a DataFrame: rank, score, the share of each component, and the fields of the memory.

        Raises MissingExtra if pandas is not installed.
        """
        from semmem.model.tables import data_frame, hit_rows

        return data_frame(hit_rows(self.hits))

    def to_svg(self) -> str:
        """Return a picture: for each hit a bar of its score, stacked of the shares of the legs."""
        from semmem.model.pictures import bars

        return bars(repr(self), [(f"{hit.rank}. {hit.title or hit.id}", hit.components) for hit in self.hits])

    def _repr_html_(self) -> str:
        from semmem.model.tables import hit_rows, html_table

        table = html_table(repr(self), hit_rows(self.hits), ("rank", "score", "id", "title", "snippet"))
        return table + self.to_svg() if self.hits else table

    def __len__(self) -> int:
        return len(self.hits)

    def __getitem__(self, index: Any) -> Any:
        return self.hits[index]

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    @property
    def limit(self) -> int:
        """The most hits that this recall may return."""
        return self.cut.limit

    @property
    def offset(self) -> int:
        """How many hits this recall skips."""
        return self.cut.offset

    @property
    def token_budget(self) -> int | None:
        """The most tokens that the hits of this recall may have together; None for any number."""
        return self.cut.token_budget

    @property
    @abstractmethod
    def candidates(self) -> Candidates:
        """What the legs found, before the cut. Raises LocalOnly for a recall that a server answered."""

    @property
    @abstractmethod
    def recipe(self) -> Recipe:
        """The recipe that answered: changed by the settings of the namespace, and as deep as the limit required."""

    @property
    @abstractmethod
    def reach(self) -> Reach:
        """What each leg could bring into these hits, in every regime; its lists are known, so nothing is assumed.

        The classes hold for all lists as long as those of this recall that fold in the same way, with the same
        importances, sort order and page. If a leg is boost-only or unreachable, no hit comes from that leg alone. The
        first ``guaranteed_ranks`` memories of a leg are hits, or duplicates of hits. ``k`` is the last place of the
        page.
        """

    @abstractmethod
    def again(self, recipe: str | Recipe) -> Recall:
        """Return this recall as another ``recipe`` would answer it, by the same lists: no leg is asked again.

        The recipes may differ in weights, rank constants, reserve and priors. Raises InvalidInput if the other one
        needs lists that this recall does not have, such as that of a leg without a weight here.
        """

    @abstractmethod
    def explain(self, id: str, namespace: str | None = None) -> Explanation:
        """Explain why the memory ``id`` is a hit, or why it is not and what would let it in.

        ``namespace`` is needed if several namespaces of this recall have that id. Raises NotFound if none has it,
        InvalidInput if the id is ambiguous or the memory is in no index.
        """

    def as_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold."""
        return {
            "id": self.id,
            "hits": [hit.as_dict() for hit in self.hits],
            "total": self.total,
            "total_is_exact": self.total_is_exact,
            "scope_size": self.scope_size,
            "limit": self.limit,
            "offset": self.offset,
            "degraded": dict(self.degraded),
            "regime": self.regime,
            "confidence": self.confidence,
            "min_confidence": self.min_confidence,
            "withheld": self.withheld,
            "token_budget": self.token_budget,
            "left_out": [one.as_dict() for one in self.left_out],
            "timings": dict(self.timings),
            "recipe": self.recipe.name,
            "settings": dict(self.settings),
        }


@dataclass(frozen=True, repr=False, kw_only=True)
class StoreRecall(Recall):
    """A recall that an open store answered, with the lists of the legs and the snapshot that they were read from."""

    _candidates: Candidates
    _store: Store
    _snapshot: Snapshot
    _language: str = "english"

    @property
    def candidates(self) -> Candidates:
        """What the legs found, before the cut."""
        return self._candidates

    def superseded(self, names: Iterable[tuple[str, str]]) -> Mapping[tuple[str, str], str]:
        """Return which memories others supersede, by the rules of this recall: (namespace, id), with the newest's id.

        The store is asked once, and only where a link may supersede one of them.
        """
        from semmem.read.superseding import newest, with_newer

        each = {(id, namespace) for namespace, id in names}
        if not each:
            return {}
        chains = with_newer(replace(self.candidates, ranked=()), self._snapshot, each)
        found = {name: newest(chains, name) for name in each}
        return {(name[1], name[0]): newer[0] for name, newer in found.items() if newer is not None}

    @property
    def recipe(self) -> Recipe:
        """The recipe that answered: changed by the settings of the namespace, and as deep as the limit required."""
        return self.candidates.recipe

    @property
    def reach(self) -> Reach:
        """What each leg could bring into these hits, in every regime; its lists are known, so nothing is assumed."""
        from semmem.rank_cap import reach_in

        each = lists_by_regime(self.candidates, self.cut, withheld=bool(self.withheld))
        return reach_in(self.recipe, each, self.offset + self.limit, scope_size=self.candidates.scope.searched)

    def again(self, recipe: str | Recipe) -> StoreRecall:
        """Return this recall as another ``recipe`` would answer it, by the same lists: no leg is asked again."""
        started = time.perf_counter()
        candidates = fused_by(find_recipe(recipe), self.candidates, self.cut)
        if candidates is None:
            raise InvalidInput("That recipe needs other lists than those of this recall; recall with it.")
        groups = cut(candidates, self.cut)
        matched, is_exact = total(candidates, [fused.key for fused, _ in groups] if candidates.newer else ())
        sure = confidence(candidates)
        hits, left_out, withheld = hits_of(
            self._snapshot, candidates, self.cut, groups, self._language, withhold=sure < self.min_confidence
        )
        timings = {"total": time.perf_counter() - started}
        return replace(
            self,
            hits=hits,
            total=matched,
            total_is_exact=is_exact,
            degraded=candidates.degraded,
            regime=candidates.regime,
            timings=timings,
            confidence=sure,
            _candidates=candidates,
            settings={},
            withheld=withheld,
            left_out=left_out,
            id=None,
        )

    def explain(self, id: str, namespace: str | None = None) -> Explanation:
        """Explain why the memory ``id`` is a hit, or why it is not and what would let it in."""
        from semmem.read.explanation import explain

        why = explain(self.candidates, self.cut, id, self._store, self._snapshot, namespace, self._language)
        if self.withheld and why.returned:
            return replace(why, returned=False, withheld_below=self.min_confidence)
        if any((one.id, one.namespace) == (why.id, why.namespace) for one in self.left_out):
            return replace(why, returned=False, over_budget=self.token_budget)
        return why
