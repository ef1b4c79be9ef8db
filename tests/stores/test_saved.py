"""Saved models beside each store that has some: a new process maps one, and what was erased is in none."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import psycopg
import pytest

import semmem
from semmem.model.errors import StoreUnavailable
from semmem.model.store import Keep
from semmem.stores.embedded.server import EmbeddedServer
from semmem.stores.postgres import saved as names
from semmem.stores.resident import loading, model, saved
from semmem.stores.sql_files import statements
from semmem.stores.sqlite import resident
from tests.stores.resident.trio import QUESTIONS, change
from tests.stores.saving import ERASED, ERASURES, fill, fill_into, opened, said, saved_in, standing

KINDS = ["sqlite", "embedded"]


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Save namespaces of two memories, too."""
    monkeypatch.setattr(saved, "FEWEST", 2)


@pytest.fixture(params=KINDS)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty store that saves models."""
    if request.param == "sqlite":
        return f"sqlite://{tmp_path}/notes.db"
    return str(request.getfixturevalue("embedded_url"))


@pytest.fixture
def folder(request: pytest.FixtureRequest, url: str, tmp_path: Path) -> Iterator[Path]:
    """The folder of its saved models, which is empty or not there."""
    if url.startswith("sqlite"):
        yield tmp_path / "notes.db-models"
        return
    server: EmbeddedServer = request.getfixturevalue("server")
    place = server.data / "postgresql" / "models"
    _empty(place)
    yield place
    _empty(place)


def _empty(folder: Path) -> None:
    for path in folder.iterdir() if folder.exists() else ():
        with suppress(OSError):
            path.rmdir() if path.is_dir() else path.unlink()


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list to which each reading of rows for memory is added, of a namespace or of its changes."""
    readings: list[str] = []
    in_file, on_server = resident._rows, loading._rows

    def rows(connection: Any, where: Any, *, since: bool = False) -> Any:
        readings.append("rows")
        return in_file(connection, where, since=since)

    def answers(*answers: Any) -> Any:
        readings.append("rows")
        return on_server(*answers)

    monkeypatch.setattr(resident, "_rows", rows)
    monkeypatch.setattr(loading, "_rows", answers)
    return readings


def bounded(mem: semmem.Semmem, most: int) -> Any:
    """Return what saves models, which are to take at most so many bytes."""
    is_server = mem.store.kind == "PostgreSQL"
    keeper: Any = mem._here.reader if is_server else mem.store.models
    setattr(keeper, "_saved" if is_server else "saved_budget", most)
    return keeper


def saved_anew(url: str, folder: Path, steps: Iterable[Callable[[semmem.Semmem], object]]) -> list[bool]:
    """Return after each step, taken on a connection of its own, whether the one saved model is another one."""
    names = [saved_in(folder)]
    for step in steps:
        with opened(url) as mem:
            step(mem)
        names.append(saved_in(folder))
    assert [len(each) for each in names] == [1] * len(names)
    return [after != before for before, after in pairwise(names)]


# ---------------------------------------------------------------------- the same answers


def test_what_one_process_has_read_and_closed_the_next_one_maps(url: str, folder: Path, read: list[str]) -> None:
    before = fill(url)
    assert len(saved_in(folder)) == 1
    read.clear()
    with opened(url) as mem:
        assert said(mem) == before
        assert list(mem.resident) == ["default"]
        assert mem.recall("Where is the Crane Gate?").degraded == {}
        assert read == []
        mem.remember("The Crane Gate was sold to Mila.", id="sold")
        after = said(mem)
        assert "sold" in dict(after)
        assert read == ["rows"]
    with opened(url) as mem:
        assert said(mem) == after
        assert list(mem.resident) == ["default"]
    assert read == ["rows", "rows"]  # of what had changed since
    with opened(url, resident_mb=0) as mem:
        assert said(mem) == after


@pytest.mark.slow
def test_after_each_of_many_writes_a_process_that_maps_answers_as_one_that_reads(url: str, folder: Path) -> None:
    steps = ("many", "few", "update", "forget", "maintain", "take back", "link", "sensitive", "merge", "few", "drop")
    for at, step in enumerate(steps):
        with opened(url) as writer:
            change(writer, "space", (step, at))
            if at % 2:  # so that a step follows a model that was saved one or two steps before
                said(writer, namespace="space")
                said(writer, namespace="space")
        answers = []
        for megabytes in (64, 0):
            with opened(url, resident_mb=megabytes) as mem:
                answers.append([said(mem, question, namespace="space", limit=20) for question in QUESTIONS])
        assert [[id for id, _ in one] for one in answers[0]] == [[id for id, _ in one] for one in answers[1]], step
        scores = [[score for one in answer for _, score in one] for answer in answers]
        assert scores[0] == pytest.approx(scores[1], abs=1e-6), step
    assert saved_in(folder) == set()  # the drop has removed what maintain had saved


