"""The probe: a synthetic witness through the real pipeline, and which stage dropped it, if one did.

Where ``semmem reach`` says by arithmetic what a leg can do, this stores a memory that only that leg finds, asks for it,
and follows it stage by stage, in a scratch namespace that is dropped afterwards, whatever happens.
"""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from semmem.client.probe.fixture import WITNESS, ProbeFixture, fixture, regimes, rows, witness_keys
from semmem.client.probe.stages import Probe, Probed, Stage, fate
from semmem.embedders.binding import embed_question, embed_texts
from semmem.legs import Legs
from semmem.model.errors import InvalidInput, SemmemError
from semmem.model.filters import within
from semmem.model.protocols import Embedder, Extractor
from semmem.model.recipe import Recipe
from semmem.model.store import Store, lacking
from semmem.model.types import Filters
from semmem.read.recall import Recaller
from semmem.read.result import StoreRecall
from semmem.write.ingest import Ingest

__all__ = ["Prober"]

_PREFIX = "semmem-probe-"
_NAME = re.compile(rf"{_PREFIX}(\d+)-[0-9a-f]{{12}}")
_LEFT_BEHIND = 3600
"""Seconds after which a scratch namespace is taken for one of a process that was killed, and dropped."""
_DEEPEST = 10_000
_MOST = 1_000


