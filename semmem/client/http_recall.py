"""Recalls and searches that a server answered: the facade's types, which ask the server again where they have to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Never

from semmem.client import values
from semmem.model.errors import LocalOnly
from semmem.model.filters import Within, filters_of
from semmem.model.process.forks import cached_property
from semmem.model.recipe import Recipe
from semmem.model.recipe import recipe as find_recipe
from semmem.model.reports import LeftOut
from semmem.model.search import Result
from semmem.model.types import Filters
from semmem.rank_cap import reach_in
from semmem.rank_cap.report import Reach
from semmem.read.candidates import Cut
from semmem.read.result import Recall

if TYPE_CHECKING:
    from semmem.read.explanation import Explanation

__all__ = ["Answer", "HttpSearch"]


@dataclass(frozen=True, repr=False, kw_only=True)
class Answer(Recall):
    """A recall that a server answered: the same values; ``explain`` asks the server again."""

    plan: Mapping[str, Any]
    _ask: Callable[[str, Mapping[str, Any]], Any]
    _question: Mapping[str, Any]

    @classmethod
    def of(cls, value: Any, ask: Callable[[str, Mapping[str, Any]], Any], question: Mapping[str, Any]) -> Answer:
        """Return the answer in a server's JSON to ``question``, the arguments of recall; ``ask`` asks another route."""
        hits = tuple(map(values.hit, value["hits"]))
        fields = {
            name: value[name]
            for name in ("total", "total_is_exact", "degraded", "regime", "timings", "confidence", "settings")
        }
        cut = Cut(value["limit"], value["offset"], token_budget=value["token_budget"])
        left_out = tuple(LeftOut(**one) for one in value["left_out"])
        more = {name: value[name] for name in ("min_confidence", "withheld", "scope_size", "plan")}
        return cls(
            hits=hits,
            **fields,
            cut=cut,
            **more,
            left_out=left_out,
            id=value["id"],
            _ask=ask,
            _question=question,
        )

    @property
    def candidates(self) -> Never:
        """The server has them. Raises LocalOnly."""
        raise LocalOnly("The lists of this recall are at its server; open the store with its own URL to read them.")

    @cached_property
    def _recipe(self) -> Recipe:
        return values.recipe_of(self.plan)

    @property
    def recipe(self) -> Recipe:
        """The recipe that answered: with the settings of the namespace, and as deep as the limit needed."""
        return self._recipe

    @property
    def reach(self) -> Reach:
        """What each leg could bring into these hits, in every regime; the server makes the recall anew."""
        answer = self._again("recall_reach", {})
        recipe = values.recipe_of(answer["plan"])
        each = answer.get("lists_by_regime") or dict.fromkeys(recipe.regimes, answer["lists"])  # of a former server
        lists = {regime: values.lists(of) for regime, of in each.items()}
        return reach_in(recipe, lists, self.offset + self.limit, scope_size=answer["scope_size"])

    def again(self, recipe: str | Recipe) -> Recall:
        """Return this recall as another ``recipe`` would answer it; the server has its lists, or asks the legs."""
        question = {**self._question, "recipe": find_recipe(recipe)}
        return Answer.of(self._ask("reweigh", question), self._ask, question)

    def explain(self, id: str, namespace: str | None = None) -> Explanation:
        """Say why the memory ``id`` is where it is, or what would let it in; the server makes the recall anew."""
        return values.explanation(self._again("explain", {"id": id, "of": namespace}))

    def _again(self, name: str, more: Mapping[str, Any]) -> Any:
        return self._ask(name, {**self._question, **more})

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON-ready values."""
        counts = ("total", "total_is_exact", "scope_size", "limit", "offset", "withheld")
        plain = (*counts, "regime", "confidence", "min_confidence")
        mappings = {name: dict(getattr(self, name)) for name in ("degraded", "timings", "settings")}
        table = {"hits": [hit.as_dict() for hit in self.hits], **{name: getattr(self, name) for name in plain}}
        more = {"id": self.id, "token_budget": self.token_budget, "left_out": [one.as_dict() for one in self.left_out]}
        return {**table, **mappings, **more, "recipe": self.plan["name"]}


class HttpSearch:
    """One leg, or the whole recall, of a server as ``search(query, …) -> (results, total)``."""

    def __init__(self, ask: Callable[[str, Mapping[str, Any]], Any], name: str, namespace: Any) -> None:
        self.name = name
        self._ask = ask
        self._namespace = namespace

    def search(self, query: str, *, limit: int = 10, offset: int = 0, filters: Any = None) -> tuple[list[Result], int]:
        """Return results ``offset`` to ``offset + limit``, best first, and how many memories match in all."""
        arguments: dict[str, Any] = {"name": self.name, "query": query, "limit": limit, "offset": offset}
        arguments["namespace"] = self._namespace
        if isinstance(filters, Within):
            arguments |= {"namespace": list(filters.namespaces), "exclude": list(filters.exclude)}
            filters = filters_of(Filters(**{n: getattr(filters, n) for n in Filters.__dataclass_fields__}))
        if filters:
            arguments["filters"] = filters
        answer = self._ask("search", arguments)
        return [Result(**one) for one in answer["results"]], answer["total"]
