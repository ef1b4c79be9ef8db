"""Decide which embedder a store is used with: chosen when first needed, recorded with its first vector.

Where the user chooses none, it is the embedder that fills the store, by the name recorded there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from semmem.embedders import NAMES, choices, known_as
from semmem.embedders import check as check_embedder
from semmem.embedders import load as load_embedder
from semmem.model.errors import (
    EmbedderMismatch,
    EmbedderUnavailable,
    InvalidInput,
    LegFailed,
    MissingExtra,
    SemmemError,
)
from semmem.model.failure import reason
from semmem.model.field_kinds import MOST_DIMENSIONS, Vector
from semmem.model.process.clock import standing, step
from semmem.model.process.forks import Lock
from semmem.model.protocols import Embedder
from semmem.model.store import Store, lacking

if TYPE_CHECKING:
    from semmem.embedders.endpoint import EndpointOptions

__all__ = [
    "LONGEST_LOADING",
    "EmbedderBinding",
    "QuestionVectors",
    "embed_question",
    "embed_texts",
    "identity",
    "load_recorded",
    "token_counter",
]

LONGEST_LOADING = 120.0
"""Seconds that the first question of a process may wait for the embedding model, which a slow disk delivers late."""


class EmbedderBinding:
    """The embedder of one Semmem: a name, an object, or the one that settings and machine provide."""

    def __init__(
        self,
        store: Store,
        choice: str | Embedder | None,
        model: str | None,
        endpoint: EndpointOptions | None = None,
    ) -> None:
        if choice is not None:
            check_embedder(choice)
        self._store = store
        self._model = model
        self._endpoint = endpoint
        self._choice = choice
        self._lock = Lock()
        self._embedder: Embedder | str | None = None
        self._coming: Embedder | None = None
        self._recorded = False

    @property
    def is_off(self) -> bool:
        """Whether the user chose none."""
        return self._choice == "none"

    def embedder_or_reason(self) -> Embedder | str:
        """Return the embedder, or one sentence that says why there is none; decided once, when first needed.

        Nothing is recorded here, because the embedder of an empty store is recorded with its first vector. Until one is
        recorded, each call checks whether another process did so meanwhile.
        """
        with self._lock:
            if self._embedder is None:
                self._embedder = self._find()
            if not self._recorded and not isinstance(self._embedder, str):
                recorded = _recorded(self._store)
                if recorded is not None:
                    self._use(recorded)
            return self._embedder

    def filled(self) -> None:
        """Note that a vector of the embedder was stored, so that the store has recorded this embedder."""
        with self._lock:
            self._recorded = self._recorded or not (self._embedder is None or isinstance(self._embedder, str))

    def named(self, choice: str | Embedder) -> Embedder:
        """Return the embedder ``choice`` without using it. Raises EmbedderUnavailable, InvalidInput."""
        check_embedder(choice)
        embedder = self._find(choice)
        if isinstance(embedder, str):
            raise EmbedderUnavailable(embedder)
        return embedder

    def expect(self, embedder: Embedder) -> None:
        """Note that ``embedder`` may soon fill the store, because this Semmem is rebuilding it."""
        self._coming = embedder

    def adopt(self, embedder: Embedder) -> None:
        """Use ``embedder`` from now on, because it fills the store."""
        with self._lock:
            if self._chosen() is not None:
                self._choice = embedder
            self._embedder, self._coming, self._recorded = embedder, None, True

    def renewed(self) -> bool:
        """Return whether the embedder that fills the store now is available; if so, use it."""
        recorded = _recorded(self._store)
        with self._lock:
            for one in (self._embedder, self._coming):
                if one is None or isinstance(one, str) or dict(recorded or {}) != identity(one):
                    continue
                self._embedder, self._recorded = one, True
                return True
            if self._chosen() is not None or recorded is None:
                return False
            before, self._embedder = self._embedder, self._stored(recorded)
            self._recorded = not isinstance(self._embedder, str)
            return self._recorded and self._embedder is not before

    def _chosen(self) -> str | Embedder | None:
        """Return the embedder that the user chose; None where the store's own is to be used."""
        return self._choice

    def _use(self, recorded: Mapping[str, Any]) -> None:
        """Use the ``recorded`` embedder. Raises EmbedderMismatch where the user chose another one."""
        if self._embedder is None or isinstance(self._embedder, str):
            return
        if self._chosen() is None and not _is(recorded, self._embedder):
            self._embedder = self._stored(recorded)
            self._recorded = not isinstance(self._embedder, str)
            return
        _agree(recorded, self._embedder)
        self._recorded = True

    def _stored(self, recorded: Mapping[str, Any]) -> Embedder | str:
        """Return the embedder that fills the store, or a sentence that says why it is not available and what to do."""
        if recorded["name"].startswith("external:"):
            return f"This store holds given vectors ({recorded['name']}); pass vector=… with memory and query."
        try:
            return load_recorded(recorded, path=self._model, endpoint=self._endpoint)
        except (EmbedderUnavailable, MissingExtra) as error:
            return (
                f"This store was filled by {_label(recorded)}, which cannot be loaded here: {error.message} Pass "
                "that embedder to semmem.connect(), or compute all vectors again: semmem rebuild --embedder NAME"
            )

    def _find(self, choice: str | Embedder | None = None) -> Embedder | str:
        if (why := lacking(self._store, "dense")) is not None:
            return why
        chosen = choice or self._chosen()
        if chosen is None:
            recorded = _recorded(self._store)
            if recorded is not None:
                return self._stored(recorded)
        elif not isinstance(chosen, str):
            return chosen
        elif chosen == "none":
            return "This Semmem was connected with embedder='none'."
        try:
            return load_embedder(chosen or "minilm", path=self._model, endpoint=self._endpoint)
        except (EmbedderUnavailable, MissingExtra) as error:
            if chosen is not None:
                raise
            return error.message


