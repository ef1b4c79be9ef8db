"""The workers: actors of Ray, each with the model and the extractor, which read batches for the process that stores.

A worker opens no store. One that ends in the middle of a batch is started again and reads the batch again; nothing of
it was stored. The batches come back in their order, so what is stored is the same as without workers.
"""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from semmem.client.connection import endpoint_of
from semmem.client.memory import Semmem, StoreSemmem
from semmem.client.scale.cluster import LOCAL, cluster
from semmem.config import Settings
from semmem.embedders import choices, known_as
from semmem.embedders.binding import identity, load_recorded
from semmem.embedders.endpoint import EndpointOptions
from semmem.model.errors import EmbedderUnavailable, InvalidInput, SemmemError
from semmem.model.failure import reason
from semmem.model.process.machine import use_at_most
from semmem.model.protocols import Embedder
from semmem.write.bulk import greeting
from semmem.write.preparation import Batch, Prepared, Reading

__all__ = ["Named", "RayReaders", "Worker", "on_ray"]

_STARTS_S = 120.0
"""How long the first worker may take until it has read the model; those that are slower are not used."""
_TRIES = 3
"""How often a batch is read again by another worker where one ends."""
_SLOTS = 2
"""Batches that a worker has at a time, so that it need not wait for the next one."""
_READ_AHEAD = 4
"""Batches for each worker that are sent, or read and not stored yet; so memory is bounded."""
_TRACEBACK = 100_000
"""The longest text of an error of Ray that is read; its cause is at the end."""


@dataclass(frozen=True, slots=True)
class Named:
    """An embedder by its identity, which each worker loads from its own disk."""

    recorded: Mapping[str, Any]
    path: str | None
    endpoint: EndpointOptions | None

    def load(self) -> Embedder:
        """Return the embedder. Raises EmbedderUnavailable or MissingExtra."""
        return load_recorded(self.recorded, path=self.path, endpoint=self.endpoint)


class Worker:
    """One worker; it uses one processor, or the GPU that Ray gives it."""

    def __init__(self, reading: Reading, embedder: Named | Embedder | None) -> None:
        use_at_most(1)
        self._reading, self._embedder = reading, embedder

    def ready(self) -> tuple[str, str]:
        """Return by which versions it reads, and a sentence where it cannot embed."""
        try:
            embedder = self._embedder.load() if isinstance(self._embedder, Named) else self._embedder
            if embedder is not None:
                embedder.embed(["ready"])
        except SemmemError as error:
            return greeting(), error.message
        self._reading = replace(self._reading, embedder=embedder)
        return greeting(), ""

    def read(self, batch: Batch, namespace: str, stored: Collection[int]) -> Prepared:
        """Return a batch as prepared, without its items, which the asker has."""
        if self._reading.embedder is None and self._embedder is not None:  # started again
            _, sentence = self.ready()
            if sentence:
                raise EmbedderUnavailable(sentence)
        return replace(self._reading(batch, namespace, stored), items=())


class RayReaders:
    """Workers that read batches side by side."""

    def __init__(self, ray: Any, workers: Collection[Any], reading: Reading) -> None:
        self._ray, self._workers, self._reading = ray, workers, reading

    def __len__(self) -> int:
        return len(self._workers)

    def read(self, batches: Iterable[tuple[Batch, Collection[int]]], namespace: str) -> Generator[Prepared, None, None]:
        """Yield batches in their order as prepared; each comes with the positions of which nothing need be read."""
        work = iter(batches)
        free = deque(list(self._workers) * _SLOTS)
        busy: dict[Any, Any] = {}
        waiting: deque[tuple[Batch, Collection[int], Any]] = deque()
        more = True
        while more or waiting:
            while more and free and len(waiting) < _READ_AHEAD * len(self._workers):
                if (one := next(work, None)) is None:
                    more = False
                    break
                batch, stored = one
                if len(stored) == len(batch):  # nothing to read
                    waiting.append((batch, stored, None))
                    continue
                worker = free.popleft()
                reference = worker.read.remote(batch, namespace, stored)
                busy[reference] = worker
                waiting.append((batch, stored, reference))
            if waiting and waiting[0][2] not in busy:
                batch, stored, reference = waiting.popleft()
                yield self._taken(batch, namespace, stored, reference)
            for done in self._done(busy, bool(waiting) and waiting[0][2] in busy):
                free.append(busy.pop(done))

    def _done(self, busy: Mapping[Any, Any], wait: bool) -> list[Any]:
        """Return what is read; with ``wait`` at least one."""
        if not busy:
            return []
        timeout = None if wait else 0
        done, _ = self._ray.wait(list(busy), num_returns=1 if wait else len(busy), timeout=timeout, fetch_local=False)
        return list(done)

    def _taken(self, batch: Batch, namespace: str, stored: Collection[int], reference: Any) -> Prepared:
        """Return one batch; this process reads it where nothing need be read, or where no worker could."""
        if reference is None:
            return self._reading(batch, namespace, stored)
        errors = self._ray.exceptions
        try:
            prepared: Prepared = self._ray.get(reference)
        except errors.RayTaskError as error:
            raise error.cause if isinstance(error.cause, SemmemError) else error from None
        except errors.RayError as error:
            items = f"items {batch[0][0]} to {batch[-1][0]}"
            warnings.warn(
                f"No worker of Ray could read {items} ({reason(error, 200)}); this process reads them.", stacklevel=2
            )
            return self._reading(batch, namespace, stored)
        return replace(prepared, items=batch)


