"""What a turn decides, leaves open and corrects: rules as data, a sentence at a time, without a language model.

The rules are conservative. A sentence that asks, doubts or supposes decides nothing, and one that says that nothing is
left leaves nothing open. An agent tells all day what it is about to do, so its "I will" is no decision; a person's is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from semmem.importers.turn_content import question_in
from semmem.text.passages import sentence_spans
from semmem.text.tokens import tokens

__all__ = ["corrects", "decisions_in", "open_points_in", "share_a_word"]

_DECIDED: Mapping[str, str] = {
    "anybody": (
        r"(?:we|i)(?:'ve| have)? (?:now )?(?:decided|agreed|settled on)|(?:that's|that is|it's|it is|was|is) decided|"
        r"decision:|agreed[:,]|from now on|from (?:tomorrow|today|(?:mon|tues|wednes|thurs|fri|satur|sun)day) on|"
        r"going forward|we(?:'re| are) (?:going with|dropping|keeping)|we (?:chose|no longer)|"
        r"we(?:'ll| will) (?:use|drop|keep|stay|stick|go with|switch|move)|"
        r"wir haben (?:uns )?(?:entschieden|beschlossen)|ab (?:jetzt|sofort)|hemos decidido|a partir de ahora|"
        r"nous avons décidé|on a décidé|désormais"
    ),
    "user": (
        r"(?:let's|let us) (?:use|go with|keep|stay|stick|take|drop|switch|move)|"
        r"we (?:take|drop|stay|stick|keep|use|switch|move) |^(?:please )?(?:always|never)\b|\brule\b[^.:]{0,40}:|"
        r"wir (?:nehmen|bleiben|verwenden)|^(?:immer|niemals|nunca|siempre|toujours|jamais)\b"
    ),
}
"""What says that something is decided: whoever says it, and where a person says it."""

_DOUBT = (
    r"\b(?:if|whether|unless|should|could|would|might|may|maybe|perhaps|until|before|haven't|hasn't|didn't|not|nothing|"
    r"nobody|suggest|recommend|propose|proposal|option|either|falls|vielleicht|ob|sollten|könnten|noch nicht|quizás|"
    r"peut-être|si)\b"
)
"""What stands before such words in a sentence that decides nothing."""

_UNDECIDED = (
    r"\bnot (?:yet )?decided|\bundecided|\bto be decided|\bnothing (?:is |was )?decided|\bdecide (?:later|tomorrow)"
)

_OPEN = (
    r"\b(?:todo|to-do|fixme|left open|still open|open:|open (?:question|point|issue)s?|next steps?|next up|next:|"
    r"still (?:to do|missing|needs?|have to|has to|fails?|failing|broken|pending|waiting)|remains? (?:to|open)|"
    r"unfinished|not (?:yet )?(?:done|finished|started|implemented|migrated|measured|tested|deployed|applied|merged|"
    r"fixed|built|pushed)(?: yet)?|waiting for|blocked (?:on|by)|pick (?:this|it) up|follow[- ]up|for tomorrow|"
    r"tomorrow[:,]|(?:bleibt|noch) offen|noch nicht|nächste schritte|pendiente|reste à|à faire)"
)
"""What says that something is left to do."""

_CLOSED = r"\b(?:no|nothing|none|no longer|without any|nichts|kein[e]?|nada|rien)\b[^.;,]{0,30}$|\b(?:was|were) $"
"""What stands before such words where nothing is left to do."""

_CORRECTED = (
    r"\b(?:outdated|out of date|obsolete|no longer|not any ?more|since (?:this|last) (?:week|month|year)|from now on|"
    r"from (?:tomorrow|today|(?:mon|tues|wednes|thurs|fri|satur|sun)day) on|veraltet|nicht mehr|"
    r"ab (?:jetzt|sofort|heute|morgen|montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonntag)|"
    r"desfasad[oa]|ya no|a partir de (?:ahora|hoy|mañana)|obsolète|n'est plus|désormais|"
    r"à partir (?:de maintenant|d'aujourd'hui|de demain))\b"
)
"""What says that it was otherwise until then."""

_FENCE = re.compile(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1|\Z)", re.MULTILINE | re.DOTALL)
_FEWEST_WORDS, _LONGEST = 3, 320
_ANYBODY = re.compile(_DECIDED["anybody"], re.IGNORECASE)
_USER = re.compile(_DECIDED["user"], re.IGNORECASE)
_DOUBTS, _NOT_DECIDED = re.compile(_DOUBT, re.IGNORECASE), re.compile(_UNDECIDED, re.IGNORECASE)
_CORRECTS = re.compile(_CORRECTED, re.IGNORECASE)
_OPENS, _CLOSES = re.compile(_OPEN, re.IGNORECASE), re.compile(_CLOSED, re.IGNORECASE)


def decisions_in(text: str, source_type: str | None) -> list[str]:
    """Return the sentences of a turn by which its author, a user or an agent, decides something."""
    return [sentence for sentence in _statements(text) if _decides(sentence, source_type)]


def open_points_in(text: str) -> list[str]:
    """Return the sentences of a turn that name what is left to do, and the question that it ends with."""
    points = [sentence for sentence in _statements(text) if _leaves_open(sentence)]
    asked = question_in(text)
    return [*points, " ".join(asked.split())] if asked else points


def corrects(text: str) -> bool:
    """Return whether a turn says that something holds no longer."""
    return any(_CORRECTS.search(sentence) for sentence in _statements(text))


def share_a_word(one: str, other: str) -> bool:
    """Return whether two turns have a word in common that is no function word."""
    words, others = ({word.folded for word, _, _ in tokens(text) if not word.stop} for text in (one, other))
    return not words.isdisjoint(others)


def _statements(text: str) -> Iterator[str]:
    """Yield the sentences of a text that ask nothing and are not code, each on one line."""
    prose = _FENCE.sub("", text)
    for start, end in sentence_spans(prose):
        sentence = " ".join(prose[start:end].lstrip("-*•># \t").split())
        if len(sentence) <= _LONGEST and len(sentence.split()) >= _FEWEST_WORDS and not sentence.endswith("?"):
            yield sentence


def _decides(sentence: str, source_type: str | None) -> bool:
    if _NOT_DECIDED.search(sentence):
        return False
    rules = (_ANYBODY, _USER) if source_type == "user" else (_ANYBODY,)
    found = [match.start() for rule in rules if (match := rule.search(sentence)) is not None]
    return bool(found) and _DOUBTS.search(sentence, 0, min(found)) is None


def _leaves_open(sentence: str) -> bool:
    match = _OPENS.search(sentence)
    return match is not None and _CLOSES.search(sentence[: match.start()]) is None
