"""The plan of the house: how many floors, rooms and files there are, and how large they may be."""

from __future__ import annotations

import re
import statistics
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
HALL = ROOT / "semmem"
ROOMS = sorted(p.parent for p in HALL.rglob("__init__.py"))
HARNESS = sorted(p.parent for p in (ROOT / "eval").rglob("__init__.py") if p.parent != ROOT / "eval")
SOURCES = sorted(HALL.rglob("*.py"))


def lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def test_there_are_at_most_fifteen_rooms_off_the_hall() -> None:
    rooms = [p.name for p in HALL.iterdir() if (p / "__init__.py").exists()]
    assert len(rooms) <= 15, rooms


def test_at_most_ten_modules_lie_flat_in_the_hall() -> None:
    flat = sorted(p.name for p in HALL.glob("*.py"))
    assert len(flat) <= 10, flat


def test_there_are_at_most_eight_floors() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert len(settings["tool"]["importlinter"]["contracts"][0]["layers"]) <= 8


def test_half_of_the_modules_have_at_most_220_lines() -> None:
    assert statistics.median(lines(p) for p in SOURCES) <= 220


def test_every_folder_of_modules_is_a_room_with_a_sentence() -> None:
    without = [p for p in SOURCES if not (p.parent / "__init__.py").exists()]
    assert without == []


def test_the_tests_mirror_the_rooms() -> None:
    rooms = {p.name for p in HALL.iterdir() if (p / "__init__.py").exists()}
    tested = {p.name for p in (ROOT / "tests").iterdir() if p.is_dir() and re.match(r"[a-z]", p.name)}
    others = {"direct", "docs", "eval", "origins"}
    assert rooms - tested == {"doors"}  # an alias, tested with the interfaces
    assert tested - rooms - others == set()


def table_below(heading: str) -> str:
    """Return the rows of the table of CONTEXT.md that begins with ``heading``."""
    glossary = (ROOT / "CONTEXT.md").read_text(encoding="utf-8")
    return glossary[glossary.index(heading) :].split("\n\n")[0]


def test_every_room_and_every_module_beside_the_rooms_is_in_the_table_of_the_glossary_and_no_other() -> None:
    rows = re.findall(r"^\| (`[^|]+`) \|", table_below("| room | what is in it |"), re.MULTILINE)
    listed = [name for row in rows for name in re.findall(r"`([\w/.]+)`", row)]
    modules = {p.name for p in HALL.glob("*.py") if not p.name.startswith("__")}
    assert sorted(listed) == sorted({room.relative_to(HALL).as_posix() for room in ROOMS if room != HALL} | modules)


def files_of(path: str) -> list[Path]:
    """Return the files that a path of the glossary names, from the repository or from any folder of ``semmem``."""
    return [*ROOT.glob(path), *HALL.rglob(path)]


@pytest.mark.parametrize("heading", ["| change | first file |", "| fault | places, in this order |"])
def test_each_file_of_a_change_or_a_fault_exists_and_one_in_the_row_has_each_name_of_the_row(heading: str) -> None:
    missing = []
    for row in table_below(heading).splitlines()[2:]:
        words = re.findall(r"`([^`]+)`", row)
        paths = [word for word in words if "/" in word or word.endswith((".py", ".sql"))]
        missing += [path for path in paths if not files_of(path)]
        found = [file.read_text(encoding="utf-8") for path in paths for file in files_of(path) if file.is_file()]
        names = [word for word in words if re.fullmatch(r"\w+", word)]
        missing += [name for name in names if not any(re.search(rf"\b{name}\b", text) for text in found)]
    assert missing == []