def _recorded(store: Store) -> Mapping[str, Any] | None:
    """Return the identity of the embedder that fills ``store``; None where none does or no vectors are kept."""
    return None if store.vectors is None else store.vectors.embedder()


def _label(recorded: Mapping[str, Any]) -> str:
    return f"{recorded['name']} ({recorded['dimensions']} dimensions, {str(recorded['fingerprint'])[:19]})"


def _is(recorded: Mapping[str, Any], embedder: Embedder) -> bool:
    """Return whether ``embedder`` is the recorded one; an endpoint, which may be away just now, is not asked for it."""
    same = (embedder.name, embedder.fingerprint) == (recorded["name"], recorded["fingerprint"])
    if same and (assume := getattr(embedder, "assume", None)) is not None:
        assume(recorded["dimensions"])
    return dict(recorded) == identity(embedder)


def _agree(recorded: Mapping[str, Any], embedder: Embedder) -> None:
    """Raise EmbedderMismatch unless ``embedder`` is the one recorded in the store."""
    if not _is(recorded, embedder):
        raise EmbedderMismatch(
            f"This store was filled by {_label(recorded)} and you connected with {_label(identity(embedder))}; leave "
            "the embedder out (of connect, SEMMEM_EMBEDDER and semmem.toml) to use the store's own, or make all "
            "vectors anew with `semmem rebuild --embedder NAME`."
        )


class QuestionVectors:
    """Makes or checks the vectors of questions for a store, given a function that returns its embedder, or a reason.

    ``renewed`` returns whether the embedder that now fills the store is available after all. The first question of a
    process waits for the model, which does not count as the leg's time; ``LONGEST_LOADING`` seconds after it began
    every question has the leg's time alone, so an embedder that hangs delays one recall and no other.
    """

    def __init__(self, store: Store, embedder: Callable[[], Embedder | str], renewed: Callable[[], bool]) -> None:
        self._store = store
        self._embedder = embedder
        self._renewed = renewed
        self._loaded = False
        self._began: float | None = None
        self._fits: tuple[tuple[int, ...], Any] | None = None

    def renewed(self) -> bool:
        """Return whether the embedder that now fills the store is available; given vectors then count as its own."""
        if not self._renewed():
            return False
        self._fits = None  # else given vectors would count as those of the store's former embedder
        return True

    def from_numbers(self, numbers: Any) -> Any:
        """Return a vector given by the caller as a unit vector of the store's embedder.

        Raises InvalidInput or EmbedderMismatch when it cannot be used, because that is the caller's error and no
        degraded leg.
        """
        from semmem.model.store.encoded import encoded

        unit = Vector().checked("vector", numbers)
        # a vector of the same length was checked before
        fits = self._fits
        recorded = fits[1] if fits is not None and fits[0] == unit.shape else _recorded(self._store)
        if recorded is None:
            return unit
        if unit.shape != (recorded["dimensions"],):
            raise EmbedderMismatch(
                f"This store holds vectors of {recorded['name']} with {recorded['dimensions']} dimensions and the "
                f"vector given has {len(unit)}; give one of that model."
            )
        self._fits = unit.shape, recorded
        return encoded(unit, recorded)

    def embedded(self, query: str) -> Any:
        """Return the unit vector of a question.

        Raises LegFailed where there is no embedder, and EmbedderUnavailable where it returns no vector.
        The first time, while the model is being read, the clock of the thread stands still.
        """
        if self._began is None:
            self._began = time.monotonic()
        loading = not self._loaded and time.monotonic() - self._began < LONGEST_LOADING
        with standing() if loading else nullcontext():
            embedder = self._embedder()
            if isinstance(embedder, str):
                raise LegFailed(embedder)
            from semmem.model.store.encoded import encoded

            vector = encoded(embed_question(embedder, query), identity(embedder))
        self._loaded = True
        return vector


def embed_question(embedder: Embedder, query: str) -> Any:
    """Return the unit vector of a question, by ``embed_questions`` where the embedder tells questions from passages."""
    embed = getattr(embedder, "embed_questions", embedder.embed)
    return _embedded(embedder, embed, [query], lambda _: "the question")[0]


