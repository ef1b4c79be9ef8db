"""Words and patterns for splitting a sentence: values, frames, negations, words of change.

Tables only; ``claims`` uses them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

__all__ = [
    "CUE",
    "EMPTY",
    "FIRST",
    "INSTEAD",
    "MAY_HOLD_VALUE",
    "NAMED",
    "NOT",
    "NUMBERED",
    "NUMBERS",
    "PAST",
    "PLACE",
    "SAME",
    "SINGLE",
    "VALUE",
    "VERBS",
    "WORD",
]

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
VALUE = re.compile(
    rf"(?<![A-Za-z])(?:(?P<address>{_ADDRESS})"
    rf"|(?P<date>\b\d{{4}}-\d\d-\d\d\b|\b\d{{1,2}}(?:st|nd|rd|th)?(?: of)? (?:{_MONTH})\b(?: \d{{4}})?"
    rf"|\b(?:{_MONTH}) \d{{1,2}}(?:st|nd|rd|th)?\b(?:,? \d{{4}})?)"
    r"|(?P<time>\b\d{1,2}:\d\d\b(?:\s?[ap]\.?m\.?)?|\b\d{1,2}\s?[ap]\.?m\b\.?"
    rf"|\b(?:at|by|until|from) (?:{_HOUR})\b(?! \w+s\b))"
    r"|(?P<version>\bv?\d+\.\d+(?:\.\d+)+\b|\bv\d+(?:\.\d+)*\b|(?<=[A-Za-z] )\d+\.\d+\b)"
    r"|(?P<number>[$€£]?(?<![\w#-])\d(?:[\d,]*\d)?(?:[.-]\d+)*%?)"
    rf"|(?<=is )(?P<state>(?:now |currently )?(?:{_STATE}))(?=[.;,]| now|$)"
    rf"|(?P<day>\b(?:{_DAYS.replace(' ', '|')})s?\b)"
    rf"|(?P<colour>\b(?:{_COLOURS.replace(' ', '|')})\b))",
    re.IGNORECASE,
)
MAY_HOLD_VALUE = re.compile(
    r"[\d/@]|\.[a-z]|\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b|\b(?:at|by|until|from) (?:[ofst]|noon|ni|midn|el)"
    rf"|is (?:now |currently )?(?:{_STATE})\b|\b(?:{_COLOURS.replace(' ', '|')})\b",
    re.IGNORECASE,
)
"""A quick test: where this matches nothing, the sentence has no value."""
WORD = re.compile(r"[^\W_]+(?:['’.-][^\W_]+)*")
_COUNTED = (
    "zero one two three four five six seven eight nine ten "
    "eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty"
)
NUMBERS = {word: str(number) for number, word in enumerate(_COUNTED.split())} | {
    "thirty": "30",
    "forty": "40",
    "fifty": "50",
    "sixty": "60",
    "ninety": "90",
    "hundred": "100",
    "twice": "2",
}

SAME: Mapping[str, str] = {
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
"""Words with the same meaning for a subject, by the word that stands for them."""

_EMPTY_WORDS = """
    a an the this that these those it its he she they them his her their our my your i me we us you is are
    was were be been being am do does did done will would can could may might shall should must to of in on
    at by for from with into onto over under as and or but so then than there here now still currently today
    yesterday lately recently just about only also too very again already since s t who which what when where
    new old former previous next both all every each any some per up down out off got get gets goes go went
    one's own make makes made way time day week month year instead longer more anymore not no never without
    isn aren wasn weren don doesn didn won can't cannot because while during after before until if time's
"""
EMPTY = frozenset(_EMPTY_WORDS.split())
"""Words that say nothing about subject or attribute."""

CUE = re.compile(
    r"\b(?:now|no longer|any ?more|instead|nowadays|these days|from (?:today|now|tomorrow|monday|next)|as of|"
    r"since (?:today|\w+day)|renamed|replac\w+|switch\w*|moved|mov(?:es|ing)|migrat\w+|upgrad\w+|"
    r"downgrad\w+|rais\w+|lower\w+|reduc\w+|increas\w+|chang\w+|pushed|postponed|brought forward|pulled|"
    r"rescheduled|shifted|swapped|dropped|quit|stopped|gave up|left|became|turned|took over|takes over|"
    r"handed|used to|formerly|previously|update[ds]?|correct\w+|actually|extended|shortened|bumped|cut|"
    r"retired|deprecated|cancell?ed|broke up|divorced|sold|promoted|transferred|again)\b",
    re.IGNORECASE,
)
"""Words with which people say that something has changed."""

NOT = re.compile(
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
INSTEAD = (
    ("instead of", _IN_PLACE_OF),
    ("in place of", _IN_PLACE_OF),
    ("rather than", _IN_PLACE_OF),
    ("replace", _REPLACES),
    ("replaced", _REPLACED_WITH),
    ("replaced", _WAS_REPLACED),
    (" from ", _FROM_TO),
    ("rename", _RENAMES),
    ("renamed", _WAS_RENAMED),
)
"""Patterns for what replaces what, each with letters that must occur, in lower case, for it to match."""
NUMBERED = re.compile(
    r"\b(?!(?:at|in|to|of|for|is|are|the|a|by|from|with|until|has|have|had|costs)\b)[A-Za-z]+ \Z", re.IGNORECASE
)
NAMED = re.compile(r" (?:no|is|are|was|were|has|have|had|does|seats|holds|costs|needs|takes|runs|starts|opens|of)\b")
PLACE = re.compile(
    r"\b(?:underneath|under|below|behind|beneath|in|on|at|for|as|within|across|during|because|since|so)\b"
)
FIRST = frozenset(("i", "me", "my", "mine", "myself", "i'm", "i've", "i'd", "i'll", "im", "ive"))

_VERBS_WORDS = """
    is are was were has have had am be will does do did can must may should lives live works work uses use
    runs costs cost starts start begins ends closes opens leaves sails departs meets moved moves replaced
    switched renamed listens needs takes took likes loves prefers eats drinks drives owns holds keeps stores
    lies hangs sits pays earns expires allows accepts leads manages maintains reports reported named called
    joined became turned relocated resides ships sends carries answers serves speaks plays studies teaches
    wears weighs measures contains lasts married raised lowered upgraded migrated pushed postponed
    rescheduled reads writes talks connects
"""
VERBS = frozenset(_VERBS_WORDS.split())
_PAST_WORDS = """
    was were ran met went bought ate saw had did took paid won gave wrote spent slept drove flew came said
    told sent found fell held made cost weighed visited watched played called fixed walked cooked scored
    finished
"""
PAST = frozenset(_PAST_WORDS.split())
SINGLE = frozenset({"reside", "employ", "lead", "wed", "named"})
