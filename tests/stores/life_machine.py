"""Verbs in any order on a store and on a model in plain dictionaries, compared after each."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from itertools import count
from typing import Any, ClassVar

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import semmem
from semmem.client.memory import Semmem
from semmem.model.errors import InvalidInput, NamespaceFull, NotFound, SemmemError
from semmem.model.store import Keep
from semmem.model.types import LINK_TYPES, MASK, Memory, masked
from tests.stores.audit import check
from tests.stores.life_draws import LATE, TIMES, changes, namespaces, numbers, people, sessions, times
from tests.stores.life_model import Model

ASKED = [datetime(2019, 6, 1, tzinfo=UTC), datetime(2021, 1, 1, tzinfo=UTC), datetime(2022, 6, 1, tzinfo=UTC)]
GIVEN = (
    "id",
    "namespace",
    "text",
    "session",
    "tags",
    "importance",
    "created_at",
    "valid_from",
    "valid_to",
    "sensitive",
)


class Life(RuleBasedStateMachine):
    """Verbs on a store and on a model; after each the namespaces that it touched are compared, at the end all.

    Beside them is a copy of the store, which is fed by ``changes`` alone, three at a time.
    """

    mem: ClassVar[Semmem]
    expire: ClassVar[Callable[[Semmem, str, str], None] | None] = None  # lets the time of a memory be over
    runs: ClassVar[count[int]] = count()

    @initialize()
    def begin(self) -> None:
        self.model = Model()
        self.run = next(self.runs)  # the namespaces of each run are its own
        self.made: list[str] = []
        self.texts = 0
        self.touched: set[str] = set()
        self.copies: dict[str, dict[str, Memory]] = {}
        self.cursors: dict[str, str] = {}
        self.renewed: set[str] = set()  # namespaces that are another one since their copy was made

    # ------------------------------------------------------------------ what a rule needs

    def name(self, namespace: str) -> str:
        found = f"{namespace}{self.run}"
        self.touched.add(found)
        return found

    def id(self, number: int) -> str:
        known = ["a", "b", "c", *self.made]
        return known[number % len(known)]

    def there(self, where: str, number: int) -> str | None:
        """Return the id of a memory that is there, None where none is."""
        known = sorted(self.model.place(where).memories)
        return known[number % len(known)] if known else None

    def text(self) -> str:
        """Return a text that shares no word with any other."""
        self.texts += 1
        drawn = hashlib.sha256(f"{self.run} {self.texts}".encode()).hexdigest()
        return " ".join("w" + drawn[at : at + 8] for at in (0, 8, 16))

    def both(self, real: Callable[[], Any], model: Callable[[], Any]) -> tuple[Any, Any]:
        """Do the same to both; both return what they return, or raise errors of one class."""
        done, expected = outcome(real), outcome(model)
        if isinstance(done, SemmemError) or isinstance(expected, SemmemError):
            assert type(done) is type(expected), (done, expected)
            return None, None
        return done, expected

    def stored(self, done: Memory, expected: Memory) -> None:
        """Compare what a write returned; the model takes over when it was written."""
        if expected.updated_at is None:
            assert done.updated_at is not None
            assert done.updated_at > TIMES[-1]
            expected = replace(expected, updated_at=done.updated_at)
            self.model.place(done.namespace).memories[done.id] = expected
        assert done == masked(expected)

    def recalled(self, where: str, asked: str) -> semmem.Recall:
        """Recall by the lexical leg; the model counts what was returned."""
        found = self.mem.recall(asked, namespace=where, recipe="lexical")
        self.model.returned(where, [hit.id for hit in found])
        return found

    def write_what_is_counted(self) -> None:
        self.mem._here.accesses.write()
        self.model.write()

    # ------------------------------------------------------------------ the verbs

    @rule(namespace=namespaces, number=numbers, session=sessions, at=times)
    def remember(self, namespace: str, number: int, session: str | None, at: datetime) -> None:
        where, id, text = self.name(namespace), self.id(number), self.text()
        given = Memory(id, where, text, session=session, created_at=at)
        self.remembered(given)

    def remembered(self, given: Memory) -> None:
        written: dict[str, Any] = {name: getattr(given, name) for name in GIVEN}
        done, expected = self.both(lambda: self.mem.remember(**written), lambda: self.model.remember(given))
        if done is not None:
            self.stored(done, expected)

    @rule(namespace=namespaces, at=times)
    def remember_without_an_id(self, namespace: str, at: datetime) -> None:
        where, text = self.name(namespace), self.text()
        done = self.mem.remember(text, namespace=where, created_at=at)
        assert done.id not in self.model.place(where).memories
        self.made.append(done.id)
        self.stored(done, self.model.remember(Memory(done.id, where, text, created_at=at)))

    @rule(namespace=namespaces, number=numbers, at=times)
    def remember_a_secret(self, namespace: str, number: int, at: datetime) -> None:
        where, id, text = self.name(namespace), self.id(number), self.text()
        self.remembered(Memory(id, where, text, created_at=at, sensitive=True))

    @rule(namespace=namespaces, number=numbers)
    def remember_the_same_again(self, namespace: str, number: int) -> None:
        where = self.name(namespace)
        there = self.model.place(where).memories.get(self.id(number))
        if there is not None:
            self.remembered(there)

    @rule(
        namespace=namespaces, number=numbers, given=changes, off=st.sampled_from([None, None, 0, 0, -1, 1]), by=people
    )
    def update(self, namespace: str, number: int, given: dict[str, Any], off: int | None, by: str | None) -> None:
        where, id = self.name(namespace), self.id(number)
        given = {**given, "text": self.text()} if "text" in given else given
        there = self.model.place(where).memories.get(id)
        expected = None if off is None else (1 if there is None else there.version) + off
        done, wanted = self.both(
            lambda: self.mem.update(id, namespace=where, expected_version=expected, changed_by=by, **given),
            lambda: self.model.update(where, id, given, expected, by, datetime(2026, 1, 1, tzinfo=UTC)),
        )
        if done is not None:
            self.stored(done, wanted)

    @rule(namespace=namespaces, number=numbers, by=people)
    def forget(self, namespace: str, number: int, by: str | None) -> None:
        self.forgotten(self.name(namespace), self.id(number), [], hard=False, by=by)

    @rule(
        namespace=namespaces, session=st.sampled_from(["s", "t"]), by=people, hard=st.sampled_from([False, False, True])
    )
    def forget_by_filter(self, namespace: str, session: str, by: str | None, hard: bool) -> None:
        self.forgotten(self.name(namespace), None, [session], hard=hard, by=by)

    @rule(namespace=namespaces, number=numbers, session=st.sampled_from(["s", "t"]))
    def forget_an_id_that_matches(self, namespace: str, number: int, session: str) -> None:
        self.forgotten(self.name(namespace), self.id(number), [session], hard=False, by=None)

    @rule(namespace=namespaces, number=numbers)
    def forget_for_good(self, namespace: str, number: int) -> None:
        self.forgotten(self.name(namespace), self.id(number), [], hard=True, by=None)

    def forgotten(self, where: str, id: str | None, named: list[str], *, hard: bool, by: str | None) -> None:
        filters = {"sessions": named} if named else None
        counted = outcome(lambda: self.mem.forget(id, namespace=where, filters=filters, hard=hard, dry_run=True))
        done, expected = self.both(
            lambda: self.mem.forget(id, namespace=where, filters=filters, hard=hard, forgotten_by=by),
            lambda: self.model.forget(where, id, named, hard=hard, by=by),
        )
        assert done == expected
        assert counted == done or isinstance(counted, SemmemError)

    @rule(namespace=namespaces, number=numbers)
    def restore(self, namespace: str, number: int) -> None:
        where, id = self.name(namespace), self.id(number)
        done, expected = self.both(
            lambda: self.mem.restore_memory(id, namespace=where), lambda: self.model.restore_memory(where, id)
        )
        if done is not None:
            assert (done.last_seen is None) == (done.seen_count == 1)
            self.model.place(where).memories[id] = expected = replace(expected, last_seen=done.last_seen)
            assert done == masked(expected)

    @rule(namespace=namespaces, one=numbers, other=numbers, type=st.sampled_from(LINK_TYPES), by=people)
    def link(self, namespace: str, one: int, other: int, type: str, by: str | None) -> None:
        where, id, to = self.name(namespace), self.id(one), self.id(other)
        done, expected = self.both(
            lambda: self.mem.link(id, type, to, namespace=where, made_by=by),
            lambda: self.model.link(where, id, type, to, by),
        )
        assert done is None or done.key == expected

    @rule(namespace=namespaces, one=numbers, other=numbers, type=st.sampled_from(LINK_TYPES[:2]))
    def unlink(self, namespace: str, one: int, other: int, type: str) -> None:
        where, id, to = self.name(namespace), self.id(one), self.id(other)
        done, expected = self.both(
            lambda: self.mem.unlink(id, type, to, namespace=where), lambda: self.model.unlink(where, id, type, to)
        )
        assert done == expected

    @rule(namespace=namespaces)
    def remember_more_than_a_namespace_may_hold(self, namespace: str) -> None:
        where = self.name(namespace)
        held = list(self.model.place(where).memories)
        self.mem.namespace_limits(where, most_memories=max(1, len(held)))
        batch = [{"text": self.text(), "id": f"more {n}"} for n in range(2)]
        with pytest.raises(NamespaceFull):
            self.mem.remember_many(batch, namespace=where)
        if held:
            with pytest.raises(NamespaceFull):
                self.mem.remember(self.text(), namespace=where)
        self.mem.namespace_limits(where, most_memories=0)

    @rule(namespace=namespaces, number=numbers)
    def let_its_time_be_over(self, namespace: str, number: int) -> None:
        where = self.name(namespace)
        id = self.there(where, number)
        expire = type(self).expire
        if expire is None or id is None:
            return
        self.write_what_is_counted()  # as the verb maintain does
        expire(self.mem, where, id)
        with pytest.raises(NotFound, match="any more: it expired on"):
            self.mem.get(id, namespace=where)
        assert id not in {one.id for one in self.mem.list(namespace=where)}
        assert self.mem.store.maintain(Keep(forgotten_days=30.0))["expired"] == 1
        self.model.expire(where, id)

    @rule(namespace=namespaces, number=numbers)
    def judge(self, namespace: str, number: int) -> None:
        where = self.name(namespace)
        id = self.there(where, number)
        if id is None or self.model.get(where, id).sensitive:
            return
        asked = self.model.get(where, id).text.split()[0]
        found = self.recalled(where, asked)
        assert self.mem.feedback(found.id, not_useful=[id], namespace=where)
        again = self.recalled(where, asked)
        assert [(hit.id, hit.score) for hit in again] == [(hit.id, hit.score) for hit in found]

    @rule(namespace=namespaces, number=numbers)
    def recall(self, namespace: str, number: int) -> None:
        where = self.name(namespace)
        if (id := self.there(where, number)) is not None:
            there = self.model.get(where, id)
            assert [hit.id for hit in self.recalled(where, there.text.split()[1])] == [id] * (not there.sensitive)

    @rule()
    def write_what_was_counted(self) -> None:
        self.write_what_is_counted()

    @rule(old=namespaces, new=st.sampled_from(["one", "two", "three"]), stay=st.booleans())
    def move(self, old: str, new: str, stay: bool) -> None:
        here, there = self.name(old), self.name(new)
        verb = self.mem.copy_namespace if stay else self.mem.rename_namespace
        logged = len(self.mem.recalls(namespace=there)) > 0
        moved = partial(self.model.move, here, there, stay=stay, logged=logged)
        done, expected = self.both(lambda: verb(here, there), moved)
        self.renewed |= {here, there}
        assert done == expected

    @rule(namespace=st.sampled_from(["one", "two", "three", "three"]))
    def drop(self, namespace: str) -> None:
        where = self.name(namespace)
        self.renewed.add(where)
        assert self.mem.drop_namespace(where, dry_run=True) == len(self.model.place(where).memories)
        assert self.mem.drop_namespace(where) == self.model.drop(where)

    @rule(days=st.sampled_from([30.0, 30.0, -1.0]))
    def maintain(self, days: float) -> None:
        for namespace in ("one", "two", "three"):
            self.name(namespace)
        self.write_what_is_counted()
        swept = self.mem.store.maintain(Keep(forgotten_days=days)).get("forgotten", 0)
        assert (swept > 0) == (days < 0 and self.model.sweep() > 0)

    # ------------------------------------------------------------------ what is there

    @invariant()
    def the_touched_namespaces_are_as_the_model_has_them(self) -> None:
        for where in sorted(self.touched):
            self.compare(where)
        self.touched.clear()
        found = {one.name: one.memories for one in self.mem.namespaces() if one.name.endswith(f"e{self.run}")}
        counts = {where: len(place.memories) for where, place in self.model.places.items()}
        found |= {one.name: one.memories for one in self.mem.namespaces() if one.name in counts}
        assert found == {where: held for where, held in counts.items() if held}

    def compare(self, where: str) -> None:
        listed = list(self.mem.list(namespace=where, reveal=True))
        assert listed == self.model.list(where)
        assert {one.id: one.access_count for one in listed} == self.model.accesses(where)
        self.compare_copy(where)
        for one in self.model.list(where):
            if one.sensitive:
                assert self.mem.get(one.id, namespace=where).text == MASK
        for id in ("a", "b", "c", *self.made):
            assert self.same(
                lambda id=id: self.mem.get(id, namespace=where, reveal=True), lambda id=id: self.model.get(where, id)
            )
            self.compare_history(where, id)
            assert self.same(
                lambda id=id: [(*one.key, one.made_by) for one in self.mem.links(id, namespace=where)],
                lambda id=id: self.model.links(where, id),
            )
            there = self.model.place(where).memories.get(id)
            written = [] if there is None or there.updated_at is None else [there.updated_at]
            for at in (*ASKED, *written, LATE):
                assert self.same(
                    lambda id=id, at=at: unseen(self.mem.get(id, namespace=where, as_of=at, reveal=True)),
                    lambda id=id, at=at: unseen(self.model.as_of(where, id, at)),
                )

    def compare_history(self, where: str, id: str) -> None:
        done, expected = self.both(
            lambda: self.mem.history(id, namespace=where, reveal=True), lambda: self.model.history(where, id)
        )
        if done is not None:
            found = [
                (unseen(v.memory), v.changed, v.changed_by, v.forgotten_at is not None, v.forgotten_by) for v in done
            ]
            assert found == [(unseen(memory), *rest) for memory, *rest in expected]

    def compare_copy(self, where: str) -> None:
        """Bring the copy of a namespace up to date, three changes at a time, and compare it with the model."""
        copy, more = self.copies.setdefault(where, {}), True
        while more:
            try:
                changes = self.mem.changes(self.cursors.get(where), namespace=where, limit=3)
            except InvalidInput:  # another namespace has this name now
                assert where in self.renewed
                self.cursors[where] = self.mem.changes("now", namespace=where).cursor
                copy.clear()
                copy.update({one.id: one for one in self.mem.list(namespace=where, reveal=True)})
                break
            for one in changes.items:
                if one.id is None:
                    copy.clear()
                    continue
                there = outcome(lambda id=one.id: self.mem.get(id, namespace=where, reveal=True))
                copy.pop(one.id, None)
                copy |= {} if isinstance(there, NotFound) else {one.id: there}
            self.cursors[where], more = changes.cursor, len(changes.items) == 3
        self.renewed.discard(where)
        assert copy == self.model.place(where).memories

    def same(self, real: Callable[[], Any], model: Callable[[], Any]) -> bool:
        done, expected = self.both(real, model)
        assert done == expected
        return True

    def teardown(self) -> None:
        if not hasattr(self, "model"):
            return
        try:
            for namespace in ("one", "two", "three"):
                self.compare_whole(self.name(namespace))
            check(self.mem)
        finally:
            for where in list(self.model.places):
                self.mem.drop_namespace(where)

    def compare_whole(self, where: str) -> None:
        """Compare everything, and what a recall finds: each text that is there, and none that was."""
        self.compare(where)
        there, gone = self.model.texts(where)
        secret = {one.text for one in self.model.list(where) if one.sensitive}
        for text in [*there, *gone]:
            ids = {hit.id for hit in self.recalled(where, text.split()[1])}
            assert there[text] in ids if text in there and text not in secret else not ids


def unseen(memory: Memory) -> Memory:
    """Return a memory without when it was seen last, which earlier versions do not keep."""
    return replace(memory, last_seen=None)


def outcome(verb: Callable[[], Any]) -> Any:
    """Return what a verb returns, or the error that it raises."""
    try:
        return verb()
    except SemmemError as error:
        return error
