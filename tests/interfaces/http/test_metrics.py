"""What /metrics says of a store, and the dashboard and the rules that read it."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
import yaml

import semmem
from semmem.client.memory import Semmem
from semmem.interfaces.http import metrics
from semmem.interfaces.http.metrics import Metrics
from tests.patience import PATIENCE_S
from tests.waiting import until

ROOT = Path(__file__).resolve().parents[3]
MONITORING = ROOT / "examples" / "monitoring"
WITH_A_STANDBY = {"semmem_recalls_from_standby_total", "semmem_recalls_from_primary_total"}


def page(of: Metrics | Semmem) -> dict[str, float]:
    """Return the numbers without labels on the page of a server."""
    text = (of if isinstance(of, Metrics) else Metrics(of)).as_text()[0].decode()
    return {name: float(value) for name, value in re.findall(r"^(\w+) (\S+)$", text, re.MULTILINE)}


def names(text: str) -> set[str]:
    """Return the metrics that a text names; the series of a histogram are one metric."""
    return {re.sub(r"_(bucket|count|sum)$", "", name) for name in re.findall(r"\bsemmem_\w+", text)}


def offered(of: Semmem) -> set[str]:
    """Return the metrics that a server has, with those of a store on a standby."""
    text = Metrics(of).as_text()[0].decode()
    found = re.findall(r"^# TYPE (\w+) (\w+)$", text, re.MULTILINE)
    return {name for name, _ in found if not name.endswith("_created")} | WITH_A_STANDBY


@pytest.fixture
def stored(store_url: str) -> Iterator[Semmem]:
    with semmem.connect(store_url, embedder="hashing", pool_size=3) as mem:
        yield mem


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a page wait for a store that answers late."""
    monkeypatch.setattr(metrics, "_PATIENCE_S", PATIENCE_S)


def test_a_page_counts_what_waits_for_maintain_and_for_a_vector(stored: Semmem, store_url: str) -> None:
    assert page(stored)["semmem_memories_waiting"] == 0
    stored.remember("The kettle stands on the stove.", id="kettle")
    stored.remember("A heron stands in the reeds.", id="heron")
    with semmem.connect(store_url, embedder="none") as without:
        without.remember("The quay is wet.", id="quay")
        without.remember("Nobody may find this.", id="secret", sensitive=True)
    stored.store.run(lambda c: c.execute("UPDATE memory SET updated_at = now() - interval '3 days' WHERE id = 'heron'"))
    found = page(stored)
    assert (found["semmem_store_up"], found["semmem_memories_waiting"]) == (1, 3)
    assert found["semmem_memories_without_vector"] == 1
    assert 259_200 <= found["semmem_oldest_waiting_seconds"] < 259_200 + 3_600
    stored.maintain()
    stored.rebuild()
    found = page(stored)
    assert (found["semmem_memories_waiting"], found["semmem_oldest_waiting_seconds"]) == (0, 0)
    assert found["semmem_memories_without_vector"] == 0


def test_a_page_has_the_age_of_a_backup_once_there_is_one(stored: Semmem, other_url: str, tmp_path: Path) -> None:
    stored.remember("The kettle stands on the stove.", id="kettle")
    assert "semmem_backup_age_seconds" not in page(stored)
    stored.backup(tmp_path / "mine.semmem")
    assert 0 <= page(stored)["semmem_backup_age_seconds"] < 3_600
    with semmem.connect(other_url, embedder="hashing") as other:
        other.restore(tmp_path / "mine.semmem")
        assert "semmem_backup_age_seconds" not in page(other)  # nobody has backed this one up


def test_a_page_shows_the_connections_in_use_and_a_store_that_is_gone(stored: Semmem) -> None:
    server = Metrics(stored)
    with stored.store.lasting(), stored.store.lasting():
        until(lambda: page(server)["semmem_pool_in_use"] == 2)  # the pool takes that of the first question back later
        found = page(server)
        assert (found["semmem_pool_waiting"], found["semmem_pool_most"]) == (0, 3)
    stored.store.close()
    assert page(stored)["semmem_store_up"] == 0


def test_the_store_is_asked_once_a_minute(stored: Semmem, monkeypatch: pytest.MonkeyPatch) -> None:
    server = Metrics(stored)
    assert page(server)["semmem_memories_waiting"] == 0
    stored.remember("The kettle stands on the stove.")
    assert page(server)["semmem_memories_waiting"] == 0
    monkeypatch.setattr(metrics, "_EVERY_S", 0.0)
    assert page(server)["semmem_memories_waiting"] == 1


