"""Whether a text says that something changed which another had said: one subject and attribute, another value. Pure.

No model reads the texts. A sentence is taken apart into its values (numbers, times, dates, versions, names, addresses),
the words of its frame (what is left, as stems; verbs that say the same of a subject count as one) and its polarity. Two
sentences contradict each other when their frames are the same and their values, of one kind, are not; when one of them
denies what the other says; or when the newer one says itself what it replaces ("X instead of Y", "from Y to X").
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from semmem.text.passages import sentences
from semmem.text.tokens import fold, stem

__all__ = ["Change", "Claim", "change", "claims"]

Kind = Literal["number", "time", "day", "date", "version", "address", "colour", "state"]

ENOUGH = 0.67
"""How much of the smaller frame both must share; see ADR 0035 for the pairs that chose it."""
ENOUGH_WITH_CUE = 0.5
"""The same where the newer sentence says itself that something changed."""

_DAYS = "monday tuesday wednesday thursday friday saturday sunday"
_MONTHS = "january february march april may june july august september october november december"
_COLOURS = "red green blue yellow black white grey gray orange purple pink brown silver gold"
_MONTH = "|".join(name if name == "may" else f"{name[:3]}(?:{name[3:]})?" for name in _MONTHS.split())

_ADDRESS = (
    r"https?://\S+|[\w.+-]+@[\w-]+\.[\w.]+|(?<![\w.])(?:~|\.{0,2})/[\w./-]+"
    r"|\b[\w-]+(?:\.[\w-]+)*\.(?:toml|json|ya?ml|py|md|env|internal|com|org|io|net)\b"
)
_HOUR = "one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|noon|midnight"
_STATE = "on|off|enabled|disabled|active|inactive|open|closed|public|private|optional|required|free|read-only|up|down"
_VALUE = re.compile(
    rf"(?P<address>{_ADDRESS})"
    rf"|(?P<date>\b\d{{4}}-\d\d-\d\d\b|\b\d{{1,2}}(?:st|nd|rd|th)?(?: of)? (?:{_MONTH})\b(?: \d{{4}})?"
    rf"|\b(?:{_MONTH}) \d{{1,2}}(?:st|nd|rd|th)?\b(?:,? \d{{4}})?)"
    r"|(?P<time>\b\d{1,2}:\d\d\b(?:\s?[ap]\.?m\.?)?|\b\d{1,2}\s?[ap]\.?m\b\.?"
    rf"|\b(?:at|by|until|from) (?:{_HOUR})\b(?! \w+s\b))"
    r"|(?P<version>\bv?\d+\.\d+(?:\.\d+)+\b|\bv\d+(?:\.\d+)*\b|(?<=[A-Za-z] )\d+\.\d+\b)"
    r"|(?P<number>[$€£]?(?<![\w#-])\d(?:[\d,]*\d)?(?:[.-]\d+)*%?)"
    rf"|(?<=is )(?P<state>(?:now |currently )?(?:{_STATE}))(?=[.;,]| now|$)"
    rf"|(?P<day>\b(?:{_DAYS.replace(' ', '|')})s?\b)"
    rf"|(?P<colour>\b(?:{_COLOURS.replace(' ', '|')})\b)",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W_]+(?:['’.-][^\W_]+)*")
_COUNTED = (
    "zero one two three four five six seven eight nine ten "
    "eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty"
)
_NUMBERS = {word: str(number) for number, word in enumerate(_COUNTED.split())} | {
    "thirty": "30",
    "forty": "40",
    "fifty": "50",
    "sixty": "60",
    "ninety": "90",
    "hundred": "100",
    "twice": "2",
}

_SAME: Mapping[str, str] = {
    word: name
    for name, words in {
        "reside": "live lives living lived move moves moved moving relocate relocated reside resides settled settle "
        "home based flat apartment",
        "employ": "work works working worked job employed employer joined join joins hired",
        "use": "use uses used using run runs running ran relies rely stick",
        "like": "like likes liked love loves loved enjoy enjoys prefer prefers preferred favourite favorite favours",
        "eat": "eat eats ate eating drink drinks drank drinking",
        "own": "own owns owned have has had keeps drive drives drove",
        "named": "name named called calls renamed name's known titled",
        "lead": "lead leads led leading leader head heads manage manages managed manager owner responsible "
        "charge maintainer maintains maintained",
        "depart": "leave leaves left depart departs departed departure sail sails sailing",
        "start": "start starts started begin begins began opens open starting kicks",
        "end": "end ends ended close closes closed finish finishes until shut due deadline",
        "happen": "meet meets met meeting held takes place scheduled planned happen happens set",
        "price": "cost costs price priced charge charges fee pay pays paid salary rent earns",
        "wed": "married marry engaged wife husband spouse partner",
        "hold": "hold holds store stores stored keep kept lies lie hangs hang sits sit located location put",
        "most": "limit limited maximum max most cap allowed allows accepts",
        "least": "minimum min least oldest",
        "retain": "retention retained lifetime expires expire ttl",
        "study": "study studies studied studying student majoring major",
    }.items()
    for word in words.split()
}  # fmt: skip
"""Words that say the same of a subject, by the one that stands for them."""

_EMPTY_WORDS = """
    a an the this that these those it its he she they them his her their our my your i me we us you is are
    was were be been being am do does did done will would can could may might shall should must to of in on
    at by for from with into onto over under as and or but so then than there here now still currently today
    yesterday lately recently just about only also too very again already since s t who which what when where
    new old former previous next both all every each any some per up down out off got get gets goes go went
    one's own make makes made way time day week month year instead longer more anymore not no never without
    isn aren wasn weren don doesn didn won can't cannot because while during after before until if time's
