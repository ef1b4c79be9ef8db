"""Open the store that a URL names, or a server of one."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from os import PathLike
from typing import Any, Unpack

from semmem.client.connection import Connection
from semmem.client.memory import Semmem, StoreSemmem
from semmem.config import Settings
from semmem.embedders.binding import embed_texts
from semmem.model.errors import InvalidInput
from semmem.model.keywords import SettingValues
from semmem.model.protocols import Embedder, Extractor
from semmem.model.recipe import RECIPES, Recipe
from semmem.model.recipe import recipe as find_recipe
from semmem.model.search import Factory
from semmem.read.overrides import recipe_of
from semmem.read.tracing import Watcher, switch_on
from semmem.stores import is_server, open_store

__all__ = ["connect", "warm_up", "warn_of_barred_legs"]


def connect(
    url: str | None = None,
    *,
    recipe: str | Recipe | None = None,
    embedder: str | Embedder | None = None,
    extractor: str | Extractor | None = None,
    legs: Mapping[str, Factory] | None = None,
    **settings: Unpack[SettingValues],
) -> Semmem:
    """Open a store and return a Semmem.

    ``url`` names the store. Without one, or with ``embedded:``, it is your own embedded PostgreSQL, started on demand;
    ``embedded:///abs/path`` is one in another folder, ``postgresql://…`` a server of yours, ``sqlite:notes.db`` one
    file, and ``http://127.0.0.1:8765`` a store behind ``semmem serve``, with ``key=…`` if it requires one.

    ``embedder`` is a name (``minilm``, ``all-mpnet-base-v2``, one of ``semmem model list``, ``endpoint``, ``hashing``,
    ``none``) or an object. Without it the embedder that filled the
    store is used; for an empty store MiniLM, if it is installed. ``extractor`` is a name (``rules``, ``spacy``,
    ``precomputed``, ``llm``) or an object; without it ``rules`` is used. ``legs`` are legs of your own, as in
    ``register_leg``. ``settings`` override the environment and ``semmem.toml`` (see semmem.Settings), which also choose
    the recipe unless ``recipe`` is given.

    Raises StoreUnavailable, SchemaTooNew, UnknownRecipe or InvalidInput. Warns once if a leg of ``recipe`` cannot bring
    a memory of its own into the top 10.
    """
    where = _url(url)
    chosen = Settings.load(**settings)
    switch_on(otel=chosen.otel, log=chosen.log, audit=_auditor if chosen.audit else None)
    if is_server(place := chosen.url if where is None else where):
        from semmem.client.http import open_server

        assert place is not None
        its_own = {"recipe": recipe, "embedder": embedder, "extractor": extractor, "legs": legs}
        return open_server(place, chosen, its_own)
    plan = recipe_of(chosen) if recipe is None else find_recipe(recipe)
    warn_of_barred_legs(plan, stacklevel=2)
    store = open_store(
        place,
        home=chosen.home,
        pool_size=chosen.pool_size,
        idle_stop_s=chosen.idle_stop_s,
        start_timeout_s=chosen.start_timeout_s,
        backup_before_migration=chosen.backup_before_migration,
        migrate=chosen.migrate,
    )
    try:
        opened = Connection(store, recipe=plan, embedder=embedder, extractor=extractor, settings=chosen, legs=legs)
    except BaseException:
        store.close()  # nobody else can: there is no Semmem to close
        raise
    return StoreSemmem(opened)


def _url(url: Any) -> str | None:
    """Return the url if it is one. Raises InvalidInput for a path, which does not say which store it is."""
    if url is None or isinstance(url, str):
        return url
    instead = f"'sqlite:{url}' or 'embedded:{url}'" if isinstance(url, PathLike) else "'sqlite:notes.db'"
    raise InvalidInput(
        f"The url must be a string that says which store it is, not {type(url).__name__}; write {instead}."
    )


def warn_of_barred_legs(plan: Recipe, *, stacklevel: int) -> None:
    """Warn of each leg of ``plan`` that cannot bring a memory of its own into the top 10."""
    if plan == RECIPES["default"]:  # of which a test proves that it has none: a tenth of a cold command's time
        return
    from semmem.rank_cap import reach

    for regime, legs in reach(plan, 10).regimes.items():
        for leg, status in legs.legs.items():
            if leg in plan.legs and status.class_ in ("unreachable", "boost-only"):
                warnings.warn(
                    f"The leg {leg} of recipe {plan.name!r} is {status.class_} at k = 10 (regime {regime}): it cannot "
                    f"bring in a memory of its own; `semmem reach --recipe {plan.name}` shows why.",
                    stacklevel=stacklevel + 1,
                )


def warm_up(mem: Semmem) -> None:
    """Load the embedding model of ``mem``, if it has one, before the first text or question needs it.

    A server calls this while it waits. Raises EmbedderUnavailable if the model cannot be loaded, LocalOnly if ``mem``
    is behind a server.
    """
    embedder = mem._here.embedder_binding.embedder_or_reason()
    if not isinstance(embedder, str):
        embed_texts(embedder, ["ready"])


def _auditor() -> Watcher:
    from semmem.client.audit import Auditor  # what is off is not loaded

    return Auditor()
