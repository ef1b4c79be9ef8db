"""Legs by name: the three built-in legs, legs given to ``connect`` or registered later, and legs of other packages.

A package declares a leg as an entry point of the group ``semmem.legs``: a name, and a factory that takes a
``semmem.model.search.Reader`` and returns a leg. Entry points are searched only when a recipe names a leg that is not
known otherwise, and a leg is loaded only when it is asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from typing import TYPE_CHECKING, NoReturn

from semmem.legs.adapter import StoreReader, as_leg
from semmem.model.errors import InvalidInput, LegFailed, SemmemError
from semmem.model.exchange import Question
from semmem.model.failure import reason
from semmem.model.process.forks import Lock
from semmem.model.protocols import Leg
from semmem.model.recipe import Recipe
from semmem.model.search import Factory
from semmem.model.store import Snapshot, Store

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["GROUP", "Absent", "Legs"]

GROUP = "semmem.legs"
"""The entry point group in which a package declares its legs."""

_RESERVED_NAMES = frozenset(
    [
        "agreed",
        "as_of",
        "conversation",
        "exact",
        "importance",
        "recall",
        "relationships",
        "rerank",
        "reserve",
        "settings",
        "total",
    ]
)
"""Names that have another meaning in components, in timings, in ``degraded``, or for ``mem.leg``."""


class Legs(MutableMapping[str, Leg]):
    """The legs of one Semmem by name; a leg that is not built in is made when it is first used."""

    def __init__(
        self, store: Store, builtin: Mapping[str, Leg], factories: Mapping[str, Factory] | None = None
    ) -> None:
        if factories is not None and not isinstance(factories, Mapping):
            raise InvalidInput(
                f"legs must be a mapping from a name to the factory of the leg, such as {{'regex': Regex}}, not "
                f"{type(factories).__name__}."
            )
        self._reader = StoreReader(store)
        self._legs: dict[str, Leg] = dict(builtin)
        self._builtin = tuple(builtin)
        self._factories: dict[str, Factory] = {}
        self._declared: dict[str, EntryPoint] | None = None
        self._lock = Lock()
        for name, factory in (factories or {}).items():
            self.register(name, factory)

    def register(self, name: str, factory: Factory) -> None:
        """Register ``factory``, which makes the leg ``name`` when a recipe first asks for it.

        Raises InvalidInput for a name that is in use or a factory that cannot be called.
        """
        if not isinstance(name, str) or not name.isidentifier():
            raise InvalidInput(f"A leg needs a name of letters, digits and underscores, such as regex, not {name!r}.")
        if name in self._builtin or name in self._factories:
            raise InvalidInput(f"The name {name!r} is taken; give the leg another one.")
        if name in _RESERVED_NAMES:
            raise InvalidInput(
                f"The name {name!r} is reserved, as it has another meaning in the results of a recall; give the leg "
                "another one."
            )
        if not callable(factory):
            raise InvalidInput(f"The leg {name!r} needs a factory that takes a reader, not {type(factory).__name__}.")
        self._factories[name] = factory

    @property
    def builtin(self) -> Mapping[str, Leg]:
        """The legs that are built in, or stand in the place of one: a plan asks them what they are, and loads none."""
        return {name: self._legs[name] for name in self._builtin}

    def __contains__(self, name: object) -> bool:
        return name in self._legs or name in self._factories or name in self._entry_points()

    def __getitem__(self, name: str) -> Leg:
        """Return the leg, making it if needed. Raises LegFailed with the reason where that fails."""
        if (leg := self._legs.get(name)) is not None:
            return leg
        with self._lock:
            if name not in self._legs:
                if name not in self:
                    raise KeyError(name)
                self._legs[name] = self._make(name)
            return self._legs[name]

    def _make(self, name: str) -> Leg:
        declared = None if name in self._factories else self._entry_points()[name]
        whence = "registered" if declared is None else f"declared as {declared.value}"
        try:
            factory = self._factories[name] if declared is None else declared.load()
            product = factory(self._reader)
        except SemmemError:
            raise
        except Exception as error:
            raise LegFailed(f"The leg {name!r}, {whence}, could not be made: {reason(error)}") from error
        return as_leg(name, product)

    def _entry_points(self) -> dict[str, EntryPoint]:
        with self._lock:
            if self._declared is None:
                from importlib.metadata import entry_points

                points = entry_points(group=GROUP)
                self._declared = {
                    e.name: e for e in sorted(points, key=lambda e: e.name) if e.name not in _RESERVED_NAMES
                }
            return self._declared

    def __setitem__(self, name: str, leg: Leg) -> None:
        self._legs[name] = as_leg(name, leg)

    def __delitem__(self, name: str) -> None:
        del self._legs[name]

    def __iter__(self) -> Iterator[str]:
        """Yield the names of all legs, built-in ones first; no leg is made."""
        with self._lock:
            return iter(list(dict.fromkeys([*self._legs, *self._factories, *self._entry_points()])))

    def __len__(self) -> int:
        return len(list(iter(self)))


class Absent(Leg):
    """Stands for a leg whose capability the store lacks; ``absence`` says so."""

    reads_vector = False

    def __init__(self, name: str, absence: str) -> None:
        self.name, self.absence = name, absence

    def search(self, question: Question, snapshot: Snapshot, recipe: Recipe) -> NoReturn:
        """Raise LegFailed with the reason."""
        raise LegFailed(self.absence or "")
