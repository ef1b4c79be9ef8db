"""Labelling in the terminal, a key a judgement: the part of ``make`` that a person sees."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from eval.making import Desk, Question
from semmem.errors import NotFound

__all__ = ["GRADES", "label_all", "take_paraphrases"]

GRADES = {"n": 0, "y": 1, "g": 2}
HELP = "y answers it · g answers it fully · n does not · s later · q stop"


def take_paraphrases(
    desk: Desk, memories: Sequence[Any], read: Callable[[str], str], say: Callable[[str], None]
) -> int:
    """Show sampled memories and take the user's own question on each; an empty line goes on, q stops."""
    taken = 0
    asked = {id for question in desk.questions.values() if question.stratum == "paraphrase" for id in question.about}
    for memory in memories:
        if memory.id in asked:
            continue
        say(f"\n{memory.title + ': ' if memory.title else ''}{memory.text}")
        text = read("Your question, in your own words (empty: next, q: stop): ").strip()
        if text == "q":
            break
        if text:
            desk.ask(text, "paraphrase", (memory.id,))
            taken += 1
    return taken


def label_all(
    mem: Any, desk: Desk, pools: Mapping[str, Sequence[str]], key: Callable[[], str], say: Callable[[str], None]
) -> int:
    """Ask for a key for every memory still open; return how many were judged. Nothing says which recipe found it."""
    judged, total = 0, sum(len(p) for p in pools.values())
    shown: Question | None = None
    for question, id in desk.open(pools):
        try:
            memory = mem.get(id, namespace=desk.namespace)
        except NotFound:
            desk.label(question.id, id, 0)
            continue
        if shown is not question:
            say(f"\n=== {question.text}\n    {HELP}")
            shown = question
        done = sum(len(labels) for labels in desk.labels.values())
        say(f"\n[{done}/{total}] {memory.title + ': ' if memory.title else ''}{memory.text}")
        while (pressed := key().lower()) not in (*GRADES, "s", "q"):
            say(HELP)
        if pressed == "q":
            break
        if pressed in GRADES:
            desk.label(question.id, id, GRADES[pressed])
            judged += 1
    return judged
