"""The one table of verbs and their routes: what a server offers and what a client of it asks.

A new verb of the facade is a line here; arguments are read from its signature. A verb that works on the store itself,
or takes what cannot be sent, is in ``REFUSED`` instead and raises LocalOnly.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Literal, TypeAlias

from semmem.client.memory import Semmem
from semmem.client.probe.stages import Probe
from semmem.client.reweigh import paths, reweigh
from semmem.model.errors import InvalidInput
from semmem.model.filters import string
from semmem.model.recipe import Recipe
from semmem.model.recipe import recipe as find_recipe
from semmem.model.reports import Limits
from semmem.model.serialization import plain
from semmem.model.types import MinConfidence, SortBy
from semmem.rank_cap import reach as reach_of
from semmem.rank_cap.report import Reach
from semmem.read.explanation import Explanation
from semmem.read.steps import lists_by_regime
from semmem.read.tracing import observed
from semmem.write.access import unlogged

__all__ = ["NOTED", "REFUSED", "ROUTES", "TOGETHER", "Form", "Route", "refusal"]

Form: TypeAlias = Literal["query", "json", "lines"]
"""Where the arguments of a verb stand: in the query of the URL, in a JSON body, or in the query and, as the body, a
stream of items, one JSON object a line."""


@dataclass(frozen=True, slots=True)
class Route:
    """One route: the method of the facade that it calls, how it is asked, and what a key must allow.

    ``calls`` is what a server calls with the Semmem and the arguments: the facade's own method, or a function for what
    is no method of it. ``serves`` are the facade's verbs that a client answers with this route, where that is not the
    verb of its name. ``lines``: the answer is a stream of JSON objects, one a line. ``under`` is the name of the value
    in the answer; without it the value is the answer.
    """

    name: str
    method: str
    path: str
    calls: Callable[..., Any]
    right: Literal["read", "write", "admin"] = "read"
    form: Form = "query"
    status: int = 200
    lines: bool = False
    serves: tuple[str, ...] | None = None
    under: str | None = None

    @property
    def verbs(self) -> tuple[str, ...]:
        """The facade's verbs that a client answers with this route."""
        if self.serves is not None:
            return self.serves
        return (self.name,) if hasattr(Semmem, self.name) else ()


@observed
def explain(
    mem: Semmem,
    id: str,
    *,
    query: str,
    namespace: str | Sequence[str] = "default",
    limit: int = 10,
    offset: int = 0,
    recipe: str | Recipe | None = None,
    filters: Mapping[str, Any] | None = None,
    exclude: Sequence[str] = (),
    sort_by: SortBy = "relevance",
    vector: Any = None,
    fold_parts: bool = True,
    min_confidence: MinConfidence = 0.0,
    token_budget: int | None = None,
    as_of: datetime | date | str | None = None,
    now: datetime | date | str | None = None,
    of: str | None = None,
) -> Explanation:
    """Say why a memory is where it is in the answer to ``query``, or what would let it in.

    The recall is made anew. ``of`` is the namespace of the memory, where several of those asked have its id.
    """
    with unlogged():
        result = mem.recall(
            query,
            namespace=namespace,
            limit=limit,
            offset=offset,
            recipe=recipe,
            filters=filters,
            exclude=exclude,
            sort_by=sort_by,
            vector=vector,
            fold_parts=fold_parts,
            min_confidence=min_confidence,
            token_budget=token_budget,
            as_of=as_of,
            now=now,
        )
    return result.explain(id, of)


_MOST_PLACES = 1_000
"""The last place that a server works reach out for: its exact fractions take longer than their number grows."""


def _check_places(name: str, last: Any) -> None:
    """Raise InvalidInput for more places than a server works reach out for; what is no number the facade refuses."""
    if isinstance(last, int) and last > _MOST_PLACES:
        raise InvalidInput(f"{name} must be at most {_MOST_PLACES} here, not {last}; ask where the store is for more.")


def probe(
    mem: Semmem,
    *,
    recipe: str | Recipe | None = None,
    k: int = 10,
    leg: str | None = None,
    witness: tuple[str, str] | None = None,
    filters: Mapping[str, Any] | None = None,
) -> Probe:
    """Put a memory that one leg alone finds through the real pipeline; say which stage dropped it, if one did."""
    _check_places("k", k)
    return mem.probe(recipe=recipe, k=k, leg=leg, witness=witness, filters=filters)


def recall_reach(mem: Semmem, query: str, **arguments: Any) -> dict[str, Any]:
    """Say which legs could bring a memory of their own into the answer to ``query``: nothing assumed, its lists known.

    The recall is made anew. ``lists_by_regime`` is what of them the arithmetic reads, ``lists`` the same for the regime
    of the question, and ``plan`` the recipe.
    """
    limit, offset = arguments.get("limit", 10), arguments.get("offset", 0)
    if isinstance(limit, int) and isinstance(offset, int):
        _check_places("limit and offset together", limit + offset)
    with unlogged():
        result = mem.recall(query, **arguments)
    each = plain(lists_by_regime(result.candidates, result.cut, withheld=bool(result.withheld)))
    basis = {"lists_by_regime": each, "lists": each[result.regime], "plan": result.recipe.as_dict()}
    return {**result.reach.as_dict(), **basis, "scope_size": result.candidates.scope.searched}


