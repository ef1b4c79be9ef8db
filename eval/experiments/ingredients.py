"""Measure the worth of each ingredient of a recipe: compare the recipe with itself without that ingredient.

Where an ingredient is off by default (an exact bonus, a second hop, a reranker) it is switched on instead. Either way
above 0 means that it is worth having.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eval.experiments.conditions import Condition, ConditionError, ablations, named, turned
from eval.experiments.controls import with_controls
from eval.statistics.comparison import Comparison
from eval.statistics.verdict import interval
from semmem.model.recipe import Recipe
from semmem.model.recipe import recipe as variant

__all__ = ["INGREDIENTS", "Ingredient", "is_of_ingredients", "of_ingredients", "table_of_worth", "worth"]


_LEGS = ("lexical", "dense", "graph")


@dataclass(frozen=True, slots=True)
class Ingredient:
    """A part of a recipe, and the settings that take it away, or that add it where ``added``.

    ``{r...}`` in a setting stands for a value of the recipe. ``leg`` must be called for it to mean anything; ``rules``
    needs the rules of conversation.
    """

    name: str
    settings: tuple[str, ...]
    leg: str | None = None
    rules: bool = False
    added: bool = False

    def of(self, recipe: Recipe) -> tuple[str, ...] | None:
        """Return its settings for ``recipe``; None where the recipe has nothing of it to take away."""
        if (self.leg and self.leg not in recipe.legs) or (self.rules and recipe.conversation is None):
            return None
        absent = set(_LEGS) - set(recipe.legs)
        settings = (setting.format(r=recipe) for setting in self.settings)
        return tuple(setting for setting in settings if absent.isdisjoint(_legs_of(setting))) or None


def _legs_of(setting: str) -> tuple[str, str]:
    """Return what may be the name of the leg that a setting acts in: graph.gate, conversation.author_dense."""
    name = setting.partition("=")[0]
    return name.partition(".")[0], name.rpartition("_")[2]


def _walk(name: str, *settings: str, added: bool = False) -> Ingredient:
    return Ingredient(name, settings, leg="graph", added=added)


def _rule(name: str, *settings: str) -> Ingredient:
    return Ingredient(name, settings, rules=True)


_AUTHOR_LEGS = (
    "conversation.author_lexical=1",
    "conversation.author_dense=0",
    "conversation.collecting_author_dense=0",
)

INGREDIENTS: tuple[Ingredient, ...] = (
    _walk("restart: subjects the question names", "graph.subject_share=0"),
    _walk("restart: concepts of the question", "graph.concept_share=0"),
    _walk("restart: rare names (anchors)", "graph.anchor_share=0"),
    _walk("restart: heads of the other legs", "graph.seeds=0"),
    _walk("known names: titles of others in a text", "graph.known_names=0"),
    _walk("names written without capitals", "graph.lower_case=0"),
    _walk("subjects named in another way", "graph.other_names=0"),
    _walk("about edges", "graph.about=0"),
    _walk("co-mention edges", "graph.co_mention=0"),
    _walk("neighbours in the session", "graph.neighbour=0"),
    _walk("a neighbour by the same author counts less", "graph.neighbour_own={r.graph.neighbour}"),
    _walk("gate by the question", "graph.gate=0"),
    _walk("single words as concepts", "graph.stems=0"),
    _walk("pairs of words as concepts", "graph.bigrams=0"),
    _walk("hub cap", "graph.max_df=10000"),
    _walk("fan-out bound", "graph.fan=10000"),
    _walk("author factor in the walk", "graph.author_bonus=1"),
    _walk("gated walk, against pure PageRank", "graph.walk=pagerank"),
    Ingredient("rules of conversation, all", ("conversation=0",), rules=True),
    _rule("author rules, everywhere", *_AUTHOR_LEGS, "graph.author_bonus=1"),
    _rule("author factor in the lexical leg", "conversation.author_lexical=1"),
    _rule("author bonus in the dense leg", *_AUTHOR_LEGS[1:]),
    _rule(
        "windows: what stands around a turn", *(f"conversation.{n}=0" for n in ("previous", "asked", "before", "next"))
    ),
    _rule("windows: the previous turn", "conversation.previous=0", "conversation.asked=0"),
    _rule("windows: more where the previous turn asks", "conversation.asked={r.conversation.previous}"),
    _rule("windows: the turn before the previous", "conversation.before=0"),
    _rule("windows: the next turn", "conversation.next=0"),
    _rule("windows: one's own previous turn counts less", "conversation.own=1"),
    _rule("months", "conversation.month_lexical=1", "conversation.month_dense=0"),
    _rule("questions that collect", "conversation.collecting=0"),
    Ingredient("reserve", ("reserve=0",)),
    Ingredient("importance prior", ("prior=0",)),
    Ingredient("folding of equal memories", ("dedup=0",)),
    _walk("rank constant of its own", "graph.k=60"),
    Ingredient("exact bonus of .5", ("exact_bonus=.5",), leg="lexical", added=True),
    _walk("a second hop", "graph.hops=2", added=True),
    _walk("relationships at .5", "graph.related=.5", added=True),
    Ingredient("composite reranker", ("rerank=composite",), added=True),
)


def of_ingredients(recipe: str, only: Sequence[str] = ()) -> tuple[list[Condition], list[Comparison]]:
    """Return the recipe, the recipe without each leg, without each ingredient, and with each that it lacks.

    ``only`` keeps those whose name holds one of these words. What changes nothing in this recipe is left out.
    """
    base = named(recipe)
    conditions, comparisons = [base], list[Comparison]()
    legs = base.recipe.legs if len(base.recipe.legs) > 1 else ()
    for leg, without in zip(legs, ablations(base, legs) if legs else (), strict=True):
        conditions.append(without)
        comparisons.append(Comparison(f"{leg} leg", without.name, base.name, leg))
    for ingredient, settings in _all(base.recipe):
        point = turned(base, *settings)
        if _same(point.recipe, base.recipe):
            continue
        conditions.append(point)
        ends = (base.name, point.name) if ingredient.added else (point.name, base.name)
        comparisons.append(Comparison(f"{'+ ' if ingredient.added else ''}{ingredient.name}", *ends))
    conditions, comparisons = with_controls(conditions, comparisons)
    if only:
        comparisons = [c for c in comparisons if any(word in c.name for word in only)]
        if not comparisons:
            raise ConditionError(f"No ingredient of {recipe} is called {' or '.join(only)}.")
        used = {name for c in comparisons for name in (c.base, c.other)}
        conditions = [c for c in conditions if c.name in used]
    return conditions, comparisons


def _all(recipe: Recipe) -> list[tuple[Ingredient, tuple[str, ...]]]:
    """Return every ingredient that applies, with its settings; the regimes, once for each constant of a leg."""
    out = [(i, settings) for i in INGREDIENTS if (settings := i.of(recipe)) is not None]
    for leg in recipe.legs:
        constant = recipe.rank_constants[leg]
        if isinstance(constant, Mapping):
            of = "" if leg == "graph" else f" of {leg}"
            for k in sorted({*constant.values()}):
                regimes = ", ".join(sorted(regime for regime, its in constant.items() if its == k))
                one = Ingredient(
                    f"a constant for each regime{of}, against {k:g} ({regimes}) in all", (f"{leg}.k={k:g}",), leg=leg
                )
                out.append((one, one.settings))
    return out


def _same(one: Recipe, other: Recipe) -> bool:
    return variant(one, name="one") == variant(other, name="one")


def is_of_ingredients(result: Mapping[str, Any]) -> bool:
    """Return whether a result is one of ``python -m eval ingredients``."""
    return str(result["command"]).startswith("ingredients")


def worth(result: Mapping[str, Any]) -> str:
    """Return the tables of all questions of the headline and of each stratum, in Markdown."""
    groups = list(dict.fromkeys(c["group"] for c in result["comparisons"]))
    parts = []
    for group in groups:
        title = "What each ingredient is worth" if group == "headline" else f"On {group} questions"
        parts += [f"## {title}", "", table_of_worth(result, group), ""]
    return "\n".join(parts).rstrip()


def table_of_worth(result: Mapping[str, Any], group: str = "headline") -> str:
    """Return one Markdown table: an ingredient a row, a metric a column, difference with its paired interval.

    Above 0 the ingredient is worth having; a difference in bold is one after Holm's correction over the table. A
    comparison that is not evaluable has no number in any column, and says why in the last.
    """
    metrics = list(result["metrics"])
    rows: dict[str, dict[str, Any]] = {}
    for c in result["comparisons"]:
        if c["group"] == group:
            rows.setdefault(c["name"], {})[c["metric"]] = c
    head = ["ingredient", *(f"{m} [95 %], p" for m in metrics), "won / tied / lost", f"verdict on {metrics[0]}"]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for name, by_metric in rows.items():
        first = by_metric[metrics[0]]
        paired = first.get("paired")
        counts = f"{paired['won']} / {paired['tied']} / {paired['lost']}" if paired else ""
        # a refusal with its reason; else the verdict alone, as the numbers stand beside it
        verdict = first["sentence"].rpartition(f": {metrics[0]} ")[0] or first["sentence"]
        cells = [name, *(_worth(by_metric[m]) for m in metrics), counts, verdict.replace("|", "\\|")]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _worth(comparison: Mapping[str, Any]) -> str:
    paired = comparison.get("paired")
    if paired is None:
        return ""
    mark = "**" if comparison["verdict"] in ("helps", "hurts") else ""
    p = "" if paired["p_holm"] is None else f", {paired['p_holm']:.3f}"
    return f"{mark}{paired['delta']:+.3f}{mark}{interval(paired)}{p if paired['low'] is not None else ''}"
