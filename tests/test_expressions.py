"""Every regular expression over foreign text takes time in proportion to it, whatever the text is.

Each expression of the package stands here with the function that uses it and with texts made to be slow for it: a
beginning, what is repeated up to 100,000 characters, an end. A new expression has to be added, or named as one that
reads nothing but our own text.
"""

from __future__ import annotations

import ast
import gc
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import semmem
from semmem import importers
from semmem.client import file_import
from semmem.client.probe import prober
from semmem.concepts import aliases, claims, likeness, names
from semmem.extractors import llm
from semmem.importers import (
    chatgpt,
    client_blocks,
    csv,
    documents,
    git,
    locomo,
    markdown,
    mcp_memory,
    note,
    turn_content,
    turn_points,
)
from semmem.importers import note as note_text
from semmem.interfaces.cli.commands import import_export
from semmem.interfaces.cli.demo import data
from semmem.interfaces.http import app, keys
from semmem.model import errors, filters, pictures
from semmem.text import control_characters, passages, tokens
from semmem.text import passages as searched
from semmem.text import passages as text
from semmem.text.languages import LANGUAGES
from semmem.text.periods import periods_of
from semmem.text.talk import talk
from semmem.write import screening as secrets

CHARACTERS = 100_000
Shape = tuple[str, str, str]

OURS = {
    'semmem.text.periods: "[a-z\'-]{4,}"': "our own table of words",
    "semmem.interfaces.cli.app: 'No such option: -[\\\\d.]'": "a message of the library that reads the options",
    "semmem.interfaces.cli.app: \"No such command '([\\\\w-]+)'\"": "a message of the library that reads the options",
    "semmem.interfaces.cli.app._NOT_WHOLE": "a message of the library that reads the options",
    "semmem.interfaces.cli.app._NO_NUMBER": "a message of the library that reads the options",
    "semmem.interfaces.cli.app._PHRASES": "a message of the library that reads the options",
    "semmem.read.graph_files._SCRIPT": "our own page",
    "semmem.read.graph_files._STYLE": "our own page",
    "semmem.read.graph_files: '@policy@|@title@|@data@'": "our own page",
    "semmem.interfaces.http.keys._NAME": "an option of the command line",
    "semmem.interfaces.coding_agents.json_text": "a client's own file of settings",
    "semmem.interfaces.langgraph.items._NO_KEY": "a key that a program gives, read once",
    "semmem.model.process.project": "the files of git of a folder that the client works in",
    "semmem.importers.csv._SEPARATED": "an option of the command line",
    "semmem.concepts.claims: '[a-z]{3,}'": "a date that another expression has found",
    "semmem.concepts.claims: '\\\\b(?:of|st|nd|rd|th)\\\\b|(?<=\\\\d)(?:st|nd|rd|th)'": "a date that was found",
    "semmem.concepts.claims: '[\\\\s.]|^(?:at|by|until|from)'": "a time that another expression has found",
    "semmem.concepts.claims: '\\\\d{1,2}'": "a date that another expression has found",
    "semmem.client.backup_series": "names of files, and the sentence of an error",
    "semmem.config": "a file of settings",
    "semmem.files._PART": "names of files",
    "semmem.stores.embedded.data_directory": "paths and the log of our own server",
    "semmem.stores.postgres.errors": "the server's messages and the URL of one's own store",
    "semmem.stores.sql_files": "our own SQL",
    "semmem.stores.resident.saved._NAME": "names of files",
    "semmem.stores.__init__": "the URL of one's own store",
}
"""Expressions, or modules of them, that read no text of others, and what they read."""


def read_front_matter(raw: str) -> Any:
    try:
        return note.read(raw[:4_000])
    except note.BadFrontMatter as error:
        return error


def cut(whole: str) -> list[str]:
    return text.split(whole)


def subjects(whole: str) -> Any:
    return names.subject_aliases(whole, whole)


def link(whole: str) -> str:
    return note_text.linked(whole, lambda target, shown: shown or target)


def encoded(whole: str) -> str:
    return searched.encoded_text(None, whole, "Ada", ())


def conversational(whole: str) -> Any:
    rules = [found for language in LANGUAGES if (found := talk(language)) is not None]
    return [(one.months(whole), one.collects(whole), one.as_said(whole, ())) for one in rules]


