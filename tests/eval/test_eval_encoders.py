"""The costs of an embedder are those of the embedder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from eval import encoders
from semmem.embedders import load


def test_each_embedder_gets_its_costs_by_its_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "encoders.json"
    encoders.main(["hashing", "--out", str(out)])
    result = json.loads(capsys.readouterr().out)
    assert json.loads(out.read_text(encoding="utf-8")) == result
    assert result["command"] == "python -m eval.encoders hashing"
    [(name, costs)] = result["encoders"].items()
    assert (name, costs["dimensions"], costs["max_tokens"], costs["bytes"]) == (load("hashing").name, 256, None, None)
    assert costs["question_ms"] >= 0
    assert costs["passage_ms"] >= 0
