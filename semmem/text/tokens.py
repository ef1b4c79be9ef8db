"""Tokens, their stems and keys, and stop words. Pure, and safe on any string.

A word is a run of letters, marks and digits of any script. Hyphens, underscores and slashes separate words, so the
lexical leg reads ``INC-211`` as ``inc`` and ``211``, however a question spells it (concepts join the parts again).
Apostrophes, the dots of ``U.S.`` and the points of ``v2.3.1`` stay inside a word. Han, Hiragana and Katakana have no
spaces: a run of them becomes its overlapping pairs of characters.

Stop words are function words, as folded tokens, that the lexical leg and the concepts leave out, question words
included (these alone are worth .066 recall@10 on conversation). English, German, Spanish and French have them
(``languages``). In another language function words are ordinary terms, to which BM25's idf gives little weight.
"""

from __future__ import annotations

import re
import struct
import threading
import unicodedata
from collections.abc import Collection, Iterable
from functools import cache
from hashlib import blake2b
from itertools import accumulate
from operator import itemgetter
from typing import NamedTuple

import Stemmer

from semmem.model.errors import InvalidInput
from semmem.model.exchange import Kind
from semmem.text.languages import known

__all__ = [
    "LANGUAGES",
    "Reading",
    "Word",
    "as_written",
    "author_key",
    "check_language",
    "fold",
    "hashed",
    "is_number",
    "key",
    "places",
    "reading",
    "stem",
    "stop_words",
    "tokens",
    "unfinished",
    "vocabulary",
    "words",
]

LANGUAGES: tuple[str, ...] = tuple(sorted(Stemmer.algorithms()))
"""Names of Snowball's stemmers."""

_UNFINISHED = " (unfinished)"


def unfinished(language: str) -> str:
    """Return the mark stored as the language of a namespace while its memories are extracted in ``language``."""
    return language + _UNFINISHED


def check_language(namespace: str, stored: str, setting: str) -> None:
    """Raise InvalidInput unless a namespace extracted in ``stored`` can be searched with the stems of ``setting``."""
    if stored == setting:
        return
    if stored.endswith(_UNFINISHED):
        new = stored.removesuffix(_UNFINISHED)
        raise InvalidInput(
            f"The namespace {namespace!r} is being read again in {new}; wait until `semmem rebuild --extract` is done, "
            f"or where it was interrupted run it again with the setting language = {new}."
        )
    raise InvalidInput(
        f"The namespace {namespace!r} was read in {stored} and the setting language is {setting}, so its words would "
        f"not be found; set language to {stored}, use another namespace, or run `semmem rebuild --extract` to read "
        f"every memory of the store in {setting}."
    )


_MARK_BLOCKS = ((0x300, 0x1E00), (0x20D0, 0x20F1), (0xA66F, 0xABF0), (0xFE20, 0xFE30))


def _mark_ranges() -> str:
    """Return the combining marks of the basic plane as ranges of a character class, which compile faster."""
    marks = [c for a, b in _MARK_BLOCKS for c in range(a, b) if unicodedata.category(chr(c)) in ("Mn", "Mc")]
    starts = [c for before, c in zip([-1, *marks], marks, strict=False) if c != before + 1]
    ends = [c for c, after in zip(marks, [*marks[1:], -1], strict=True) if after != c + 1]
    return "".join(f"{chr(a)}-{chr(b)}" for a, b in zip(starts, ends, strict=True))


_CJK = "\u3005\u3007\u3041-\u3096\u3099-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"

_CJK += "\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"


@cache
def _token(elided: tuple[str, ...] = ()) -> re.Pattern[str]:
    """Return the pattern of tokens in any script. Its compilation takes long, and English never asks for it.

    Each of ``elided`` is a token of its own before an apostrophe, which belongs to it: l'eau is l' and eau.
    """
    inner = f"(?:[^\\W_{_CJK}]|[{_mark_ranges()}\u00ad\u200c\u200d])"
    any_script = (
        rf"{_elision(elided)}[{_CJK}]+"
        r"|(?<![^\W_])[^\W\d_](?:\.[^\W\d_])+(?![^\W_])"  # U.S, J.R.R, e.g
        rf"|[^\W_{_CJK}]{inner}*"
        rf"(?:['\u2019]{inner}+|(?<=[A-Z])&(?=[A-Z]){inner}+|(?<=\d)(?:\.(?=\d)|,(?=\d{{3}}(?!\d))){inner}+)*"
    )
    return re.compile(any_script)


