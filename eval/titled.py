"""Measure titled passages that mention each other as encyclopedias do: invented names, questions of two and three hops.

    python -m eval.titled --memories 6000 --recipe default --recipe graph.known_names=0

Each passage mentions five others: some in many passages, most in few. A title stands in another text as it is, without
its brackets, in lower case, in a longer run of capitals (Ben Bridge), or ends in lower-case words (Kelmar orogeny). A
question names one passage and asks what is known of the passage that it mentions; both count, and in every third
question also a passage that the second one mentions. The vectors are those of the hashing embedder.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

import semmem
from eval.datasets import Corpus, Query
from eval.experiments.conditions import named, turned
from eval.experiments.runner import place
from eval.statistics.measures import measure

__all__ = ["corpus", "main"]


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_ONSETS = _words("b br c ch d dr f fl g gr h j k l m n p pl pr r s sh sl st t th tr v w z")
_VOWELS = _words("a e i o u ai ea ou")
_CODAS = _words("l m n nd r rk s st t x")
_SHARES = {"person": 0.3, "place": 0.2, "work": 0.15, "field": 0.15, "body": 0.12, "event": 0.08}
_FIELDS = _words("orogeny aquifer syndrome cipher dialect principle engraving blight theorem glaze loom fever")
_CRAFTS = _words(
    "lacquer bookbinding falconry beekeeping cartography horology thatching tanning dyeing gilding etching"
)
_BODIES = _words("Society Company Institute Orchestra Guild Press Railway Union")
_WORKS = ("The {} of {}", "{} and the Silent {}", "A Golden Key for {}", "The Broken {}", "{} in {}", "No Winter in {}")
_FILL = (
    "Records of the period are incomplete.",
    "Later writers disagreed about the date.",
    "A small collection of papers survives.",
    "Local accounts differ in detail.",
    "Few visitors came before the road was built.",
    "The costs were met by subscription.",
    "It remains in use today.",
)
_TIES = (
    "was founded by",
    "was named after",
    "was first studied by",
    "owes its fame to",
    "was influenced by",
    "was financed by",
)


@dataclass(frozen=True, slots=True)
class _Subject:
    kind: str
    title: str

    @property
    def bare(self) -> str:
        """The title without its brackets."""
        return self.title.split(" (")[0]


def _word(draw: random.Random, syllables: int) -> str:
    return "".join(draw.choice(_ONSETS) + draw.choice(_VOWELS) for _ in range(syllables)) + draw.choice(_CODAS)


def _title(draw: random.Random, kind: str, pool: Sequence[str]) -> str:
    one, other = draw.choice(pool), draw.choice(pool)
    after = draw.random()
    if kind == "person":
        return f"{one} {other}"
    if kind == "place":
        place = one + (draw.choice([" River", " Valley", " Hills", " Bay"]) if draw.random() < 0.35 else "")
        brackets = draw.choice([" (river)", " (town)", " (district)"])
        return f"{place}, {other}" if after < 0.3 else place + brackets if after < 0.44 else place
    if kind == "work":
        return draw.choice(_WORKS).format(one, other) + (draw.choice([" (film)", " (novel)"]) if after < 0.25 else "")
    if kind == "field":
        return f"{one} silent {draw.choice(_FIELDS)}" if after < 0.15 else f"{one} {draw.choice(_FIELDS)}"
    if kind == "body":
        return f"{one} {draw.choice(_BODIES)}" + (f" of {other}" if after < 0.3 else "")
    return f"{draw.choice(['Battle', 'Treaty', 'Siege'])} of {one}"


def _subjects(draw: random.Random, count: int) -> list[_Subject]:
    pool = [_word(draw, draw.randint(1, 2)).capitalize() for _ in range(2_600)]
    subjects = {craft: _Subject("craft", craft.capitalize()) for craft in _CRAFTS}
    while len(subjects) < count:
        kind = draw.choices(list(_SHARES), list(_SHARES.values()))[0]
        title = _title(draw, kind, pool)
        subjects.setdefault(title.lower(), _Subject(kind, title))
    return list(subjects.values())[:count]


def _mention(draw: random.Random, subject: _Subject) -> str:
    """Return a title as another text writes it."""
    name = subject.bare.split(",")[0] if draw.random() < 0.85 else subject.bare
    chance = draw.random()
    if subject.kind == "craft":
        return name.lower() if chance < 0.85 else name
    if subject.kind == "field":
        return name if chance < 0.8 else name.title() if chance < 0.9 else f"{name}s"
    if subject.kind == "place" and chance < 0.25:
        return f"{name} {draw.choice(['Museum', 'Bridge', 'Airport', 'University'])}"
    if subject.kind == "person" and chance < 0.15:
        return f"Sir {name}"
    return f"the {name}" if chance < 0.3 and subject.kind in ("body", "event") else name


def corpus(count: int = 6_000, questions: int = 400, seed: int = 7) -> Corpus:
    """Return ``count`` passages and ``questions`` about them."""
    draw = random.Random(seed)
    subjects = _subjects(draw, count)
    memories, ties, named_by = [], [], [0] * count
    for index, subject in enumerate(subjects):
        near = [int(draw.paretovariate(0.45)) % count for _ in range(2)]  # a few names recur everywhere
        others = [o for o in dict.fromkeys([*near, *draw.sample(range(count), min(3, count))]) if o != index]
        ties.append(others)
        said = []
        for other in others:
            named_by[other] += 1
            name = _mention(draw, subjects[other])
            year = f"In {draw.randint(1700, 1999)} {name} supplied the plans."
            said.append(f"It {draw.choice(_TIES)} {name}." if draw.random() < 0.6 else year)
        text = [*said, *draw.sample(_FILL, 3)]
        draw.shuffle(text)
        first = f"{subject.bare} is a {subject.kind} known for its {_word(draw, 2)}."
        memories.append(
            {
                "id": str(index),
                "title": subject.title,
                "text": " ".join([first, *text]),
                "namespace": "titled",
                "created_at": "2026-01-01",
            }
        )
    queries: list[Query] = []
    for index in draw.sample(range(count), count):
        if len(queries) == questions:
            break
        rare = [other for other in ties[index] if named_by[other] <= 12]
        behind = [o for o in ties[rare[0]] if named_by[o] <= 12 and o != index] if rare else []
        if not rare or (len(queries) % 3 == 2 and not behind):
            continue
        kind, name = subjects[rare[0]].kind, subjects[index].bare
        if len(queries) % 3 == 2:
            asked, gold = f"What is known of what lies behind the {kind} tied to {name}?", [index, rare[0], behind[0]]
        else:
            asked, gold = f"What is the {kind} tied to {name} known for?", [index, rare[0]]
        queries.append(Query(f"q{len(queries)}", asked, "titled", tuple(map(str, gold)), stratum=f"{len(gold)} hops"))
    return Corpus("titled", tuple(memories), tuple(queries))


def main(
    memories: Annotated[int, typer.Option(help="How many passages.")] = 6_000,
    questions: Annotated[int, typer.Option(help="How many questions.")] = 400,
    recipe: Annotated[
        list[str], typer.Option(help="A recipe, or a change of default such as graph.known_names=0.")
    ] = [],  # noqa: B006
) -> None:
    """Print R@5, R@10 and all gold in 10 of each recipe, and how long storing and a recall took."""
    data = corpus(memories, questions)
    with (
        tempfile.TemporaryDirectory() as folder,
        semmem.connect(f"embedded://{Path(folder) / 'store'}", embedder="hashing") as mem,
    ):
        began = time.perf_counter()
        mem.remember_many(data.memories)
        print(f"{memories} passages stored in {time.perf_counter() - began:.1f} s", flush=True)
        mem.maintain()
        base = named("default")
        for one in recipe or ["default", "graph.known_names=0"]:
            plan: Any = turned(base, one).recipe if "=" in one else named(one).recipe
            began = time.perf_counter()
            run = {
                q.id: [place(hit) for hit in mem.recall(q.text, namespace="titled", limit=10, recipe=plan)]
                for q in data.queries
            }
            took = 1_000 * (time.perf_counter() - began) / len(data.queries)
            found = measure(data.queries, run, cutoffs=(5, 10))
            names = ("R@5", "R@10", "AllGold@10")
            shown = {group: [round(found.mean(n, group), 3) for n in names] for group in found.groups}
            print(one, ", ".join(names), shown, f"{took:.1f} ms a recall", flush=True)


if __name__ == "__main__":
    typer.run(main)