"""
_EMPTY = frozenset(_EMPTY_WORDS.split())
"""Words that say nothing of the subject or the attribute."""

_CUE = re.compile(
    r"\b(?:now|no longer|any ?more|instead|nowadays|these days|from (?:today|now|tomorrow|monday|next)|as of|"
    r"since (?:today|\w+day)|renamed|replac\w+|switch\w*|moved|mov(?:es|ing)|migrat\w+|upgrad\w+|"
    r"downgrad\w+|rais\w+|lower\w+|reduc\w+|increas\w+|chang\w+|pushed|postponed|brought forward|pulled|"
    r"rescheduled|shifted|swapped|dropped|quit|stopped|gave up|left|became|turned|took over|takes over|"
    r"handed|used to|formerly|previously|update[ds]?|correct\w+|actually|extended|shortened|bumped|cut|"
    r"retired|deprecated|cancell?ed|broke up|divorced|sold|promoted|transferred|again)\b",
    re.IGNORECASE,
)
"""Words with which people say that something is not as it was."""

_NOT = re.compile(
    r"\b(?:no longer|not|never|n['’]t|stopped|quit|gave up|give up|without|neither|none|cancell?ed|"
    r"switched off|turned off|disabled|removed|dropped|retired|sold|cannot|no more|doesn['’]?t|don['’]?t|"
    r"isn['’]?t|wasn['’]?t|won['’]?t|aren['’]?t|can['’]?t|didn['’]?t|hasn['’]?t|haven['’]?t|any ?more|"
    r"broke up|divorced|used to)\b",
    re.IGNORECASE,
)
_IN_PLACE_OF = re.compile(r"(?P<new>[^,;.]+?) (?:instead of|rather than|in place of) (?P<old>[^,;.]+)", re.IGNORECASE)
_REPLACES = re.compile(r"(?P<new>[^,;.]+?) (?:has |have )?replace[sd]? (?P<old>[^,;.]+)", re.IGNORECASE)
_REPLACED_WITH = re.compile(r"replaced (?P<old>[^,;.]+?) (?:with|by) (?P<new>[^,;.]+)", re.IGNORECASE)
_WAS_REPLACED = re.compile(
    r"(?P<old>[^,;.]+?) (?:was|has been|is|were|got) replaced (?:with|by) (?P<new>[^,;.]+)", re.IGNORECASE
)
_FROM_TO = re.compile(
    r"\b(?:switch|mov|migrat|chang|went|renam|upgrad|shift|swap|rais|lower|reduc|increas)\w*\b[^,;.]*? "
    r"from (?P<old>[^,;.]+?) to (?P<new>[^,;]+)",
    re.IGNORECASE,
)
_RENAMES = re.compile(r"\brenamed? (?P<old>[^,;.]+?) (?:to|as|into) (?P<new>[^,;.]+)", re.IGNORECASE)
_WAS_RENAMED = re.compile(
    r"(?P<old>[^,;.]+?) (?:was|is|has been|got) (?:now )?renamed (?:to |as )?(?P<new>[^,;.]+)", re.IGNORECASE
)
_INSTEAD = (_IN_PLACE_OF, _REPLACES, _REPLACED_WITH, _WAS_REPLACED, _FROM_TO, _RENAMES, _WAS_RENAMED)
_NUMBERED = re.compile(
    r"\b(?!(?:at|in|to|of|for|is|are|the|a|by|from|with|until|has|have|had|costs)\b)[A-Za-z]+ \Z", re.IGNORECASE
)
_NAMED = re.compile(r" (?:no|is|are|was|were|has|have|had|does|seats|holds|costs|needs|takes|runs|starts|opens|of)\b")
_PLACE = re.compile(
    r"\b(?:underneath|under|below|behind|beneath|in|on|at|for|as|within|across|during|because|since|so)\b"
)
_FIRST = frozenset(("i", "me", "my", "mine", "myself", "i'm", "i've", "i'd", "i'll", "im", "ive"))


class Value(NamedTuple):
    """A value in a sentence: its kind, how it is written, and what is compared."""

    kind: Kind
    written: str
    key: str


@dataclass(frozen=True, slots=True)
class Claim:
    """One sentence, taken apart.

    ``values`` by kind; ``frame`` the stems that say what of whom, ``subject`` those of them before the verb; ``names``
    the words that begin with a capital within the sentence, which may be subject or value; whether it ``denies``, says
    itself that something changed (``cue``), or tells what happened once (``past``).
    """

    sentence: str
    values: Mapping[str, tuple[Value, ...]]
    frame: frozenset[str]
    names: frozenset[str]
    denies: bool
    cue: bool

    subject: frozenset[str] = frozenset()
    past: bool = False


class Change(NamedTuple):
    """What changed: the two sentences, the old and the new value, and which of the rules said so."""

    older: str
    newer: str
    old: str
    new: str
    rule: Literal["value", "name", "denial", "replacement"]


_VERBS_WORDS = """
    is are was were has have had am be will does do did can must may should lives live works work uses use
    runs costs cost starts start begins ends closes opens leaves sails departs meets moved moves replaced
    switched renamed listens needs takes took likes loves prefers eats drinks drives owns holds keeps stores
    lies hangs sits pays earns expires allows accepts leads manages maintains reports reported named called
    joined became turned relocated resides ships sends carries answers serves speaks plays studies teaches
    wears weighs measures contains lasts married raised lowered upgraded migrated pushed postponed
    rescheduled reads writes talks connects
