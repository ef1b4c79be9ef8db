"""The semaphore that lets threads pass in the order in which they came."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from semmem.model.process import fair_semaphore
from semmem.model.process.fair_semaphore import FairSemaphore
from tests.waiting import until


def test_threads_pass_in_the_order_in_which_they_came_and_no_more_than_there_are_places() -> None:
    semaphore, order, inside, most = FairSemaphore(2, patience_s=60), list[int](), list[int](), list[int]()
    goes_on = [threading.Event() for _ in range(6)]

    def work(number: int) -> Callable[[], None]:
        def do() -> None:
            with semaphore.place():
                order.append(number)
                inside.append(number)
                most.append(len(inside))
                assert goes_on[number].wait(60)
                inside.remove(number)

        return do

    threads = [threading.Thread(target=work(number), daemon=True) for number in range(6)]
    for number, thread in enumerate(threads):
        thread.start()
        until(lambda passed=number: len(order) + len(semaphore._waiting) == passed + 1)
    assert order == [0, 1]
    for left, number in enumerate((1, 0, 3, 2, 4, 5), start=1):
        until(lambda now=number: now in inside)
        goes_on[number].set()
        threads[number].join(60)
        until(lambda left=left: len(order) == min(2 + left, 6))  # before another one passes too
    assert (order, max(most)) == ([0, 1, 2, 3, 4, 5], 2)


def test_a_thread_that_has_waited_long_takes_the_place_of_the_one_inside_for_longest_and_no_later_one_waits() -> None:
    semaphore = FairSemaphore(2, patience_s=0.01)
    stuck = [semaphore.place(), semaphore.place()]
    for one in stuck:
        one.__enter__()
    with semaphore.place(), semaphore.place():
        semaphore._patience_s = 60
        ends = threading.Event()
        thread = threading.Thread(target=lambda: passed(semaphore, ends), daemon=True)
        thread.start()
        until(lambda: len(semaphore._waiting) == 1)
        for one in stuck:  # they have no place to pass on any more
            one.__exit__(None, None, None)
        assert (len(semaphore._inside), len(semaphore._waiting), ends.is_set()) == (2, 1, False)
    thread.join(60)
    assert (semaphore._inside, semaphore._waiting, ends.is_set()) == ([], [], True)


def passed(semaphore: FairSemaphore, ends: threading.Event) -> None:
    """Pass, and say so."""
    with semaphore.place():
        ends.set()


def test_places_that_an_interrupt_has_lost_delay_only_as_many_threads_as_were_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    semaphore, waits = FairSemaphore(3, patience_s=0.01), list[float]()

    class Counted:
        def __init__(self) -> None:
            self.lock = threading.Lock()

        def acquire(self, timeout: float = -1) -> bool:
            if timeout >= 0:
                waits.append(timeout)
            return self.lock.acquire(timeout=timeout)

        def release(self) -> None:
            self.lock.release()

    monkeypatch.setattr(fair_semaphore, "Lock", Counted)
    lost = [semaphore.place() for _ in range(3)]
    for one in lost:
        one.__enter__()
    for _ in range(10):
        with semaphore.place():
            pass
    assert len(waits) == 1  # the place that it took is free for the nine others


@pytest.mark.parametrize("is_passed", [False, True])
def test_a_wait_that_is_interrupted_loses_no_place(monkeypatch: pytest.MonkeyPatch, is_passed: bool) -> None:
    semaphore = FairSemaphore(1, patience_s=60)
    held = semaphore.place()
    made = fair_semaphore.Lock

    class Interrupted:
        def __init__(self) -> None:
            self.lock = made()

        def acquire(self, timeout: float = -1) -> bool:
            if timeout < 0:
                return self.lock.acquire()
            if is_passed:  # the place is passed on just before the interrupt comes
                held.__exit__(None, None, None)
            raise KeyboardInterrupt

        def release(self) -> None:
            self.lock.release()

    held.__enter__()
    monkeypatch.setattr(fair_semaphore, "Lock", Interrupted)
    with pytest.raises(KeyboardInterrupt), semaphore.place():
        pass
    assert len(semaphore._inside) == int(not is_passed)
    if not is_passed:
        held.__exit__(None, None, None)
    assert (semaphore._inside, semaphore._waiting) == ([], [])


def test_a_child_process_finds_all_places_free_and_leaves_no_more_than_there_are() -> None:
    semaphore = FairSemaphore(2, patience_s=60)
    with semaphore.place(), semaphore.place():
        semaphore.forked()
        assert semaphore._inside == []
        with semaphore.place():
            assert len(semaphore._inside) == 1
    assert (semaphore._inside, semaphore._waiting) == ([], [])
