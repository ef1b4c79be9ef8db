"""Find the names in a text: capitalised spans, known names, the names that a title gives. Pure functions."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Generic, TypeVar

from semmem.concepts.aliases import acronyms, initials, without_article
from semmem.model.exchange import Kind
from semmem.model.process.forks import Lock
from semmem.text.tokens import Reading, Word, hashed, key, reading, stop_words, tokens

__all__ = [
    "BARE_TITLE",
    "BEFORE_COMMA",
    "MAX_NAME",
    "OPENING",
    "TITLE",
    "candidates",
    "capitalised_spans",
    "gazetteer",
    "initials_key",
    "label",
    "longest",
    "name_key",
    "name_of",
    "past_of",
    "printed",
    "read",
    "spelled",
    "subject_aliases",
    "subject_keys",
    "subjects",
    "title_initials",
    "title_is_name",
]

TITLE, BARE_TITLE, OPENING, EXPLAINED, BEFORE_COMMA = 1.0, 0.9, 0.8, 0.7, 0.6

MAX_NAME = 8
"""Texts and questions are searched for known names of at most this many tokens."""

LONGEST_LABEL = 200

T = TypeVar("T")

_INITIALS = "\x02"  # occurs in no token: the key of a question's NATO is nobody's mention

_SHORTEST_INITIALS = 3

_LONGEST_SPAN = 12  # a longer run of capitals is a headline or a shout, not a name

_CONNECTOR_LIST = "of the and de la du van von der den al el da di del ibn bin for in on at to a y e le des with"

_CONNECTORS = frozenset(_CONNECTOR_LIST.split())

_LOOSE_LIST = "and for in on at to with a y e"

_LOOSE = frozenset(_LOOSE_LIST.split())  # connectors that join two names as often as the words of one name

_OPENER_LIST = """
however meanwhile moreover furthermore additionally later afterwards eventually finally recently currently today
yesterday tomorrow originally initially previously subsequently nevertheless nonetheless instead perhaps maybe
according despite following several various let lets please thanks thank hi hey hello wow oh ah yeah yep nope ok okay
sure well congrats congratulations name list tell give describe find show explain compare
"""

_OPENERS = frozenset(_OPENER_LIST.split())  # words that often open a sentence, with or without capitals

_GIVEN_NAMES = frozenset(("will", "may"))  # stop words that are names inside a sentence

_BEFORE_DOT_LIST = "dr mr mrs ms prof st jr sr gen col capt lt sgt rev mt ft"

_BEFORE_DOT = frozenset(_BEFORE_DOT_LIST.split())

_SENTENCE_END = re.compile(r"[.!?:;\u2026\n\u3002\uff01\uff1f]")

_PARENTHESIS = re.compile(r"(?:(?<!\s)\s+)?\([^()]*\)")

_JOINING = frozenset((" ", "  ", "-", "\u00a0", "\u2010", "\u2011", "_", " & "))

_GLUE = frozenset(("-", "\u2010", "\u2011", "_"))

_TERM, _STEM, _NAME = int(Kind.TERM), int(Kind.STEM), int(Kind.NAME)


class _Cached(Generic[T]):
    """A cached function of a text and a language; safe between threads.

    The cache holds texts of at most ``most`` characters together.
    """

    def __init__(self, work: Callable[[str, str], T], most: int) -> None:
        self._work = work
        self.most, self.chars = most, 0
        self._lock = Lock()
        self._answers: OrderedDict[tuple[str, str], T] = OrderedDict()

    def __call__(self, text: str, language: str = "english") -> T:
        """Return the value of the function, from the cache where possible."""
        with self._lock:
            entry = self._answers.get((text, language))
            if entry is not None:
                self._answers.move_to_end((text, language))
                return entry
        answer = self._work(text, language)
        if len(text) <= self.most:
            with self._lock:
                self.chars += len(text) if (text, language) not in self._answers else 0
                self._answers[text, language] = answer
                while self.chars > self.most and self._answers:
                    (oldest, _), _ = self._answers.popitem(last=False)
                    self.chars -= len(oldest)
        return answer


CACHED_CHARS = 2_000_000
"""The cache holds the last texts: two batches of a thousand with titles, because a writer reads them several times."""
read = _Cached(reading, most=CACHED_CHARS)  # since a writer asks thrice; a token takes a hundred bytes


def name_key(reading: Reading, first: int, past: int) -> int:
    """Return the key of the name made of tokens ``first`` to ``past - 1``."""
    return key(_NAME, [word.folded for word in reading.words[first:past]])


def printed(text: str) -> str:
    """Return a label that a store can hold: white space collapsed, no control characters, 200 characters at most."""
    shown = " ".join(text.split())
    if not shown.isprintable():
        shown = " ".join("".join(c if c.isprintable() else " " for c in shown).split())
    return shown[:LONGEST_LABEL]


def label(text: str, reading: Reading, first: int, past: int) -> str:
    """Return a name as a label: without a possessive ending."""
    return spelled(text[reading.starts[first] : reading.ends[past - 1]])


def spelled(written: str) -> str:
    """Return a name as a text writes it as a label: without a possessive ending."""
    shown = printed(written)
    return shown[:-2] if shown.endswith(("'s", "\u2019s", "'S", "\u2019S")) else shown


def _dotted(word: Word, gap: str) -> bool:
    """Return whether the full stop in ``gap`` belongs to ``word``: an initial, J.R.R., a form of address."""
    return gap == ". " and word.capital and (len(word.folded) == 1 or "." in word.surface or word.folded in _BEFORE_DOT)


def _begins(word: Word) -> bool:
    """Return whether ``word`` begins a sentence after any full stop: a stop word that is not an initial."""
    return word.stop and (len(word.folded) > 1 or not word.capital)


def _opens(words: Sequence[Word], gaps: Sequence[str], index: int) -> bool:
    """Return whether token ``index`` is the first of a sentence."""
    if index == 0:
        return True
    gap = gaps[index]
    if gap == " " or _SENTENCE_END.search(gap) is None:
        return False
    return _begins(words[index]) or not _dotted(words[index - 1], gap)


def _joined(words: Sequence[Word], gaps: Sequence[str], index: int) -> bool:
    """Return whether a span may continue from token ``index - 1`` to token ``index``."""
    gap = gaps[index]
    return gap in _JOINING or (_dotted(words[index - 1], gap) and not _begins(words[index]))


def _over_connectors(words: Sequence[Word], gaps: Sequence[str], index: int) -> int:
    """Return the position of a capital after token ``index - 1`` and one or two connectors; 0 if there is none."""
    for ahead in range(index, min(index + 3, len(words))):
        if not _joined(words, gaps, ahead):
            return 0
        word = words[ahead]
        if word.capital:
            return ahead
        if word.folded not in _CONNECTORS:
            return 0
    return 0


def _run(words: Sequence[Word], gaps: Sequence[str], first: int) -> int:
    """Return the end of the run of capitals that begins at ``first``."""
    index = first + 1
    while index < len(words) and _joined(words, gaps, index):
        word = words[index]
        glued = gaps[index] in _GLUE and (
            word.folded[0].isdigit() or (index == first + 1 and len(words[first].folded) == 1)
        )
        if word.capital or glued:
            index += 1
        elif ahead := _over_connectors(words, gaps, index):
            index = ahead + 1
        else:
            break
    return index


def _pieces(words: Sequence[Word], first: int, past: int) -> Iterator[tuple[int, int]]:
    """Yield the names within a span that a loose connector or a possessive joins: Ada and Charles, Ada's Notes."""
    start = first
    for index in range(first, past):
        word = words[index]
        loose = not word.capital and word.folded in _LOOSE
        if loose or index == past - 1 or word.surface.endswith(("'s", "\u2019s")):
            end = index if loose else index + 1
            while first < start < end and words[start].stop:
                start += 1
            if start < end and end - start < past - first:
                yield start, end
            start = index + 1


