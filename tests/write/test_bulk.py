"""Workers read a long list beside the process that stores it, and what is stored is the same, to the last bit."""

from __future__ import annotations

import os
import pickle
import random
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

import semmem
from semmem.concepts.likeness import likeness_keys
from semmem.extractors import Rules
from semmem.model.errors import BadItem
from semmem.model.types import IngestReport
from semmem.write import bulk, preparation
from semmem.write.bulk import EXTRACT, LIKENESS, SCREEN, Found, Pool, TextRow, found_in
from semmem.write.comparison import Group, OnContradiction, Text, by_namespace, compared
from semmem.write.screening import CredentialWarning, kinds_of
from tests.stores.audit import check, contents

ALL = EXTRACT | LIKENESS | SCREEN
WORDS = [
    *("Ada", "ADA", "Ada's", "Lovelace", "ada", "of", "The", "the", "Who", "NATO", "(NATO)", "Bank", "England", "U.S."),
    *(
        "INC-211",
        "7",
        ".",
        ". ",
        "?",
        "\n",
        ",",
        "met",
        "is",
        "red",
        "Zürich",
        "東京都",
        "Will",
        "and",
        "Oslo",
        "x-ray",
    ),
]
PROSE = st.lists(st.sampled_from(WORDS), max_size=40).map(" ".join)
TITLES = st.none() | st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(" ".join)
TEXT = PROSE | st.text(st.characters(exclude_categories=["Cs"]), max_size=80)


@given(
    st.lists(st.tuples(TEXT, TITLES), min_size=1, max_size=4),
    st.sampled_from(["english", "german", "russian"]),
)
def test_what_a_worker_sends_is_what_the_rules_find(texts: list[tuple[str, str | None]], language: str) -> None:
    rows = [TextRow(text, " [tag]" if place % 2 else "", title, None, ALL) for place, (text, title) in enumerate(texts)]
    sent = pickle.loads(pickle.dumps(found_in(rows, language)))
    rules = Rules(language)
    assert [one.extraction for one in sent] == [rules.extract(row.text + row.suffix, row.title) for row in rows]


def test_workers_find_the_keys_of_what_is_like_a_text_and_the_kinds_of_credentials_in_it() -> None:
    texts = ["Ana is 30 years old.", "I moved to Oslo.", "The password is hunter22-x and the door is green and tall."]
    found = found_in([TextRow(text, "", None, "Bob", ALL) for text in texts], "english")
    assert [one.likeness for one in found] == likeness_keys([(text, "Bob") for text in texts])
    assert all(one.likeness for one in found)
    assert [one.credentials for one in found] == [(), (), ("password",)]
    assert kinds_of([texts[2]]) == ("password",)
    nothing = found_in([TextRow(texts[2], "", None, "Bob", 0)], "english")
    assert nothing == [Found(None, (), ())]


# ---------------------------------------------------------------------- workers


@pytest.fixture(autouse=True)
def four_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "processors", lambda: 4)


def rows_of(count: int) -> list[TextRow]:
    return [TextRow(f"Ada Lovelace met Bob {place} in Oslo.", "", None, None, ALL) for place in range(count)]


def test_workers_share_the_texts_and_end_with_the_pool() -> None:
    rows = rows_of(20)
    with Pool(2, "english") as workers:
        processes = list(workers._workers)
        first = workers.read(rows)
        assert list(map(len, bulk._shares(rows, [len(row.text) for row in rows], 2))) == [11, 9]  # as many characters
        assert first == found_in(rows, "english")
        assert len(workers.read(rows[:3])) == 3
        assert len(workers) == 2
    assert [process.returncode is None for process in processes] == [False, False]  # each was waited for
    assert workers.read(rows) == []


def test_all_calls_of_a_process_leave_one_processor_free() -> None:
    with Pool(2, "english") as one, Pool(2, "english") as other, Pool(2, "english") as last:
        assert [len(one), len(other), len(last)] == [2, 1, 0]
    with Pool(9, "english") as one:
        assert len(one) == 3


