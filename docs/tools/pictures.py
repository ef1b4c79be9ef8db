"""Draw the pictures of the documentation from real numbers, each for light and dark pages.

Run it as ``python docs/tools/pictures.py``. The ranks come from the demo's first question, asked now with the embedding
model; the places from the recipes; the gains from ``eval/results``.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

import semmem
from eval.statistics.verdict import kind_of
from semmem import RECIPES
from semmem.interfaces.cli.demo.data import QUESTIONS, story

ROOT = Path(__file__).resolve().parents[2]
ASSETS = ROOT / "docs" / "assets"
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"
LEGS = ("lexical", "dense", "graph")


@dataclass(frozen=True)
class Palette:
    """The colours of one kind of page."""

    ink: str
    soft: str
    faint: str
    mark: str
    legs: tuple[str, str, str]


PALETTES = {
    "light": Palette("#17302f", "#5d7270", "#d5dedc", "#b5651d", ("#1f8a8a", "#8a5fa8", "#3f8f4f")),
    "dark": Palette("#e3ebe9", "#9fb2af", "#3b4a4c", "#e0a458", ("#5fc4c0", "#c39ad8", "#86cf93")),
}


@dataclass
class Sheet:
    """An SVG that is being drawn."""

    width: int
    height: int
    palette: Palette
    parts: list[str]

    def text(self, x: float, y: float, words: str, *, size: int = 13, fill: str | None = None, anchor: str = "start",
             bold: bool = False) -> None:  # fmt: skip
        """Write words at a place."""
        weight = ' font-weight="600"' if bold else ""
        self.parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{fill or self.palette.ink}" '
            f'text-anchor="{anchor}"{weight}>{escape(words)}</text>'
        )

    def line(self, points: Sequence[tuple[float, float]], stroke: str, width: float = 1, dash: str = "") -> None:
        """Draw a line through points."""
        drawn = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        dashes = f' stroke-dasharray="{dash}"' if dash else ""
        self.parts.append(f'<polyline points="{drawn}" fill="none" stroke="{stroke}" stroke-width="{width}"{dashes}/>')

    def dot(self, x: float, y: float, fill: str, radius: float = 4) -> None:
        """Draw a dot."""
        self.parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="{fill}"/>')

    def svg(self, title: str) -> str:
        """Return the whole picture."""
        inside = "\n".join(self.parts)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" '
            f'font-family="{FONT}" role="img">\n<title>{escape(title)}</title>\n{inside}\n</svg>\n'
        )


def ranks() -> tuple[str, dict[str, list[str]], dict[str, str]]:
    """Ask the demo's first question; return it, the first five of each list, and the name of each memory."""
    asked = QUESTIONS[0]
    with tempfile.TemporaryDirectory() as place, semmem.connect(f"embedded://{place}/s", embedder="minilm") as mem:
        mem.remember_many(story(), namespace="story")
        mem.maintain()
        found = {
            name: [hit.memory.id for hit in mem.recall(asked.query, namespace="story", limit=5, recipe=name)]
            for name in (*LEGS, "default")
        }
        names = {}
        for one in {id for ids in found.values() for id in ids}:
            memory = mem.get(one, namespace="story")
            names[one] = memory.title or memory.text
        from semmem.interfaces.cli.commands.whole_store import stop_server

    stop_server(Path(place) / "s")
    return asked.query, found, names


def question(palette: Palette, asked: tuple[str, dict[str, list[str]], dict[str, str]]) -> str:
    """Draw the first five of each leg and of their fusion in columns, and the way of the answer through them."""
    query, found, names = asked
    answer = QUESTIONS[0].answer or ""
    sheet = Sheet(860, 300, palette, [])
    sheet.text(10, 24, f"“{query}”", size=15, bold=True)
    columns = {"lexical": 10, "dense": 220, "graph": 430, "default": 640}
    for number, (name, x) in enumerate(columns.items()):
        colour = palette.legs[number] if name != "default" else palette.ink
        sheet.text(x, 62, {"default": "fused (recipe default)"}.get(name, f"{name} leg"), fill=colour, bold=True)
        sheet.line([(x, 70), (x + 185, 70)], colour, 2)
        for place, id in enumerate(found[name]):
            words = names[id] if len(names[id]) <= 25 else f"{names[id][:24].rstrip()}…"
            y = 94 + place * 30
            sheet.text(x, y, f"{place + 1}", fill=palette.soft)
            sheet.text(x + 18, y, words, fill=palette.mark if id == answer else None, bold=id == answer)
        if answer not in found[name]:
            sheet.text(x + 18, 94 + 5 * 30, "the answer is not among the five", size=11, fill=palette.soft)
    words = "The answer, Heron House, is in brass. Only the graph has it among its first five; fusion puts it first."
    sheet.text(10, 286, words, size=12, fill=palette.soft)
    return sheet.svg("The first five memories of each leg for the demo's first question")