def capitalised_spans(reading: Reading) -> Iterator[tuple[int, int]]:
    """Yield (first, past) token positions of maximal runs of capitals, joined over at most two connectors.

    Leading stop words are cut off, and words such as "however" at the start of a sentence. Digits belong to the run
    they are joined to (INC-211), and a lower-case part to a single letter (X-ray). A run that may be several names is
    followed by these: Ada and Charles is yielded as a whole and as two names (on wikigold, recall of names rises from
    .73 to .85 at equal precision).
    """
    words, gaps = reading.words, reading.gaps
    index = 0
    while index < len(words):
        if not words[index].capital:
            index += 1
            continue
        first, index = index, _run(words, gaps, index)
        opens = _opens(words, gaps, first)
        while first < index:
            word = words[first]
            if word.capital and not word.stop and not (opens and word.folded in _OPENERS):
                break
            if word.folded in _GIVEN_NAMES and not opens and first + 1 < index and words[first + 1].capital:
                break
            first += 1
        if first >= index:
            continue
        if index - first <= _LONGEST_SPAN:
            yield first, index
        if index - first > 1:
            yield from _pieces(words, first, index)


def candidates(part: str, language: str = "english", before: int = 0) -> list[tuple[int, int]]:
    """Return (key, place) of every run of tokens that may be a name which other memories know, by place.

    Inside a sentence a run begins with a capital, and with a stop word only before another capital. A run of more than
    three tokens ends in a capital or a number, and none ends in a lower-case stop word. A place (see ``past_of``)
    counts tokens from ``before`` on; runs behind the last place that can be written are left out.
    """
    words, _, _, gaps = read(part, language)
    runs: list[tuple[int, int]] = []
    cut: dict[int, bool] = {}  # whether a name stops before a token
    opening = f"{_NAME}\x1f"
    count = min(len(words), _LAST_PLACE - before)
    for first in range(count):
        word = words[first]
        if not word.capital:
            continue
        place = (before + first) * MAX_NAME
        spelled = opening + word.folded
        if not word.stop:
            runs.append((_begun(spelled), place))  # key(_NAME, …), in line for speed
        for index in range(first + 1, min(first + MAX_NAME, count)):
            if gaps[index] != " ":
                if index not in cut:
                    cut[index] = len(gaps[index]) > 3 or _opens(words, gaps, index)
                if cut[index]:
                    break
            folded, _, _, kind, stop, capital, _ = words[index]
            if word.stop and index == first + 1 and not capital:
                break
            spelled = f"{spelled}\x1f{folded}"
            if capital or kind == _TERM or (index < first + 3 and not stop):
                runs.append((hashed(spelled), place + index - first))
    return runs


