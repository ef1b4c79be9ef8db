"""Draw changes of the code at random, by the operators of cosmic-ray, as a list that ``eval.mutants --drawn`` runs.

    python eval/draw_mutants.py [--seed 0] [--count 20] > eval/mutants-drawn.toml

For a Python in which cosmic-ray is installed (`pip install cosmic-ray`); nothing of semmem is imported. The rooms, and
the tests that ought to notice a change of each file, are ``eval/mutants-rooms.toml``. In each room as many places are
drawn as ``--count`` says, each place of a file equally likely, and one change of each. Left out are changes that
change nothing: of annotations, which are not evaluated, and ``==`` as ``is``.
"""

from __future__ import annotations

import argparse
import ast
import random
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
ROOMS = Path(__file__).with_name("mutants-rooms.toml")
_NOT = ("Eq_Is", "Eq_IsNot", "NotEq_Is", "NotEq_IsNot", "Is_Eq", "IsNot_NotEq", "VariableInserter", "VariableReplacer")
"""Ends of the names of operators whose changes only the identity of small objects tells, or that need names of ours."""


def main() -> None:
    """Print the list of drawn changes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=20, help="how many of each room")
    options = parser.parse_args()
    rooms: dict[str, dict[str, list[str]]] = tomllib.loads(ROOMS.read_text(encoding="utf-8"))
    command = f"python eval/draw_mutants.py --seed {options.seed} --count {options.count}"
    print(f"# Drawn: {command}. Reasons alone are added by hand.")
    operators = _families()
    for room, files in rooms.items():
        draw = random.Random(f"{options.seed} {room}")
        places = [(file, *place) for file in sorted(files) for place in _places(ROOT / room / file, operators)]
        draw.shuffle(places)
        drawn: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for file, family, occurrence in places:
            if sum(map(len, drawn.values())) == options.count:
                break
            name = draw.choice(operators[family])
            if (pair := _change(ROOT / room / file, name, occurrence)) is not None and pair not in drawn[file]:
                drawn[file].append(pair)
        for file, pairs in sorted(drawn.items()):
            if pairs:
                print(f'\n[[of]]\nfile = "{room}/{file}"\ntests = {_toml(files[file])}')
            for old, new in pairs:
                print(f"\n[[of.change]]\nold = {_text(old)}\nnew = {_text(new)}", flush=True)
        print(f"{room}: {len(places)} places", file=sys.stderr, flush=True)


def _cosmic(module: str) -> Any:
    return import_module(f"cosmic_ray.{module}")


def _families() -> dict[str, list[str]]:
    """Return the operators by what they change: each of ``==`` to another comparison is of one family."""
    out: dict[str, list[str]] = defaultdict(list)
    for name in sorted(_cosmic("plugins").operator_names()):
        if not name.endswith(_NOT):
            parts = name.split("_")
            out["_".join(parts[:2] if name.startswith("core/Replace") and len(parts) > 2 else parts)].append(name)
    return out


def _places(path: Path, operators: dict[str, list[str]]) -> Iterator[tuple[str, int]]:
    """Yield (family, number) for each place of a file that an operator changes."""
    nodes = list(_nodes(_cosmic("ast").get_ast(path.read_text(encoding="utf-8"))))
    for family, names in operators.items():
        operator = _cosmic("plugins").get_operator(names[0])()
        for occurrence in range(sum(len(list(operator.mutation_positions(node))) for node in nodes)):
            yield family, occurrence


def _change(path: Path, name: str, occurrence: int) -> tuple[str, str] | None:
    """Return the old and the new text of a change; None for one that changes nothing that runs."""
    code = path.read_text(encoding="utf-8")
    operator = _cosmic("plugins").get_operator(name)()
    changed: str | None = _cosmic("mutating").mutate_code(code, operator, occurrence)
    return None if changed is None or _bare(changed) in ("", _bare(code)) else _unique(code, changed)


def _nodes(node: Any) -> Iterator[Any]:
    yield node
    for child in getattr(node, "children", ()):
        yield from _nodes(child)


def _bare(code: str) -> str:
    """Return the code's syntax without annotations and docstrings, or the code where it has none."""
    try:
        tree = ast.parse(code)
    except SyntaxError:
        return ""
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            node.annotation = None
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.returns = None
        elif isinstance(node, ast.AnnAssign):
            node.annotation = ast.Constant(0)
    return ast.dump(tree)


def _unique(code: str, changed: str) -> tuple[str, str] | None:
    """Return the old and the new text, each of whole lines, of which the old one stands once in the file."""
    before, after = code.split("\n"), changed.split("\n")
    if len(before) != len(after):
        return None
    rows = [i for i, (a, b) in enumerate(zip(before, after, strict=True)) if a != b]
    if not rows:
        return None
    first, last = rows[0], rows[-1] + 1
    while code.count("\n".join(before[first:last])) > 1 and first:
        first -= 1
    return "\n".join(before[first:last]), "\n".join(after[first:last])


def _text(text: str) -> str:
    return f"'''\n{text}'''" if "'''" not in text else _quoted(text)


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def _toml(values: list[str]) -> str:
    return "[" + ", ".join(_quoted(value) for value in values) + "]"


if __name__ == "__main__":
    main()