@pytest.mark.parametrize(
    "program",
    [
        "raise SystemExit(1)",
        "print('nonsense that is no message', flush=True)",
        "import sys; sys.stdout.buffer.write(b'smm1' + bytes(4)); sys.stdout.flush(); sys.stdin.read(1)",
        "import pickle, sys; sys.path[:] = sys.argv[1:]; from semmem.write import bulk; "
        "bulk._send(sys.stdout.buffer, bulk._greeting()); pickle.load(sys.stdin.buffer); "
        "bulk._send(sys.stdout.buffer, [])",
        "import sys; sys.path[:] = sys.argv[1:]; from semmem.write import bulk; "
        "bulk._send(sys.stdout.buffer, bulk._greeting()); sys.stdin.buffer.read(20)",
    ],
    ids=["ends", "prints", "greets wrongly", "answers wrongly", "ends half-way"],
)
def test_a_worker_that_fails_leaves_the_texts_to_the_caller(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "_PROGRAM", program)
    with Pool(1, "english") as workers:
        processes = list(workers._workers)
        assert workers.read(rows_of(2_000)) == []
        assert len(workers) == 0
    assert processes[0].returncode is not None


def test_a_worker_that_does_not_answer_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "_PROGRAM", "import time; time.sleep(600)")
    monkeypatch.setattr(bulk, "_PATIENCE_S", 0.2)
    with Pool(1, "english") as workers:
        assert workers.read(rows_of(3)) == []


def groups_of(count: int) -> list[Group]:
    """Return texts of two namespaces, each with up to three earlier ones of its namespace that name the same person."""
    texts: list[Text] = []
    for place, town in enumerate(random.Random(3).choices(("Oslo", "Rome", "Bonn"), k=count)):
        said = f"{('Ada', 'Bob', 'Eve')[place % 3]} lives in the old town of {town}."
        texts.append(Text((f"n{place % 2}", str(place)), said, None, None, (float(place), 0, place)))
    return [(one, texts[max(place % 6, place - 18) : place : 6]) for place, one in enumerate(texts)]


@pytest.mark.parametrize("policy", ["report", "supersede"])
def test_workers_compare_a_share_and_find_what_this_process_would(
    policy: OnContradiction, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "_FEWEST_CHARS", 1)
    groups = groups_of(90)
    alone = compared(groups, policy)
    here: list[int] = []
    monkeypatch.setattr(bulk, "compared", lambda some, how: here.append(len(some)) or compared(some, how))
    with Pool(2, "english") as workers:
        found = workers.compare(groups, policy)
        assert workers.read(rows_of(3)) == found_in(rows_of(3), "english")  # the answers were all read
    assert by_namespace(found) == by_namespace(alone)
    assert {type for _, type, _ in found} >= {"contradicts", "see-also"}
    assert here == [
        38
    ]  # texts are equally long; of 234 pairs the first 18 have 18, each later one three; a third is 78


def test_few_pairs_are_compared_by_this_process_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    groups = groups_of(90)
    with Pool(2, "english") as workers:
        monkeypatch.setattr(Pool, "_ask", None)
        assert workers.compare(groups, "report") == compared(groups, "report")


@pytest.mark.parametrize("fails", ["pickle.load(sys.stdin.buffer); raise SystemExit(1)", "raise SystemExit(1)"])
def test_where_a_worker_fails_this_process_compares_its_share_too(fails: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "_FEWEST_CHARS", 1)
    monkeypatch.setattr(
        bulk,
        "_PROGRAM",
        "import pickle, sys; sys.path[:] = sys.argv[1:]; from semmem.write import bulk; "
        f"bulk._send(sys.stdout.buffer, bulk.greeting()); {fails}",
    )
    groups = groups_of(90)
    with Pool(2, "english") as workers:
        assert workers.compare(groups, "report") == compared(groups, "report")
        assert len(workers) == 0