_ASCII_TOKEN = re.compile(
    r"((?<![A-Za-z0-9])[A-Za-z](?:\.[A-Za-z])+(?![A-Za-z0-9])"
    r"|[A-Za-z0-9]+(?:'[A-Za-z0-9]+|(?<=[A-Z])&(?=[A-Z])[A-Za-z0-9]+|(?<=\d)(?:\.(?=\d)|,(?=\d{3}(?!\d)))[A-Za-z0-9]+)*)"
)  # the same on ASCII, in half the time; as a group, so that split gives the tokens too


def _elision(elided: tuple[str, ...]) -> str:
    """Return the beginning of a pattern of tokens, for words that end before an apostrophe."""
    return rf"(?<![^\W_])(?i:{'|'.join(elided)})['\u2019](?=[^\W_])|" if elided else ""


@cache
def _ascii_token(elided: tuple[str, ...]) -> re.Pattern[str]:
    """Return ``_ASCII_TOKEN`` for a language with elided words."""
    elided_or_ascii = f"({_elision(elided)}{_ASCII_TOKEN.pattern[1:]}"
    return re.compile(elided_or_ascii)


_CJK_START = re.compile(f"[{_CJK}]")

_POINT_IN_NUMBER = re.compile(r"(?<=\d)\.(?=\d)")

_ACRONYMS = frozenset(("US", "IT", "WHO"))  # stop words unless written in capitals

_FIRST_PERSON = frozenset(("i", "im", "ive", "ill", "id"))  # their capital says nothing

_CACHED_WORDS = 1 << 16

_LONGEST_CACHED = 40

_LONGEST_STEM = 96  # characters; longer words are told apart by their beginning


class Word(NamedTuple):
    """One token: its folded form, stem and key, whether it is a stop word, and whether it has a capital.

    ``kind`` is Kind.TERM for a number, otherwise Kind.STEM; ``key`` is the key of (kind, stem).
    """

    folded: str
    stem: str
    key: int
    kind: int
    stop: bool
    capital: bool
    surface: str


def _folded(text: str) -> str:
    if text.isascii():
        return text.lower()
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    chars = (c for c in plain if unicodedata.combining(c) in (0, 8, 9))  # 8, 9: voicing marks, viramas
    return unicodedata.normalize("NFC", "".join(chars))


def fold(token: str) -> str:
    """Return ``token`` in lower case, without accents (NFKD), possessive 's, dots and apostrophes.

    A point between digits stays, because 2.5 is not 25. All other characters except letters, marks and digits are
    removed.
    """
    if token.isascii() and token.isalnum():
        return token.lower()
    low = _folded(token)
    if low.endswith(("'s", "\u2019s")):
        low = low[:-2]
    if low.isalnum():
        return low
    out = []
    for part in _POINT_IN_NUMBER.split(low):
        out.append("".join(c for c in part if c.isalnum() or unicodedata.category(c) in ("Mn", "Mc")))
    return ".".join(out)


class _Stemmers(threading.local):
    """One Snowball stemmer for each language and thread, because the C object keeps state between calls."""

    def __init__(self) -> None:
        self.by_language: dict[str, Stemmer.Stemmer] = {}


_stemmers = _Stemmers()


def _stemmer(language: str) -> Stemmer.Stemmer:
    stemmer = _stemmers.by_language.get(language)
    if stemmer is None:
        if language not in LANGUAGES:
            raise InvalidInput(
                f"The setting language has no stemmer for {language!r}; take one of: {', '.join(LANGUAGES)}."
            )
        stemmer = _stemmers.by_language[language] = Stemmer.Stemmer(language, 0)
    return stemmer


def stem(token: str, language: str = "english") -> str:
    """Return the folded Snowball stem of a token.

    English words are folded before stemming (café is cafe). In other languages accents guide the stemmer, so they are
    removed afterwards.
    """
    folded = fold(token)
    if not folded or (folded.isascii() and not folded.isalpha()):
        return folded  # numbers, versions, identifiers: nothing to inflect
    stemmer = _stemmer(language)
    if language in ("english", "porter") or folded == token:
        return str(stemmer.stemWord(folded)) or folded
    return fold(str(stemmer.stemWord(unicodedata.normalize("NFC", token).lower()))) or folded


