"""Make control characters visible, so that no stored text can act on a terminal."""

from __future__ import annotations

import json
import re
from typing import Any

__all__ = ["as_json", "encodable", "one_line", "visible"]

_ACTIVE = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 and C1 controls, DEL; not the tab and the new line
    "\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f"  # direction marks, embeddings, overrides, isolates; line separators
    "\ufeff\ufff9-\ufffb\ud800-\udfff"  # byte order mark, annotations, halves of surrogate pairs
)
_SHOWN = re.compile(f"[{_ACTIVE}]")
_ESCAPED = re.compile(f"[{_ACTIVE}\t]")
_SIMPLE = str.maketrans(
    {
        **dict.fromkeys("█■●", "#"),
        "◆": "@",
        **dict.fromkeys("▓▪", "%"),
        **dict.fromkeys("▒✓", "+"),
        **dict.fromkeys("╬✗×", "x"),
        **dict.fromkeys("░·", "."),
        **dict.fromkeys("—–−", "-"),
        **dict.fromkeys("\u2018\u2019", "'"),
        **dict.fromkeys("\u201c\u201d", '"'),
        **{"★": "*", "…": "...", "→": ">", "←": "<"},
    }
)
"""Replacements for semmem's own symbols where the output cannot show them, mostly of the same width."""


def visible(text: str) -> str:
    r"""Return ``text`` with its control characters, direction marks and halves of surrogate pairs as escapes: ``\x1b``.

    New lines stay, a tab becomes four spaces. A text that was made visible stays as it is.
    """
    return _SHOWN.sub(_escape, text.replace("\r\n", "\n").replace("\t", "    "))


def one_line(text: str) -> str:
    r"""Return ``text`` with its ends of lines as escapes: a name with one in it would say a line of its own."""
    return text.replace("\r", "\\r").replace("\n", "\\n")


def encodable(text: str, encoding: str) -> str:
    """Return ``text`` in the encoding of the output: symbols simplified, other missing characters as escapes."""
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        fitting = "".join(c if _fits(c, encoding) else c.translate(_SIMPLE) for c in text)
        return fitting.encode(encoding, "backslashreplace").decode(encoding)
    return text


def as_json(value: Any, *, indent: int | None = None, encoding: str = "utf-8") -> str:
    """Return values as JSON: exact data, with ``\\u`` escapes for characters that could act on a terminal."""
    text = json.dumps(value, ensure_ascii=not encoding.lower().startswith("utf"), indent=indent)
    return _ESCAPED.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def _fits(character: str, encoding: str) -> bool:
    try:
        character.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True
