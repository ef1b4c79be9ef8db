"""Which embedder a store is used with: found when first needed, recorded when it first writes.

Where nobody chooses one, it is the one that fills the store, by the name that is recorded there.
"""

from __future__ import annotations

from collections.abc import Mapping
from threading import Lock
from typing import Any

from semmem.config import Settings
from semmem.embedders import identity, load_recorded
from semmem.embedders import load as load_embedder
from semmem.errors import EmbedderMismatch, EmbedderUnavailable, MissingExtra
from semmem.protocols import Embedder, Store
from semmem.stores.capabilities import lacking

__all__ = ["Encoder"]


class Encoder:
    """The embedder of one Semmem: a name, an object, or what the settings and the machine have."""

    def __init__(self, store: Store, settings: Settings, wanted: str | Embedder | None) -> None:
        self._store = store
        self._settings = settings
        self._wanted = wanted
        self._lock = Lock()
        self._found: Embedder | str | None = None
        self._coming: Embedder | None = None
        self._recorded = False

    def found(self) -> Embedder | str:
        """Return the embedder, or in one sentence why there is none; found once, when first needed.

        Who fills an empty store is recorded with its first vector, so nothing is recorded here; until something is,
        each call looks whether another process did meanwhile.
        """
        with self._lock:
            if self._found is None:
                self._found = self._find()
            if not self._recorded and not isinstance(self._found, str):
                recorded = self._store.embedder()
                if recorded is not None:
                    self._use(recorded)
            return self._found

    def filled(self) -> None:
        """Be told that a vector of the embedder was stored, so that it is the one recorded."""
        with self._lock:
            self._recorded = self._recorded or not (self._found is None or isinstance(self._found, str))

    def named(self, wanted: str | Embedder) -> Embedder:
        """Return the embedder ``wanted`` without using it. Raises EmbedderUnavailable."""
        found = self._find(wanted)
        if isinstance(found, str):
            raise EmbedderUnavailable(found)
        return found

    def expect(self, embedder: Embedder) -> None:
        """Be told that ``embedder`` may fill the store soon: a rebuild of this very Semmem is at work."""
        self._coming = embedder

    def adopt(self, embedder: Embedder) -> None:
        """Use ``embedder`` from now on: it fills the store."""
        with self._lock:
            if self._chosen() is not None:
                self._wanted = embedder
            self._found, self._coming, self._recorded = embedder, None, True

    def renewed(self) -> bool:
        """Return whether the embedder that fills the store now is at hand, which is then used."""
        recorded = self._store.embedder()
        with self._lock:
            for one in (self._found, self._coming):
                if one is None or isinstance(one, str) or dict(recorded or {}) != identity(one):
                    continue
                self._found, self._recorded = one, True
                return True
            if self._chosen() is not None or recorded is None:
                return False
            before, self._found = self._found, self._stored(recorded)
            self._recorded = not isinstance(self._found, str)
            return self._recorded and self._found is not before

    def _chosen(self) -> str | Embedder | None:
        """Return what somebody chose, None where the store's own embedder is to be used."""
        return self._wanted or self._settings.embedder

    def _use(self, recorded: Mapping[str, Any]) -> None:
        """Go on with the embedder that is ``recorded``. Raises EmbedderMismatch where somebody chose another one."""
        if self._found is None or isinstance(self._found, str):
            return
        if self._chosen() is None and dict(recorded) != identity(self._found):
            self._found = self._stored(recorded)
            self._recorded = not isinstance(self._found, str)
            return
        _agree(recorded, self._found)
        self._recorded = True

    def _stored(self, recorded: Mapping[str, Any]) -> Embedder | str:
        """Return the embedder that fills the store, or in one sentence why it is not at hand and what to do."""
        if recorded["name"].startswith("external:"):
            return f"This store holds given vectors ({recorded['name']}); pass vector=… with memory and query."
        try:
            return load_recorded(recorded, path=self._settings.model)
        except (EmbedderUnavailable, MissingExtra) as error:
            return (
                f"This store was filled by {_told(recorded)}, which cannot be loaded here: {error.message} Pass "
                "that embedder to semmem.connect(), or make all vectors anew: semmem rebuild --embedder NAME"
            )

    def _find(self, wanted: str | Embedder | None = None) -> Embedder | str:
        if (why := lacking(self._store, "dense")) is not None:
            return why
        chosen = wanted or self._chosen()
        if chosen is None:
            recorded = self._store.embedder()
            if recorded is not None:
                return self._stored(recorded)
        elif not isinstance(chosen, str):
            return chosen
        elif chosen == "none":
            return "This Semmem was connected with embedder='none'."
        try:
            return load_embedder(chosen or "minilm", path=self._settings.model)
        except (EmbedderUnavailable, MissingExtra) as error:
            if chosen is not None:
                raise
            return error.message


def _told(recorded: Mapping[str, Any]) -> str:
    return f"{recorded['name']} ({recorded['dimensions']} dimensions, {str(recorded['fingerprint'])[:19]})"


def _agree(recorded: Mapping[str, Any], embedder: Embedder) -> None:
    """Raise EmbedderMismatch unless ``embedder`` is the one recorded in the store."""
    if dict(recorded) != identity(embedder):
        raise EmbedderMismatch(
            f"This store was filled by {_told(recorded)} and you connected with {_told(identity(embedder))}; leave "
            "the embedder out (of connect, SEMMEM_EMBEDDER and semmem.toml) to use the store's own, or make all "
            "vectors anew with `semmem rebuild --embedder NAME`."
        )
