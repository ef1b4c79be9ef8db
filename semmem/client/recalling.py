"""How a recall is answered: by the recaller of today, or by one that reads the versions of another time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

from semmem.client.connection import Connection, legs_at
from semmem.model.errors import InvalidInput
from semmem.model.filters import at_time, checked_filters, strings
from semmem.model.recipe import recipe as find_recipe
from semmem.read.recall import Recaller
from semmem.read.result import Recall

__all__ = ["answered"]


def answered(mem: Connection, query: str, namespace: str | Sequence[str], arguments: Mapping[str, Any]) -> Recall:
    """Return the answer to a recall and count its hits; nothing is logged."""
    namespaces = strings("namespace", namespace)
    if not namespaces or not all(namespaces):
        raise InvalidInput("namespace must be a name, or a list of at least one.")
    given = dict(arguments)
    as_of, recipe = given.pop("as_of"), given.pop("recipe")
    asked = as_of if (now := given.pop("now")) is None else now
    given["filters"] = checked_filters(given["filters"])
    given["exclude"] = mem._whole_ids(namespaces, strings("exclude", given["exclude"]))
    plan = mem.recipe if recipe is None else find_recipe(recipe)
    at = None if asked is None else at_time("as_of" if now is None else "now", asked)
    with nullcontext(mem._recaller) if as_of is None else _recaller_at(mem, namespaces, as_of) as reader:
        result = reader.recall(query, namespaces, plan, tailor=recipe is None, now=at, **given)
    mem._accesses.note((hit.namespace, hit.id) for hit in result.hits)
    return result


@contextmanager
def _recaller_at(mem: Connection, namespaces: Sequence[str], as_of: Any) -> Iterator[Recaller]:
    """Give the recaller that reads the versions that were valid at a time. Raises InvalidInput."""
    from semmem.stores.past import past

    store, earlier = past(mem.store, namespaces, at_time("as_of", as_of))
    language = mem._recaller.language
    legs = legs_at(store, earlier, mem._legs, language)
    reader = Recaller(
        store, legs, mem._encoder.embedder_or_reason, language, mem._encoder.renewed,
        load_reranker=mem._recaller.load_reranker,
    )  # fmt: skip
    try:
        yield reader
    finally:
        reader.close()
