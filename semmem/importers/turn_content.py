"""Whether a turn says something worth storing: rules as data, in English, German, Spanish and French.

A turn of nothing but known phrases ("yes, do it", "gracias") is an acknowledgement. Any other word makes it a turn with
content, so "yes, port 6543" is stored.
"""

from __future__ import annotations

import re

__all__ = ["is_acknowledgement", "is_answer", "is_bare_question", "question_in"]

_YES_OR_NO = (
    "yes|yep|yeah|yup|ya|no|nope|nah|sure|of course|absolutely|definitely|correct|right|exactly|agreed|both|neither|"
    "that one|the first|the second|the first one|the second one|the former|the latter|"
    "ja|jawohl|nein|nee|doch|klar|natürlich|genau|richtig|stimmt|sicher|beides|auf keinen fall|"
    "sí|si|no|claro|por supuesto|exacto|correcto|vale|desde luego|"
    "oui|non|bien sûr|bien sur|exactement|tout à fait|exact|certainement|d'accord"
)
"""What answers a question."""

_EMPTY = (
    "ok|okay|okey|k|kk|alright|all right|fine|good|great|perfect|nice|cool|awesome|excellent|wonderful|amazing|super|"
    "thanks|thank you|thx|ty|cheers|please|pls|sorry|hi|hey|hello|good morning|good evening|bye|goodbye|lgtm|"
    "looks good|looks great|sounds good|sounds great|sounds right|that works|works for me|works|well done|good job|"
    "great job|nice work|great work|nice one|got it|i see|understood|makes sense|fair enough|never mind|nevermind|"
    "do it|do that|do so|go|go ahead|go for it|go on|continue|carry on|keep going|proceed|next|resume|start|stop|wait|"
    "hold on|one moment|try again|again|retry|done|so much|very much|a lot|to me|with it|with that|on it|that|this|it|"
    "now|then|and|i|you|we|too|very|so|it is|it's|is|that's|let me check|let me see|let me look|let me take a look|"
    "i'll check|i'll take a look|i will check|i'll look into it|looking|checking|working on it|on it|you're welcome|"
    "you are welcome|no problem|no worries|not yet|"
    "danke|danke schön|danke dir|vielen dank|besten dank|bitte|gut|super|prima|toll|perfekt|passt|alles klar|"
    "in ordnung|mach das|mach es|mach weiter|mach mal|weiter|weitermachen|los|fortfahren|hallo|guten morgen|"
    "guten tag|tschüss|verstanden|einverstanden|warte|moment|stopp|nochmal|noch einmal|fertig|sehr|das|so|"
    "gracias|muchas gracias|mil gracias|de nada|por favor|bien|muy bien|genial|perfecto|estupendo|hazlo|hazlo ya|"
    "adelante|sigue|continúa|continua|siguiente|entendido|de acuerdo|está bien|esta bien|hola|buenos días|adiós|espera|"
    "listo|otra vez|"
    "merci|merci beaucoup|s'il te plaît|s'il vous plaît|stp|svp|très bien|parfait|super|génial|ça marche|ca marche|"
    "vas-y|allez-y|fais-le|continue|continuez|suivant|compris|entendu|bonjour|salut|au revoir|attends|encore|c'est bon|"
    "de rien"
)
"""What says nothing that is worth keeping."""

_PROCEDURE = (
    "shall i|should i|do you want me to|would you like me to|want me to|may i|can i|ready to|soll ich|"
    "möchtest du dass ich|quieres que|puedo|debo|dois-je|voulez-vous que je|veux-tu que je|est-ce que je"
)
_COURTESIES = (
    "anything else|is there anything else|is there anything else i can help with|"
    "is there anything else i can help you with|"
    "anything else i can help with|can i help with anything else|does that help|does that make sense|does this help|"
    "sound good|does that sound good|is that ok|is that okay|noch etwas|sonst noch etwas|passt das|algo más|"
    "autre chose|ça te va|ça vous va"
)
_GO_ON = (
    "continue|proceed|go on|go ahead|carry on|start|begin|do it|do that|do so|try again|weitermachen|fortfahren|"
    "anfangen|loslegen|continúe|continúo|siga|sigo|empiece|empiezo|continuer|commencer|y aller|je continue"
)
"""A question of the first that ends with one of the second asks for nothing but leave to go on."""


