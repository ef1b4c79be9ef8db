"""Hold the models of a process: which namespaces are in memory, within a budget, and which a recall may read."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from weakref import WeakValueDictionary

from semmem.model.process import heap
from semmem.model.process.forks import Lock
from semmem.stores.resident import saved
from semmem.stores.resident.by_use import ByUse
from semmem.stores.resident.model import Model, State

__all__ = ["Models"]

_PAID = 500
"""The number of memories whose loading one recall from memory pays for; see adr/0112."""
_LONGEST = 256
"""The most recalls of a namespace that pass before a dropped model is loaded again."""
_AT_ONCE = 10_000
"""Up to this many memories a recall waits while its namespace is loaded, about a quarter of a second."""
_LARGE = 500
"""Above this many memories one namespace is loaded at a time: loading takes two and a half times the bytes of a model.

Nor is it waited for where its model was dropped before: one that is dropped again and again would be, each time.
"""
_LOOKED = 32
"""Every so many recalls of a namespace that is not in memory look for a model that another process has saved since."""
_FOLLOWED_S = 1.0
"""How long a recall waits while another one brings the model up to date: 1,000 memories take about .1 s."""
_RENEWAL_S = 60
"""How long who closes waits for a namespace that is being saved anew."""
_MOST_DEMANDS = 10_000
"""The number of namespaces whose recalls are counted."""


@dataclass(slots=True)
class _Demand:
    """How often a namespace was asked without a model, how often it must be before loading, and recalls served.

    ``price`` is the number of recalls that pay for the loading of its model, 0 for a mapped one. ``dropped``: its model
    was dropped before, to make room, or where others write what no model can follow. ``renewed``: how far its mapped
    model was behind its file when it was last to be saved anew, or mapped then, or another behind its large block.
    """

    times: int = 0
    wait: int = 2
    served: int = 0
    price: float = 0
    dropped: bool = False
    renewed: int = 0


class Asked:
    """How many namespaces recalls have asked for, and how many of these the memory did not hold."""

    def __init__(self) -> None:
        self.all = self.missed = 0
        self._lock = Lock()

    def note(self, namespaces: Collection[str], models: Collection[str]) -> None:
        """Note a recall of ``namespaces``, of which ``models`` were in memory."""
        with self._lock:
            self.all += len(namespaces)
            self.missed += len(set(namespaces) - set(models))


class Models:
    """Models by namespace, the one used last at the end. Safe to use from any thread.

    ``load`` loads a namespace into at most so many bytes, and learns how many of these the other models leave;
    ``follow`` brings a model up to date within so many. ``mapped`` finds a namespace that another process has saved.
    They return None where that is impossible. ``renew`` saves a namespace anew, on a thread that no recall waits for,
    and calls ``remap``.
    """

    def __init__(
        self,
        budget: int,
        load: Callable[[str, int, int], Model | None],
        follow: Callable[[Model, int], Model | None],
        mapped: Callable[[str, int], Model | None] = lambda namespace, most: None,
        renew: Callable[[str], None] = lambda namespace: None,
    ) -> None:
        self.asked = Asked()
        self._budget = budget
        self._load, self._follow, self._mapped, self._renew = load, follow, mapped, renew
        self._models = ByUse[Model]()
        self._demands: OrderedDict[str, _Demand] = OrderedDict()
        self._renewing: threading.Thread | None = None
        self._is_busy = False  # a thread loads a large namespace, or saves one
        self._closed = False
        self._lock = Lock()
        self._locks: WeakValueDictionary[str, Lock] = WeakValueDictionary()

    def current(self, states: Mapping[str, State | None]) -> dict[str, Model]:
        """Return the models that are at ``states`` or later; a namespace without one has to be read from the store."""
        return {name: model for name, state in states.items() if (model := self._current(name, state)) is not None}

    def present(self, namespaces: Collection[str]) -> dict[str, Model]:
        """Return the present models of some namespaces, whether or not they are up to date."""
        return {name: model for name in namespaces if (model := self._use(name)) is not None}

    def note(self, namespaces: Collection[str], models: Collection[str]) -> None:
        """Note a recall of ``namespaces``, of which ``models`` served it."""
        self.asked.note(namespaces, models)
        with self._lock:
            for namespace in models:
                self._demands.setdefault(namespace, _Demand()).served += 1

    def clear(self) -> None:
        """Drop all models, and load no more."""
        with self._lock:
            self._closed = True
            self._models.clear()
            self._demands.clear()

    def __contains__(self, namespace: str) -> bool:
        """Return whether a namespace is in memory."""
        with self._lock:
            return namespace in self._models

    @property
    def sizes(self) -> dict[str, int]:
        """Return the approximate number of bytes of each namespace in memory, the one asked last at the end."""
        with self._lock:
            return self._models.sizes

    def _current(self, namespace: str, state: State | None) -> Model | None:
        """Return a model at ``state`` or later; None where there is none and none is to be loaded now."""
        if state is None:
            self._drop(namespace)
            return None
        model = self._use(namespace)
        if model is not None and model.state == state:
            return model
        with self._alone(namespace, 0 if model is None else _FOLLOWED_S) as is_alone:
            return self._made_current(namespace, state) if is_alone else None

    @contextmanager
    def _alone(self, namespace: str, patience_s: float) -> Iterator[bool]:
        """Let one recall at a time load a namespace or bring it up to date; yield False for one that has waited long.

        Nobody waits for a load. The lock of a namespace is gone with the last recall that has it or waits for it: so an
        interrupted recall keeps none for ever.
        """
        with self._lock:
            lock = self._locks.setdefault(namespace, Lock())
        is_alone = lock.acquire(timeout=patience_s)
        try:
            yield is_alone
        finally:
            if is_alone:
                lock.release()

    def _made_current(self, namespace: str, state: State) -> Model | None:
        model = self._use(namespace)
        if model is None:
            return self._load_if_due(namespace, state.memories)
        if model.state == state or model.state.sequence > state.sequence:
            # another recall has brought it up to date; a restored server has another state
            later = model if model.state.place == state.place else None
        else:
            later = self._follow(model, self._budget) if state.follows(model.state) else None
        if later is None:
            self._drop(namespace)
        elif later is not model and self._keep(later, model):
            self._renew_if_grown(later)
        return later

    def _use(self, namespace: str) -> Model | None:
        with self._lock:
            return self._models.used(namespace)

    def _load_if_due(self, namespace: str, memories: int) -> Model | None:
        """Map a saved namespace; load another one that is asked often, a large one on a thread, for later recalls."""
        with self._lock:
            demand = self._demands.setdefault(namespace, _Demand())
            self._demands.move_to_end(namespace)
            while len(self._demands) > _MOST_DEMANDS:
                self._demands.popitem(last=False)
            demand.times += 1
            due = demand.times >= demand.wait and not (self._is_busy and memories > _LARGE)
            looks = memories >= saved.FEWEST and (due or demand.times % _LOOKED == 1)
        if looks and (model := self._mapped(namespace, self._budget)) is not None:
            demand.times = demand.served = demand.renewed = 0
            demand.price = 0
            self._keep(model)
            return model
        if not due or not self._begins(demand, memories):
            return None
        load = partial(self._load_now, namespace, demand, memories)
        if memories <= (_LARGE if demand.dropped else _AT_ONCE):
            try:
                return load()
            finally:
                if memories > _LARGE:
                    self._is_busy = False
        self._on_a_thread(load)
        return None

    def _on_a_thread(self, work: Callable[[], object]) -> threading.Thread | None:
        """Do what is large on a thread of its own, then give the heaps of all threads back: no recall waits for it.

        Returns None where no thread can be started.
        """

        def all_of_it() -> None:
            try:
                work()
            finally:
                self._is_busy = False
                heap.give_back()

        thread = threading.Thread(target=partial(copy_context().run, all_of_it), name="semmem-resident", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # as while the process ends
            self._is_busy = False
            return None
        return thread

    def _renew_if_grown(self, model: Model) -> None:
        """Join the blocks of a model that many memories were written after; save a mapped one anew.

        On a thread, since that takes seconds for a large namespace. Where it fails, it is tried after as many more.
        """
        if model.behind <= saved.MOST_BEHIND:
            return
        with self._lock:
            demand = self._demands.setdefault(model.namespace, _Demand())
            if self._is_busy or self._closed or model.behind - demand.renewed < saved.MOST_BEHIND:
                return
            demand.renewed = model.behind
            self._is_busy = True
        if model.is_mapped:
            self._renewing = self._on_a_thread(partial(self._renew, model.namespace))
        else:
            self._on_a_thread(partial(self._join, model))

    def _join(self, model: Model) -> None:
        """Let a model whose blocks are joined take the place of ``model``, or of one that has followed it since.

        The next recall follows from there: it reads what was written meanwhile once more.
        """
        try:
            joined = model.joined(self._budget)
        except (MemoryError, ValueError):  # the model stays, and its small block grows
            return
        if joined is None or joined.size > self._budget:
            return
        with self._lock:
            present = self._models.get(model.namespace)
            if self._closed or present is None or not present.is_built_on(model):
                return
            self._models[model.namespace] = joined
            self._demands.setdefault(model.namespace, _Demand()).renewed = 0
            self._make_room()

    def end_renewing(self) -> None:
        """Wait for a namespace that is being saved anew, a minute at most: nothing else can be saved meanwhile."""
        if self._renewing is not None:
            self._renewing.join(_RENEWAL_S)

    def remap(self, namespace: str) -> None:
        """Let the file that has just been saved take the place of a mapped model, which may be of an earlier file."""
        with self._lock:
            model = self._models.get(namespace)
        if model is None or not model.is_mapped or (later := self._mapped(namespace, self._budget)) is None:
            return
        with self._lock:
            if namespace in self._models:
                self._models[namespace] = later
                self._demands.setdefault(namespace, _Demand()).renewed = later.behind
                self._make_room()

    def _begins(self, demand: _Demand, memories: int) -> bool:
        """Return whether a namespace may be loaded now: of large ones one at a time, the others ask the database."""
        with self._lock:
            if memories > _LARGE:
                if self._is_busy:
                    return False
                self._is_busy = True
            demand.times = demand.served = demand.renewed = 0
            demand.price = 1 + memories / _PAID
            return True

    def _load_now(self, namespace: str, demand: _Demand, memories: int) -> Model | None:
        with self._lock:
            others = self._models.size_without(namespace)
        model = self._load(namespace, self._budget, self._budget - others)
        if model is None or model.size > self._budget:
            demand.wait = _LONGEST
            return None
        self._keep(model)
        return model

    def _keep(self, model: Model, former: Model | None = None) -> bool:
        """Keep a model, and drop those that were not used for longest until all fit; return whether it is kept.

        Not in the place of another one than ``former``, from which it follows: that one has a newer file.
        """
        with self._lock:
            if self._closed or (former is not None and self._models.get(model.namespace) is not former):
                return False
            self._models.put(model.namespace, model)
            self._demands.setdefault(model.namespace, _Demand())
            self._make_room()
            return True

    def _make_room(self) -> None:
        """Drop the models that were not used for longest until the others fit into the budget; under the lock."""
        for name in self._models.make_room(self._budget):
            self._put_off(name)

    def _drop(self, namespace: str) -> None:
        with self._lock:
            if self._models.pop(namespace, None) is not None:
                self._put_off(namespace)

    def _put_off(self, namespace: str) -> None:
        """Load a dropped model again later, the more often its recalls did not pay for its loading; under the lock."""
        demand = self._demands.setdefault(namespace, _Demand())
        demand.wait = 2 if demand.served >= demand.price else min(_LONGEST, 2 * demand.wait)
        demand.times, demand.dropped = 0, True