"""
_VERBS = frozenset(_VERBS_WORDS.split())
_PAST_WORDS = """
    was were ran met went bought ate saw had did took paid won gave wrote spent slept drove flew came said
    told sent found fell held made cost weighed visited watched played called fixed walked cooked scored
    finished
"""
_PAST = frozenset(_PAST_WORDS.split())
_SINGLE = frozenset({"reside", "employ", "lead", "wed", "named"})
"""Attributes of which a subject has one at a time."""
_MOST_SENTENCES = 12
_LONGEST_TEXT = 5_000
_LONGEST_SENTENCE = 400


def claims(text: str, *, author: str | None = None) -> list[Claim]:
    """Take the first dozen sentences of ``text`` apart, but for those of over 400 characters; "I" is ``author``."""
    first = sentences(text[:_LONGEST_TEXT])[:_MOST_SENTENCES]
    return [_claim(sentence, author) for sentence in first if len(sentence) <= _LONGEST_SENTENCE]


def change(
    older: str, newer: str, *, older_author: str | None = None, newer_author: str | None = None
) -> Change | None:
    """Return what ``newer`` says to have changed that ``older`` had said, None where both can be true.

    ``older_author`` and ``newer_author`` are who "I" is in each.
    """
    return change_between(claims(older, author=older_author), claims(newer, author=newer_author))


def change_between(older: Iterable[Claim], newer: Iterable[Claim]) -> Change | None:
    """Return the first change between two texts that were taken apart."""
    before = list(older)
    for after in newer:
        for one in before:
            if (found := _changed(one, after)) is not None:
                return found
    return None


def _claim(sentence: str, author: str | None) -> Claim:
    values: dict[str, tuple[Value, ...]] = {}
    rest = sentence
    for match in _VALUE.finditer(sentence):
        kind: Kind = match.lastgroup  # type: ignore[assignment]  # every alternative has a name
        if kind == "number" and _NUMBERED.search(sentence, 0, match.start()) and _NAMED.match(sentence, match.end()):
            continue  # "Room 12 has": the number belongs to the name of the subject
        values[kind] = (*values.get(kind, ()), Value(kind, match.group().strip(), _key(kind, match.group())))
        rest = rest[: match.start()] + " " * (match.end() - match.start()) + rest[match.end() :]
    frame: set[str] = set()
    subject: set[str] = set()
    names: set[str] = set()
    past = present = verb = False
    for place, match in enumerate(_WORD.finditer(rest)):
        written = match.group().replace("’", "'")
        word = fold(written).removesuffix("'s")
        if word in _FIRST:
            frame.add(fold(author) if author else "i")
            if not verb:
                subject.add(fold(author) if author else "i")
            continue
        if word in _NUMBERS:
            values["number"] = (*values.get("number", ()), Value("number", written, _NUMBERS[word]))
            continue
        present = present or word in ("is", "are", "am", "has", "have")
        past = past or word in _PAST or (word.endswith("ed") and word not in _SAME)
        named = place > 0 and written[:1].isupper() and word not in _EMPTY
        meaning = None if named else _SAME.get(word)
        if word in _VERBS:
            verb = True
        if named:
            names.add(word)
        if meaning is None and (word in _EMPTY or _CUE.fullmatch(word)):
            continue
        said = meaning or (word if named else stem(word))
        frame.add(said)
        if not verb and meaning is None:
            subject.add(said)
    return Claim(
        sentence, values, frozenset(frame), frozenset(names), _denies(sentence), bool(_CUE.search(sentence)),
        frozenset(subject), past and not present,
    )  # fmt: skip


def _key(kind: Kind, written: str) -> str:
    text = " ".join(written.lower().split()).rstrip(".")
    if kind == "number":
        return text.replace(",", "").strip("$€£")
    if kind == "day":
        return text.removesuffix("s")
    if kind == "time":
        return re.sub(r"[\s.]|^(?:at|by|until|from)", "", text)
    if kind == "version":
        return text.removeprefix("v")
    if kind == "date" and not text[:4].isdigit():
        day = re.search(r"\d{1,2}", text)
        month = re.search(r"[a-z]{3,}", re.sub(r"\b(?:of|st|nd|rd|th)\b|(?<=\d)(?:st|nd|rd|th)", "", text))
        return f"{month.group()[:3] if month else ''}{day.group() if day else ''}"
    return text


def _denies(sentence: str) -> bool:
    return bool(_NOT.search(sentence))


def _changed(older: Claim, newer: Claim) -> Change | None:
    if older.sentence == newer.sentence:
        return None
    replaced = _replaced(older, newer)
    if replaced is not None:
        return Change(older.sentence, newer.sentence, *replaced, "replacement")
    if not _one_subject(older, newer):
        leaders = None if older.denies or newer.denies else _leaders(older, newer)
        return None if leaders is None else Change(older.sentence, newer.sentence, *leaders, "name")
    differing = [
        (values, newer.values[kind])
        for kind, values in older.values.items()
        if kind in newer.values and {v.key for v in values}.isdisjoint(v.key for v in newer.values[kind])
    ]
    shared_names = older.names & newer.frame | newer.names & older.frame
    old_names, new_names = older.names - newer.frame, newer.names - older.frame
    frames = older.frame - old_names, newer.frame - new_names
    common = frames[0] & frames[1]
    if not common or (len(common) == 1 and max(map(len, frames)) > 2):
        return None
    share = _share(*frames)
    enough = ENOUGH_WITH_CUE if newer.cue else ENOUGH
    tells = newer.cue or not (newer.past or older.past)
    if (
        differing
        and share >= enough
        and tells
        and (newer.cue or (len(differing) == 1 and not (old_names and new_names)))
    ):
        old, new = differing[0]
        return Change(older.sentence, newer.sentence, old[0].written, new[0].written, "value")
    both_named = bool(old_names and new_names)
    says_which = bool(common - {"use", "own", "hold"} or shared_names)
    single = newer.cue or bool(common & _SINGLE and tells)
    if both_named and not older.denies and share >= enough and single and says_which:
        return Change(older.sentence, newer.sentence, _listed(old_names), _listed(new_names), "name")
    whole = len(common) >= 2 and len(common) == min(map(len, frames))
    if older.denies != newer.denies and not differing and whole and not both_named:
        return Change(older.sentence, newer.sentence, older.sentence, newer.sentence, "denial")
    return None


def _leaders(older: Claim, newer: Claim) -> tuple[str, str] | None:
    """Return (old, new) where both sentences say who has one office, and not the same one."""
    rest = older.frame - older.subject, newer.frame - newer.subject
    if "lead" in rest[0] & rest[1] and _share(*rest) == 1 and older.subject.isdisjoint(newer.subject) and newer.subject:
        return _listed(older.subject), _listed(newer.subject)
    return None


def _replaced(older: Claim, newer: Claim) -> tuple[str, str] | None:
    """Return (old, new) where the newer sentence says what replaces what, and the older one speaks of the old."""
    if older.denies:
        return None
    for pattern in _INSTEAD:
        match = pattern.search(newer.sentence)
        if match is None:
            continue
        gone = _claim(_PLACE.split(match["old"])[0], None)
        keys = {value.key for values in gone.values.values() for value in values}
        told = {value.key for values in older.values.values() for value in values}
        if not (keys or gone.frame) or not keys <= told:
            continue
        whole = {stem(fold(word)) for word in _WORD.findall(older.sentence)} | older.frame
        words = {_SAME.get(word, word) for word in gone.frame}
        if words and not (words <= whole or {stem(word) for word in words} <= whole):
            continue
        context = newer.frame - gone.frame
        if context & (older.frame - gone.frame) or not older.frame - gone.frame - set(_SAME.values()):
            return match["old"].strip(), match["new"].strip()
    return None


def _one_subject(older: Claim, newer: Claim) -> bool:
    """Return whether both sentences can speak of one subject: what stands before one verb is in the other sentence."""
    if not older.subject or not newer.subject:
        return bool(older.frame & newer.frame)
    return older.subject <= newer.frame or newer.subject <= older.frame


def _share(one: frozenset[str], other: frozenset[str]) -> float:
    smaller = min(len(one), len(other))
    return len(one & other) / smaller if smaller else 0.0


def _listed(words: Iterable[str]) -> str:
    return " ".join(sorted(words))
