"""Workers of a real Ray read what one process stores: the same is stored, whichever of them ends in the middle."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import semmem
from semmem.client.scale import cluster as clusters
from semmem.client.scale import dataset as scale
from semmem.client.scale.cluster import cluster
from semmem.client.scale.workers import on_ray
from semmem.embedders.hashing import Hashing
from semmem.interfaces.cli.app import run
from semmem.model.errors import InvalidInput, MissingExtra
from semmem.model.types import IngestReport
from tests.write.test_preparation import notes

HAS_RAY = importlib.util.find_spec("ray") is not None
WITHOUT_RAY = pytest.mark.skipif(not HAS_RAY, reason="Ray is not installed: pip install 'semmem[ray]'")


def with_ray(test: Any) -> Any:
    """Mark a test that starts Ray: 20 seconds, on a busy machine minutes; warnings of Ray and Arrow are not ours."""
    for mark in (pytest.mark.slow, WITHOUT_RAY, pytest.mark.timeout(600), pytest.mark.filterwarnings("default")):
        test = mark(test)
    return test


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    """A Ray of this machine with two workers, which the tests of this module share."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clusters, "processors", lambda: 2)
        with cluster() as package:
            yield package


def items() -> list[dict[str, Any]]:
    """Return 40 notes, of which one is split and one has other names."""
    found = notes(40)
    found[3]["text"] = "Ada Lovelace met Bob Reed in Oslo. " * 400
    found[7]["metadata"] = {"aliases": ["The Harbour"], "room": 4}
    return found


@with_ray
def test_a_list_that_two_workers_read_is_stored_as_one_that_this_process_reads(ray: Any, store_url: str) -> None:
    with semmem.connect(store_url, embedder="minilm", pool_size=2) as mem:
        mem.remember_many(items(), namespace="here", batch_size=10)
        with on_ray(mem) as reading:
            assert len(reading._here.ingest._readers) == 2  # type: ignore[arg-type]
            report = reading.remember_many(items(), namespace="there", batch_size=10)
        assert (report.remembered, dict(report.degraded)) == (40, {})
        assert mem.hashes(namespace="here")["here"] == mem.hashes(namespace="there")["there"]


@with_ray
def test_a_worker_that_is_killed_in_the_middle_costs_nothing(ray: Any, store_url: str) -> None:
    killed: list[int] = []
    with semmem.connect(store_url, embedder="hashing", pool_size=2) as mem, on_ray(mem) as reading:
        workers = list(reading._here.ingest._readers._workers)  # type: ignore[union-attr]
        pids = ray.get([worker.__ray_call__.remote(lambda _: os.getpid()) for worker in workers])

        def kill(report: IngestReport) -> None:
            if len(killed) < 2:
                os.kill(pids[len(killed)], signal.SIGKILL)
                killed.append(report.remembered)

        mem.remember_many(items(), namespace="here", batch_size=2)
        report = reading.remember_many(items(), namespace="there", batch_size=2, progress=kill)
        assert (killed, report.remembered, report.rejected) == ([2, 4], 40, ())
        assert mem.hashes(namespace="here")["here"] == mem.hashes(namespace="there")["there"]