@pytest.mark.parametrize("moment", ["compared", "_answers", "second task"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, TimeoutError])
def test_an_interrupted_comparison_ends_the_workers_so_no_answer_is_taken_for_another(
    moment: str, error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[object] = []
    send = bulk._send

    def interrupted(*_: object) -> None:
        raise error

    def interrupted_at_the_second(stream: Any, message: object) -> None:
        sent.append(message)
        send(stream, message) if len(sent) == 1 else interrupted()

    monkeypatch.setattr(bulk, "_FEWEST_CHARS", 1)
    with Pool(2, "english") as workers:
        with monkeypatch.context() as patched:
            if moment == "second task":
                patched.setattr(bulk, "_send", interrupted_at_the_second)
            else:
                patched.setattr(bulk if moment == "compared" else Pool, moment, interrupted)
            with pytest.raises(error):
                workers.compare(groups_of(90), "report")
        assert len(workers) == 0
        assert workers.compare(groups_of(30), "report") == compared(groups_of(30), "report")


def test_one_thread_reads_while_another_compares(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "_FEWEST_CHARS", 1)
    rows, groups = rows_of(40), groups_of(90)
    with Pool(2, "english") as workers, ThreadPoolExecutor(1) as other:
        read = other.submit(lambda: [workers.read(rows) for _ in range(20)])
        links = [workers.compare(groups, "report") for _ in range(20)]
        assert read.result() == [found_in(rows, "english")] * 20
        assert len(workers) == 2
    assert links == [compared(groups, "report")] * 20


@pytest.mark.parametrize("program", ["", "/usr/sbin/uwsgi", "/no/such/python3"])
def test_no_worker_is_started_by_a_program_that_is_no_python(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", program)
    with Pool(1, "english") as workers:
        assert (len(workers), workers.read(rows_of(3))) == (0, [])


def test_no_worker_is_started_where_the_working_folder_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend("")
    folder.rmdir()
    with Pool(1, "english") as workers:
        assert (len(workers), workers.read(rows_of(3))) == (0, [])


def test_what_python_ignores_in_its_path_hinders_no_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path, None, b"bytes"])
    with Pool(1, "english") as workers:
        assert len(workers.read(rows_of(3))) == 3


def test_a_worker_loads_no_driver_and_no_model_and_hears_no_ctrl_c() -> None:
    program = bulk._PROGRAM.replace("main()", "print(*sorted(m.partition('.')[0] for m in sys.modules))")
    imports = "from semmem.write.bulk import found_in; found_in([], 'english'); "
    command = [
        program.replace("print(", imports + "print(") if part == bulk._PROGRAM else part
        for part in bulk._command() or ()
    ]
    loaded = set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())
    assert "semmem" in loaded
    assert loaded.isdisjoint({"psycopg", "torch", "onnxruntime", "rich", "typer", "pydantic", "httpx", "sqlite3"})
    with Pool(1, "english") as workers:
        assert os.getsid(workers._workers[0].pid) != os.getsid(0)


