"""The parts a Semmem is made of, by the names its settings give them, and what to warn of before the first question."""

from __future__ import annotations

import warnings

from semmem.config import Settings
from semmem.extractors import load as load_extractor
from semmem.legs.absent import Absent
from semmem.legs.dense import Dense
from semmem.legs.graph import Graph
from semmem.legs.lexical import Lexical
from semmem.protocols import Extractor, Leg, Store
from semmem.rank_cap import reach
from semmem.search_settings import Recipe
from semmem.stores.capabilities import absence, lacking

__all__ = ["extractor_of", "legs_of", "warn_of_barred_legs"]


def legs_of(store: Store, language: str) -> dict[str, Leg]:
    """Return the legs that search ``store``, by name; one whose capability it does not declare says so when asked."""
    legs: tuple[Leg, ...] = (Lexical(store, language), Dense(store), Graph(store, language))
    absent = {leg.name: absence(store, leg.name) for leg in legs if lacking(store, leg.name) is not None}
    return {leg.name: Absent(leg.name, absent[leg.name]) if leg.name in absent else leg for leg in legs}


def extractor_of(wanted: str | Extractor, settings: Settings) -> Extractor:
    """Return the extractor ``wanted`` if it is an object, else the one of that name, as the settings have it."""
    if not isinstance(wanted, str):
        return wanted
    return load_extractor(
        wanted,
        language=settings.language,
        spacy_pipeline=settings.spacy_pipeline,
        triples=settings.triples,
        llm_url=settings.llm_url,
        llm_model=settings.llm_model,
        llm_key=None if settings.llm_key is None else settings.llm_key.get_secret_value(),
        llm_cache=settings.llm_cache,
        llm_timeout_s=settings.llm_timeout_s,
    )


def warn_of_barred_legs(plan: Recipe, *, stacklevel: int) -> None:
    """Warn of each leg of ``plan`` that cannot bring a memory of its own into the top 10."""
    for regime, legs in reach(plan, 10).regimes.items():
        for leg, its in legs.legs.items():
            if leg in plan.legs and its.class_ in ("unreachable", "boost-only"):
                warnings.warn(
                    f"The leg {leg} of recipe {plan.name!r} is {its.class_} at k = 10 (regime {regime}): it cannot "
                    f"bring in a memory of its own; `semmem reach --recipe {plan.name}` shows why.",
                    stacklevel=stacklevel + 1,
                )
