"""Split, normalise and quote texts as the legs read them: terms, phrases, sentences, parts. Pure, safe on any string.

``tokens`` defines what a token is; its names can be imported from here too.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any

from semmem.model.errors import InvalidInput
from semmem.model.exchange import CandidateMetadata, Kind
from semmem.model.types import Memory, Passage
from semmem.text.tokens import is_number, key, places, vocabulary

__all__ = [
    "MAX_CHARS",
    "SPLITTER",
    "content_key",
    "embedded_text",
    "encoded_text",
    "normalise",
    "other_names",
    "passage_of",
    "passages",
    "phrases",
    "searched_text",
    "sentence_spans",
    "sentences",
    "snippet",
    "split",
    "term_key",
    "terms",
]


SPLITTER = 1
"""The version of ``split``: one more where it cuts texts in other places, so that maintain cuts what is stored anew."""
MAX_CHARS = 1_400
"""Texts longer than this are split; each part is extracted by itself, and a part that is found returns its memory."""


def term_key(term: str) -> int:
    """Return the key of one of the strings that ``terms`` returns."""
    return key(Kind.TERM if term and is_number(term) else Kind.STEM, (term,))


def terms(text: str, language: str = "english") -> list[str]:
    """Return the terms of the lexical leg: folded, stemmed, without stop words, numbers kept, in order."""
    return [word.stem for word in vocabulary(text, language) if not word.stop]


def normalise(text: str) -> str:
    """Return ``text`` in the form that duplicates are compared in.

    That is NFKC, casefolded, with white space collapsed and without punctuation at the ends.
    """
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    collapsed = " ".join(folded.replace("\x00", " ").split())
    return collapsed.strip(" .,;:!?\"'\u2018\u2019\u201c\u201d\u2026") or collapsed


def content_key(text: str) -> bytes:
    """Return the 16-byte BLAKE2b hash of the normalised text."""
    return blake2b(normalise(text).encode("utf-8", "surrogatepass"), digest_size=16).digest()


_QUOTED = re.compile(r"\"([^\"]*)\"|\u201c([^\u201c\u201d]*)\u201d|\u00ab([^\u00ab\u00bb]*)\u00bb")


def phrases(query: str) -> tuple[list[str], str]:
    """Return the quoted phrases of a query, and the query without them; an unpaired quote is no phrase."""
    quotes: list[str] = []

    def take(match: re.Match[str]) -> str:
        phrase = " ".join((match.group(1) or match.group(2) or match.group(3) or "").split())
        if phrase:
            quotes.append(phrase)
        return " "

    rest = _QUOTED.sub(take, query)
    return quotes, " ".join(rest.split())


_BOUNDARY = re.compile(
    r"[.!?\u2026\u3002\uff01\uff1f\n](?:"  # all in one set, for which re looks several times as fast
    r"(?<=[.!?\u2026])(?<![.!?\u2026].)[.!?\u2026]*+[\"'\u201d\u2019)\]]*+(?=\s)"
    r"|(?<=[\u3002\uff01\uff1f])[\u3002\uff01\uff1f]*[\u300d\u300f]*|(?<=\n))"
)  # a run of stops is looked at once, from its beginning

_ABBREVIATION = re.compile(
    r"(?:\b(?:[^\W\d_]|[Mm]rs?|[Mm]s|[Dd]r|[Pp]rof|[Ss]t|[Ss]r|[Jj]r|[Nn]o|[Vv]ol|[Ff]ig|[Ee]q|[Cc]f|[Vv]s|[Cc]a|[Aa]pprox"
    r"|[Gg]en|[Cc]ol|[Cc]apt|[Ll]t|[Ss]gt|[Rr]ev|[Hh]on|[Ii]nc|[Ll]td|[Cc]o|[Cc]orp|[Ee]tc|[Jj]an|[Ff]eb|[Aa]ug"
    r"|[Ss]ept?|[Oo]ct|[Nn]ov|[Dd]ec)|\b(?:[^\W\d_]\.)+[^\W\d_])\.$"
)


def _spans(text: str, first: int, last: int) -> Iterator[tuple[int, int]]:
    start = first
    for match in _BOUNDARY.finditer(text, first, last):
        end = match.end()
        if match[0] == "." and _ABBREVIATION.search(text[max(start, end - 12) : end].rpartition(" ")[2]):
            continue
        yield start, end
        start = end
    yield start, last


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Return the (start, end) offsets of the sentences of ``text``, without the white space around them.

    A sentence ends at . ! ? before white space, at the full stop of Chinese and Japanese, and at the end of a line, but
    not after an initial or a common abbreviation.
    """
    return list(_sentences(text))


