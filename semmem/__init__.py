"""Memory for AI agents, on PostgreSQL or in one SQLite file: three legs, one rank fusion, every score explained.

    import semmem

    with semmem.connect() as mem:
        mem.remember("Ada Lovelace wrote the first program for Babbage's engine.", namespace="demo")
        for hit in mem.recall("who programmed the analytical engine?", namespace="demo"):
            print(hit.score, hit.components, hit.memory.text)

Importing this package loads nothing heavy: every public name is fetched from its module when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from semmem.model.process.native_calls import native_calls as _  # noqa: F401  # its exit handler comes after the program's
from semmem.model.process.telemetry import switch_off as _no_telemetry

_no_telemetry()  # before any library is imported that reads its variable then

if TYPE_CHECKING:
    from semmem.client.asynchronous import AsyncSemmem, aconnect
    from semmem.client.copying import copy
    from semmem.client.memory import Semmem
    from semmem.client.opening import connect
    from semmem.client.probe.stages import Probe, Probed
    from semmem.client.scale import dataset as scale  # noqa: F401
    from semmem.interfaces.wrap import wrap
    from semmem.list_fusion import Entry, dedup, fuse, fuse_rows, fuse_scores, rerank
    from semmem.model.errors import (
        AccessDenied,
        BadItem,
        Conflict,
        EmbedderMismatch,
        EmbedderReplaced,
        EmbedderUnavailable,
        InvalidInput,
        KeyRequired,
        LegFailed,
        LimitExceeded,
        LocalOnly,
        MissingExtra,
        NamespaceFull,
        NotFound,
        SchemaTooNew,
        SchemaTooOld,
        SemmemError,
        StoreClosed,
        StoreError,
        StoreUnavailable,
        UnknownRecipe,
    )
    from semmem.model.filters import Within
    from semmem.model.keywords import FilterValues, Item
    from semmem.model.recipe import RECIPES, Recipe, recipe
    from semmem.model.reports import (
        BackupReport,
        CopyReport,
        Finding,
        LeftOut,
        Namespace,
        NamespaceHash,
        Rebuilt,
        RelevanceJudgment,
        Stats,
    )
    from semmem.model.search import Result, SimpleLeg
    from semmem.model.types import Concept, Filters, Hit, IngestReport, LegRank, Memory, Page, Passage, Rejected
    from semmem.rank_cap import reach
    from semmem.rank_cap.report import Reach
    from semmem.read.context import Context
    from semmem.read.result import Recall

__version__ = "0.1.0"

__all__ = [
    "RECIPES",
    "AccessDenied",
    "AsyncSemmem",
    "BackupReport",
    "BadItem",
    "Concept",
    "Conflict",
    "Context",
    "CopyReport",
    "EmbedderMismatch",
    "EmbedderReplaced",
    "EmbedderUnavailable",
    "Entry",
    "FilterValues",
    "Filters",
    "Finding",
    "Hit",
    "IngestReport",
    "InvalidInput",
    "Item",
    "KeyRequired",
    "LeftOut",
    "LegFailed",
    "LegRank",
    "LimitExceeded",
    "LocalOnly",
    "Memory",
    "MissingExtra",
    "Namespace",
    "NamespaceFull",
    "NamespaceHash",
    "NotFound",
    "Page",
    "Passage",
    "Probe",
    "Probed",
    "Reach",
    "Rebuilt",
    "Recall",
    "Recipe",
    "Rejected",
    "RelevanceJudgment",
    "Result",
    "SchemaTooNew",
    "SchemaTooOld",
    "Semmem",
    "SemmemError",
    "SimpleLeg",
    "Stats",
    "StoreClosed",
    "StoreError",
    "StoreUnavailable",
    "UnknownRecipe",
    "Within",
    "aconnect",
    "connect",
    "copy",
    "dedup",
    "fuse",
    "fuse_rows",
    "fuse_scores",
    "reach",
    "recipe",
    "rerank",
    "wrap",
]

_ELSEWHERE = {
    "client.asynchronous": (
        "AsyncSemmem",
        "aconnect",
    ),
    "client.memory": ("Semmem",),
    "client.opening": ("connect",),
    "client.probe.stages": (
        "Probe",
        "Probed",
    ),
    "interfaces.wrap": ("wrap",),
    "list_fusion": (
        "Entry",
        "dedup",
        "fuse",
        "fuse_rows",
        "fuse_scores",
        "rerank",
    ),
    "model.filters": ("Within",),
    "model.keywords": (
        "FilterValues",
        "Item",
    ),
    "model.recipe": (
        "RECIPES",
        "Recipe",
        "recipe",
    ),
    "model.reports": (
        "BackupReport",
        "CopyReport",
        "Finding",
        "RelevanceJudgment",
        "LeftOut",
        "Namespace",
        "NamespaceHash",
        "Rebuilt",
        "Stats",
    ),
    "model.search": (
        "Result",
        "SimpleLeg",
    ),
    "model.types": (
        "Concept",
        "Filters",
        "Hit",
        "IngestReport",
        "LegRank",
        "Memory",
        "Page",
        "Passage",
        "Rejected",
    ),
    "rank_cap": ("reach",),
    "rank_cap.report": ("Reach",),
    "read.context": ("Context",),
    "read.result": ("Recall",),
    "client.copying": ("copy",),
}
_HOME = {name: module for module, names in _ELSEWHERE.items() for name in names}


def __getattr__(name: str) -> Any:
    """Fetch a public name from the module that defines it (PEP 562); a name that no module lists is an error class."""
    if name == "Judgement":
        import warnings

        from semmem.model.other_names import renamed

        name = "RelevanceJudgment"
        warnings.warn(renamed("Judgement", name), DeprecationWarning, stacklevel=2)
    if name == "scale":  # a module of the room of the client
        from semmem.client.scale import dataset

        return dataset
    if name not in __all__:
        raise AttributeError(f"semmem has no attribute {name!r}; its public names are in semmem.__all__")
    from importlib import import_module

    value = getattr(import_module(f"semmem.{_HOME.get(name, 'model.errors')}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