_signed = struct.Struct("<q").unpack


def hashed(data: str) -> int:
    """Return the first 64 bits of the BLAKE2b hash of ``data``, as a signed integer."""
    number: int = _signed(blake2b(data.encode("utf-8", "surrogatepass"), digest_size=8).digest())[0]
    return number


def key(kind: int, parts: Iterable[str]) -> int:
    """Return the signed 64-bit hash that is the key of (kind, folded tokens) in a store."""
    return hashed(f"{int(kind)}\x1f" + "\x1f".join(parts))


def is_number(folded: str) -> bool:
    """Return whether a folded token consists of digits and points, so that it is a term but no concept."""
    return folded[0].isdigit() and (folded.isdigit() or folded.replace(".", "").isdigit())


def _describe(surface: str, language: str) -> Word:
    folded = fold(surface)
    if not folded:
        return Word("", "", 0, int(Kind.TERM), True, False, surface)
    root = stem(surface, language)[:_LONGEST_STEM]
    apostrophe = "'" in surface or "\u2019" in surface
    stop = folded in known(language).stop_words or (apostrophe and folded in known(language).contractions)
    if stop and (surface in _ACRONYMS or ("." in surface and surface.isupper())):
        stop = False  # U.S. is a name, us is not
    first = surface[0]
    capital = first.isupper() or first.istitle() or (len(surface) > 3 and surface != surface.lower())
    if stop and capital and language == "english" and folded in _FIRST_PERSON:
        capital = False
    number = is_number(folded)
    kind = int(Kind.TERM if number else Kind.STEM)
    return Word(folded, root, key(kind, (root,)), kind, stop, capital, surface)


_lexicons: dict[str, dict[str, Word]] = {}


def _lexicon(language: str) -> dict[str, Word]:
    lexicon = _lexicons.get(language)
    if lexicon is None:
        _stemmer(language)  # an unknown language is refused before it can fill a cache
        lexicon = _lexicons.setdefault(language, {})
    return lexicon


def _learn(surface: str, language: str) -> Word:
    word = _describe(surface, language)
    if len(surface) <= _LONGEST_CACHED:
        lexicon = _lexicon(language)
        if len(lexicon) >= _CACHED_WORDS:
            lexicon.clear()
        lexicon[surface] = word
    return word


def _pattern(language: str, *, ascii_only: bool) -> re.Pattern[str]:
    elided = known(language).elided
    if ascii_only:
        return _ascii_token(elided) if elided else _ASCII_TOKEN
    return _token(elided)


def stop_words(language: str) -> frozenset[str]:
    """Return the stop words of a language as folded tokens; none where none are known."""
    return known(language).stop_words


class Reading(NamedTuple):
    """The tokens of a text, in order, as parallel columns: words, where each begins and ends, and what is before it.

    The garbage collector visits the values of a tuple of numbers or strings once, those of a list again and again.
    """

    words: list[Word]
    starts: tuple[int, ...]
    ends: tuple[int, ...]
    gaps: tuple[str, ...]


def reading(text: str, language: str = "english") -> Reading:
    """Return the tokens of ``text`` as ``tokens`` does, and for each the characters between it and the token before."""
    lookup = _lexicon(language).get
    if text.isascii():  # split in one go, and with no match object a token
        pieces = _pattern(language, ascii_only=True).split(text)
        bounds = list(accumulate(map(len, pieces)))
        ascii_words = [lookup(surface) or _learn(surface, language) for surface in pieces[1::2]]
        return Reading(ascii_words, tuple(bounds[:-1:2]), tuple(bounds[1::2]), tuple(pieces[:-1:2]))
    words: list[Word] = []
    starts: list[int] = []
    ends: list[int] = []
    gaps: list[str] = []
    last = 0
    for match in _pattern(language, ascii_only=False).finditer(text):
        surface = match[0]
        start, end = match.span()
        plain = surface.isascii() or not _CJK_START.match(surface)
        for index in (0,) if plain else range(max(1, len(surface) - 1)):
            piece = surface if plain else surface[index : index + 2]
            word = lookup(piece) or _learn(piece, language)
            if word.folded:
                first = start + index
                words.append(word)
                gaps.append(text[last:first])
                starts.append(first)
                ends.append(last := end if plain else first + len(piece))
    return Reading(words, tuple(starts), tuple(ends), tuple(gaps))