_LAST_PLACE = (1 << 16) // MAX_NAME
_begun = lru_cache(maxsize=1 << 15)(hashed)


def longest(runs: Iterable[tuple[int, int]], known: Container[int]) -> Iterator[tuple[int, int]]:
    """Yield those (key, place) of ``runs`` that are the longest known name at their place, left to right.

    ``runs`` are in the order of ``candidates``: by first token, shortest first.
    """
    best: tuple[int, int] | None = None
    free = 0
    for concept_key, place in runs:
        first = place // MAX_NAME
        if best is not None and first > best[1] // MAX_NAME:
            yield best
            free, best = past_of(best[1]), None
        if first >= free and concept_key in known:
            best = concept_key, place
    if best is not None:
        yield best


def gazetteer(part: str, known: Container[int], language: str = "english") -> Iterator[tuple[int, int, int]]:
    """Yield (first, past, key) of the longest ``known`` names among ``candidates``, left to right."""
    for concept_key, place in longest(candidates(part, language), known):
        yield place // MAX_NAME, past_of(place), concept_key


def past_of(place: int) -> int:
    """Return the position behind the last token of a run at ``place``, which is first token × 8 + tokens - 1."""
    return place // MAX_NAME + place % MAX_NAME + 1


def subject_aliases(
    text: str, title: str | None = None, *, language: str = "english"
) -> list[tuple[tuple[str, ...], str, float]]:
    """Return the names that a memory is about, as (folded tokens, label, weight b), heaviest first.

    The title weighs 1.0; the title without "(...)" .9; before its first comma .6. The capitalised span at the start of
    the text weighs .8, if it has two tokens or more and shares one with the title, if there is a title. The acronym
    that the text explains for one of these weighs .7.
    """
    reading = read(text, language)
    return subjects(text, title, language, reading, list(capitalised_spans(reading)))