def test_a_process_with_an_older_model_mapped_finds_what_others_wrote_and_not_what_they_forgot(
    url: str, folder: Path
) -> None:
    fill(url)
    with opened(url) as one, opened(url) as other:
        assert "gate" in dict(said(one))
        other.remember("The Crane Gate was sold to Mila.", id="sold")
        other.forget("gate", hard=True)
        assert saved_in(folder) == set()
        answer = said(one)
        assert dict(answer).keys() & {"gate", "sold"} == {"sold"}
        with opened(url, resident_mb=0) as plain:
            assert said(plain) == answer
    assert standing(folder, ERASED) == []  # the process with the older model has saved none of it


# ---------------------------------------------------------------------- when, and how much


def test_files_and_their_folder_are_their_owners_alone_and_no_name_shows(url: str, folder: Path) -> None:
    with opened(url) as mem:
        fill_into(mem, "Petra's diary")
    (name,) = saved_in(folder)
    assert [stat.S_IMODE(one.stat().st_mode) for one in (folder, folder / name)] == [0o700, 0o600]
    assert "Petra" not in name
    assert standing(folder, "Petra") == []


def test_a_small_namespace_is_not_saved(url: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saved, "FEWEST", 5)
    fill(url)
    assert saved_in(folder) == set()


def test_closing_asks_the_store_for_nothing_where_memory_holds_small_namespaces_alone(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saved, "FEWEST", 5)
    with opened(url) as mem:
        for namespace in ("one", "two"):
            fill_into(mem, namespace)
        is_server = mem.store.kind == "PostgreSQL"
        asked: list[object] = []
        monkeypatch.setattr(*((mem.store, "idle") if is_server else (resident, "_state")), lambda *of: asked.append(of))
        (mem._here.reader if is_server else mem.store.models).save()
        assert asked == []


def test_maintain_removes_no_file_while_another_process_saves(embedded_url: str, server: EmbeddedServer) -> None:
    folder = server.data / "postgresql" / "models"
    folder.mkdir(mode=0o700, exist_ok=True)
    part = folder / f".{'0' * 16}.part"
    part.write_text("half a model")
    with opened(embedded_url) as mem:
        with psycopg.connect(server.ensure_running()) as other:
            other.execute(statements("postgres")["saved_alone"])
            mem.maintain()
            assert part.exists()
        mem.maintain()
        assert not part.exists()