def fusion(palette: Palette, _: object) -> str:
    """Draw what the first ten places of the graph leg earn, as shares of its first place, for two recipes."""
    sheet = Sheet(860, 320, palette, [])
    left, right, top, bottom = 60, 700, 30, 270
    for share in (0, 0.25, 0.5, 0.75, 1):
        y = bottom - share * (bottom - top)
        sheet.line([(left, y), (right, y)], palette.faint)
        sheet.text(left - 10, y + 4, f"{share:.0%}", size=12, fill=palette.soft, anchor="end")
    for place in range(1, 11):
        sheet.text(left + (place - 1) * (right - left) / 9, bottom + 22, str(place), size=12, fill=palette.soft,
                   anchor="middle")  # fmt: skip
    sheet.text((left + right) / 2, bottom + 44, "place in the list of the leg", size=12, fill=palette.soft,
               anchor="middle")  # fmt: skip
    small = RECIPES["default"].rank_constants["graph"]
    constants = {f"constant {c:g}": c for c in (small["named"], small["unnamed"])}  # type: ignore[index]
    curves = {**constants, "constant 60": 60.0}
    for (name, constant), colour in zip(curves.items(), (palette.mark, palette.legs[2], palette.soft), strict=True):
        points = [
            (left + (r - 1) * (right - left) / 9, bottom - (constant + 1) / (constant + r) * (bottom - top))
            for r in range(1, 11)
        ]
        sheet.line(points, colour, 2.5)
        for x, y in points:
            sheet.dot(x, y, colour)
        sheet.text(right + 14, points[-1][1] + 4, name, fill=colour, bold=True)
    sheet.text(left, 16, "What a place earns, as a share of the first place", size=12, fill=palette.soft)
    return sheet.svg("What a leg's first ten places earn, by rank constant")


def reach(palette: Palette, _: object) -> str:
    """Draw what each leg's first ten places earn under the recipe seed, and the score that ten lexical memories set."""
    plan = RECIPES["seed"]
    sheet = Sheet(860, 320, palette, [])
    left, right, top, bottom, most = 60, 590, 30, 270, 0.018

    def at(place: int, value: float) -> tuple[float, float]:
        return left + (place - 1) * (right - left) / 9, bottom - value / most * (bottom - top)

    for value in (0, 0.005, 0.01, 0.015):
        y = at(1, value)[1]
        sheet.line([(left, y), (right, y)], palette.faint)
        sheet.text(left - 10, y + 4, f"{value:.3f}".lstrip("0") if value else "0", size=12, fill=palette.soft,
                   anchor="end")  # fmt: skip
    for place in range(1, 11):
        sheet.text(at(place, 0)[0], bottom + 22, str(place), size=12, fill=palette.soft, anchor="middle")
    sheet.text((left + right) / 2, bottom + 44, "place in the list of the leg", size=12, fill=palette.soft,
               anchor="middle")  # fmt: skip
    bar = 1 / 70
    sheet.line([at(1, bar), at(10, bar)], palette.mark, 2, "6 4")
    sheet.text(right + 14, at(1, bar)[1] + 18, "1/70 = .0143: what the tenth", fill=palette.mark)
    sheet.text(right + 14, at(1, bar)[1] + 35, "place demands at least", fill=palette.mark)
    for number, leg in ((0, "lexical"), (2, "graph")):
        points = [at(r, plan.weights[leg] / (plan.rank_constants[leg] + r)) for r in range(1, 11)]  # type: ignore[operator]
        sheet.line(points, palette.legs[number], 2.5)
        for x, y in points:
            sheet.dot(x, y, palette.legs[number])
        words = "lexical, and dense the same" if leg == "lexical" else "graph: its first place earns .0057"
        sheet.text(right + 14, points[-1][1] - (14 if leg == "lexical" else -4), words, fill=palette.legs[number])
    sheet.text(left, 16, "What a place earns under the recipe seed", size=12, fill=palette.soft)
    return sheet.svg("Under the recipe seed the graph's first place earns less than the tenth place demands")


SETS = {
    "harbour": "harbour: notes, not tuned on",
    "musique100": "musique100: passages",
    "hotpotqa100": "hotpotqa100: passages",
    "agentnotes_a": "agentnotes_a: a team's notes",
    "locomo3": "locomo3: three conversations",
}