def sections(whole: str) -> list[tuple[str, str]]:
    return list(data.sections(whole, "name"))


def seconds(cell: str) -> Any:
    return importers._SECONDS.match(cell)


def asked(whole: str) -> Any:
    return turn_content.is_bare_question(whole), turn_content.is_answer(whole), turn_content.is_acknowledgement(whole)


def decided(whole: str) -> Any:
    return turn_points.decisions_in(whole, "user"), turn_points.open_points_in(whole), turn_points.corrects(whole)


def in_periods(whole: str) -> Any:
    return periods_of(whole, datetime(2026, 11, 26))


def changed(whole: str) -> Any:
    return claims.change(f"It was replaced by 5. {whole}", f"It is now 6. {whole}")


CLAIMS: tuple[Shape, ...] = (
    ("", "a ", "to"), ("moved", " from a", ""), ("", "1.", "x"), ("", "a.a", "@"), ("", "a replaced ", ""),
    ("", "./", "!"),
    ("", "1 may", ""), ("was renamed", " ", "x"), ("", "no ", "longer"), ("A ", "a-", ""), ("", "1,", ""),
)  # fmt: skip


BLOCKS: tuple[Shape, ...] = (
    ("", "<system-reminder>", ""), ("x\n", "<system-reminder>\n", ""),
    ("x\n", "<system-reminder>\n", "</system-reminder>"),
    ("<command-args>", "a ", ""), ("", "<command-args>", ""), ("<system-reminder", " ", "x"),
    ("", "</system-reminder>", ""),
    ("<system-reminder>", "</system-reminder", ""), ("", "<system-reminder></system-reminder>", ""),
    ("<user_query>", "a\n", ""), ("", "<user_query>\n", ""), ("<user_query>", "</user_query> ", "x"), ("", "\n ", "<"),
)  # fmt: skip


POINTS: tuple[Shape, ...] = (
    ("", "```\n", ""), ("", " ~~~\n", "~~"), ("", " ", "```"), ("", "```\nwe decided. ", ""), ("", "we ", "decided"),
    ("", "not decided. ", ""), ("", "rule of a ", ":"), ("", "no todo in it. ", ""), ("", "we have now ", "agreed"),
)  # fmt: skip
TURNS: tuple[Shape, ...] = (
    ("", "a ", "?"), ("", "?", ""), ("", "a? ", ""), ("a.", "*", "x"), ("", "a\n", "?"), ("", "- a\n", ""),
    ("a?\n", "- a\n", ""),
    ("shall i ", "now ", "?"), ("", "a'", ""), ("", " ", "- "), ("", "shall i go on? ", ""),
)  # fmt: skip


SECRETS: tuple[Shape, ...] = (
    ("", "a1B", ""), ("eyJ", "a", "."), ("a://", "b", ":"), ("", "a://b:", "@"), ("-----BEGIN ", "A ", ""),
    ("", "sk-", ""),
    ("password", " ", "x"), ("", "password for ", ""), ("password is ", "a", "'"), ("", "eyJaaaaaaaa.", ""),
    ("", "-a1", ""), ("-----BEGIN PRIVATE KEY-----", "\na", " "), ("", "-----BEGIN PRIVATE KEY-----", ""),
    ("", "curl -u ", ""), ("", "curl -u a:", "'"), ("", "Bearer a", ""), ("", "--token ", ""), ("token=", "a.", "1"),
    ("", "token=a.", "1"), ("token='", "a", ""), ("", "tokenToken", ""), ("", "a_key-", ""),
)  # fmt: skip