def subject_keys(text: str, title: str | None = None, *, language: str = "english") -> set[int]:
    """Return the keys of ``subject_aliases``."""
    return {key(_NAME, parts) for parts, _, _ in subject_aliases(text, title, language=language)}


def subjects(
    text: str, title: str | None, language: str, reading: Reading, spans: Sequence[tuple[int, int]]
) -> list[tuple[tuple[str, ...], str, float]]:
    """Return the names of ``subject_aliases``, from the tokens and capitalised spans of the text."""
    aliases: dict[tuple[str, ...], tuple[str, float]] = {}

    def add(shown: str, parts: tuple[str, ...], weight: float) -> None:
        if parts and (parts not in aliases or aliases[parts][1] < weight):
            aliases[parts] = (shown, weight)

    titled: set[str] = set()
    if title:
        bare = _PARENTHESIS.sub("", title)
        for form, weight in ((title, TITLE), (bare, BARE_TITLE), (bare.partition(",")[0], BEFORE_COMMA)):
            if weight == TITLE or form != title:
                named = [w for w, _, _ in tokens(form, language)]
                add(printed(form), tuple(w.folded for w in named), weight)
                titled.update(w.folded for w in named if not w.stop)
    if spans:
        first, past = spans[0]
        span = tuple(word.folded for word in reading.words[first:past])
        opening = first <= 2 and all(word.stop for word in reading.words[:first])
        if opening and len(span) >= 2 and (not title or not titled.isdisjoint(span)):
            add(label(text, reading, first, past), span, OPENING)
    for parts in _explained(text, language, set(aliases)):
        add("".join(parts).upper(), parts, EXPLAINED)
    return sorted(((parts, shown, weight) for parts, (shown, weight) in aliases.items()), key=lambda a: (-a[2], a[0]))


def title_initials(title: str, language: str = "english") -> set[str]:
    """Return the initials, of three letters or more, of a title that is a name: nato."""
    if not title_is_name(title, language=language):
        return set()
    whole = tuple(word.folded for word, _, _ in tokens(_PARENTHESIS.sub("", title), language))
    return {short for short in initials(without_article(whole)) if len(short) >= _SHORTEST_INITIALS}


def initials_key(short: str) -> int:
    """Return the key of initials. No text mentions it; only a question in capitals looks for it."""
    return key(_NAME, (_INITIALS, short))


def _explained(text: str, language: str, names: set[tuple[str, ...]]) -> Iterator[tuple[str, ...]]:
    """Yield the acronyms that ``text`` explains for one of ``names``; no stop words, or every "Who" would be WHO."""
    if "(" not in text and "[" not in text:
        return
    bare = {without_article(name) for name in names}
    for long, short in acronyms(text, language):
        if without_article(long) in bare and stop_words(language).isdisjoint(short):
            yield short


def title_is_name(title: str, *, language: str = "english") -> bool:
    """Return whether a title is a name and not a description: all content words outside brackets have a capital."""
    content = [
        w
        for w, _, _ in tokens(_PARENTHESIS.sub("", title), language)
        if w.kind == _STEM and not w.stop and (w.capital or w.folded not in _CONNECTORS)
    ]
    return bool(content) and all(w.capital for w in content)


def name_of(written: str, language: str = "english") -> int:
    """Return the key of a name from its spelling."""
    return key(_NAME, [word.folded for word, _, _ in tokens(written, language)])