@with_ray
def test_import_with_ray_stores_what_import_stores_and_a_second_one_nothing(
    ray: Any, store_url: str, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEMMEM_URL", store_url)
    monkeypatch.setenv("SEMMEM_EMBEDDER", "hashing")
    file = tmp_path / "notes.jsonl"
    file.write_text("".join(f"{json.dumps(item)}\n" for item in items()) + "no json\n")

    def imported(*args: str) -> str:
        assert run(["import", "jsonl", *args]) == 0
        return capfd.readouterr().out

    assert imported(str(file), "-n", "here").startswith("Imported 40 memories into namespace here in ")
    assert imported("--ray", str(file), "-n", "there").startswith("Imported 40 memories into namespace there in ")
    again = imported(str(file), "-n", "there", "--ray")
    assert again.endswith("40 were there already, 1 row was bad.\n")
    with semmem.connect(store_url, embedder="hashing", pool_size=2) as mem:
        assert mem.hashes(namespace="here")["here"] == mem.hashes(namespace="there")["there"]


@with_ray
def test_a_dataset_is_remembered_with_its_nulls_as_not_given(ray: Any, store_url: str, tmp_path: Path) -> None:
    arrow, parquet = importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
    rows = [{**item, "title": item.get("title"), "metadata": item.get("metadata")} for item in items()]
    parquet.write_table(arrow.Table.from_pylist(rows), tmp_path / "rows.parquet")
    dataset = importlib.import_module("ray.data").read_parquet(str(tmp_path / "rows.parquet"))
    reports: list[IngestReport] = []
    of: dict[str, Any] = {"url": store_url, "namespace": "there", "embedder": "hashing", "pool_size": 2}
    report = scale.remember_dataset(dataset, batch_size=10, progress=reports.append, **of)
    assert ([one.remembered for one in reports], report.remembered) == ([10, 20, 30, 40], 40)
    dataset = dataset.materialize()  # Ray reads the file for the first call alone
    assert scale.remember_dataset(dataset, **of).unchanged == 40
    with semmem.connect(store_url, embedder="hashing", pool_size=2) as mem:
        mem.remember_many(items(), namespace="here")
        assert mem.hashes(namespace="here")["here"] == mem.hashes(namespace="there")["there"]
    without_ids = dataset.drop_columns(["id"])
    without = {"namespace": "made"}
    assert [scale.remember_dataset(without_ids, **of | without).remembered for _ in range(2)] == [40, 0]


@with_ray
def test_a_dataset_that_holds_no_memories_is_refused_in_one_sentence(ray: Any, tmp_path: Path) -> None:
    data = importlib.import_module("ray.data")
    url = f"sqlite:{tmp_path / 'notes.db'}"
    with pytest.raises(InvalidInput, match=r"no column text; its columns are body\. .*rename_columns\(\{'body': 'text"):
        scale.remember_dataset(data.from_items([{"body": "a"}]), url=url)
    with pytest.raises(InvalidInput, match=r"A memory has no field page; drop these columns, .*\['page'\]"):
        scale.remember_dataset(data.from_items([{"text": "a", "page": 1}]), url=url)
    with pytest.raises(InvalidInput, match=r"takes a ray\.data\.Dataset, not list"):
        scale.remember_dataset([{"text": "a"}], url=url)
    with pytest.raises(
        InvalidInput, match=r"workers must be from 1 to 1, one less than this Ray has processors, not 2"
    ):
        scale.remember_dataset(data.from_items([{"text": "a"}]), url=url, workers=2)
    report = scale.remember_dataset(data.from_items([{"text": "a"}, {"text": " "}]), url=url, embedder="hashing")
    assert (report.remembered, [one.reason for one in report.rejected]) == (
        1,
        ["The text is empty; a memory needs some text."],
    )


class Locked(Hashing):
    """An embedder of somebody's own with a lock, which cannot be sent anywhere."""

    name = "locked"

    def __init__(self) -> None:
        self.lock = threading.Lock()


@with_ray
def test_an_embedder_that_cannot_be_sent_to_a_worker_is_refused(ray: Any, tmp_path: Path) -> None:
    url = f"sqlite:{tmp_path / 'notes.db'}"
    with (
        semmem.connect(url, embedder=Locked()) as mem,
        pytest.raises(InvalidInput, match=r"cannot be sent to the workers of Ray .*choose them by name"),
        on_ray(mem),
    ):
        pass


@with_ray
def test_a_ray_that_semmem_starts_listens_on_this_machine_alone_and_reports_nothing(tmp_path: Path) -> None:
    program = """
import json, os, psutil
from semmem.client.scale.cluster import cluster
with cluster() as ray:
    of = [psutil.Process(), *psutil.Process().children(recursive=True)]
    found = {c.laddr.ip for p in of for c in p.net_connections() if c.status == "LISTEN"}
    dashboard = ray._private.worker.global_worker.node.webui_url
    print(json.dumps([sorted(found), os.environ["RAY_USAGE_STATS_ENABLED"], dashboard or None]))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=400, check=True)
    listening, reports, dashboard = json.loads(done.stdout.splitlines()[-1])
    assert {one.removeprefix("::ffff:") for one in listening} == {"127.0.0.1"}
    assert (reports, dashboard) == ("0", None)


def test_a_ray_that_does_not_answer_is_named() -> None:
    with (
        pytest.raises(
            InvalidInput, match=r"No Ray answers at 127\.0\.0\.1:1 \(.*refused.*\); start one with `ray start"
        ),
        cluster("127.0.0.1:1"),
    ):
        pass
    for wrong in ("ray://127.0.0.1:10001", "notes.jsonl", ":6379"):
        with (
            pytest.raises(
                InvalidInput, match=rf"'{wrong}' is no address of a Ray; give HOST:PORT as `ray start --head`"
            ),
            cluster(wrong),
        ):
            pass


def test_without_ray_the_line_that_installs_it_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"Ray is not installed; install it with: pip install 'semmem\[ray\]'"):
        scale.remember_dataset([], url=f"sqlite:{tmp_path / 'notes.db'}")


@pytest.mark.parametrize(
    ("given", "refused"),
    [
        (["--ray", "here.jsonl"], "There is no file here.jsonl."),
        (["here.jsonl", "--ray"], "There is no file here.jsonl."),
    ],
)
def test_ray_takes_an_address_and_no_file(capfd: pytest.CaptureFixture[str], given: list[str], refused: str) -> None:
    assert run(["import", "jsonl", *given]) == 2
    assert capfd.readouterr().err.startswith(refused)
