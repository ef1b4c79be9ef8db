"""What a store answers that keeps no vectors and no graph: nothing is there, and what would need them is refused."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

from semmem.model.exchange import Corrections, Forwards, Ranking, Scope, Turn
from semmem.model.protocols import Embed
from semmem.model.store import need
from semmem.model.types import Memory

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["LexicalOnly"]


class LexicalOnly:
    """The methods of Store for vectors and the graph, in a store that declares neither capability."""

    kind: str
    capabilities: frozenset[str] = frozenset(("lexical",))

    # ------------------------------------------------------------------ vectors

    def embedder(self) -> Mapping[str, Any] | None:
        """Return None: nobody fills this store with vectors."""
        return None

    def claim_embedder(self, identity: Mapping[str, Any]) -> Mapping[str, Any]:
        """Refuse. Raises InvalidInput."""
        self._refuse("dense")

    def release_embedder(self) -> None:
        """Do nothing: nobody fills this store."""

    def nearest(self, scope: Scope, vector: NDArray[np.float32], depth: int) -> Ranking:
        """Refuse. Raises InvalidInput."""
        self._refuse("dense")

    def similarities(
        self, namespaces: Sequence[str], ords: Sequence[int], vector: NDArray[np.float32]
    ) -> Mapping[int, float]:
        """Return nothing: no memory has a vector."""
        return {}

    def nearest_with_turns(
        self, scope: Scope, vector: NDArray[np.float32], depth: int
    ) -> tuple[Ranking, Sequence[Turn], NDArray[np.int64], NDArray[np.float32]]:
        """Refuse. Raises InvalidInput."""
        self._refuse("dense")

    def vectors(
        self, namespaces: Sequence[str], ords: Sequence[int], like: NDArray[np.float32] | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return nothing: no memory has a vector."""
        import numpy as np

        return np.zeros(0, dtype=np.int64), np.zeros((0, 0), dtype=np.float32)

    def stored_vectors(self, names: Collection[tuple[str, str]]) -> Mapping[tuple[str, str, int], NDArray[np.float32]]:
        """Return nothing: no memory has a vector."""
        return {}

    def missing_vectors(
        self, after: tuple[str, int], limit: int, *, shadow: bool = False
    ) -> Sequence[tuple[int, Memory]]:
        """Return nothing: no vector is missing where none is kept."""
        return []

    def without_vector(self) -> int:
        """Return 0: no vector is missing where none is kept."""
        return 0

    def half_done(self) -> Mapping[str, tuple[str, int]]:
        """Return nothing: a rebuild notes nothing here."""
        return {}

    def add_vectors(
        self,
        rows: Sequence[tuple[str, int, NDArray[np.float32]]],
        by: Mapping[str, Any] | None = None,
        *,
        shadow: bool = False,
    ) -> None:
        """Refuse. Raises InvalidInput."""
        self._refuse("dense")

    def open_shadow(self, identity: Mapping[str, Any]) -> tuple[int, str | None]:
        """Refuse. Raises InvalidInput."""
        self._refuse("dense")

    def drop_shadow(self) -> str | None:
        """Return None: there is none."""
        return None

    def index_shadow(self, dimensions: int) -> int:
        """Refuse. Raises InvalidInput."""
        self._refuse("dense")

    def take_over(self, identity: Mapping[str, Any], embed: Embed, most: int | None) -> int | None:
        """Refuse. Raises InvalidInput."""
        self._refuse("dense")

    # ------------------------------------------------------------------ rebuilding

    @contextmanager
    def rebuilding(self) -> Iterator[None]:
        """Let several rebuild at once: each reads every memory with its own extractor, and the last one stays."""
        yield

    def fact(self, key: str) -> Mapping[str, Any] | None:
        """Return None: nothing is noted of how far a rebuild came."""
        return None

    def note_fact(self, key: str, value: Mapping[str, Any] | None) -> None:
        """Do nothing."""

    def database_id(self) -> str:
        """Return an empty string: there are no moments to compare."""
        return ""

    # ------------------------------------------------------------------ the graph

    def known_subjects(self, keys: Mapping[str, Collection[int]]) -> Mapping[str, set[int]]:
        """Return no name for any namespace."""
        return {namespace: set() for namespace in keys}

    def moment(self, namespaces: Collection[str]) -> tuple[str, Mapping[str, Corrections]]:
        """Return no corrections for any namespace."""
        return "", {namespace: Corrections() for namespace in namespaces}

    def moment_with_subjects(
        self, keys: Mapping[str, Collection[int]]
    ) -> tuple[str, Mapping[str, Corrections], Mapping[str, set[int]]]:
        """Return no corrections and no name for any namespace."""
        return *self.moment(keys), self.known_subjects(keys)

    def changes_since(self, namespace: str, since: str, keys: Collection[int]) -> tuple[set[int], set[int]]:
        """Return nothing: no name comes or goes."""
        return set(), set()

    def alias_changes(self, namespace: str, since: str) -> set[int]:
        """Return nothing: no name comes or goes."""
        return set()

    def note_aliases(self, namespace: str, keys: Collection[int]) -> None:
        """Do nothing: what older memories hold does not depend on names."""

    def waiting_aliases(self, namespace: str, *, all: bool) -> Sequence[tuple[int, Sequence[int]]]:
        """Return nothing."""
        return []

    def settle_aliases(self, namespace: str, numbers: Sequence[int], left: Collection[int]) -> None:
        """Do nothing."""

    def alias_namespaces(self) -> Sequence[str]:
        """Return no namespace."""
        return []

    def spelled(self, namespace: str, words: Collection[str]) -> NDArray[np.int64]:
        """Return no memory."""
        import numpy as np

        return np.zeros(0, dtype=np.int64)

    def names(self, namespaces: Sequence[str], keys: Collection[int]) -> Mapping[int, str]:
        """Return no name."""
        return {}

    def subject_names(self, namespace: str, ords: Sequence[int]) -> Sequence[tuple[int, int, int, str]]:
        """Return no name."""
        return []

    def forwards(self, namespaces: Sequence[str], ords: Sequence[int]) -> Forwards:
        """Refuse. Raises InvalidInput."""
        self._refuse("graph")

    def surroundings(
        self, namespace: str, ords: Sequence[int], *, neighbours: bool
    ) -> tuple[Forwards, Sequence[tuple[int, int, bool]], NDArray[np.int64]]:
        """Refuse. Raises InvalidInput."""
        self._refuse("graph")

    def correct(self, namespace: str, one: tuple[int, str], into: tuple[int, str] | None) -> bool:
        """Refuse. Raises InvalidInput."""
        self._refuse("graph")

    def concepts(self, namespace: str, like: str | None, limit: int) -> Sequence[tuple[int, str, int, int]]:
        """Refuse. Raises InvalidInput."""
        self._refuse("graph")

    def relationships(self, namespaces: Sequence[str], keys: Collection[int], limit: int) -> Sequence[tuple[int, int]]:
        """Refuse. Raises InvalidInput."""
        self._refuse("graph")

    def tying(self, namespace: str, keys: Collection[int]) -> NDArray[np.int64]:
        """Return no memory."""
        import numpy as np

        return np.zeros(0, dtype=np.int64)

    def graph_hash(self, namespace: str) -> str:
        """Refuse. Raises InvalidInput."""
        self._refuse("graph")

    def _refuse(self, capability: str) -> NoReturn:
        need(self, capability)
        raise AssertionError("unreachable")
