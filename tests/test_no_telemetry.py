"""No library that semmem loads reports to its maker, and nobody's own choice is overwritten."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
VARIABLES = ("ORT_DISABLE_TELEMETRY", "HF_HUB_DISABLE_TELEMETRY")


def run(program: str, home: Path, **variables: str) -> str:
    """Return what a Python process prints that has a home folder of its own and no variable that switches off."""
    home.mkdir()
    kept = {name: value for name, value in os.environ.items() if name not in VARIABLES and not name.startswith("XDG_")}
    environment = {**kept, "HOME": str(home), "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1", **variables}
    command = [sys.executable, "-c", program]
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True, timeout=60).stdout


SHOW = f"import semmem, os, json; print(json.dumps([os.environ[name] for name in {VARIABLES!r}]))"
DOCTOR = "import sys; sys.argv = ['semmem', 'doctor', '--no-connect', '--json']; import semmem.__main__ as m; m.main()"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, ["1", "1"]),
        ({"ORT_DISABLE_TELEMETRY": ""}, ["1", "1"]),
        ({"ORT_DISABLE_TELEMETRY": "0", "HF_HUB_DISABLE_TELEMETRY": "yes"}, ["0", "yes"]),
    ],
)
def test_import_sets_the_variables_that_are_not_set(tmp_path: Path, given: dict[str, str], expected: list[str]) -> None:
    assert json.loads(run(SHOW, tmp_path / "home", **given)) == expected


@pytest.mark.skipif(importlib.util.find_spec("onnxruntime") is None, reason="ONNX Runtime is not installed")
def test_onnx_runtime_writes_nothing_into_the_home_folder(tmp_path: Path) -> None:
    run("import semmem, onnxruntime", tmp_path / "home")
    assert list((tmp_path / "home").rglob("*")) == []


@pytest.mark.parametrize(
    ("value", "state", "said"),
    [
        ("1", "good", "none: that of ONNX Runtime, huggingface_hub and Ray is switched off"),
        ("0", "bad", "ORT_DISABLE_TELEMETRY=0 lets ONNX Runtime report to its maker"),
    ],
)
def test_doctor_says_whether_a_library_may_report(tmp_path: Path, value: str, state: str, said: str) -> None:
    out = run(DOCTOR, tmp_path / "home", ORT_DISABLE_TELEMETRY=value, SEMMEM_CONFIG="")
    (found,) = [one for one in json.loads(out)["findings"] if one["what"] == "telemetry"]
    assert (found["state"], found["detail"]) == (state, said)
    assert found["mend"] == (None if value == "1" else "unset ORT_DISABLE_TELEMETRY")