@contextmanager
def on_ray(mem: Semmem, address: str = LOCAL, *, workers: int | None = None) -> Iterator[Semmem]:
    """Yield ``mem`` with the workers of a Ray, which read what is remembered in bulk or imported; see ``cluster``.

    There are ``workers`` of them, by default one a processor.

    Raises LocalOnly where ``mem`` is behind a server, InvalidInput where no Ray answers or its workers have another
    version, EmbedderUnavailable where they cannot embed.
    """
    here = mem._here
    found = here.embedder_binding.embedder_or_reason()
    embedder = None if isinstance(found, str) else found
    reading = here.ingest.reading()
    with cluster(address) as ray:
        started = _started(ray, reading, _for_workers(embedder, here.settings), workers)
        try:
            readers = RayReaders(ray, started, replace(reading, embedder=embedder))
            yield StoreSemmem(here.read_by(readers))
        finally:
            for worker in started:
                ray.kill(worker)


def _for_workers(embedder: Embedder | None, settings: Settings) -> Named | Embedder | None:
    """Return an embedder of semmem's by its identity, since each machine has the model; another one as it is."""
    if embedder is None or known_as(embedder.name) not in choices():
        return embedder
    return Named(identity(embedder), settings.model, endpoint_of(settings))


def _started(ray: Any, reading: Reading, embedder: Named | Embedder | None, wanted: int | None) -> list[Any]:
    """Start the workers: for each processor one, or for each GPU where an embedder of one's own may use it."""
    has = ray.cluster_resources()
    gpus = int(has.get("GPU", 0)) if not isinstance(embedder, Named | None) else 0
    count = wanted or gpus or max(1, int(has.get("CPU", 1)))
    options = {"num_cpus": 1, "num_gpus": 1 if gpus else 0, "max_restarts": -1, "max_task_retries": _TRIES}
    actor = ray.remote(**options)(Worker)
    try:
        workers = [actor.remote(reading, embedder) for _ in range(count)]
    except (TypeError, ValueError) as error:  # of what cannot be pickled
        raise InvalidInput(
            f"The embedder or the extractor cannot be sent to the workers of Ray ({reason(error, 200)}); choose them "
            "by name."
        ) from error
    greetings = {worker.ready.remote(): worker for worker in workers}
    ready, late = ray.wait(list(greetings), num_returns=count, timeout=_STARTS_S)
    for reference in late:
        ray.kill(greetings[reference])
    usable = [greetings[reference] for reference in ready]
    try:
        _check(ray, ready)
    except BaseException:
        for worker in usable:
            ray.kill(worker)
        raise
    return usable


def _check(ray: Any, ready: Collection[Any]) -> None:
    """Raise unless a worker is there, and each reads by the rules of this process and can embed."""
    if not ready:
        raise InvalidInput(
            f"No worker of Ray was ready after {_STARTS_S:.0f} s; `ray status` shows whether its processors are taken."
        )
    try:
        answers = ray.get(list(ready))
    except ray.exceptions.RayError as error:
        said = reason(error, _TRACEBACK)[-200:]
        raise InvalidInput(
            f"The workers of Ray cannot load semmem ({said}); install the same version on each machine of the cluster."
        ) from error
    for versions, sentence in answers:
        if versions != greeting():
            raise InvalidInput(
                f"A worker of Ray reads by other rules ({versions}) than this process ({greeting()}); install the same "
                "versions of semmem and Python on each machine of the cluster."
            )
        if sentence:
            raise EmbedderUnavailable(f"A worker of Ray cannot embed: {sentence}")