def _sentences(text: str) -> Iterator[tuple[int, int]]:
    for start, end in _spans(text, 0, len(text)):
        piece = text[start:end]
        left = start + len(piece) - len(piece.lstrip())
        right = start + len(piece.rstrip())
        if left < right:
            yield left, right


def sentences(text: str) -> list[str]:
    """Return the sentences of ``text``."""
    return [text[start:end] for start, end in sentence_spans(text)]


def snippet(
    text: str, query_terms: Collection[str], language: str = "english", *, max_chars: int = 300
) -> tuple[str, tuple[tuple[int, int], ...]]:
    """Return the sentence with the most distinct ``query_terms`` (see ``terms``), and the offsets of these in it.

    Of equally good sentences the first is returned. A sentence of more than ``max_chars`` is cut around its first
    match.
    """
    stems = frozenset(query_terms)
    hits = places(text, stems, language)
    best, most_stems, begins = (0, 0), -1, 0
    every = len({stem for stem, _, _ in hits})
    for start, end in _sentences(text):
        if (begins == len(hits) and most_stems >= 0) or most_stems == every:
            break  # what follows has none, or not more
        while begins < len(hits) and hits[begins][1] < start:
            begins += 1
        sentence_stems = set()
        inside = begins
        while inside < len(hits) and hits[inside][1] < end:
            sentence_stems.add(hits[inside][0])
            inside += 1
        if len(sentence_stems) > most_stems:
            best, most_stems = (start, end), len(sentence_stems)
    start, end = best
    if end - start > max_chars:
        first = next((s for _, s, _ in hits if s >= start), start) if most_stems > 0 else start
        if first - start > max_chars // 3:
            space = text.rfind(" ", start, first - max_chars // 4)
            start = space + 1 if space >= 0 else first - max_chars // 4
        if end - start > max_chars:
            space = text.rfind(" ", start + max_chars // 2, start + max_chars)
            end = space if space >= 0 else start + max_chars
    return text[start:end], tuple((s - start, e - start) for _, s, e in hits if s >= start and e <= end)


_PARAGRAPH = re.compile(r"\n[ \t\r]*\n\s*")

_SPACE = re.compile(r"\s+")
_ANY_SPACE = re.compile(r"\s*")


def _cut(text: str, start: int, limit: int) -> int:
    """Return where to end a part of at most ``limit`` characters: after a paragraph, sentence or word, or anywhere."""
    stop = start + limit
    if stop >= len(text):
        return len(text)
    paragraphs = [m.end() for m in _PARAGRAPH.finditer(text, start, stop)]
    if paragraphs and paragraphs[-1] - start >= limit // 2:
        return paragraphs[-1]
    ends = [end for _, end in [*_spans(text, start, stop)][:-1]]
    if ends and ends[-1] - start >= limit // 3:
        return ends[-1]
    if text[stop].isspace():
        return stop
    spaces = [m.end() for m in _SPACE.finditer(text, start, stop)]
    return spaces[-1] if spaces else stop


def split(
    text: str,
    *,
    max_chars: int = 1400,
    max_tokens: int | None = None,
    count_tokens: Callable[[str], int] | None = None,
) -> list[str]:
    """Return ``text`` as parts of at most ``max_chars`` characters and ``max_tokens`` tokens, in order.

    Parts end between paragraphs, else between sentences, else between words, else anywhere; only white space at a cut
    is lost. A text within the limits is returned unchanged. A single character is a part whatever ``count_tokens``
    says. Raises InvalidInput when a limit is below 1.
    """
    if max_chars < 1 or (max_tokens is not None and max_tokens < 1):
        raise InvalidInput("A text cannot be split into parts of less than one character or token; raise the limit.")

    def excess(part: str) -> float:
        """Return the tokens of a part divided by the limit: above 1 the part is too long."""
        return count_tokens(part) / max_tokens if count_tokens is not None and max_tokens is not None else 0.0

    if len(text) <= max_chars and excess(text) <= 1:
        return [text]
    parts: list[str] = []
    start = 0
    limit = max_chars
    while start < len(text):
        end = _cut(text, start, limit)
        part = text[start:end].strip()
        over = excess(part)
        if over > 1 and end - start > 1:
            limit = max(1, min(end - start - 1, int((end - start) * 0.95 / over)))
            continue
        if part:
            parts.append(part)
        start, limit = end, max_chars
    return parts or [text]


_TITLE_CHARS = 500
"""The most characters of a title put before each part's text for the embedder, so that room is left for the text."""

_MOST_NAMES, _LONGEST_NAME = 50, 200
"""The most other names of a memory that are read; a longer string is not a name."""

_SHORTEST = 15
"""An opening interjection is removed only when at least this much text is left to embed."""

_INTERJECTION = (
    "hey|hi|hello|wow|oh|thanks(?: so much| a lot)?|thank you|yeah|yep|yes|sure|great|awesome|cool|nice|ok|okay|well"
    "|absolutely|definitely|totally|congrats|congratulations|haha|aww?|no (?:way|problem|worries)|sounds good|good"
    "|amazing|whoa|right|exactly|of course|glad to hear|agreed|indeed|true|yay|ah|hmm"
)

_OPENING = re.compile(rf"^\s*(?i:{_INTERJECTION})\b(?:,?\s+[A-Z]\w+)?\s*[,!.?]+\s*")

_CALLED = re.compile(r",\s*[A-Z]\w+(?=\s*[!?])")


def other_names(metadata: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the other names of a memory's subject: the strings in metadata "aliases", each once."""
    aliases = metadata.get("aliases")
    if aliases is None:  # as almost always, and a writer asks many times
        return ()
    names = [aliases] if isinstance(aliases, str) else aliases if isinstance(aliases, list) else []
    return tuple(
        dict.fromkeys(name for name in names if isinstance(name, str) and name.strip() and len(name) <= _LONGEST_NAME)
    )[:_MOST_NAMES]


def searched_text(text: str, tags: Sequence[str]) -> str:
    """Return the text followed by its tags, as the lexical leg and the extractor read it."""
    return f"{text} [{', '.join(tags)}]" if tags else text


def encoded_text(title: str | None, text: str, author: str | None, tags: Sequence[str]) -> str:
    """Return the text that the embedder is given: "title. text [tags]".

    From a turn with an author, one opening interjection and the name addressed are removed ("Hey Mel! …", "…,
    Caroline?"), because the vector should say what the turn is about, not whom it addresses.
    """
    if author is not None:
        called = _CALLED.sub("", text)
        rest = _OPENING.sub("", called, count=1)
        text = rest if len(rest) >= _SHORTEST else called
    text = searched_text(text, tags)
    return f"{title[:_TITLE_CHARS]}. {text}" if title else text


def embedded_text(memory: Memory) -> str:
    """Return the text of a memory, or of a part of one, that the embedder is given."""
    names = (*memory.tags, *other_names(memory.metadata))
    return encoded_text(memory.title, memory.text, memory.author, names)


def read_text(memory: Memory) -> str:
    """Return the text that the extractor reads of a memory: its text, its tags and its other names."""
    return searched_text(memory.text, (*memory.tags, *other_names(memory.metadata)))


def passages(
    candidates: Collection[CandidateMetadata],
    rows: Mapping[int, Memory],
    wholes: Mapping[tuple[str, str], tuple[Memory, Sequence[int]]],
) -> dict[int, tuple[Memory, Passage]]:
    """Return, by row id, the whole memory and the passage indexed under the row id; heads without a row are left out.

    ``rows`` are the indexed memories by row id, ``wholes`` the split ones by (namespace, id) with the lengths of their
    parts.
    """
    passage_by_row_id: dict[int, tuple[Memory, Passage]] = {}
    for candidate in candidates:
        row = rows.get(candidate.row_id)
        if row is None:
            continue
        if not candidate.part:
            passage_by_row_id[candidate.row_id] = row, Passage(row.text, 0, len(row.text))
        elif (candidate.namespace, candidate.id) in wholes:
            whole, lengths = wholes[candidate.namespace, candidate.id]
            passage = passage_of(whole.text, row.text, candidate.part, lengths)
            if passage is not None:
                passage_by_row_id[candidate.row_id] = whole, passage
    return passage_by_row_id


def passage_of(whole: str, part: str, number: int, lengths: Sequence[int]) -> Passage | None:
    """Return the passage of part ``number`` (from 1) in the text ``whole``; None where ``whole`` has no such part now.

    ``lengths`` are those of all parts, in characters. ``split`` cuts a text into consecutive pieces and strips white
    space from their ends, so the lengths alone determine where each piece begins.
    """
    start = _after_space(whole, 0)
    for length in lengths[: number - 1]:
        start = _after_space(whole, start + length)
    if not whole.startswith(part, start):  # the text was changed between two reads of the store
        start = whole.find(part)
    return Passage(part, start, start + len(part)) if start >= 0 else None


def _after_space(text: str, start: int) -> int:
    match = _ANY_SPACE.match(text, start)
    return match.end() if match else start
