"""Reach for everybody: the fusions of other systems as declarative models, and what each of their legs can do.

One TOML file a system says what its public source says, at a named version, with file and line, and the day it was
read. ``python -m eval reach --system NAME`` works out what follows from the arithmetic. What was not read is not
modelled, and said so.
"""

from __future__ import annotations

from eval.systems.model import Fusion, Leg, Source, System, load, names
from eval.systems.telling import told
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
    "told",
    "with_weights",
]
