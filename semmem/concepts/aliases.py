"""Propose other forms of a name: acronyms, plurals, surnames. Pure functions on folded tokens, as in a name's key.

The caller decides whether to merge. A wrong merge connects unrelated memories, so an ambiguous form is not proposed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import TypeAlias

from semmem.text.tokens import fold, stop_words, tokens

__all__ = [
    "OVERLAP_THRESHOLD",
    "Tokens",
    "acronyms",
    "initials",
    "number_forms",
    "overlap",
    "surnames",
    "variants",
    "without_article",
]

Tokens: TypeAlias = tuple[str, ...]

OVERLAP_THRESHOLD = 0.45
"""The least ``overlap`` of two names that may be one; more evidence is needed, such as a name they occur with."""
_CONNECTOR_LIST = "of the and for in on at to a an de la du des der den le les y e & von van und et"
_CONNECTORS = frozenset(_CONNECTOR_LIST.split())
_ARTICLES = frozenset(("the", "a", "an"))
_PARTICLE_LIST = "van von der den de la du da di del al el ibn bin ter ten"
_PARTICLES = frozenset(_PARTICLE_LIST.split())
_GENERATIONS = frozenset(("jr", "sr", "ii", "iii", "iv", "esq", "phd", "md"))
_HONORIFIC_LIST = "dr mr mrs ms miss prof sir dame lord lady saint st captain president professor"
_HONORIFICS = frozenset(_HONORIFIC_LIST.split())
_GROUPS = frozenset(("of", "the", "and", "for", "in", "&"))  # a name with one of these is not a person's
_LONGEST_PERSON = 5
_ENDED = re.compile(r"[.;:!?()\[\]]")
_SHORT = re.compile(r"[^\W_](?:[^\W_]|[.&/-](?=[^\W_])){1,9}\.?\Z")
_WINDOW = 240
"""The long form of an acronym is searched in this many characters before the bracket."""
_BRACKETS = re.compile(r"[(\[]([^()\[\]]{2,120})[)\]]")
_IRREGULAR = {
    **{"men": "man", "women": "woman", "children": "child", "people": "person", "mice": "mouse", "feet": "foot"},
    **{"teeth": "tooth", "geese": "goose", "criteria": "criterion", "phenomena": "phenomenon", "indices": "index"},
}
_PLURAL_OF = {one: many for many, one in _IRREGULAR.items()}
_VOWELS = frozenset("aeiou")


def initials(name: Sequence[str]) -> set[str]:
    """Return the acronyms made of the first letters of a name, with and without its connectors.

    ``("bank", "of", "england")`` gives ``be`` and ``boe``. A name of one token has none.
    """
    content = [part for part in name if part not in _CONNECTORS]
    if len(content) < 2:
        return set()
    return {"".join(part[0] for part in content), "".join(part[0] for part in name)}


def acronyms(text: str, language: str = "english") -> list[tuple[Tokens, Tokens]]:
    """Return (long form, short form) of the acronyms that a text explains, in order.

    ``World Health Organization (WHO)`` and ``WHO (World Health Organization)``. By the rule of Schwartz and Hearst
    (2003), the letters of the short form must occur in order in the words right before it, the first letter at the
    beginning of the long form. Here each letter must also begin a word where that is possible.
    """
    out: dict[tuple[Tokens, Tokens], None] = {}
    for match in _BRACKETS.finditer(text):
        inside, before = match[1].strip(), text[max(0, match.start() - _WINDOW) : match.start()].rstrip()
        if _is_short(inside):
            pair = (_long_form(inside, before, language), inside)
        else:
            last = before.rsplit(maxsplit=1)[-1:] or [""]
            whole = tuple(word.folded for word, _, _ in tokens(inside, language))
            pair = (whole if _is_short(last[0]) and _spells(_letters(last[0]), whole) else (), last[0])
        short = tuple(word.folded for word, _, _ in tokens(pair[1], language))
        if len(pair[0]) > 1 and short:
            out[pair[0], short] = None
    return list(out)


def _is_short(word: str) -> bool:
    """Return whether ``word`` looks like an acronym: 2 to 10 characters, no space, half of its letters capitals."""
    letters = [c for c in word if c.isalpha()]
    return bool(_SHORT.match(word)) and len(letters) > 1 and sum(c.isupper() for c in letters) * 2 >= len(letters)


def _letters(short: str) -> str:
    """Return the letters and digits of an acronym, folded, without the s of a plural (NGOs)."""
    plain = short[:-1] if len(short) > 2 and short.endswith("s") and short[:-1].isupper() else short
    return fold(plain.replace("/", "").replace("-", "").replace("&", "").replace(".", ""))


def _long_form(short: str, before: str, language: str) -> Tokens:
    """Return the shortest run of words at the end of ``before`` that spells ``short``."""
    letters = _letters(short)
    words = tokens(before, language)
    most = min(len(letters) + 5, len(letters) * 2)
    ended = before
    run: list[str] = []
    last = len(ended)
    for word, start, end in reversed(words):
        gap = ended[end:last]
        dotted = gap.startswith(".") and (len(word.folded) == 1 or "." in word.surface)  # U.S. Geological Survey
        if len(run) == most or _ENDED.search(gap[1:] if dotted else gap):
            break
        run.insert(0, word.folded)
        last = start
        if len(run) > 1 and run[0] not in _CONNECTORS and _spells(letters, run):
            return tuple(run)
    return ()


def _spells(letters: str, words: Sequence[str]) -> bool:
    """Return whether ``letters`` begin ``words`` in order; some letters may stand further inside a word.

    The first letter begins the first word, and only connectors are skipped.
    """

    @cache
    def rest(index: int, used: int) -> bool:
        if index == len(words):
            return used == len(letters)
        word = words[index]
        if word in _CONNECTORS and rest(index + 1, used):
            return True
        if used == len(letters) or word[0] != letters[used]:
            return False
        used += 1
        if rest(index + 1, used):
            return True
        for letter in word[1:]:  # DeoxyriboNucleic
            if used < len(letters) and letter == letters[used]:
                used += 1
                if rest(index + 1, used):
                    return True
        return False

    return bool(letters and words) and words[0][:1] == letters[0] and rest(0, 0)


def without_article(name: Tokens) -> Tokens:
    """Return a name without its leading article, unless nothing would be left."""
    return name[1:] if len(name) > 1 and name[0] in _ARTICLES else name


def number_forms(name: Tokens) -> set[Tokens]:
    """Return a name with its head (the last token, or the one before "of") in the other number, by English rules.

    Words that end in ss, us or is count as singular. Nothing is proposed for digits or for tokens below 3 letters.
    """
    index = next((i for i, part in enumerate(name) if i and part in ("of", "for", "in")), len(name)) - 1
    if index < 0 or len(name[index]) < 3 or not name[index].isalpha() or name[index] in stop_words("english"):
        return set()
    return {(*name[:index], other, *name[index + 1 :]) for other in _other_number(name[index])}


def _other_number(word: str) -> list[str]:
    if word in _IRREGULAR:
        return [_IRREGULAR[word]]
    if word in _PLURAL_OF:
        return [_PLURAL_OF[word]]
    if word.endswith("ies") and len(word) > 4:
        return [word[:-3] + "y"]
    if word.endswith(("sses", "shes", "ches", "xes", "zzes")):
        return [word[:-2]]
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return [word[:-1]]
    if word.endswith("y") and word[-2] not in _VOWELS:
        return [word[:-1] + "ies"]
    return [word + "es"] if word.endswith(("s", "x", "z", "ch", "sh")) else [word + "s"]


def surnames(names: Iterable[Tokens]) -> dict[Tokens, Tokens]:
    """Return a mapping surname -> full name for known names of persons; a surname shared by two persons is left out.

    A person's name is taken to be two to five tokens of letters without "of", "the" and "and". Forms of address and Jr.
    are skipped; a surname with particles is given with and without them ("van", "gogh"), ("gogh",). Callers pass names
    whose tokens all have capitals, because folded tokens do not show this.
    """
    names_by_form: dict[Tokens, set[Tokens]] = {}
    for name in names:
        parts = name
        while parts and parts[0] in _HONORIFICS:
            parts = parts[1:]
        while parts and parts[-1] in _GENERATIONS:
            parts = parts[:-1]
        if not 2 <= len(parts) <= _LONGEST_PERSON or not _GROUPS.isdisjoint(parts):
            continue
        if not all(part.isalpha() for part in parts) or len(parts[-1]) < 3:
            continue
        first = len(parts) - 1
        while first > 1 and parts[first - 1] in _PARTICLES:
            first -= 1
        for form in {parts[first:], parts[-1:]}:
            names_by_form.setdefault(form, set()).add(parts)
    whole = {}
    for form, of in names_by_form.items():
        longest = max(of, key=lambda p: (len(p), p))
        if all(_is_shorter(other, longest) for other in of):
            whole[form] = longest
    return whole


def _is_shorter(one: Tokens, other: Tokens) -> bool:
    """Return whether ``one`` is ``other`` with middle names left out or abbreviated to initials."""
    if one == other:
        return True
    if one[0] != other[0] or one[-1] != other[-1]:
        return False
    middle = iter(other[1:-1])
    return all(any(full == part or (len(part) == 1 and full[0] == part) for full in middle) for part in one[1:-1])


def overlap(a_tokens: Sequence[str], b_tokens: Sequence[str], idf: Mapping[str, float]) -> float:
    """Return how much two names share, in [0, 1]: twice the idf of shared tokens divided by the idf of all tokens.

    This is the coefficient of Dice (1945), weighted. Connectors do not count; a token without an idf counts 1, like an
    unseen one. Two names that consist of connectors share nothing.
    """
    a, b = ({part for part in name if part not in _CONNECTORS} for name in (a_tokens, b_tokens))

    def weight(parts: set[str]) -> float:
        return sum(max(0.0, idf.get(part, 1.0)) for part in sorted(parts))

    total = weight(a) + weight(b)
    return 2 * weight(a & b) / total if total > 0 else 0.0


def variants(name: Tokens) -> set[Tokens]:
    """Return the forms of a name that need no other name: without article, in the other number, as initials."""
    bare = without_article(name)
    forms = {bare, *number_forms(bare), *((short,) for short in initials(bare) if len(short) > 2)}
    return forms - {name, ()}
