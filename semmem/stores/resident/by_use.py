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
    """Models by namespace, the one used last at the end; whoever has it lets one thread at a time use it.

    A model is weighed once, when it is put here: there may be thousands, and weighing one adds up its arrays.
    """

    def __init__(self) -> None:
        self._models: OrderedDict[str, tuple[M, int]] = OrderedDict()

    @property
    def size(self) -> int:
        """Return the approximate number of bytes of all models."""
        return sum(size for _, size in self._models.values())

    @property
    def sizes(self) -> dict[str, int]:
        """Return the size of each namespace in bytes."""
        return {namespace: size for namespace, (_, size) in self._models.items()}

    def size_without(self, namespace: str) -> int:
        """Return the bytes of all models but that of ``namespace``."""
        return self.size - (self._models[namespace][1] if namespace in self._models else 0)

    def used(self, namespace: str) -> M | None:
        """Return the model of a namespace, which is the one used last now; None for one that is not here."""
        if (entry := self._models.get(namespace)) is None:
            return None
        self._models.move_to_end(namespace)
        return entry[0]

    def put(self, namespace: str, model: M) -> None:
        """Put a model here, in the place of another one of its namespace, as the one used last."""
        self[namespace] = model
        self._models.move_to_end(namespace)

    def make_room(self, budget: int) -> list[str]:
        """Drop models until the others take at most ``budget`` bytes, and return their names; the last one stays."""
        size, dropped = self.size, []
        while size > budget and len(self._models) > 1:
            namespace, (_, own) = self._models.popitem(last=False)
            size -= own
            dropped.append(namespace)
        return dropped

    def __getitem__(self, namespace: str) -> M:
        return self._models[namespace][0]

    def __setitem__(self, namespace: str, model: M) -> None:
        self._models[namespace] = model, model.size

    def __delitem__(self, namespace: str) -> None:
        del self._models[namespace]

    def __iter__(self) -> Iterator[str]:
        return iter(self._models)

    def __len__(self) -> int:
        return len(self._models)
