"""Keep models by namespace within a budget of bytes: those make room that were not used for longest."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, MutableMapping
from typing import Protocol, TypeVar

__all__ = ["ByUse"]


class _Sized(Protocol):
    @property
    def size(self) -> int: ...


M = TypeVar("M", bound=_Sized)


class ByUse(MutableMapping[str, M]):
    """Models by namespace, the one used last at the end, and their approximate ``size`` in bytes. For one thread.

    A model is weighed once, when it is put here: thousands of small ones may be, so they are not added up again.
    """

    def __init__(self) -> None:
        self.size = 0
        self._models: OrderedDict[str, tuple[M, int]] = OrderedDict()

    @property
    def sizes(self) -> dict[str, int]:
        """Return the size of each namespace in bytes."""
        return {namespace: size for namespace, (_, size) in self._models.items()}

    def size_of(self, namespace: str) -> int:
        """Return the size of a namespace in bytes, 0 for one that is not here."""
        return self._models[namespace][1] if namespace in self._models else 0

    def used(self, namespace: str) -> M | None:
        """Return the model of a namespace, which is the one used last now; None for one that is not here."""
        if (entry := self._models.get(namespace)) is None:
            return None
        self._models.move_to_end(namespace)
        return entry[0]

    def make_room(self, budget: int) -> list[str]:
        """Drop models until the others take at most ``budget`` bytes, and return their names; the last one stays."""
        dropped = []
        while self.size > budget and len(self._models) > 1:
            dropped.append(next(iter(self._models)))
            del self[dropped[-1]]
        return dropped

    def __getitem__(self, namespace: str) -> M:
        return self._models[namespace][0]

    def __setitem__(self, namespace: str, model: M) -> None:
        size = model.size
        self.size += size - self.size_of(namespace)
        self._models[namespace] = model, size

    def __delitem__(self, namespace: str) -> None:
        self.size -= self._models.pop(namespace)[1]

    def __iter__(self) -> Iterator[str]:
        return iter(self._models)

    def __len__(self) -> int:
        return len(self._models)