def _phrases(table: str) -> frozenset[tuple[str, ...]]:
    return frozenset(tuple(phrase.split()) for phrase in table.split("|"))


_ANSWERS = _phrases(_YES_OR_NO)
_KNOWN = _ANSWERS | _phrases(_EMPTY)
_LONGEST = max(map(len, _KNOWN))
_MOST_WORDS = 12
_LEAVE = re.compile(
    rf"{_COURTESIES}|(?:{_PROCEDURE})(?: (?:now|just|then|me|jetzt|ahora|maintenant))* (?:{_GO_ON})"
    r"(?: (?:now|then|with (?:it|this|that)|jetzt|ahora|maintenant))*"
)
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_LIST = re.compile(r"[ \t]*(?:[-*•]|\(?[0-9a-zA-Z]{1,2}[.)])[ \t]")
_SENTENCE_END = re.compile(r"(?<=[.!?…？。])[\"'»”)*_`]*\s+|\n+")
_LONGEST_QUESTION = 1_000


def is_acknowledgement(text: str) -> bool:
    """Return whether ``text`` is made of nothing but phrases that say nothing, or holds no letter and no digit.

    A question that only asks for leave to go on says nothing either.
    """
    if len(text) > _LONGEST_QUESTION:
        return False
    return all(_says_nothing(_words(sentence)) for sentence in _sentences(text))


def is_answer(text: str) -> bool:
    """Return whether an acknowledgement answers a question, such as "yes please", and does not only thank for it."""
    words = _words(text)
    return any(
        tuple(words[index : index + size]) in _ANSWERS for index in range(len(words)) for size in range(1, _LONGEST + 1)
    )


def question_in(text: str) -> str:
    """Return the question that ``text`` ends with, with the list of choices behind it; "" where it ends with none.

    A question that only asks for leave to go on is none.
    """
    lines = text.strip().split("\n")
    choices = len(lines)
    while choices and (not lines[choices - 1].strip() or _LIST.match(lines[choices - 1])):
        choices -= 1
    head, tail = "\n".join(lines[:choices]).rstrip(), "\n".join(lines[choices:])
    sentences = _sentences(head)
    first = len(sentences)
    while first and _asks(sentences[first - 1]):
        first -= 1
    asked = " ".join(sentences[first:])
    if not asked or _LEAVE.fullmatch(" ".join(_words(asked))):
        return ""
    whole = f"{asked}\n{tail.strip()}" if tail.strip() else asked
    return whole if len(whole) <= _LONGEST_QUESTION else ""


def is_bare_question(text: str) -> bool:
    """Return whether ``text`` only asks: each of its sentences is a question, or says nothing."""
    head = text.strip()
    return bool(question_in(head)) and all(_asks(one) or is_acknowledgement(one) for one in _sentences(head))


def _says_nothing(words: list[str]) -> bool:
    known = len(words) <= _MOST_WORDS and _consists_of(words)
    return not words or known or _LEAVE.fullmatch(" ".join(words)) is not None


def _sentences(text: str) -> list[str]:
    return [one.strip() for one in _SENTENCE_END.split(text) if one.strip()]


def _asks(sentence: str) -> bool:
    return sentence.rstrip(" \"'»”)*_`").endswith(("?", "？"))


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold().replace("’", "'"))


def _consists_of(words: list[str]) -> bool:
    """Return whether known phrases, one behind the other, make up all the words."""
    reached = {0}
    for index in range(len(words)):
        if index in reached:
            reached |= {
                index + size
                for size in range(1, _LONGEST + 1)
                if index + size <= len(words) and tuple(words[index : index + size]) in _KNOWN
            }
    return len(words) in reached
