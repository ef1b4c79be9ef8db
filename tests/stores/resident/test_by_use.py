"""Models within a budget: those not used for longest make room, and each is weighed once."""

from __future__ import annotations

from typing import ClassVar

from hypothesis import given
from hypothesis import strategies as st

from semmem.stores.resident.by_use import ByUse


class Weighed:
    """A model that counts how often it is weighed."""

    times: ClassVar[int] = 0

    def __init__(self, size: int) -> None:
        self._size = size

    @property
    def size(self) -> int:
        type(self).times += 1
        return self._size


def test_those_not_used_for_longest_make_room_and_the_last_one_stays_however_large_it_is() -> None:
    held = ByUse[Weighed]()
    for name, size in (("a", 30), ("b", 40), ("c", 50)):
        held[name] = Weighed(size)
    assert (held.size, held.sizes) == (120, {"a": 30, "b": 40, "c": 50})
    assert held.used("a") is held["a"]
    assert held.used("unknown") is None
    assert held.make_room(120) == []
    assert held.make_room(80) == ["b"]
    assert (list(held), held.size) == (["c", "a"], 80)
    held["c"] = Weighed(500)  # another state of it keeps its place
    assert (list(held), held.size) == (["c", "a"], 530)
    assert held.make_room(0) == ["c"]
    assert (list(held), held.size, held.size_without("a"), held.size_without("c")) == (["a"], 30, 0, 30)
    held.put("d", Weighed(7))
    held.put("a", Weighed(5))  # which is the one used last now
    assert (list(held.sizes.items()), held.size) == ([("d", 7), ("a", 5)], 12)
    held.clear()
    assert (list(held), held.size) == ([], 0)


def test_a_model_is_weighed_when_it_is_put_there_and_never_again() -> None:
    held, Weighed.times = ByUse[Weighed](), 0
    for number in range(100):
        held[str(number)] = Weighed(10)
        held.used(str(number // 2))
        held.make_room(400)
    assert (len(held), held.size, held.size_without("99")) == (40, 400, 390)
    assert Weighed.times == 100


@given(st.lists(st.tuples(st.sampled_from(("put", "use", "drop", "room")), st.integers(0, 5), st.integers(0, 50))))
def test_the_size_is_that_of_all_that_are_held(steps: list[tuple[str, int, int]]) -> None:
    held, expected = ByUse[Weighed](), dict[str, int]()
    for step, number, size in steps:
        name = str(number)
        if step == "put":
            held[name] = Weighed(size)
            expected[name] = size
        elif step == "use" and held.used(name) is not None:
            expected[name] = expected.pop(name)
        elif step == "drop":
            held.pop(name, None)
            expected.pop(name, None)
        elif step == "room":
            before = dict(expected)
            while sum(expected.values()) > size and len(expected) > 1:
                del expected[next(iter(expected))]
            assert held.make_room(size) == [name for name in before if name not in expected]
        assert held.size == sum(expected.values())
        assert list(held.sizes.items()) == list(expected.items())