def graph(palette: Palette, _: object) -> str:
    """Draw the difference in recall@10 that the graph makes on each set, with its interval."""
    sheet = Sheet(860, 280, palette, [])
    left, right, top, step, low, high = 260, 660, 50, 38, -0.05, 0.25

    def at(value: float) -> float:
        return left + (value - low) / (high - low) * (right - left)

    for value in (0, 0.05, 0.1, 0.15, 0.2):
        sheet.line([(at(value), top - 16), (at(value), top + 4.6 * step)], palette.ink if value == 0 else palette.faint)
        sheet.text(at(value), top + 4.6 * step + 18, f"{value:+.2f}" if value else "0", size=12, fill=palette.soft,
                   anchor="middle")  # fmt: skip
    for number, (name, words) in enumerate(SETS.items()):
        result = json.loads((ROOT / "eval" / "results" / f"{name}-controls.json").read_text(encoding="utf-8"))
        one = next(
            c["paired"] | {"verdict": kind_of(c)}
            for c in result["comparisons"]
            if (c["name"], c["metric"], c["group"]) == ("graph in default", "R@10", "headline")
        )
        y = top + number * step
        colour = palette.legs[2] if one["verdict"] == "helps" else palette.soft
        sheet.text(left - 20, y + 4, words, anchor="end")
        if one["low"] is not None:
            sheet.line([(at(one["low"]), y), (at(one["high"]), y)], colour, 3)
        else:
            for each in one["each"]:
                sheet.dot(at(each), y, colour, 2.5)
        sheet.dot(at(one["delta"]), y, colour, 5.5)
        sheet.text(right + 16, y + 4, f"{one['delta']:+.3f}  {one['verdict']}", size=12, fill=colour, bold=True)
    sheet.text(left, 20, "Recall@10 with the graph minus without it", size=12, fill=palette.soft)
    return sheet.svg("What the graph adds to recall@10 on five data sets")


def floors(palette: Palette, _: object) -> str:
    """Draw for each setting the answers kept and the unrelated prompts dropped by each floor: means of the sets."""
    sheet = Sheet(860, 300, palette, [])
    settings = (
        ("minilm", "all legs", "MiniLM, all legs", 0.25),
        ("minilm", "without dense", "without the dense leg", 0.35),
        ("hashing", "all legs", "another embedder (hashing)", 0.15),
    )
    wide, top, bottom = 240, 60, 230
    for number, (embedder, setting, words, chosen) in enumerate(settings):
        left = 45 + number * 275
        result = json.loads((ROOT / "eval" / "results" / f"floors-{embedder}.json").read_text(encoding="utf-8"))
        sets = result["in sample"][setting]["sets"].values()
        places = [left + floor / 0.5 * wide for floor in result["floors"]]
        sheet.text(left, 24, words, bold=True)
        for share in (0, 0.5, 1):
            y = bottom - share * (bottom - top)
            sheet.line([(left, y), (left + wide, y)], palette.faint)
            sheet.text(left - 6, y + 4, f"{share:.0%}", size=11, fill=palette.soft, anchor="end")
        for floor in (0.1, 0.2, 0.3, 0.4, 0.5):
            sheet.text(left + floor / 0.5 * wide, bottom + 18, f".{floor * 10:.0f}", size=11, fill=palette.soft,
                       anchor="middle")  # fmt: skip
        at = left + chosen / 0.5 * wide
        sheet.line([(at, top - 8), (at, bottom)], palette.mark, 1.5, "5 4")
        sheet.text(at, top - 14, f"auto {chosen:.2f}".replace("0.", "."), size=11, fill=palette.mark, anchor="middle")
        for kind, colour in (("answered", palette.legs[0]), ("unrelated", palette.legs[1])):
            of_kind = [one[kind] for one in sets if kind in one]
            shares = [sum(each) / len(of_kind) for each in zip(*of_kind, strict=True)]
            points = [(x, bottom - share * (bottom - top)) for x, share in zip(places, shares, strict=True)]
            sheet.line(points, colour, 2.5)
            for x, y in points:
                sheet.dot(x, y, colour, 3)
    sheet.text(45, 280, "answers kept", fill=palette.legs[0], bold=True)
    sheet.text(150, 280, "unrelated prompts dropped", fill=palette.legs[1], bold=True)
    sheet.text(340, 280, "by floor of confidence; means of eight sets", size=12, fill=palette.soft)
    return sheet.svg("Answers kept and unrelated prompts dropped by each floor of confidence")


PICTURES: dict[str, Callable[[Palette, tuple[str, dict[str, list[str]], dict[str, str]]], str]] = {
    "question": question,
    "fusion": fusion,
    "reach": reach,
    "graph": graph,
    "floors": floors,
}


def main() -> None:
    """Write every picture."""
    asked = ranks()
    for name, draw in PICTURES.items():
        for kind, palette in PALETTES.items():
            (ASSETS / f"{name}-{kind}.svg").write_text(draw(palette, asked), encoding="utf-8")


if __name__ == "__main__":
    main()
