"""`semmem model remove`: only a model of semmem's own folder goes, and none that the settings name."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from semmem.embedders.onnx_graph import FILES, installed_folder, installed_names
from semmem.interfaces.cli.app import run


@pytest.fixture(autouse=True)
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder with three models, of files without content; no setting names an embedder."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.delenv("SEMMEM_EMBEDDER", raising=False)
    for name in ("all-MiniLM-L6-v2", "bge-small", "ours"):
        installed_folder(name).mkdir(parents=True)
        for file in FILES:
            (installed_folder(name) / file).touch()
    return installed_folder().parent


def refusal(capfd: pytest.CaptureFixture[str], name: str) -> str:
    capfd.readouterr()
    assert run(["model", "remove", name]) == 2
    return capfd.readouterr().err.strip()


def test_a_model_is_removed_with_its_folder(models: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["model", "remove", "ours", "--json"]) == 0
    assert json.loads(capfd.readouterr().out) == {"model": "ours", "folder": str(models / "ours-1")}
    assert sorted(folder.name for folder in models.iterdir()) == ["all-MiniLM-L6-v2-1", "bge-small-1"]
    assert "There is no model 'ours' on this machine to remove; it has all-MiniLM-L6-v2, bge-small." in refusal(
        capfd, "ours"
    )


def test_the_model_that_the_settings_name_stays(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for name in ("minilm", "all-MiniLM-L6-v2"):
        assert refusal(capfd, name).endswith(
            "all-MiniLM-L6-v2 is the embedder where the settings name none, so it stays; set another one first, in "
            "SEMMEM_EMBEDDER or semmem.toml."
        )
    monkeypatch.setenv("SEMMEM_EMBEDDER", "bge-small")
    assert "The setting embedder names bge-small, so it stays; " in refusal(capfd, "bge-small")
    assert run(["model", "remove", "minilm"]) == 0
    assert installed_names() == ["bge-small", "ours"]


@pytest.mark.parametrize("name", ["../models/ours", "..", "", "ours-1", "*"])
def test_a_name_leads_out_of_no_folder(models: Path, capfd: pytest.CaptureFixture[str], name: str) -> None:
    assert f"There is no model {name!r} on this machine to remove" in refusal(capfd, name)
    assert len(list(models.iterdir())) == 3


def test_a_folder_with_other_files_and_a_link_stay(
    models: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (models / "ours-1" / "notes.txt").touch()
    assert "ours-1 holds notes.txt, which is not semmem's, so nothing was removed; remove it by hand." in refusal(
        capfd, "ours"
    )
    (models / "bge-small-1").rename(tmp_path / "elsewhere")
    (models / "bge-small-1").symlink_to(tmp_path / "elsewhere")
    assert "bge-small-1 is a link, so nothing was removed; remove it by hand." in refusal(capfd, "bge-small")
    assert len(list((tmp_path / "elsewhere").iterdir())) == 4


def test_a_machine_without_a_model_says_that_it_has_none(models: Path, capfd: pytest.CaptureFixture[str]) -> None:
    shutil.rmtree(models)
    assert refusal(capfd, "ours") == "There is no model 'ours' on this machine to remove; it has none."