recall_reach.__signature__ = inspect.signature(Semmem.recall)  # type: ignore[attr-defined]  # the same arguments
recall_reach = observed(recall_reach)


def search(
    mem: Semmem,
    name: str,
    *,
    query: str,
    namespace: str | Sequence[str] = "default",
    limit: int = 10,
    offset: int = 0,
    filters: Mapping[str, Any] | None = None,
    exclude: Sequence[str] = (),
) -> dict[str, Any]:
    """Ask one leg by itself, or under the name ``recall`` the whole recall: results and how many match in all."""
    from semmem.model.filters import checked_filters, strings, within

    bound = mem.leg(None if name == "recall" else name, namespace=namespace)
    where = within(checked_filters(filters), strings("namespace", namespace), strings("exclude", exclude))
    results, total = bound.search(query, limit=limit, offset=offset, filters=where)
    return {"results": [one.as_dict() for one in results], "total": total}


def export(
    mem: Semmem,
    *,
    namespace: str | Sequence[str] = "default",
    everything: bool = False,
    filters: Mapping[str, Any] | None = None,
    vectors: bool = False,
    sensitive: bool = False,
) -> Iterator[dict[str, Any]]:
    """Yield memories as plain mappings with all that was given, newest first; with ``everything`` of all namespaces."""
    where = None if everything is True else namespace
    return mem.export(namespace=where, filters=filters, vectors=vectors, sensitive=sensitive)


def settings(mem: Semmem, *, namespace: str = "default") -> dict[str, Any]:
    """Return how a namespace is searched: its recipe, the settings of its own, and what is wrong with them."""
    plan, used, wrong = mem.searched_by(namespace=namespace)
    own = mem.settings_of(namespace=namespace)
    table = {"namespace": namespace, "settings": dict(own), "used": dict(used), "recipe": plan.as_dict()}
    return table | {"unused": wrong}


def own_recipe(mem: Semmem) -> dict[str, Any]:
    """Return the whole recipe of the server, by which a namespace is searched that has no settings of its own."""
    return mem.recipe.as_dict()


def reach(
    mem: Semmem,
    *,
    recipe: str | Recipe | None = None,
    k: int = 10,
    namespace: str | None = None,
    scope_size: int | None = None,
) -> Reach:
    """Say which legs of a recipe can bring a memory of their own into the top k, by arithmetic alone.

    With ``namespace`` the recipe is as that namespace's own settings make it.
    """
    _check_places("k", k)
    if scope_size is not None and (isinstance(scope_size, bool) or not isinstance(scope_size, int)):
        raise InvalidInput(f"scope_size must be a whole number, not {scope_size!r}.")
    if recipe is not None and namespace is not None:
        raise InvalidInput("Give recipe or namespace, not both: a namespace has a recipe of its own.")
    if namespace is not None:
        plan = mem.searched_by(namespace=string("namespace", namespace))[0]
    else:
        plan = mem.recipe if recipe is None else find_recipe(recipe)
    return reach_of(plan, k, scope_size=scope_size)


def limits(mem: Semmem, name: str) -> Limits:
    """Return what a namespace keeps and may hold."""
    return mem.namespace_limits(name)