FOREIGN: dict[str, tuple[Callable[[str], Any], tuple[Shape, ...]]] = {
    "semmem.interfaces.http.app._TAG": (app._TAG.fullmatch, (('"', "1", ""), ('"', "1", '"'))),
    "semmem.interfaces.http.app._TAGS": (app._TAGS.fullmatch, (('"', "1", ""), ('W/"', '"', ""), ("", "W/", '"'))),
    "semmem.interfaces.http.keys._TOKEN": (
        keys._TOKEN.fullmatch,
        (("semmem_", "a", ""), ("semmem_01234567_", "a", "!")),
    ),
    "semmem.text.talk: pattern": (
        conversational,
        (
            ("", "what has ", "to"),
            ("what xs ", "has", ""),
            ("what ", "as ", "x"),
            ("what", " ", "x"),
            ("how", " ", ""),
            ("", "may ", ""),
            ("may", " ", "x"),
            ("may", " of", " "),
            ("may 1", " ", "of"),
            ("", "may 1,", ""),
            ("", "welche e ", ""),
            ("welche ", "e", "!"),
            ("was ", "schon", ""),
            ("", "tanto ", ""),
            ("", "que has ", ""),
            ("", ". ", "que"),
            ("que ", "as ", ""),
            ("", "la a de ", ""),
            ("la ", "a", ""),
            ("", "quels ", ""),
            ("que ", "deja", ""),
            ("combien d", " ", "x"),
        ),
    ),
    **{
        f"semmem.text.periods: {name}": (
            in_periods,
            (
                ("", "march ", ""),
                ("last", " ", "week"),
                ("", "between may and ", ""),
                ("", "two weeks before ", "x"),
                ("", "1 ", ""),
            ),
        )
        for name in (
            """f'(?<![\\\\w.,:/-])(?:{regex(pattern)})(?![\\\\w/-])'""",
            "joined",
            """f"(?<!\\\\w)(?:{some})(?:\\\\s+|(?<='))(?:{article})$\"""",
            """f'\\\\d|(?<!\\\\w)(?:{_any_of(words)})(?!\\\\w)'""",
        )
    },
    "semmem.importers.chatgpt._CITATION": (
        partial(chatgpt._CITATION.sub, ""),
        (("", "\ue200", ""), ("\ue200", "a", ""), ("", "\ue200a\ue201", "")),
    ),
    "semmem.importers.documents._ESCAPED": (
        partial(documents._ESCAPED.sub, ""),
        (("", "\\\\", "_"), ("", "\\\\_", "")),
    ),
    "semmem.importers.git._DECISION": (
        git._DECISION.search,
        (("", "/adr", ""), ("", "/adr/", "x"), ("adr/", "a", "/"), ("adr/", ".md", "x"), ("", "/decisions/a", "")),
    ),
    "semmem.importers.git._TRAILER": (
        git._TRAILER.match,
        (("A", "-by", ""), ("A", "a-", ":"), ("Aa-A", "-", ":"), ("", "A-", "")),
    ),
    "semmem.importers.client_blocks._ARGUMENTS": (client_blocks.words_of, BLOCKS),
    "semmem.importers.client_blocks._NEXT": (client_blocks.words_of, BLOCKS),
    "semmem.importers.client_blocks._OPENING": (client_blocks.words_of, BLOCKS),
    "semmem.importers.client_blocks._WRAPPED": (client_blocks.words_of, BLOCKS),
    "semmem.importers.client_blocks._WRAPPED_END": (client_blocks.words_of, BLOCKS),
    "semmem.importers.client_blocks: f'<(/?){re.escape(name)}(?:\\\\s[^<>\\\\n]{{0,500}})?>'": (
        client_blocks.words_of,
        BLOCKS,
    ),
    "semmem.importers.turn_points._ANYBODY": (decided, POINTS),
    "semmem.importers.turn_points._CLOSES": (decided, POINTS),
    "semmem.importers.turn_points._CORRECTS": (decided, POINTS),
    "semmem.importers.turn_points._DOUBTS": (decided, POINTS),
    "semmem.importers.turn_points._FENCE": (decided, POINTS),
    "semmem.importers.turn_points._NOT_DECIDED": (decided, POINTS),
    "semmem.importers.turn_points._OPENS": (decided, POINTS),
    "semmem.importers.turn_points._USER": (decided, POINTS),
    "semmem.importers.turn_content._LEAVE": (asked, TURNS),
    "semmem.importers.turn_content._LIST": (asked, TURNS),
    "semmem.importers.turn_content._WORD": (asked, TURNS),
    "semmem.importers.turn_content._SENTENCE_END": (asked, TURNS),
    "semmem.concepts.claim_words.CUE": (changed, CLAIMS),
    "semmem.concepts.claim_words._FROM_TO": (changed, CLAIMS),
    "semmem.concepts.claim_words._IN_PLACE_OF": (changed, CLAIMS),
    "semmem.concepts.claim_words.MAY_HOLD_VALUE": (changed, CLAIMS),
    "semmem.concepts.claim_words.NAMED": (changed, CLAIMS),
    "semmem.concepts.claim_words.NOT": (changed, CLAIMS),
    "semmem.concepts.claim_words.NUMBERED": (changed, CLAIMS),
    "semmem.concepts.claim_words.PLACE": (changed, CLAIMS),
    "semmem.concepts.claim_words._RENAMES": (changed, CLAIMS),
    "semmem.concepts.claim_words._REPLACED_WITH": (changed, CLAIMS),
    "semmem.concepts.claim_words._REPLACES": (changed, CLAIMS),
    "semmem.concepts.claim_words.VALUE": (changed, CLAIMS),
    "semmem.concepts.claim_words._WAS_RENAMED": (changed, CLAIMS),
    "semmem.concepts.claim_words._WAS_REPLACED": (changed, CLAIMS),
    "semmem.concepts.claim_words.WORD": (changed, CLAIMS),
    "semmem.concepts.likeness._DIGIT": (likeness.outlines, CLAIMS),
    "semmem.write.screening._CALLED": (secrets.credentials, SECRETS),
    "semmem.write.screening._FORMATS": (secrets.credentials, SECRETS),
    "semmem.write.screening._EXPRESSION": (secrets.credentials, SECRETS),
    "semmem.write.screening._ISSUER": (secrets.redacted, SECRETS),
    "semmem.write.screening._KEYS": (secrets.redacted, SECRETS),
    "semmem.write.screening._OPTIONS": (secrets.redacted, SECRETS),
    "semmem.write.screening._KEY_END": (secrets.redacted, SECRETS),
    "semmem.write.screening._KEY_LINES": (secrets.redacted, SECRETS),
    "semmem.write.screening._PIECE": (secrets.credentials, SECRETS),
    "semmem.write.screening._PLACEHOLDER": (secrets.credentials, SECRETS),
    "semmem.write.screening._HEX": (secrets.credentials, SECRETS),
    "semmem.write.screening._RUN": (secrets.credentials, SECRETS),
    "semmem.write.screening._AFTER_WORD": (secrets.credentials, SECRETS),
    "semmem.write.screening._SIGN": (secrets.credentials, SECRETS),
    "semmem.write.screening._UUID": (secrets.credentials, SECRETS),
    "semmem.write.screening._PLAIN_KEY": (
        secrets._PLAIN_KEY.fullmatch,
        (("", "1", ""), ("", "1", "x"), ("", "value", ""), ("text", "s", "")),
    ),
    "semmem.write.screening._OF_DIGITS": (
        secrets._OF_DIGITS.search,
        (("", "pas", ""), ("", "pass", ""), ("", "pin", ""), ("", "_pi", "n"), ("", "xpin", "")),
    ),
    "semmem.concepts.aliases._BRACKETS": (
        aliases.acronyms,
        (("", "(", ""), ("", "(ab", ""), ("", "x (ABC) ", ""), ("", "Ab Bc (AB) ", ""), ("a", " ", "(AB)")),
    ),
    "semmem.concepts.aliases._ENDED": (aliases.acronyms, (("", "Ab. Bc (AB)", ""), ("a", ".", " (AB)"))),
    "semmem.concepts.aliases._SHORT": (aliases._is_short, (("A", "A", ""), ("A", "A.", "!"), ("A", "&", "A"))),
    "semmem.extractors.llm._FENCE": (
        llm._parsed_answer,
        (("```", "\n", ""), ("```", " ", ""), ("```\n", "`", "x"), ("```\n", "\n```", "x"), ("", "\n", "```")),
    ),
    "semmem.concepts.names._PARENTHESIS": (
        subjects,
        (("A", " ", "x"), ("", "(", ""), ("A", " (", ""), ("", "a  (b)", "")),
    ),
    "semmem.concepts.names._SENTENCE_END": (
        subjects,
        (("", "A. ", ""), ("A", ".", "A"), ("", "A A, ", ""), ("", "A-", "")),
    ),
    "semmem.interfaces.cli.demo.data._FENCE": (sections, (("", "`", ""), ("", "```\n", ""), ("", "~", ""))),
    "semmem.interfaces.cli.demo.data._HEADING": (
        sections,
        (
            ("# a", " ", "b"),
            ("#", " ", ""),
            ("# ", "#", "b"),
            ("", "# a\n", ""),
            ("# a", " #", "b"),
            ("#\t", "\t", "#"),
        ),
    ),
    "semmem.interfaces.cli.demo.data._MARKS": (data._bare, (("", "](", ""), ("", "[", ""), ("](", "](", ")"))),
    "semmem.interfaces.cli.commands.import_export._ID": (
        partial(import_export._ID.sub, ""),
        (("The id '", "a", ""), ("", "The id '", ""), ('The id "', "'", "")),
    ),
    "semmem.client.file_import._NUMBERED": (
        file_import._NUMBERED.match,
        (("Item 1 (id ", ")", ""), ("Item 1 (id ", "): ", ""), ("Item ", "1", "")),
    ),
    "semmem.text.control_characters._ESCAPED": (
        control_characters.as_json,
        (("", "\x1b", ""), ("", "\u202e", ""), ("", "a", "\x9f")),
    ),
    "semmem.text.control_characters._SHOWN": (
        control_characters.visible,
        (("", "\x1b", ""), ("", "\r", ""), ("", "\x1b]52;", "")),
    ),
    "semmem.model.pictures._NOT_IN_XML": (pictures.xml_text, (("", "\x00", ""), ("", "a", "\x00"))),
    "semmem.importers.note._FENCED": (
        note.split,
        (
            ("---", " ", "x"),
            ("---\n", "\n---", "x"),
            ("---\n", "\n", "---"),
            ("---\n", "\n--- ", ""),
            ("---\n---", " ", "x"),
        ),
    ),
    "semmem.importers.note._KEY": (
        note._is_prose,
        (("", "a", ""), ("", "a b c", ":"), ("", "a\n", ""), ("", "a: ", "x"), ("", "a b c: d\n", "")),
    ),
    "semmem.importers.note._SAYING": (
        note._is_prose,
        (
            ("a b c: d e", "f ", "\n"),
            ("a b c: d", " e", " "),
            ("a b c: d", " ", ""),
            ("a b c:", " ", "["),
            ("a b c: d e\n", "f g h: i j\n", "x"),
        ),
    ),
    "semmem.importers.note: f'(?:{form})\\\\Z'": (
        read_front_matter,
        (("a: ", "1", "x"), ("a: ", "1.", ""), ("", "a: 1e1\n", ""), ("", "- ~\n", ""), ("a: -", ".", "")),
    ),
    "semmem.importers.note: '[,\\\\s]+'": (
        note.tags,
        (("", " ", "x"), ("", ", ", ""), ("", "a,", "")),
    ),
    "semmem.importers.mcp_memory: '(?<=[a-z])(?=[A-Z])'": (
        mcp_memory._readable,
        (("", "aA", ""), ("", "a", "")),
    ),
    "semmem.importers.locomo._SESSION": (
        locomo._SESSION.fullmatch,
        (("session_", "1", "x"), ("", "session_1", "")),
    ),
    "semmem.importers.markdown._DAY": (markdown._DAY.match, (("", "2026-01-01", ""), ("", "2", ""))),
    "semmem.importers.note._FENCE": (
        link,
        (("", "`", "\n"), ("", "```\n", ""), ("", " ~~~~\n", ""), ("````", "\n```", ""), ("", "``` `\n", "")),
    ),
    "semmem.importers.note._HEADING": (
        note_text.heading,
        (
            ("# a", " ", "b"),
            ("#", " ", ""),
            ("", "# \n", ""),
            ("# a", "#", "b"),
            ("# a", " #", "b"),
            ("", " ", "#"),
            ("", "\n #", ""),
        ),
    ),
    "semmem.importers.note._NOTE": (
        link,
        (("[a](", ".md", ")"), ("[a](", ".md#", ""), ("[a](", "#.md", ")"), ("[a](", ".mdx", ")")),
    ),
    "semmem.importers.note._PLAIN": (
        link,
        (
            ("[a](", ".md#", ""),
            ("", "[a](b", ""),
            ("", "[](", ""),
            ("", "[", "](a.md)"),
            ("[](<", "a.md>", ""),
            ("", "![a](b.md#c", ""),
        ),
    ),
    "semmem.importers.note._TAG": (
        note_text.tags,
        (("", "#", ""), ("#", "a", ""), ("", " #a", ""), ("#", "/-", "")),
    ),
    "semmem.importers.note._TICKS": (
        link,
        (("", "`", "a"), ("", "` ", ""), ("", "` `` ``` ", ""), ("", "a`", "``")),
    ),
    "semmem.importers.note._WIKI": (
        link,
        (
            ("", "[[", ""),
            ("[[", "#", ""),
            ("", "[[a#b|c", ""),
            ("[[a|", "|", "]"),
            ("", "![[a", "]]"),
            ("[[", "a", "]"),
        ),
    ),
    "semmem.importers.note: '[\\\\dx]+'": (link, (("![[a|", "1", "]]"), ("![[a|", "x1", "y]]"))),
    "semmem.importers.__init__._SECONDS": (seconds, (("1", "1", ""), ("1234567890.", "1", "x"), ("", "-", ""))),
    "semmem.importers.csv: '[;,]'": (
        partial(csv._tags, "tags", separator=None),
        (("", ",", ""), ("", "a;", "")),
    ),
    "semmem.model.errors._VALUE": (
        errors.SemmemError,
        (("", "'", ""), ("", "'\\", ""), ("", "\"'", ""), ("'", "\\a", ""), ("", " 'a", ""), ("'", "a", " x")),
    ),
    "semmem.model.filters._STRING_OR_BRACKET": (
        filters._depth,
        (
            ("", '"', ""),
            ('"', "\\", ""),
            ("", '"\\', ""),
            ('"', "a", ""),
            ("", '"a" ', '"'),
            ("", '"\\', "\\"),
            ("", "[", ""),
            ("", "{", "}"),
        ),
    ),
    "semmem.text.passages._ANY_SPACE": (partial(passages._after_space, start=0), (("", " ", "x"), ("", "\n", ""))),
    "semmem.client.probe.prober._NAME": (
        prober._NAME.fullmatch,
        ((prober._PREFIX, "1", "-"), (prober._PREFIX, "0", "")),
    ),
    "semmem.text.passages._CALLED": (
        encoded,
        ((",", " ", "A"), (", A", "a", ""), ("", ",Aa ", "!"), (", Aa", " ", "x"), ("", ", A", "")),
    ),
    "semmem.text.passages._OPENING": (
        encoded,
        (("", " ", "hi"), ("hey", " ", "x"), ("hi", "!", " "), ("hi A", "a", "!"), ("", "hi ", "")),
    ),
    "semmem.text.passages._ABBREVIATION": (
        text.sentence_spans,
        (("", "A.", " "), ("", "a. ", ""), ("", "e.g. ", ""), ("", "Dr. ", "")),
    ),
    "semmem.text.passages._BOUNDARY": (
        text.sentence_spans,
        (
            ("", ".", ""),
            ("", ".", " "),
            (".", "'", "x"),
            ("", ".'", ""),
            ("", '.")]', " "),
            ("", "\u3002", ""),
            ("", "\n", ""),
            ("", "?!\u2026", "x"),
        ),
    ),
    "semmem.text.passages._PARAGRAPH": (
        cut,
        (("a", "\n", ""), ("a", "\n ", "b"), ("a\n", " ", "b"), ("", "a\n\n", ""), ("", "\n \r", "x")),
    ),
    "semmem.text.passages._QUOTED": (
        text.phrases,
        (
            ("", '"', ""),
            ("", '" "', ""),
            ("", "\u201c", ""),
            ("", "\u201ca\u201d", ""),
            ("", "\u00ab", ""),
            ("\u00ab", "a", ""),
        ),
    ),
    "semmem.text.passages._SPACE": (cut, (("a", " ", "b"), ("", "a ", ""), ("", "\u3000", "a"), ("", "a", ""))),
    "semmem.text.tokens._ASCII_TOKEN": (
        tokens.tokens,
        (
            ("", "a.", ""),
            ("", "a.", "ab"),
            ("", "0,000", ""),
            ("", "a'", ""),
            ("", "A&", ""),
            ("", "0.", ""),
            ("1", ",000", "0"),
        ),
    ),
    "semmem.text.tokens._CJK_START": (tokens.tokens, (("", "\u6f22", ""), ("", "a\u6f22", ""), ("", "\u3005", "a"))),
    "semmem.text.tokens._INSIDE": (
        partial(tokens.places, stems=("a",)),
        (("", "'", ""), ("", "a'", ""), ("", "a.", ""), ("", "1,", "a"), ("", "&", "a")),
    ),
    "semmem.text.tokens._POINT_IN_NUMBER": (tokens.fold, (("", "0.", "\u00e9"), ("", ".0", ""), ("", ".", ""))),
    "semmem.text.tokens: elided_or_ascii": (
        partial(tokens.tokens, language="french"),
        (("", "l'", ""), ("", "qu'a", ""), ("", "d", ""), ("l'", "a", "")),
    ),
    "semmem.text.tokens: any_script": (
        tokens.tokens,
        (
            ("", "\u00e9.", ""),
            ("", "\u00e9.", "\u00e9a"),
            ("\u00e9", "0,000", ""),
            ("", "\u00e9\u2019", ""),
            ("\u00e9", "A&", ""),
            ("\u00e9", "\u0301", ""),
        ),
    ),
}
"""The expressions over foreign text, the function through which the text comes, and (begin, repeat, end) of texts."""
CHECKS = {check: name for name, check in reversed(FOREIGN.items())}
"""Each function with its texts once, and the first of the expressions that it uses."""