def test_closing_ends_where_there_is_no_room_in_memory_for_what_is_saved(
    url: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(*arguments: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(saved, "_write", write)
    fill(url)
    assert saved_in(folder) == set()


def test_without_memory_for_namespaces_none_is_saved_and_none_used(url: str, folder: Path) -> None:
    with opened(url, resident_mb=0) as mem:
        fill_into(mem)
        mem.maintain()
    assert saved_in(folder) == set()


@pytest.mark.slow
def test_a_namespace_is_saved_anew_when_it_is_a_thousand_changes_behind(
    url: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saved, "MOST_BEHIND", 3)

    def remembered(mem: semmem.Semmem, number: int) -> None:
        mem.remember(f"The Crane Gate {number}.", id=f"n{number}")
        said(mem)

    fill(url)
    steps = [partial(remembered, number=number) for number in range(8)]
    assert saved_anew(url, folder, steps) == [False] * 3 + [True] + [False] * 3 + [True]


def test_a_namespace_is_saved_anew_when_one_batch_wrote_more_memories_than_may_follow(
    url: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saved, "MOST_BEHIND", 3)

    def remembered(mem: semmem.Semmem, batch: int) -> None:
        mem.remember_many([{"text": f"The Crane Gate {batch} {n}."} for n in range(batch)])
        mem.maintain()

    fill(url)
    assert saved_anew(url, folder, [partial(remembered, batch=batch) for batch in (3, 4)]) == [False, True]


def test_maintain_saves_what_this_process_has_not_asked_for_and_removes_what_others_left(
    url: str, folder: Path, read: list[str]
) -> None:
    with opened(url, resident_mb=0) as mem:
        fill_into(mem)
        fill_into(mem, "other")
    folder.mkdir(mode=0o700, exist_ok=True)
    (folder / f".{'0' * 16}.part").write_text(ERASED)  # of a process that was killed
    with opened(url) as mem:
        counts = mem.maintain()
        assert len(saved_in(folder)) == 2
    assert (counts.get("saved"), counts.get("unsaved")) == (2, None)
    assert standing(folder, ERASED) == []
    read.clear()
    with opened(url) as mem:
        said(mem)
        said(mem, namespace="other")
        assert sorted(mem.resident) == ["default", "other"]
        assert "saved" not in mem.maintain()
    assert read == []


def test_all_saved_models_take_at_most_saved_mb_and_the_one_mapped_longest_ago_goes(url: str, folder: Path) -> None:
    for namespace in ("one", "two"):
        with opened(url) as mem:
            fill_into(mem, namespace)
    one, two = sorted((folder / name for name in saved_in(folder)), key=lambda path: path.stat().st_mtime_ns)
    os.utime(one, (2, 2))
    os.utime(two, (1, 1))
    with opened(url) as mem:
        keeper = bounded(mem, 2 * one.stat().st_size + one.stat().st_size // 2)
        fill_into(mem, "three")
        keeper.save(every=True)  # nothing makes room for what nobody asked for
        assert saved_in(folder) == {one.name, two.name}
    assert (one.exists(), two.exists(), len(saved_in(folder))) == (True, False, 2)


def test_a_namespace_that_was_mapped_first_and_asked_last_keeps_its_saved_model(url: str, folder: Path) -> None:
    names = {}
    for namespace in ("one", "two"):
        with opened(url) as mem:
            fill_into(mem, namespace)
        names[namespace] = (saved_in(folder) - set(names.values())).pop()
    size = (folder / names["one"]).stat().st_size
    with opened(url) as mem:
        for mtime, namespace in enumerate(("one", "two"), start=1):
            said(mem, namespace=namespace)
            os.utime(folder / names[namespace], (mtime, mtime))
        fill_into(mem, "three")
        said(mem, namespace="one")
        bounded(mem, 2 * size + size // 2)
    assert (names["one"] in saved_in(folder), names["two"] in saved_in(folder)) == (True, False)


def test_files_that_are_touched_one_right_after_the_other_keep_that_order(tmp_path: Path) -> None:
    paths = [tmp_path / f"{n}" for n in range(20)]
    for path in paths:
        path.touch()
    for path in reversed(paths):
        saved.touch(path)
    times = [path.stat().st_mtime_ns for path in reversed(paths)]
    assert times == sorted(set(times))


def test_maintain_removes_saved_models_where_they_may_take_fewer_bytes_now(url: str, folder: Path) -> None:
    for namespace in ("one", "two"):
        with opened(url) as mem:
            fill_into(mem, namespace)
    one, two = sorted((folder / name for name in saved_in(folder)), key=lambda path: path.stat().st_mtime_ns)
    size = one.stat().st_size
    os.utime(two, (1, 1))
    with opened(url) as mem:
        bounded(mem, 2 * size + size // 2)
        assert "unsaved" not in mem.maintain()
        assert saved_in(folder) == {one.name, two.name}
        bounded(mem, size + size // 2)
        assert mem.maintain()["unsaved"] == 1
        assert saved_in(folder) == {one.name}
        bounded(mem, size // 2)  # a single one may be larger
        assert "unsaved" not in mem.maintain()
        assert saved_in(folder) == {one.name}


def test_maintain_saves_a_large_namespace_anew_within_the_bytes_of_its_former_file(
    url: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saved, "MOST_BEHIND", 2)
    monkeypatch.setattr(model, "_MOST_FOLLOWED", 2)
    fill(url)
    (former,) = saved_in(folder)
    size = (folder / former).stat().st_size
    with opened(url, resident_mb=0) as mem:
        for id in ("mila", "quay", "mole"):
            mem.update(id, text=f"The {id} was swept.")
    with opened(url) as mem:
        bounded(mem, size * 5 // 4).save(every=True)
        assert len(saved_in(folder) - {former}) == 1


def test_maintain_saves_a_single_namespace_that_takes_more_than_saved_mb(url: str, folder: Path) -> None:
    with opened(url) as mem:
        fill_into(mem)
        assert bounded(mem, 1_000).save(every=True) == {"saved": 1}
    (name,) = saved_in(folder)
    assert (folder / name).stat().st_size > 1_000


def test_a_namespace_is_saved_anew_when_one_batch_changed_more_memories_than_may_follow(
    url: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number of its memories stays, and a batch is one change."""
    monkeypatch.setattr(saved, "MOST_BEHIND", 3)

    def replaced(mem: semmem.Semmem, ids: Sequence[str]) -> None:
        items = [{"id": id, "text": f"The {id} was sold."} for id in ids]
        report = mem.import_items(items, replace=True, owned={"created_after": "2000-01-01"})
        assert report.replaced == len(ids)
        mem.maintain()

    fill(url)
    steps = [partial(replaced, ids=ids) for ids in (("gate", "mila", "quay"), ("mole",))]
    assert saved_anew(url, folder, steps) == [False, True]


def test_a_namespace_is_saved_anew_when_the_changes_since_are_swept(url: str, folder: Path) -> None:
    fill(url)
    before = saved_in(folder)
    with opened(url) as mem:
        mem.remember("The quay was swept again.", id="again")
        mem.maintain()
        assert saved_in(folder) == before
        mem.store.maintain(Keep(changes_days=-1))
        mem.maintain()
        assert len(saved_in(folder) - before) == 1


def test_with_a_saved_mb_of_0_nothing_is_saved_and_nothing_mapped(url: str, folder: Path, read: list[str]) -> None:
    fill(url, saved_mb=0)
    assert saved_in(folder) == set()
    before = fill(url)
    read.clear()
    with opened(url, saved_mb=0) as mem:
        said(mem)
        assert said(mem) == before
        assert read != []
        mem.maintain()
    assert len(saved_in(folder)) == 1


def test_a_mapped_namespace_counts_by_what_is_made_of_it_and_a_larger_one_than_memory_is_mapped(
    url: str, folder: Path, read: list[str]
) -> None:
    """Four memories count as 280 bytes each where they are mapped, and with their vectors where they are read."""
    before = fill(url)
    read.clear()
    with opened(url) as mem:
        if mem.store.kind == "PostgreSQL":
            mem._here.reader.models._budget = 2_000
        else:
            mem.store.models.budget = 2_000
        assert said(mem) == before
        assert dict(mem.resident) == {"default": 4 * 280}
        assert read == []


def test_stats_count_the_bytes_of_saved_models(url: str, folder: Path) -> None:
    fill(url)
    (name,) = saved_in(folder)
    size = (folder / name).stat().st_size
    with opened(url) as mem:
        with_it = mem.stats().bytes
        (folder / name).unlink()
        without = mem.stats().bytes
    assert with_it is not None
    assert without is not None
    assert with_it - without == size


# ---------------------------------------------------------------------- erasure


@pytest.mark.parametrize("how", ERASURES)
def test_what_erases_a_memory_has_removed_the_saved_model_when_it_returns(url: str, folder: Path, how: str) -> None:
    work, options = ERASURES[how]
    fill(url)
    assert len(standing(folder, ERASED)) == 1
    part = folder / f".{'0' * 16}.part"
    part.write_text(ERASED)  # of a process that was killed
    with opened(url, **options) as mem:
        work(mem)
        assert standing(folder, ERASED) == []


@pytest.mark.slow
def test_a_copied_and_a_renamed_namespace_answer_as_before(url: str, folder: Path) -> None:
    before = fill(url)
    with opened(url) as mem:
        assert mem.copy_namespace("default", "copy") == mem.rename_namespace("default", "moved") == 4
    for _ in range(2):
        with opened(url) as mem:
            for namespace in ("copy", "moved"):
                said(mem, namespace=namespace)
                assert said(mem, namespace=namespace) == before
    with opened(url) as mem:
        for namespace in ("copy", "moved"):
            assert mem.forget("gate", hard=True, namespace=namespace) == 1
    assert standing(folder, ERASED) == []


def test_a_file_that_cannot_be_removed_is_an_error_and_nothing_is_forgotten(url: str, folder: Path) -> None:
    fill(url)
    (folder / f"{'0' * 32}.model").mkdir()  # as good as a file of another user, which root may remove
    with opened(url) as mem:
        with pytest.raises(StoreUnavailable) as error:
            mem.forget("gate", hard=True)
        assert str(error.value) == (
            f"Saved models of this store in {folder} cannot be removed (Is a directory), so nothing was changed; "
            "delete that folder, and try again."
        )
        assert mem.get("gate").title == ERASED
        (folder / f"{'0' * 32}.model").rmdir()
        assert mem.forget("gate", hard=True) == 1


def test_an_erasure_that_is_undone_loses_the_saved_model_and_no_memory(url: str, folder: Path) -> None:
    before = fill(url)
    with opened(url) as mem:

        def work() -> str:
            mem.forget("gate", hard=True)
            raise ValueError

        with pytest.raises(ValueError):
            mem.store.serving.once(b"k", b"r", work, together=True, keep_days=1.0)
        assert saved_in(folder) == set()
    with opened(url) as mem:
        said(mem)
        assert said(mem) == before
    assert len(saved_in(folder)) == 1


# ---------------------------------------------------------------------- many namespaces


def test_maintain_asks_nothing_of_a_namespace_that_is_too_small_to_be_saved(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    for module in (resident, names):
        before = module._state
        monkeypatch.setattr(module, "_state", lambda c, n, before=before: asked.append(n) or before(c, n))
    with opened(url) as mem:
        for n in range(3):
            mem.remember("The Crane Gate.", id="one", namespace=f"small{n}")
        mem.remember_many([{"text": f"The Crane Gate {n}.", "namespace": "large"} for n in range(2)])
        asked.clear()
        mem.maintain()
        assert set(asked) == {"large"}