ROUTES: tuple[Route, ...] = (
    Route("remember", "POST", "/v1/memories", Semmem.remember, "write", "json", 201),
    Route("remember_many", "POST", "/v1/memories", Semmem.remember_many, "write", "lines"),
    Route("remember_messages", "POST", "/v1/messages", Semmem.remember_messages, "write", "json"),
    Route("list", "GET", "/v1/memories", Semmem.list),
    Route("get", "GET", "/v1/memories/{id}", Semmem.get),
    Route("update", "PATCH", "/v1/memories/{id}", Semmem.update, "write", "json"),
    Route("history", "GET", "/v1/memories/{id}/history", Semmem.history, under="versions"),
    Route("forgotten", "GET", "/v1/forgotten", Semmem.forgotten, under="versions"),
    Route("restore_memory", "POST", "/v1/memories/{id}/restore", Semmem.restore_memory, "write", "json"),
    Route("forget_one", "DELETE", "/v1/memories/{id}", Semmem.forget, "write"),
    Route("links", "GET", "/v1/memories/{id}/links", Semmem.links, under="links"),
    Route("link", "POST", "/v1/memories/{id}/links", Semmem.link, "write", "json"),
    Route("unlink", "DELETE", "/v1/memories/{id}/links", Semmem.unlink, "write", under="unlinked"),
    Route("contradictions", "GET", "/v1/contradictions", Semmem.contradictions, under="links"),
    Route("near_duplicates", "GET", "/v1/near-duplicates", Semmem.near_duplicates, under="links"),
    Route("forget", "POST", "/v1/forget", Semmem.forget, "write", "json"),
    Route("recall", "POST", "/v1/recall", Semmem.recall, form="json"),
    Route("reweigh", "POST", "/v1/recall/reweigh", reweigh, form="json"),
    Route("recall_paths", "POST", "/v1/recall/paths", paths, form="json"),
    Route("recall_reach", "POST", "/v1/recall/reach", recall_reach, form="json"),
    Route("recall_by_url", "GET", "/v1/recall", Semmem.recall),
    Route("context", "POST", "/v1/context", Semmem.context, form="json"),
    Route("context_by_url", "GET", "/v1/context", Semmem.context),
    Route("feedback", "POST", "/v1/feedback", Semmem.feedback, "write", "json", under="judged"),
    Route("judgments", "GET", "/v1/judgements", Semmem.judgments, under="judgments"),
    Route("audit", "GET", "/v1/audit", Semmem.audit, "admin"),
    Route("recalls", "GET", "/v1/recalls", Semmem.recalls),
    Route("logged_recall", "GET", "/v1/recalls/{recall_id}", Semmem.logged_recall),
    Route("replay_recall", "GET", "/v1/recalls/{recall_id}/replay", Semmem.replay_recall),
    Route("explain", "POST", "/v1/memories/{id}/explain", explain, form="json"),
    Route("explain_by_url", "GET", "/v1/memories/{id}/explain", explain),
    Route("search", "POST", "/v1/legs/{name}/search", search, form="json", serves=("leg",)),
    Route("import_items", "POST", "/v1/bring-in", Semmem.import_items, "write", "lines"),
    Route("export", "GET", "/v1/export", export, lines=True),
    Route("namespaces", "GET", "/v1/namespaces", Semmem.namespaces),
    Route("changes", "GET", "/v1/changes", Semmem.changes),
    Route(
        "rename_namespace", "POST", "/v1/namespaces/{old}/rename", Semmem.rename_namespace, "admin", "json",
        under="memories",
    ),
    Route(
        "copy_namespace", "POST", "/v1/namespaces/{old}/copy", Semmem.copy_namespace, "admin", "json", under="memories",
    ),
    Route("drop_namespace", "DELETE", "/v1/namespaces/{name}", Semmem.drop_namespace, "admin", under="memories"),
    Route("namespace_limits", "GET", "/v1/namespaces/{name}/limits", limits, serves=()),
    Route(
        "set_namespace_limits", "PATCH", "/v1/namespaces/{name}/limits", Semmem.namespace_limits, "admin", "json",
        serves=("namespace_limits",),
    ),
    Route("stats", "GET", "/v1/stats", Semmem.stats),
    Route("doctor", "GET", "/v1/doctor", Semmem.doctor, "admin", under="findings"),
    Route("hashes", "GET", "/v1/hashes", Semmem.hashes),
    Route("settings", "GET", "/v1/settings", settings, serves=("settings_of", "searched_by")),
    Route("configure", "PATCH", "/v1/settings", Semmem.configure, "admin", "json"),
    Route("unset_settings", "DELETE", "/v1/settings", Semmem.unset_settings, "admin"),
    Route("recipe", "GET", "/v1/recipe", own_recipe, serves=()),
    Route("reach", "GET", "/v1/reach", reach),
    Route("reach_of", "POST", "/v1/reach", reach, form="json"),
    Route("probe", "POST", "/v1/probe", probe, "write", "json"),
    Route("graph", "GET", "/v1/graph", Semmem.graph),
    Route("graph_hash", "GET", "/v1/graph/hash", Semmem.graph_hash, under="graph_hash"),
    Route("concepts", "GET", "/v1/concepts", Semmem.concepts, under="concepts"),
    Route("merge_concepts", "POST", "/v1/concepts/merge", Semmem.merge_concepts, "write", "json", 204),
    Route("split_concept", "POST", "/v1/concepts/split", Semmem.split_concept, "write", "json", 204),
    Route("maintain", "POST", "/v1/maintain", Semmem.maintain, "admin", "json"),
)  # fmt: skip
"""Every route under /v1, two of one path and method told apart by the form of the body."""

TOGETHER = frozenset((
    "remember", "remember_messages", "update", "restore_memory", "forget", "forget_one", "link", "unlink", "feedback",
    "merge_concepts", "split_concept", "configure", "unset_settings", "set_namespace_limits", "drop_namespace",
))  # fmt: skip
"""Verbs whose effect and kept answer are one transaction. Of the others the answer is kept after the work."""

NOTED = "Semmem-Warning"
"""The header of an answer that says what is to be warned of: a credential in what was remembered."""

REFUSED: Mapping[str, str] = {
    "backup": "writes a file on the machine of the store",
    "copy": "moves a whole store",
    "rebuild": "goes on for as long as the store is large",
    "register_leg": "takes a leg of your own program",
    "restore": "reads a file on the machine of the store",
}
"""Verbs that no server offers, and why."""


def refusal(verb: str) -> str:
    """Return why ``verb`` is not offered, in one sentence that says what to do."""
    return f"{verb} {REFUSED[verb]}; call it where the store is, with the store's own URL, not through a server."