def test_a_count_that_takes_long_leaves_the_store_up_and_the_last_count_shown(
    stored: Semmem, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored.remember("The kettle stands on the stove.")
    server = Metrics(stored)
    assert page(server)["semmem_memories_waiting"] == 1
    monkeypatch.setattr(metrics, "_EVERY_S", 0.0)
    with psycopg.connect(stored.store.url) as blocks:
        blocks.execute("LOCK TABLE memory IN ACCESS EXCLUSIVE MODE")
        monkeypatch.setattr(metrics, "_PATIENCE_S", 0.05)
        until(lambda: page(server)["semmem_store_up"] == 1)
        assert page(server)["semmem_memories_waiting"] == 1
    stored.remember("The quay is wet.")
    until(lambda: page(server)["semmem_memories_waiting"] == 2)


def test_a_store_that_is_down_is_not_asked_again_at_once(stored: Semmem, monkeypatch: pytest.MonkeyPatch) -> None:
    server = Metrics(stored)
    asked = []
    monkeypatch.setattr(stored, "settings_of", lambda: asked.append(1) or stored.store.close() or stored.stats())
    assert [page(server)["semmem_store_up"] for _ in range(3)] == [0, 0, 0]
    assert asked == [1]
    monkeypatch.setattr(metrics, "_AGAIN_S", 0.0)
    assert (page(server)["semmem_store_up"], asked) == (0, [1, 1])


def test_a_page_counts_the_recalls_that_memory_does_not_answer(stored: Semmem) -> None:
    stored.remember("The kettle stands on the stove.")
    for _ in range(4):
        stored.recall("kettle")
    found = page(stored)
    assert (found["semmem_resident_asked_total"], found["semmem_resident_missed_total"]) == (4, 1)
    with semmem.connect(stored.store.url, embedder="hashing", resident_mb=0) as without:
        without.recall("kettle")
        assert "semmem_resident_asked_total" not in page(without)


def test_a_file_has_a_page_too(tmp_path: Path) -> None:
    with semmem.connect(f"sqlite://{tmp_path}/notes.db", embedder="hashing", pool_size=2) as mem:
        mem.remember("The kettle stands on the stove.", id="kettle")
        with semmem.connect(f"sqlite://{tmp_path}/notes.db", embedder="none") as without:
            without.remember("The quay is wet.", id="quay")
        with sqlite3.connect(tmp_path / "notes.db") as file:
            file.execute("INSERT INTO uncompared (namespace, ord, at) VALUES ('default', 1, 0)")
        file.close()
        mem.recall("kettle")
        found = page(mem)
    assert (found["semmem_store_up"], found["semmem_pool_in_use"], found["semmem_pool_most"]) == (1, 0, 2)
    assert (found["semmem_memories_waiting"], found["semmem_memories_without_vector"]) == (1, 1)
    assert found["semmem_oldest_waiting_seconds"] > 1_700_000_000
    assert found["semmem_resident_asked_total"] == 1
    assert "semmem_backup_age_seconds" not in found


# ---------------------------------------------------------------------- those who read the page


def test_the_dashboard_and_the_rules_name_metrics_that_a_server_has(stored: Semmem, tmp_path: Path) -> None:
    stored.backup(tmp_path / "mine.semmem")
    known = offered(stored)
    board = json.loads((MONITORING / "dashboard.json").read_text(encoding="utf-8"))
    expressions = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    assert len(board["panels"]) == len({panel["id"] for panel in board["panels"]}) == 12
    assert names(" ".join(expressions)) == known
    rules = yaml.safe_load((MONITORING / "alerts.yaml").read_text(encoding="utf-8"))["groups"][0]["rules"]
    assert [rule["alert"] for rule in rules] == ["SemmemStoreDown", "SemmemCallsWait", "SemmemWorkIsLate"]
    asked = names(" ".join(rule["expr"] for rule in rules))
    assert asked == {
        "semmem_store_up", "semmem_pool_waiting", "semmem_oldest_waiting_seconds", "semmem_backup_age_seconds",
    }  # fmt: skip
    assert asked <= known


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool, of Prometheus, is not installed")
def test_the_tool_of_prometheus_reads_the_page_and_every_rule_fires_when_it_should(stored: Semmem) -> None:
    rules = subprocess.run(
        ["promtool", "test", "rules", "alerts_test.yaml"], cwd=MONITORING, capture_output=True, text=True, check=False
    )
    assert (rules.returncode, rules.stderr.strip()) == (0, ""), rules.stdout + rules.stderr
    told = subprocess.run(
        ["promtool", "check", "metrics"], input=Metrics(stored).as_text()[0], capture_output=True, check=False
    )
    assert (told.returncode, told.stdout, told.stderr) == (0, b"", b"")


def test_the_documents_name_every_metric_and_no_other(stored: Semmem, tmp_path: Path) -> None:
    stored.backup(tmp_path / "mine.semmem")
    text = (ROOT / "docs" / "operate.md").read_text(encoding="utf-8")
    table = text.partition("| metric | meaning |")[2].partition("\n\n")[0]
    assert names(table) == offered(stored)
