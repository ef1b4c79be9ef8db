"""What the doctor says of one machine: the command that mends what is missing, and no more of a log than helps."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from semmem.client.examination import model
from semmem.config import Settings
from semmem.embedders import minilm, model_source, onnx_graph, onnx_runtime
from semmem.interfaces.cli.app import run
from semmem.interfaces.coding_agents.error_log import error_log


def test_where_the_model_lacks_a_package_it_is_to_be_installed_and_not_the_model_to_be_got(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def without(name: str, *more: Any) -> Any:
        return None if name in ("onnxruntime", "sentence_transformers") else find_spec(name, *more)

    for module in (minilm.importlib.util, onnx_runtime, onnx_graph, model_source):
        monkeypatch.setattr(module, "find_spec", without)
    finding = model(Settings(embedder="minilm"))
    assert (finding.state, finding.mend) == ("bad", "pip install 'semmem[minilm]'")


def test_of_the_last_error_of_a_hook_three_hundred_characters_are_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    error_log().write("x" * 1_000)
    assert run(["doctor", "--no-connect", "--json"]) == 0
    (finding,) = [one for one in json.loads(capsys.readouterr().out)["findings"] if one["what"] == "hooks"]
    shown = finding["detail"].partition("the last one: ")[2]
    assert (len(shown), shown[-1]) == (300, "x")