def test_workers_end_when_their_parent_is_killed() -> None:
    program = (
        "import sys; from semmem.write import bulk; "
        "bulk.processors = lambda: 2; workers = bulk.Pool(1, 'english'); "
        "workers.read([bulk.TextRow('Ada', '', None, None, 1)]); "
        "print(workers._workers[0].pid, flush=True); sys.stdin.read()"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        worker = int(parent.stdout.readline())
        assert _runs(worker)
        parent.kill()
    for _ in range(600):
        if not _runs(worker):
            return
        time.sleep(0.1)
    raise AssertionError("the worker goes on without its parent")


def _runs(process: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


# ---------------------------------------------------------------------- remember_many

NAMES = ("Ada Lovelace", "Bob Reed", "Grace Hopper", "Oslo", "Port Elm", "Acme Works", "Eve Stone", "Cape Ann")
LONG = "Bob Reed told Port Elm of the harbour. " * 60


def notes(count: int, language: str = "english") -> list[dict[str, Any]]:
    """Return notes in two namespaces that name each other's subjects, some of them later, and repeat each other."""
    chance = random.Random(11)
    made: list[dict[str, Any]] = []
    for number in range(count):
        one, other = chance.sample(NAMES[: 3 + number * 5 // count], 2)
        text = f"{one} met {other} in room {chance.randrange(4)}. {one} has {chance.randrange(3)} boats."
        item: dict[str, Any] = {
            "id": f"n{number:03}", "text": text, "created_at": f"2026-01-01T00:{number:02}:00Z",
            "namespace": f"{language}{number % 2}",
        }  # fmt: skip
        item |= {"title": one} if number % 3 == 0 else {}
        item |= {"tags": [other]} if number % 5 == 0 else {}
        item |= {"metadata": {"aliases": ["Countess", other.upper()]}} if number % 7 == 0 else {}
        item |= {"session": "s", "position": number, "author": one} if number % 4 == 1 else {}
        item |= {"sensitive": True} if number % 11 == 10 else {}
        item |= {"text": LONG + text} if number % 13 == 12 else {}
        item |= {"text": f"{text} The password is hunter22-x."} if number == 17 else {}
        item |= {"importance": 7} if number == 23 else {}
        item |= {"text": "  "} if number == 24 else {}
        made.append(item)
    return made


@pytest.fixture
def read_by_workers(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Let short lists be read by workers, whatever the processors; gives how many texts each batch had for them."""
    monkeypatch.setattr(preparation, "FEWEST", 1)
    monkeypatch.setattr(preparation, "processors", lambda: 3)
    monkeypatch.setattr(bulk, "processors", lambda: 3)
    monkeypatch.setattr(bulk, "_FEWEST_CHARS", 1)
    counts: list[int] = []
    read = Pool.read

    def counted(self: Pool, rows: list[TextRow]) -> list[Found]:
        found = read(self, rows)
        counts.append(len(found))
        return found

    monkeypatch.setattr(Pool, "read", counted)
    return counts


def _meanwhile(mem: semmem.Semmem, spaces: list[str]) -> Callable[[IngestReport], None]:
    """Return what happens after each batch: another writer forgets a name, brings one, and two names become one."""
    calls = iter(range(9))

    def act(_: IngestReport) -> None:
        call = next(calls)
        for at, namespace in enumerate(spaces):
            if call == 0:
                mem.merge_concepts("Ada Lovelace", "Bob Reed", namespace=namespace)
                assert mem.forget(f"n{3 * at:03}", namespace=namespace) == 1
            elif call == 1:
                item = {"id": "x", "title": "Cape Ann", "text": "Cape Ann is far."}
                mem.remember(**item, namespace=namespace, created_at="2026-01-02T00:00:00Z")

    return act


@pytest.mark.slow
@pytest.mark.parametrize(("language", "credentials"), [("english", "warn"), ("german", "warn"), ("english", "redact")])
def test_a_list_read_by_workers_is_stored_as_one_that_this_process_reads(
    store_url: str, language: str, credentials: Literal["warn", "redact"], read_by_workers: list[int]
) -> None:
    spaces = [f"{language}0", f"{language}1"]
    stored = []
    for workers in (2, 0):
        settings: Any = {"language": language, "credentials": credentials, "bulk_workers": workers}
        with semmem.connect(store_url, embedder="hashing", **settings) as mem:
            with pytest.warns(CredentialWarning, match="n017"):
                report = mem.remember_many(
                    notes(50, language), batch_size=18, on_error="skip", progress=_meanwhile(mem, spaces)
                )
            assert [one.position for one in report.rejected] == [23, 24]
            mem.maintain()
            links = sorted(
                (one.from_id, one.type, one.to_id)
                for number in set(range(50)).difference((0, 3, 23, 24))
                for one in mem.links(f"n{number:03}", namespace=spaces[number % 2])
            )
            hashes = [mem.graph_hash(namespace=namespace) for namespace in spaces]
            check(store_url)
            found = contents(store_url)
            tables = [found[name] for name in ("forwards", "postings", "vectors", "tally")]
            stored.append((report.remembered, report.contradictions, links, hashes, *tables))
            for namespace in spaces:
                mem.drop_namespace(namespace)
    assert stored[0] == stored[1]
    assert links
    assert len(read_by_workers) == 2  # the first of three batches is read while the workers start
    assert min(read_by_workers) > 10


def test_an_item_that_is_refused_ends_the_workers_and_leaves_what_was_stored_before(
    tmp_path: Path, read_by_workers: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[subprocess.Popen[bytes]] = []
    start = subprocess.Popen
    monkeypatch.setattr(bulk.subprocess, "Popen", lambda *a, **k: started.append(start(*a, **k)) or started[-1])
    some = [one for one in notes(50) if one["id"] != "n017"]  # which warns
    with semmem.connect(f"sqlite://{tmp_path}/notes.db", embedder="hashing", bulk_workers=1) as mem:
        with pytest.raises(BadItem, match=r"Item 22 .*importance must be"):
            mem.remember_many(some, batch_size=10)
        assert mem.stats(namespace="english0").memories + mem.stats(namespace="english1").memories == 20
        report = mem.remember_many(some, batch_size=10, on_error="skip")
        assert (report.remembered, report.unchanged, len(report.rejected)) == (27, 20, 2)
    assert [process.returncode is None for process in started] == [False, False]
    assert all(read_by_workers[:2])  # the second and the third batch; the fourth was cut off
    assert len(read_by_workers) >= 6
    assert all(read_by_workers[-4:])


def test_where_workers_fail_a_list_is_stored_as_ever(
    tmp_path: Path, read_by_workers: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "_PROGRAM", "raise SystemExit(1)")
    with semmem.connect(f"sqlite://{tmp_path}/notes.db", embedder="hashing", bulk_workers=1) as mem:
        some = [one for one in notes(50) if one["id"] not in ("n017", "n023", "n024")]
        assert mem.remember_many(some, batch_size=10).remembered == 47
    assert read_by_workers == [0]


def test_who_stops_early_does_not_wait_for_a_worker_that_hangs(
    tmp_path: Path, read_by_workers: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "_PROGRAM", "import time; time.sleep(600)")
    monkeypatch.setattr(bulk, "_PATIENCE_S", 600.0)
    monkeypatch.setattr(bulk, "_FEWEST_CHARS", 10**9)  # a comparison would wait for the worker

    def stop(_: IngestReport) -> None:
        raise InterruptedError

    with semmem.connect(f"sqlite://{tmp_path}/notes.db", embedder="hashing", bulk_workers=1) as mem:
        some = [one for one in notes(50) if one["id"] not in ("n017", "n023", "n024")]
        with pytest.raises(InterruptedError):
            mem.remember_many(some, batch_size=10, progress=stop)
        assert mem.stats(namespace="english0").memories == 5  # of the first batch of ten


class Mine(Rules):
    """A user's own extractor, which is not the rules."""

    name = "mine"


@pytest.mark.parametrize("case", ["a stream", "one batch", "one processor", "another extractor", "none wanted"])
def test_no_worker_reads(
    case: str, tmp_path: Path, read_by_workers: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Pool, "_start", None)  # nothing is started either
    monkeypatch.setattr(preparation, "processors", lambda: 1 if case == "one processor" else 4)
    own = {"extractor": Mine()} if case == "another extractor" else {}
    with semmem.connect(
        f"sqlite://{tmp_path}/notes.db", embedder="hashing", bulk_workers=0 if case == "none wanted" else 2, **own
    ) as mem:
        some = [{"text": f"Ada Lovelace met Bob in room {number}."} for number in range(20)]
        items = iter(some) if case == "a stream" else some
        assert mem.remember_many(items, batch_size=20 if case == "one batch" else 5).remembered == 20
    assert read_by_workers == []


def test_what_a_worker_makes_is_gone_without_the_garbage_collector() -> None:
    program = """
import gc
from semmem.write.bulk import TextRow, found_in
from semmem.write.comparison import Text, compared


def work(first):
    texts = [
        f"Ada moved the key of room {n} to Oslo. The run of Bob Ash takes {n} minutes. \u6771\u4eac. pw: Tr0ub4dor&{n}"
        for n in range(first, first + 50)
    ]
    rows = [TextRow(text, "", "\u00c9cole" if n % 2 else None, "Kim", 7) for n, text in enumerate(texts)]
    every = [Text(("n", str(n)), text, None, "Kim", (float(n), n, n)) for n, text in enumerate(texts)]
    for language in ("english", "german"):
        found_in(rows, language)
    assert compared([(one, every) for one in every], "supersede")


work(0)
gc.collect()
gc.disable()
work(100)
print(gc.collect())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "0\n"
