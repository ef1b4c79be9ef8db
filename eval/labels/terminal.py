"""Label in the terminal, one key for each judgment: the interactive part of ``make``."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from eval.labels.desk import Desk, Question
from semmem.model.errors import NotFound

__all__ = ["GRADES", "beginning", "label_all", "take_paraphrases"]

GRADES = {"n": 0, "y": 1, "g": 2}
HELP = "y answers it · g answers it fully · n does not · b back: takes the last key back · s later · q stop"


def beginning(namespace: str, memories: int, recipes: Sequence[str], folder: Path) -> str:
    """Return the explanation that is printed before the first question."""
    return (
        f"This makes questions for the memories of namespace {namespace!r}, and you judge what answers them.\n"
        f"1. You are shown {memories} memories drawn by chance. Type a question that each answers, in other words than "
        "its own; an empty line goes on. Some questions are proposed besides, from codes and names.\n"
        f"2. Each question is asked of {', '.join(recipes)}. The first 20 of each are mixed, so that you cannot see "
        "who brought what, and you say by one key whether a memory answers the question.\n"
        "3. Questions that are judged to the end are written down for --data. Stop with q at any time: the same "
        "command goes on where you stopped. b takes a wrong key back.\n"
        f"Your store is only read. All that you type lies in {folder}, on this machine."
    )


def take_paraphrases(desk: Desk, memories: Sequence[Any], ask: Callable[[str], str], say: Callable[[str], None]) -> int:
    """Show sampled memories and take the user's own question on each; an empty line goes on, q stops."""
    count = 0
    with_paraphrase = {
        id for question in desk.questions.values() if question.stratum == "paraphrase" for id in question.about
    }
    for memory in memories:
        if memory.id in with_paraphrase:
            continue
        say(f"\n{memory.title + ': ' if memory.title else ''}{memory.text}")
        text = ask("Your question, in your own words (empty: next, q: stop): ").strip()
        if text == "q":
            break
        if text:
            desk.ask(text, "paraphrase", (memory.id,))
            count += 1
    return count


def label_all(
    mem: Any, desk: Desk, pools: Mapping[str, Sequence[str]], key: Callable[[], str], say: Callable[[str], None]
) -> int:
    """Ask for a key for every memory still open; return how many more are judged now than before.

    Nothing says which recipe brought it.
    """
    judged, total = 0, sum(len(p) for p in pools.values())
    last_question: Question | None = None
    queue = deque(desk.open(pools))
    while queue:
        question, id = queue.popleft()
        try:
            memory = mem.get(id, namespace=desk.namespace)
        except NotFound:
            desk.label(question.id, id, 0, by_hand=False)
            continue
        if last_question is not question:
            say(f"\n=== {question.text}\n    {HELP}")
            last_question = question
        position = sum(len(desk.labels[of]) for of in pools)
        say(f"\n[{position}/{total}] {memory.title + ': ' if memory.title else ''}{memory.text}")
        while (letter := key().lower()) not in (*GRADES, "b", "s", "q"):
            say(HELP)
        if letter == "q":
            break
        if letter in GRADES:
            desk.label(question.id, id, GRADES[letter])
            judged += 1
        elif letter == "b":
            queue.appendleft((question, id))
            if (last := desk.take_back()) is None:
                say("There is no key to take back.")
            else:
                queue.appendleft(last)
                judged -= 1
    return judged
