"""How a recall is answered: its arguments are checked, and its hits are counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from semmem.client.connection import Connection
from semmem.model.filters import at_time, checked_filters, several_namespaces, strings, true_or_false
from semmem.model.recipe import recipe as find_recipe
from semmem.read.result import StoreRecall

__all__ = ["answered"]


def answered(mem: Connection, query: str, namespace: str | Sequence[str], arguments: Mapping[str, Any]) -> StoreRecall:
    """Return the answer to a recall and count its hits; nothing is logged."""
    namespaces = several_namespaces(namespace)
    given = dict(arguments)
    as_of, now, recipe = given.pop("as_of"), given.pop("now"), given.pop("recipe")
    at = None if as_of is None else at_time("as_of", as_of)
    asked = at if now is None else at_time("now", now)
    true_or_false("fold_parts", given.get("fold_parts", True))
    given["filters"] = checked_filters(given["filters"])
    given["exclude"] = mem.whole_ids(namespaces, strings("exclude", given["exclude"]))
    plan = mem.recipe if recipe is None else find_recipe(recipe)
    result = mem.recaller.recall(query, namespaces, plan, tailor=recipe is None, at=at, now=asked, **given)
    mem.accesses.note((hit.namespace, hit.id) for hit in result.hits)
    return result