def embed_texts(
    embedder: Embedder,
    texts: Sequence[str],
    name_of: Callable[[int], str] = lambda place: f"text {place + 1}",
    unusable: dict[int, str] | None = None,
) -> Any:
    """Return unit vectors of shape (len(texts), dimensions).

    Raises EmbedderUnavailable where the embedder raises an error, or returns anything but one vector a text. The
    sentence names the text by ``name_of`` its place in ``texts``. Where ``unusable`` is given, it gets the places of
    vectors that have no direction, each with the reason, and these raise nothing.
    """
    return _embedded(embedder, embedder.embed, texts, name_of, unusable)


def _embedded(
    embedder: Embedder,
    embed: Callable[[Sequence[str]], Any],
    texts: Sequence[str],
    name_of: Callable[[int], str],
    unusable: dict[int, str] | None = None,
) -> Any:
    import numpy as np

    which = name_of(0) if len(texts) == 1 else f"{len(texts)} texts, from {name_of(0)} on" if texts else "no text"
    try:
        with step("embed"):
            rows = embed(texts)
    except SemmemError:
        raise
    except Exception as error:
        why = reason(error, 300)
        raise EmbedderUnavailable(f"The embedder {embedder.name} could not embed {which}: {why}") from error
    try:
        vectors = np.asarray(rows, dtype=np.float32)
    except Exception:  # noqa: BLE001  # rows of several lengths, no numbers, or whatever the object raises
        vectors = np.zeros(0, dtype=np.float32)
    if vectors.shape != (len(texts), embedder.dimensions):
        raise EmbedderUnavailable(
            f"The embedder {embedder.name} returned {_received(rows, vectors)} for {which}; it must return "
            f"{len(texts)} × {embedder.dimensions} numbers."
        )
    norms = np.linalg.norm(vectors.astype(np.float64), axis=1)
    for place in np.flatnonzero(~(np.isfinite(norms) & (norms > 0))).tolist():
        what = "only zeros" if norms[place] == 0 else "a number that is not finite (NaN or infinity)"
        if unusable is None:
            raise EmbedderUnavailable(
                f"The embedder {embedder.name} returned a vector with {what} for {name_of(place)}."
            )
        norms[place] = 1
        unusable[place] = f"The embedder {embedder.name} returned a vector with {what}."
    return vectors if np.allclose(norms, 1, atol=1e-3) else (vectors / norms[:, None]).astype(np.float32)


def _received(rows: Any, vectors: Any) -> str:
    """Return in words the result of an embedder that is not one vector a text."""
    if vectors.ndim == 2:
        return f"{vectors.shape[0]} vectors of {vectors.shape[1]} dimensions"
    if rows is None:
        return "None"
    return f"a {type(rows).__name__} that is no table of numbers"


def identity(embedder: Embedder) -> dict[str, Any]:
    """Return the identity of an embedder: name, dimensions and fingerprint.

    Raises InvalidInput where one of them is of another type, because the store records them.
    """
    name, dimensions, fingerprint = embedder.name, embedder.dimensions, embedder.fingerprint
    if not isinstance(dimensions, int) or isinstance(dimensions, bool) or not 1 <= dimensions <= MOST_DIMENSIONS:
        raise InvalidInput(
            f"The dimensions of the embedder {name} must be a whole number from 1 to {MOST_DIMENSIONS:,}, not "
            f"{dimensions!r:.60}."
        )
    if not (isinstance(name, str) and name and isinstance(fingerprint, str) and fingerprint):
        raise InvalidInput(
            f"The name and the fingerprint of an embedder must be text, not {name!r:.60} and {fingerprint!r:.60}."
        )
    return {"name": name, "dimensions": dimensions, "fingerprint": fingerprint}


def token_counter(embedder: Embedder) -> Callable[[str], int]:
    """Return the function by which ``embedder`` counts tokens; raises EmbedderUnavailable for anything but a count."""

    def count(text: str) -> int:
        try:
            tokens = embedder.count_tokens(text)
        except SemmemError:
            raise
        except Exception as error:
            raise EmbedderUnavailable(
                f"The embedder {embedder.name} could not count the tokens of a text of {len(text):,} characters: "
                f"{reason(error, 300)}"
            ) from error
        if not isinstance(tokens, int) or tokens < 0:
            raise EmbedderUnavailable(
                f"The embedder {embedder.name} counted {tokens!r:.60} tokens in a text of {len(text):,} characters; "
                "count_tokens must return a whole number."
            )
        return tokens

    return count


def load_recorded(
    recorded: Mapping[str, Any], *, path: str | None = None, endpoint: EndpointOptions | None = None
) -> Embedder:
    """Return the embedder with the identity ``recorded`` without loading its model.

    Raises EmbedderUnavailable, or MissingExtra, when no embedder here has that identity or its model is missing.
    """
    called = known_as(recorded["name"])
    known = [called] if called in choices() else [name for name in NAMES if name != "endpoint"]
    for name in known:
        try:
            embedder = load_embedder(name, path=path, endpoint=endpoint)
        except (EmbedderUnavailable, MissingExtra):
            if called == name:
                raise
            continue
        if embedder.name == recorded["name"] and _is(recorded, embedder):  # without reading weights in vain
            return embedder
    raise EmbedderUnavailable("No embedder here has these weights and settings.")