def expressions() -> Iterator[str]:
    """Yield "module.NAME", or "module: pattern" of one that has no name, for each use of ``re`` in the package."""
    root = Path(semmem.__file__).parent
    for path in sorted(root.rglob("*.py")):
        module = ".".join((root.name, *path.relative_to(root).with_suffix("").parts))
        tree = ast.parse(path.read_text(encoding="utf-8"))
        named: set[ast.AST] = set()
        for node in tree.body:
            if isinstance(node, ast.Assign):
                target = node.targets[0]
                pairs = (
                    zip(target.elts, node.value.elts, strict=True)
                    if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple)
                    else [(target, node.value)]
                )
                for name, value in pairs:
                    if _is_use(value) and isinstance(name, ast.Name):
                        named.add(value)
                        yield f"{module}.{name.id}"
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom | ast.Import):
                assert not {"re", "regex"} & ({node.module} if isinstance(node, ast.ImportFrom) else set()), module
                assert all(alias.name != "regex" and not (alias.name == "re" and alias.asname) for alias in node.names)
            if _is_use(node) and node not in named:
                assert isinstance(node, ast.Call)
                yield f"{module}: {ast.unparse(node.args[0])}"


def _is_use(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "re"
        and node.func.attr != "escape"
    )


def _text(shape: Shape, characters: int) -> str:
    begin, repeated, end = shape
    return begin + (repeated * (characters // len(repeated) + 1))[: characters - len(begin) - len(end)] + end


def _seconds(work: Callable[[str], Any], whole: str) -> float:
    """Return the processor's time, so that a busy machine fails nothing; the collector of garbage is left out."""
    gc.disable()
    try:
        began = time.thread_time()
        work(whole)
        return time.thread_time() - began
    finally:
        gc.enable()


def ours(name: str) -> bool:
    """Return whether an expression, or its module, reads no text of others."""
    return any(name == one or name.startswith((f"{one}.", f"{one}:")) for one in OURS)


@pytest.mark.slow
@pytest.mark.timeout(120)  # an exponential one never comes back
@pytest.mark.parametrize(("work", "shapes"), CHECKS, ids=CHECKS.values())
def test_four_times_as_many_adversarial_characters_take_less_than_eight_times_as_long(
    work: Callable[[str], Any], shapes: tuple[Shape, ...]
) -> None:
    work(_text(shapes[0], 1_000))  # what is loaded once is no matter
    for shape in shapes:
        before = _seconds(work, _text(shape, CHARACTERS // 16))
        for characters in (CHARACTERS // 4, CHARACTERS):
            whole = _seconds(work, _text(shape, characters))
            # a quadratic one takes sixteen times as long; a tenth of a second is too short to be compared
            assert whole < 0.1 or whole < 8 * before, shape
            before = whole
