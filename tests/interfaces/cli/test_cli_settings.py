"""`semmem settings`: each value with its source, secrets masked, and a namespace's own settings in every process."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

import semmem
from semmem import config
from semmem.config import Settings
from tests.interfaces.cli.program import Call, in_process, loaded
from tests.stores.audit import sql

ANSWERS = """
import sys, semmem
with semmem.connect(sys.argv[1], embedder="hashing") as mem:
    for _ in sys.stdin:
        found = mem.recall("where is the key?", namespace="n")
        print(found.recipe.legs, dict(found.settings), sorted(found.timings), flush=True)
"""


@pytest.fixture
def call(capfd: pytest.CaptureFixture[str], store_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Call:
    """Run the program in this process, in an empty folder and home, on an empty store; return code, output, errors."""
    monkeypatch.setenv("SEMMEM_URL", store_url)
    monkeypatch.setenv("SEMMEM_EMBEDDER", "hashing")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.delenv("SEMMEM_CONFIG", raising=False)
    monkeypatch.chdir(tmp_path)
    return in_process(capfd)


def by_name(rows: list[dict[str, Any]]) -> dict[str, tuple[Any, str]]:
    return {row["name"]: (row["value"], row["source"]) for row in rows}


def test_every_setting_is_shown_with_its_value_and_where_it_came_from(call: Call, tmp_path: Path) -> None:
    (tmp_path / "semmem.toml").write_text("pool_size = 3\n[recipe.weights]\ngraph = 0.5\n", encoding="utf-8")
    told = loaded(call("settings", "--json", "--url", "sqlite::memory:"))
    found = by_name(told["settings"])
    assert set(found) == set(Settings.model_fields)
    assert found["url"] == ("sqlite::memory:", "argument")
    assert found["embedder"] == ("hashing", "environment")
    assert found["pool_size"] == (3, str(tmp_path / "semmem.toml"))
    assert found["recipe"] == ({"weights": {"graph": 0.5}}, str(tmp_path / "semmem.toml"))
    assert found["idle_stop_s"] == (3600.0, "default")
    assert told["files"] == [str(tmp_path / "semmem.toml")]
    code, out, err = call("settings")
    assert (code, err) == (0, "")
    assert "./semmem.toml" in out
    assert all(name in out for name in Settings.model_fields)


def test_keys_and_passwords_are_not_shown(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEMMEM_LLM_KEY", "sesame")
    monkeypatch.setenv("SEMMEM_LLM_URL", "https://ada:sesame@there.example/v1")
    for url in ("postgresql://ada:sesame@there/db", "postgresql://there/db?user=ada&password=sesame"):
        monkeypatch.setenv("SEMMEM_URL", url)
        for form in ((), ("--json",)):
            code, out, _ = call("settings", *form)
            assert code == 0
            assert "sesame" not in out
            assert "***" in out


def test_a_mistake_in_the_file_is_told_by_every_command_and_by_doctor(call: Call, tmp_path: Path) -> None:
    (tmp_path / "semmem.toml").write_text("\npool = 3\n", encoding="utf-8")
    for command in (("settings",), ("stats",), ("reach",)):
        code, out, err = call(*command)
        assert (code, out) == (2, "")
        assert err.startswith(f"{tmp_path / 'semmem.toml'}, line 2: there is no setting 'pool'; choose one of url, ")
        assert err.count("\n") == 1
    findings = {f["what"]: f for f in json.loads(call("doctor", "--json", "--no-connect")[1])["findings"]}
    assert findings["settings"]["state"] == "bad"
    (tmp_path / "semmem.toml").write_text("pool_size = 3\n", encoding="utf-8")
    findings = {f["what"]: f for f in json.loads(call("doctor", "--json", "--no-connect")[1])["findings"]}
    assert findings["settings"]["detail"] == f"from {tmp_path / 'semmem.toml'}"


def test_a_misspelt_variable_is_told_by_a_command_and_by_doctor(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEMMEM_POOLSIZE", "3")
    config._warn.cache_clear()
    sentence = "SEMMEM_POOLSIZE is not a setting and is ignored; did you mean SEMMEM_POOL_SIZE?"
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        code, out, err = call("stats", "--json", "--url", "sqlite::memory:")
    assert (code, err) == (0, f"Warning: {sentence}\n")
    assert json.loads(out)["memories"] == 0
    (found,) = [
        f for f in json.loads(call("doctor", "--json", "--no-connect")[1])["findings"] if f["what"] == "variable"
    ]
    assert (found["state"], found["detail"], found["mend"]) == ("bad", sentence, "unset SEMMEM_POOLSIZE")


def test_the_recipe_of_the_file_is_the_one_that_answers_and_that_reach_proves(call: Call, tmp_path: Path) -> None:
    loaded(call("remember", "The key hangs behind the radio.", "--json"))
    (tmp_path / "semmem.toml").write_text('recipe = "hybrid"\n', encoding="utf-8")
    assert loaded(call("recall", "key", "--json"))["recipe"] == "hybrid"
    assert loaded(call("reach", "--json"))["recipe"] == "hybrid"
    assert loaded(call("recall", "key", "--recipe", "lexical", "--json"))["recipe"] == "lexical"
    assert loaded(call("reach", "--recipe", "lexical", "--json"))["recipe"] == "lexical"


def test_a_setting_of_a_namespace_is_set_shown_and_unset(call: Call) -> None:
    assert loaded(call("settings", "set", "weights.graph", "0.5", "-n", "n", "--json"))["settings"] == {
        "weights.graph": 0.5
    }
    code, out, err = call("settings", "set", "lexical.match", "all", "--namespace", "n")
    assert (code, out, err) == (0, 'lexical.match is "all" in namespace n, from the next recall on.\n', "")
    told = loaded(call("settings", "-n", "n", "--json"))
    found = by_name(told["search"])
    assert (told["namespace"], told["unused"]) == ("n", None)
    assert found["weights.graph"] == (0.5, "namespace n")
    assert found["lexical.match"] == ("all", "namespace n")
    assert found["weights.dense"] == (0.35, "recipe")
    assert by_name(loaded(call("-n", "m", "settings", "--json"))["search"])["weights.graph"] == (0.35, "recipe")
    assert loaded(call("settings", "unset", "lexical.match", "-n", "n", "--json"))["settings"] == {"weights.graph": 0.5}
    assert call("settings", "unset", "lexical.match", "-n", "n")[0] == 4
    assert call("settings", "unset", "-n", "n")[0] == 2
    assert loaded(call("settings", "unset", "--all", "-n", "n", "--json"))["settings"] == {}


def test_what_cannot_be_set_is_refused_and_nothing_is_stored(call: Call) -> None:
    for name, value in (("weights.graph", "1000"), ("weights.graph", "much"), ("colour", "1"), ("rerank_depth", "NaN")):
        code, out, err = call("settings", "set", name, value, "-n", "n")
        assert (code, out, err.count("\n")) == (2, "", 1)
    assert by_name(loaded(call("settings", "-n", "n", "--json"))["search"])["weights.graph"] == (0.35, "recipe")


def test_reach_and_explain_go_by_the_settings_of_the_namespace(call: Call) -> None:
    loaded(call("remember", "The key hangs behind the radio.", "--id", "key", "-n", "n", "--json"))
    loaded(call("settings", "set", "recipe", "seed", "-n", "n", "--json"))
    loaded(call("settings", "set", "weights.graph", "0", "-n", "n", "--json"))
    code, out, err = call("reach", "-n", "n", "--json")
    assert (code, json.loads(out)["recipe"]) == (0, "seed")
    assert json.loads(out)["regimes"]["any"]["legs"]["graph"]["class"] == "unreachable"
    assert err == ""
    assert call("reach", "-n", "n")[1].startswith("In namespace n: recipe seed, weights.graph 0.\n")
    why = loaded(call("explain", "key", "-q", "where is the key?", "-n", "n", "--json"))
    assert why["legs"]["graph"]["status"] == "not called (weight or depth 0)"
    found = loaded(call("recall", "where is the key?", "-n", "n", "--json"))
    assert (found["recipe"], found["settings"]) == ("seed", {"recipe": "seed", "weights.graph": 0})
    assert "graph" not in found["timings"]
    named = loaded(call("recall", "where is the key?", "-n", "n", "--recipe", "default", "--json"))
    assert (named["recipe"], named["settings"]) == ("default", {})
    assert "graph" in named["timings"]


def test_what_one_process_sets_another_one_has_at_its_next_recall(store_url: str) -> None:
    with semmem.connect(store_url, embedder="hashing") as mem:
        mem.remember("The key hangs behind the radio.", namespace="n")
        mem.remember("The key hangs behind the radio.", namespace="m")
        command = [sys.executable, "-c", ANSWERS, store_url]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
            assert isinstance(other.stdin, io.TextIOBase)
            assert isinstance(other.stdout, io.TextIOBase)

            def asked() -> str:
                assert other.stdin is not None
                assert other.stdout is not None
                print(file=other.stdin, flush=True)
                return other.stdout.readline().strip()

            assert asked() == "('lexical', 'dense', 'graph') {} ['dense', 'graph', 'lexical', 'total']"
            mem.configure(namespace="n", weights={"graph": 0, "dense": 0})
            assert asked() == "('lexical',) {'weights.dense': 0, 'weights.graph': 0} ['lexical', 'total']"
            mem.unset_settings("weights.dense", namespace="n")
            assert asked() == "('lexical', 'dense') {'weights.graph': 0} ['dense', 'lexical', 'total']"
            mem.unset_settings(namespace="n")
            assert asked() == "('lexical', 'dense', 'graph') {} ['dense', 'graph', 'lexical', 'total']"
            other.stdin.close()
            assert other.wait(timeout=60) == 0


@pytest.mark.parametrize("kind", ["postgresql", "sqlite"])
def test_settings_count_with_filters_and_in_several_namespaces_only_where_they_agree(
    kind: str, store_url: str, tmp_path: Path
) -> None:
    url = store_url if kind == "postgresql" else f"sqlite://{tmp_path}/store.db"
    with semmem.connect(url, embedder="none" if kind == "sqlite" else "hashing", recipe="lexical") as mem:
        for namespace in ("a", "b"):
            mem.remember("The key hangs behind the radio.", namespace=namespace, tags=["t"])
        assert mem.configure(namespace="a", lexical={"k1": 0.9}) == {"lexical.k1": 0.9}
        assert mem.recall("key", namespace="a", filters={"tags": "t"}).recipe.lexical.k1 == 0.9
        assert mem.recall("key", namespace="a", recipe="lexical").recipe.lexical.k1 == 1.2
        found = mem.recall("key", namespace=["a", "b"])
        assert (found.recipe.lexical.k1, len(found)) == (1.2, 1)
        assert found.degraded["settings"].startswith("the namespaces a, b have different search settings")
        mem.configure(namespace="b", **{"lexical.k1": 0.9})
        found = mem.recall("key", namespace=["a", "b"])
        assert (found.recipe.lexical.k1, dict(found.degraded), dict(found.settings)) == (0.9, {}, {"lexical.k1": 0.9})
        assert mem.settings_of(namespace="c") == {}


def test_a_setting_of_another_version_is_left_out_and_told_by_recall_and_doctor(call: Call, store_url: str) -> None:
    loaded(call("remember", "The key hangs behind the radio.", "-n", "n", "--json"))
    sql(store_url, "INSERT INTO semmem.namespace_setting (namespace, name, value) VALUES ('n', 'colour', '\"red\"')")
    found = loaded(call("recall", "key", "-n", "n", "--json"))
    assert len(found["hits"]) == 1
    assert found["degraded"] == {
        "settings": "namespace n: this semmem does not know colour; upgrade it, or unset what is not meant for it"
    }
    assert found["total_is_exact"]
    findings = {f["what"]: f for f in json.loads(call("doctor", "--json")[1])["findings"]}
    assert findings["search settings"]["state"] == "bad"
    assert findings["search settings"]["mend"] == "semmem settings unset --all --namespace n"
    loaded(call("settings", "unset", "colour", "-n", "n", "--json"))
    assert loaded(call("recall", "key", "-n", "n", "--json"))["degraded"] == {}


def test_a_command_that_doctor_proposes_runs_nothing_else_whatever_a_namespace_is_called(
    call: Call, store_url: str
) -> None:
    sql(store_url, "INSERT INTO semmem.namespace_setting (namespace, name, value) VALUES ('n; ls', 'colour', '1')")
    findings = {f["what"]: f for f in json.loads(call("doctor", "--json")[1])["findings"]}
    assert findings["search settings"]["mend"] == "semmem settings unset --all --namespace 'n; ls'"


def test_every_recall_reads_the_settings_without_a_statement_of_its_own(store_url: str) -> None:
    with semmem.connect(store_url, embedder="hashing", resident_mb=0) as mem:
        mem.remember("The key hangs behind the radio.")
        counts = []
        for change in ({}, {"weights": {"graph": 0.5}}):
            mem.configure(**change)
            asked: list[str] = []
            rows = mem.store.rows
            mem.store.rows = lambda name, p, asked=asked, rows=rows: asked.append(name) or rows(name, p)
            mem.recall("key")
            mem.store.rows = rows
            counts.append(sorted(asked))
        assert counts[0] == counts[1]
        assert not [name for name in counts[0] if name.startswith("setting")]


def test_doctor_says_that_minilm_is_made_for_english(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def language() -> list[str]:
        findings = json.loads(call("doctor", "--json", "--no-connect")[1])["findings"]
        return [one["detail"] for one in findings if one["what"] == "language"]

    monkeypatch.delenv("SEMMEM_EMBEDDER", raising=False)
    assert language() == []
    monkeypatch.setenv("SEMMEM_LANGUAGE", "french")
    assert language() == [
        "french; all-MiniLM-L6-v2 is made for English, so the dense leg finds less: "
        "choose another by `semmem model get multilingual-e5-small`, then `semmem rebuild --embedder` with its name"
    ]
    monkeypatch.setenv("SEMMEM_EMBEDDER", "none")
    assert language() == []
