"""What every leg returned to every question, asked once and fused many times.

The lists come through the public ``recall`` alone: one recall with everything after the legs switched off shows, on
each hit, where each leg ranked it. So any store that semmem opens can be measured, and a whole sweep costs one pass.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

from eval.datasets import Query
from semmem.config import recipe as variant
from semmem.text import content_key
from semmem.types import Recipe

__all__ = ["Asked", "Found", "asking", "ask_all", "group_key"]

_DEEPEST = 10_000


@dataclass(frozen=True, slots=True)
class Found:
    """What the harness keeps of a memory: no text, only what fusion, folding and token counts need."""

    importance: float
    content: str
    tokens: int


@dataclass(frozen=True, slots=True)
class Asked:
    """One question's lists: ``legs`` maps a leg to its (id, score) pairs, best first; ``exact`` earned the bonus.

    ``timings`` are seconds by stage as recall reports them; ``degraded`` names legs that could not answer.
    """

    id: str
    regime: str
    legs: Mapping[str, Sequence[tuple[str, float]]]
    exact: tuple[str, ...] = ()
    timings: Mapping[str, float] = field(default_factory=dict)
    degraded: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0

    def rankings(self, depths: Mapping[str, int], legs: Iterable[str]) -> dict[str, list[str]]:
        """Return the ids of the named legs, each cut to its depth."""
        return {leg: [id for id, _ in self.legs.get(leg, ())[: depths.get(leg, 100)]] for leg in legs}

    def scored(self, depths: Mapping[str, int], legs: Iterable[str]) -> dict[str, list[tuple[str, float]]]:
        """Return (id, score) pairs of the named legs, each cut to its depth."""
        return {leg: list(self.legs.get(leg, ())[: depths.get(leg, 100)]) for leg in legs}


def group_key(recipe: Recipe) -> str:
    """Return what two recipes must share to be fused from the same lists.

    The lexical and dense lists are prefixes of their deeper selves. The graph's list depends on which legs gave it
    seeds, so the legs are part of the key where it is called; so are its own settings, and the depths that bound it.
    """
    about: dict[str, Any] = {"lexical": asdict(recipe.lexical)}
    if recipe.lexical.match != "any":
        about["lexical depth"] = recipe.depths.get("lexical", 100)
    if "graph" in recipe.legs:
        about["graph"] = asdict(recipe.graph)
        about["legs"] = sorted(recipe.legs)
    else:
        about["legs"] = "no graph"
    return blake2b(json.dumps(about, sort_keys=True).encode(), digest_size=6).hexdigest()


def asking(recipes: Sequence[Recipe]) -> Recipe:
    """Return the recipe that shows the whole lists of a group: no prior, folding or reserve, and the deepest depths.

    ``exact_bonus`` is on, so that the component tells which memories would earn it.
    """
    legs = {leg for r in recipes for leg in r.legs}
    depths = {leg: max(r.depths.get(leg, 100) for r in recipes if leg in r.legs) for leg in sorted(legs)}
    first = recipes[0]
    return Recipe(
        name="lists",
        weights=dict.fromkeys(sorted(legs), 1.0),
        rank_constants=_constants(first, sorted(legs)),
        depths=depths,
        reserve={},
        prior=False,
        exact_bonus=1.0 if "lexical" in legs else 0.0,
        dedup=False,
        lexical=first.lexical,
        graph=next((r.graph for r in recipes if "graph" in r.legs), first.graph),
    )


def _constants(recipe: Recipe, legs: Sequence[str]) -> dict[str, Any]:
    # The regime is reported only where a constant depends on it, so the graph's constants name both.
    return {leg: {"named": 60.0, "unnamed": 60.0} if leg == "graph" else 60.0 for leg in legs}


def ask_all(
    mem: Any,
    queries: Sequence[Query],
    recipes: Sequence[Recipe],
    *,
    cache: Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[dict[str, Asked], dict[str, dict[str, Found]]]:
    """Ask every question once with the lists recipe; return lists by question and memories by namespace and id.

    ``cache`` is a file that grows by a line a question, so an interrupted run takes up where it stopped; a line that
    was cut short is asked again.
    """
    wide = asking(recipes)
    asked, found = _read(cache)
    todo = [q for q in queries if q.id not in asked]
    out = None
    if cache is not None and todo:
        cache.parent.mkdir(parents=True, exist_ok=True)
        _mend(cache)
        out = cache.open("a", encoding="utf-8")
    try:
        for number, query in enumerate(todo, start=1):
            lists, met = _ask(mem, query, wide)
            asked[query.id] = lists
            space = found.setdefault(query.namespace, {})
            new = {id: memory for id, memory in met.items() if id not in space}
            space.update(new)
            if out is not None:
                row = {
                    "asked": asdict(lists),
                    "namespace": query.namespace,
                    "found": {k: asdict(v) for k, v in new.items()},
                }
                out.write(json.dumps(row) + "\n")
                out.flush()
            if progress is not None:
                progress(len(asked), len(queries))
    finally:
        if out is not None:
            out.close()
    return asked, found


def _ask(mem: Any, query: Query, wide: Recipe) -> tuple[Asked, dict[str, Found]]:
    limit = min(_DEEPEST, sum(wide.depths.values()))
    started = time.perf_counter()
    recalled = mem.recall(query.text, namespace=query.namespace, limit=limit, recipe=wide)
    seconds = time.perf_counter() - started
    places: dict[str, list[tuple[int, str, float]]] = {leg: [] for leg in wide.legs}
    met: dict[str, Found] = {}
    exact = []
    for hit in recalled:
        memory = hit.memory
        met[memory.id] = found_of(memory)
        for leg, at in hit.legs.items():
            places.setdefault(leg, []).append((at.rank, memory.id, at.score))
        if hit.components.get("exact"):
            exact.append(memory.id)
    lists = {leg: tuple((id, float(score)) for _, id, score in sorted(at)) for leg, at in places.items()}
    return (
        Asked(
            id=query.id,
            regime=str(recalled.regime),
            legs=lists,
            exact=tuple(exact),
            timings={k: float(v) for k, v in dict(recalled.timings).items()},
            degraded={str(k): str(v) for k, v in dict(recalled.degraded).items()},
            seconds=seconds,
        ),
        met,
    )


def found_of(memory: Any) -> Found:
    """Return what the harness keeps of a memory."""
    from eval.measures import tokens

    text = f"{memory.title or ''} {memory.text}".strip()
    return Found(importance=memory.importance, content=content_key(memory.text).hex(), tokens=tokens(text))


def _read(cache: Path | None) -> tuple[dict[str, Asked], dict[str, dict[str, Found]]]:
    asked: dict[str, Asked] = {}
    found: dict[str, dict[str, Found]] = {}
    if cache is None or not cache.is_file():
        return asked, found
    for line in cache.read_text(encoding="utf-8").split("\n"):
        try:
            row = json.loads(line)
        except ValueError:
            continue  # the line an interrupt cut short
        kept = row["asked"]
        kept["legs"] = {leg: tuple((id, score) for id, score in pairs) for leg, pairs in kept["legs"].items()}
        kept["exact"] = tuple(kept["exact"])
        asked[kept["id"]] = Asked(**kept)
        found.setdefault(row["namespace"], {}).update({id: Found(**m) for id, m in row["found"].items()})
    return asked, found


def _mend(cache: Path) -> None:
    """Cut off a last line that does not end, so that the next one begins at a beginning."""
    if cache.is_file() and (data := cache.read_bytes()) and not data.endswith(b"\n"):
        cache.write_bytes(data[: data.rfind(b"\n") + 1])


def shallow(recipe: Recipe, smallest: int, *, depth: int = 15) -> Recipe:
    """Return ``recipe`` with every depth at most ``depth`` when a leg would return a whole namespace otherwise.

    Where a leg without a natural end is as deep as the smallest namespace is large, it returns everything, no memory
    can be the find of another leg alone, and an ablation measures re-ranking only.
    """
    if not smallest or all(recipe.depths.get(leg, 100) < smallest for leg in recipe.legs):
        return recipe
    return variant(recipe, depths={leg: min(depth, recipe.depths.get(leg, 100)) for leg in recipe.legs})
