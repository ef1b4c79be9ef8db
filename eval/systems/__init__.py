"""Reach of other systems: their fusions as declarative models, and what each of their legs can do.

One TOML file for each system states what its public source says, at a named version, with file, line and date.
``python -m eval reach --system NAME`` computes what follows. Parts of a system that were not read are not modelled, and
the file says so.
"""

from __future__ import annotations

from eval.systems.model import Fusion, Leg, Source, System, load, names
from eval.systems.reports import system_report
from eval.systems.verdicts import FusionReach, LegVerdict, fusion_reach, with_weights

__all__ = [
    "Fusion",
    "FusionReach",
    "Leg",
    "LegVerdict",
    "Source",
    "System",
    "fusion_reach",
    "load",
    "names",
    "system_report",
    "with_weights",
]