def tokens(text: str, language: str = "english") -> list[tuple[Word, int, int]]:
    """Return every token of ``text`` with its (start, end) offsets, in order; stop words are marked, not left out."""
    return list(zip(*reading(text, language)[:3], strict=True))


def as_written(text: str, name: str) -> str:
    """Return how ``text`` writes ``name``, whatever its case and accents; ``name`` where it does not have it."""
    if name in text:
        return name
    words, folded = tokens(text), [word.folded for word, _, _ in tokens(name)]
    for first in range(len(words) - len(folded) + 1 if folded else 0):
        run = words[first : first + len(folded)]
        written = text[run[0][1] : run[-1][2]]
        if len(written) == len(name) and [word.folded for word, _, _ in run] == folded:
            return written
    return name


_SAME_FIRST_LETTER = frozenset(("english", "porter"))
"""Languages in which the stem of an ASCII word begins as the word does."""


_INSIDE = re.compile(r"['&.,](?<=[A-Za-z0-9].)[A-Za-z0-9]")
"""A character that may belong to an ASCII token, as in don't, AT&T, 2.5 and 1,000; without one, tokens are runs."""

_SPACES = str.maketrans({code: " " for code in range(128) if not chr(code).isalnum()})


def places(text: str, stems: Collection[str], language: str = "english") -> list[tuple[str, int, int]]:
    """Return (stem, start, end) of the tokens with one of ``stems`` that are no stop words, in order."""
    if not text.isascii():
        return [(word.stem, s, e) for word, s, e in tokens(text, language) if not word.stop and word.stem in stems]
    if _INSIDE.search(text) is not None:
        pieces = _pattern(language, ascii_only=True).split(text)
        if not (stem_of := _matching(set(pieces[1::2]), stems, language)):
            return []
        bounds = list(accumulate(map(len, pieces)))
        rows = zip(pieces[1::2], bounds[::2], bounds[1::2], strict=False)
        return [(stem_of[surface], start, end) for surface, start, end in rows if surface in stem_of]
    spaced = f" {text.translate(_SPACES)} "  # in a fifth of the time of the pattern, and it is as long as the text
    found: list[tuple[str, int, int]] = []
    for surface, root in _matching(set(spaced.split()), stems, language).items():
        start = spaced.find(f" {surface} ")
        while start >= 0:
            end = start + len(surface)
            found.append((root, start, end))
            start = spaced.find(f" {surface} ", end)
    return sorted(found, key=itemgetter(1))


def _matching(surfaces: Collection[str], stems: Collection[str], language: str) -> dict[str, str]:
    """Return the stem of each ASCII token of ``surfaces`` that is no stop word and has one of ``stems``."""
    lookup = _lexicon(language).get
    if language in _SAME_FIRST_LETTER:  # most words need not be looked up, nor a new one learnt
        initials = {letter for stem in stems for letter in (stem[:1], stem[:1].upper())}
        surfaces = [surface for surface in surfaces if surface[0] in initials]
    words = [(surface, lookup(surface) or _learn(surface, language)) for surface in surfaces]
    return {surface: word.stem for surface, word in words if not word.stop and word.stem in stems}


def vocabulary(text: str, language: str = "english") -> list[Word]:
    """Return the words of ``tokens`` without their offsets; faster than ``tokens``."""
    if not text.isascii():
        return reading(text, language).words
    lookup = _lexicon(language).get
    return [
        lookup(surface) or _learn(surface, language) for surface in _pattern(language, ascii_only=True).findall(text)
    ]


def words(text: str) -> list[tuple[str, int, int]]:
    """Return the folded tokens of ``text`` with their (start, end) offsets, in order."""
    return [(word.folded, start, end) for word, start, end in tokens(text)]


def author_key(author: str) -> str:
    """Return an author's name in the form that authors are compared in: folded words."""
    return " ".join(word.folded for word, _, _ in tokens(author))
