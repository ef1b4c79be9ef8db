"""Fingerprint code and extractor: cached lists and stores of another semmem, or of another graph, are not used."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import cache
from hashlib import blake2b
from pathlib import Path

import semmem
from semmem.model.protocols import Extractor

__all__ = ["ASKS", "STORES", "extracting", "fingerprint", "sources"]

_PACKAGES = {"eval": Path(__file__).resolve().parents[1], "semmem": Path(semmem.__file__).resolve().parent}
"""The folder of each package: side by side in a clone, ``eval`` inside ``semmem_eval`` where it is installed."""
STORES = (
    "eval.datasets",
    "semmem.write.sync",
    "semmem.embedders",
    "semmem.extractors",
    "semmem.write.ingest",
    "semmem.importers",
    "semmem.stores",
)
"""Where reading a data set and writing a store begin; what these import decides what a store holds, too."""
ASKS = ("eval.experiments.lists", "semmem")
"""Where asking begins: any part of semmem may change a list."""
_PARTS = ("body", "orelse", "finalbody", "handlers", "cases")
"""Where a statement holds others; an import is in no expression."""


def fingerprint(*roots: str, packages: Mapping[str, Path] = _PACKAGES) -> str:
    """Return a short hash of the source of ``roots`` and of all they import, in the folders of ``packages``."""
    total = blake2b(digest_size=4)
    for name, path in sources(*roots, packages=packages).items():
        total.update(name.encode() + b"\0" + path.read_bytes())
    return total.hexdigest()


def extracting(extractor: Extractor, language: str) -> str:
    """Return a short hash of an extractor, of its version and of the language of texts, on which the graph depends."""
    about = [extractor.name, str(getattr(extractor, "version", "")), language]
    return blake2b("\0".join(about).encode(), digest_size=4).hexdigest()


def sources(*roots: str, packages: Mapping[str, Path] = _PACKAGES) -> dict[str, Path]:
    """Return the files of semmem and eval that the modules and whole packages ``roots`` need, sorted by their names.

    An import inside a function counts, one that only type checkers see does not. The SQL of a package counts where one
    of its modules does. Raises ModuleNotFoundError for a root that is not there.
    """
    queue: list[Path] = []
    for name in roots:
        package, *rest = name.split(".")
        found = packages[package].joinpath(*rest)
        paths = (
            sorted(found.rglob("*.py"))
            if found.is_dir()
            else [path for path in [found.with_suffix(".py")] if path.is_file()]
        )
        if not paths:
            raise ModuleNotFoundError(
                f"There is no module {name}; name another in eval/experiments/fingerprint.py.", name=name
            )
        queue += paths
    files: set[Path] = set()
    while queue:
        path = queue.pop()
        if path not in files:
            files |= {path, *(path.parent / "sql").rglob("*.sql")}
            queue += filter(None, (_file(name, packages) for name in _imports(path.read_text(encoding="utf-8"))))
    named = {
        (Path(package) / path.relative_to(folder)).as_posix(): path
        for package, folder in packages.items()
        for path in files
        if path.is_relative_to(folder)
    }
    return dict(sorted(named.items()))


@cache
def _imports(source: str) -> tuple[str, ...]:
    """Return the full name of every module that ``source`` may import, and of what it takes from one."""
    names: list[str] = []
    queue: list[ast.AST] = [ast.parse(source)]
    while queue:
        node = queue.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            queue += node.orelse
        elif isinstance(node, ast.Import):
            names += (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names += (node.module, *(f"{node.module}.{alias.name}" for alias in node.names))
        else:
            queue += (statement for part in _PARTS for statement in getattr(node, part, ()))
    return tuple(names)


def _file(name: str, packages: Mapping[str, Path]) -> Path | None:
    """Return the file of a module of ours, None for another's; semmem itself only names its public parts."""
    first, *rest = name.split(".")
    if first not in packages or not rest:
        return None
    found = packages[first].joinpath(*rest)
    return next((path for path in (found.with_suffix(".py"), found / "__init__.py") if path.is_file()), None)