class Prober:
    """Wires the parts of one Semmem; keeps no state of a probe."""

    def __init__(
        self,
        store: Store,
        ingest: Ingest,
        recaller: Recaller,
        legs: Legs,
        extractor: Extractor,
        embedder: Callable[[], Embedder | str],
    ) -> None:
        self._store = store
        self._ingest = ingest
        self._recaller = recaller
        self._legs = legs
        self._extractor = extractor
        self._language = recaller.language
        self._embedder = embedder

    def probe(
        self,
        recipe: Recipe,
        k: int = 10,
        leg: str | None = None,
        *,
        witness: tuple[str, str] | None = None,
        filters: Filters | None = None,
    ) -> Probe:
        """Send a witness of every leg of ``recipe``, or of ``leg``, through each regime; see Semmem.probe."""
        if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= _MOST:
            raise InvalidInput(f"k must be from 1 to {_MOST}, not {k!r}.")
        if leg is not None and leg not in self._legs:
            raise InvalidInput(f"There is no leg named {leg!r}; choose one of {', '.join(self._legs)}.")
        if witness is not None and (leg is None or not all(isinstance(w, str) and w.strip() for w in witness)):
            raise InvalidInput("A witness of your own is a question and a text; name the leg that finds it, too.")
        started = time.monotonic()
        self._sweep()
        probed: list[Probed] = []
        left_out: dict[str, str] = {}
        with self._unclaimed():
            for name in [leg] if leg is not None else recipe.legs:
                own = witness or self._own(name)
                if own is None and name not in self._legs.builtin:
                    left_out[name] = f"The leg {name} names no witness of its own; give a question and a text it finds."
                    continue
                for regime in regimes(recipe) if own is None else recipe.regimes[-1:]:  # the question decides, not we
                    one = self.run(recipe, fixture(recipe, name, regime, k, own), k, filters or Filters())
                    if (one.leg, one.regime) not in {(other.leg, other.regime) for other in probed}:
                        probed.append(one)  # a store that links no names has one regime, whatever was asked
        return Probe(recipe.name, k, tuple(probed), left_out, time.monotonic() - started)

    def run(self, recipe: Recipe, of: ProbeFixture, k: int, filters: Filters) -> Probed:
        """Put the witness of one fixture through, in a namespace of its own."""
        with self._scratch() as namespace:
            return self._follow(recipe, of, k, filters, namespace)

    def _own(self, leg: str) -> tuple[str, str] | None:
        """Return the witness that a leg names; one that cannot be made has any, since it is degraded when asked."""
        try:
            return self._legs[leg].witness
        except SemmemError:
            return ("the brass lantern", "the brass lantern")

    # ------------------------------------------------------------------ stage by stage

    def _follow(self, recipe: Recipe, of: ProbeFixture, k: int, filters: Filters, namespace: str) -> Probed:
        def dropped(stage: Stage, why: str, regime: str = of.regime, rank: int | None = None) -> Probed:
            return Probed(of.leg, regime, k, of.question, of.text, stage, why, rank)

        if (lost := self._write(of, namespace)) is not None:
            return dropped(*lost)
        if of.leg not in recipe.legs:
            return dropped("asked", f"The recipe {recipe.name} gives {of.leg} no weight or no depth.")
        recall = self._recaller.recall(of.question, (namespace,), recipe, limit=k, filters=filters)
        candidates, regime = recall.candidates, recall.regime
        if of.leg in recall.degraded:
            return dropped("answered", f"{of.leg} could not answer: {recall.degraded[of.leg]}", regime)
        key = (WITNESS, 0, namespace)
        ranking = candidates.rankings.get(of.leg, ())
        if key not in ranking:
            return dropped(*self._why_missing(recall, of, recipe, filters, namespace), regime=regime)
        rank = ranking.index(key) + 1
        is_hit = any(hit.memory.id == WITNESS for hit in recall)
        end = fate(candidates, recall.cut, key, of.leg, rank, is_hit=is_hit)
        return Probed(
            of.leg,
            regime,
            k,
            of.question,
            of.text,
            end.dropped,
            end.why,
            rank,
            end.others,
            end.place,
            end.class_,
            end.alone,
        )

    def _write(self, of: ProbeFixture, namespace: str) -> tuple[Stage, str] | None:
        """Remember the witness as every memory is, then its competitors; return the stage that failed, and why."""
        keys = witness_keys(of, self._language)
        try:
            self._ingest.remember({**of.item, "namespace": namespace})
        except SemmemError as error:
            return self._failing_stage(of, error)
        except Exception as error:  # noqa: BLE001  # an extractor or embedder of somebody's own may raise anything
            return self._failing_stage(of, error)
        row_ids = self._store.row_ids_of(namespace, WITNESS)
        if not row_ids:
            return "stored", "It was acknowledged, and the store does not have it."
        if lacking(self._store, of.leg) is not None:
            return None  # the leg says so itself when it is asked
        if keys and not len(self._store.postings([namespace], keys)[namespace].entries):
            what = "word of the question" if of.leg == "lexical" else "name that it is about"
            return "extracted", f"The extractor {self._extractor.name} found no {what} in it."
        embedder = self._embedder()
        vectors = self._store.vectors
        if isinstance(embedder, str) or vectors is None:
            if of.leg == "dense" and isinstance(embedder, str):
                return "embedded", embedder
            vector = None
        else:
            if of.leg == "dense" and not len(vectors.vectors_of([namespace], list(row_ids))[0]):
                return "embedded", "It was stored without a vector."
            vector = embed_question(embedder, of.question)
        near = {} if vector is None or vectors is None else vectors.similarities([namespace], list(row_ids), vector)
        competitors = rows(of, namespace, vector, max(near.values(), default=0.0), self._language)
        self._store.write(competitors, on_conflict="abort")
        return None

    def _failing_stage(self, of: ProbeFixture, error: Exception) -> tuple[Stage, str]:
        """Return which part of remembering raised ``error``: the one that raises again when it is tried by itself."""
        reason = " ".join(str(error).split()) or type(error).__name__
        try:
            self._extractor.extract(of.text, of.title)
        except Exception:  # noqa: BLE001  # whatever it is
            return "extracted", f"The extractor {self._extractor.name} failed, so nothing is stored: {reason}"
        try:
            embedder = self._embedder()
            if not isinstance(embedder, str):
                embed_texts(embedder, [of.text])
        except Exception:  # noqa: BLE001  # whatever it is
            return "embedded", f"The embedder failed, so nothing is stored: {reason}"
        return "stored", f"The store did not take it: {reason}"

    def _why_missing(
        self, recall: StoreRecall, of: ProbeFixture, recipe: Recipe, filters: Filters, namespace: str
    ) -> tuple[Stage, str]:
        """Return why the leg's list has no witness: out of scope, too deep, or not found at all."""
        import numpy as np

        row_ids = np.array(self._store.row_ids_of(namespace, WITNESS), dtype=np.int64)
        if not recall.candidates.scope.matches(row_ids).any():
            return "scope", f"The filters do not let it through: {_narrowed(filters, namespace)}."
        deep = replace(recipe, depths={**recipe.depths, of.leg: _DEEPEST})
        again = self._recaller.candidates(recall, deep)
        ranking = again.rankings.get(of.leg, ())
        depth = recipe.depths.get(of.leg, 100)
        key = (WITNESS, 0, namespace)
        if key in ranking:
            return "depth", f"{of.leg} has it at rank {ranking.index(key) + 1}, and the recipe asks for {depth}."
        return "found", f"{of.leg} answered with {len(ranking)} memories, and it is not among them."

    # ------------------------------------------------------------------ the scratch namespace

    @contextmanager
    def _scratch(self) -> Iterator[str]:
        """Give the name of a namespace that nobody has, and drop it afterwards: after an error and Ctrl-C too."""
        namespace = f"{_PREFIX}{int(time.time())}-{uuid.uuid4().hex[:12]}"
        try:
            yield namespace
        finally:
            self._store.forget_namespace(namespace, dry_run=False)

    @contextmanager
    def _unclaimed(self) -> Iterator[None]:
        """Leave a store that nobody fills with vectors to nobody afterwards: a probe does not decide who will."""
        vectors = self._store.vectors
        unclaimed = vectors is not None and vectors.embedder() is None
        try:
            yield
        finally:
            if unclaimed and vectors is not None:
                vectors.release_embedder()

    def _sweep(self) -> None:
        """Drop what a killed process left behind."""
        for namespace in self._store.namespaces():
            match = _NAME.fullmatch(namespace)
            if match is not None and int(match[1]) < time.time() - _LEFT_BEHIND:
                self._store.forget_namespace(namespace, dry_run=False)


def _narrowed(filters: Filters, namespace: str) -> str:
    scope = within(filters, (namespace,))
    values = {name: getattr(scope, name) for name in Filters.__dataclass_fields__}
    return ", ".join(f"{name} {value!r}" for name, value in values.items() if value) or "it is excluded"
