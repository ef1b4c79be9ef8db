"""Edits of a JSON file of settings as text: what is not edited, comments and layout too, stays as it is.

The parser is json-five's, which takes comments and trailing commas and says where each value stands. Paths are keys of
objects, from the outermost.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from semmem.model.errors import InvalidInput

__all__ = ["append", "parsed", "put", "removed", "without"]


def parsed(text: str) -> Any:
    """Return the values in ``text``; an empty text is an empty object. Raises InvalidInput for what is no JSON."""
    from json5.loader import loads

    if not text.strip():
        return {}
    try:
        return json.loads(text)
    except ValueError:
        pass
    try:
        return loads(text)
    except (ValueError, RecursionError) as error:
        place = str(error).partition(" at: ")[2].partition(" (")[0]  # "… near token NAME at: line 1 column 1 (char 0)"
        raise InvalidInput(f"it is not JSON{place and f' ({place})'}; correct it first") from None


def put(text: str, path: Sequence[str], value: Any) -> str:
    """Return ``text`` with ``value`` at ``path``; objects on the way are made. Raises InvalidInput."""
    if not text.strip():
        return json.dumps(_nested(path, value), indent=2, ensure_ascii=False) + "\n"
    node, rest = _walked(text, path)
    if not rest:
        return _replaced(text, node, value)
    if not _is(node, "JSONObject"):
        raise InvalidInput(f"{'.'.join(path[: len(path) - len(rest)]) or 'it'} is not an object; correct it first")
    written = f"{json.dumps(rest[0], ensure_ascii=False)}: "
    return _inserted(text, node, node.values, written, _nested(rest[1:], value))


def append(text: str, path: Sequence[str], value: Any) -> str:
    """Return ``text`` with ``value`` at the end of the list at ``path``, which is made if there is none."""
    if not text.strip():
        return put(text, path, [value])
    node, rest = _walked(text, path)
    if rest:
        return put(text, path, [value])
    if not _is(node, "JSONArray"):
        raise InvalidInput(f"{'.'.join(path)} is not a list; correct it first")
    return _inserted(text, node, node.values, "", value)


def removed(text: str, path: Sequence[str]) -> str:
    """Return ``text`` without what is at ``path``, and without objects and lists around it that are left empty."""
    node, rest = _walked(text, path[:-1])
    if rest or not _is(node, "JSONObject"):
        return text
    names = _names(node)
    if path[-1] not in names:
        return text
    return _emptied(_cut(text, node, _last(names, path[-1])), path[:-1])


def without(text: str, path: Sequence[str], unwanted: Callable[[Any], bool]) -> str:
    """Return ``text`` without those values of the list at ``path`` that are ``unwanted``, and without what is empty."""
    while True:
        node, rest = _walked(text, path)
        if rest or not _is(node, "JSONArray"):
            return text
        index = next((index for index, one in enumerate(node.values) if unwanted(parsed(_source(text, one)))), None)
        if index is None:
            return text
        text = _cut(text, node, index)
        if not parsed(_source(text, _walked(text, path)[0])):
            return _emptied(text, path)


def _emptied(text: str, path: Sequence[str]) -> str:
    """Return ``text`` without the object or list at ``path`` if nothing is left in it, and so on outwards."""
    if not path or parsed(_source(text, _walked(text, path)[0])):
        return text
    around, _ = _walked(text, path[:-1])
    if _names(around).count(path[-1]) > 1:  # without it, the one before would count
        return text
    return removed(text, path)


def _walked(text: str, path: Sequence[str]) -> tuple[Any, Sequence[str]]:
    """Return the node of ``text`` that lies furthest along ``path``, and what is left of the path."""
    from json5.loader import ModelLoader, loads

    parsed(text)
    node = loads(text, loader=ModelLoader()).value
    for depth, name in enumerate(path):
        if not _is(node, "JSONObject"):
            return node, path[depth:]
        names = _names(node)
        if name not in names:
            return node, path[depth:]
        node = node.values[_last(names, name)]
    return node, ()


def _names(node: Any) -> list[str]:
    """Return the keys of an object, in quotes or, as in JSON5, without."""
    return [key.characters if hasattr(key, "characters") else key.name for key in node.keys]


def _last(names: Sequence[str], name: str) -> int:
    """Return which of the keys counts: of two with the same name, the last one."""
    return len(names) - 1 - names[::-1].index(name)


def _is(node: Any, kind: str) -> bool:
    return type(node).__name__ == kind


def _span(node: Any) -> tuple[int, int]:
    return node._tok.index, node._end_tok.end


def _source(text: str, node: Any) -> str:
    begin, end = _span(node)
    return text[begin:end]


def _indent(text: str, index: int) -> str:
    """Return the white space that the line of a place begins with."""
    line = text[text.rfind("\n", 0, index) + 1 : index]
    return line[: len(line) - len(line.lstrip())]


def _step(text: str) -> str:
    """Return by how much the file indents, two spaces where it does not say."""
    match = re.search(r"\n([ \t]+)\S", text)
    return match[1] if match else "  "


def _written(value: Any, text: str, indent: str) -> str:
    step: Any = _step(text)
    lines = json.dumps(value, indent=step, ensure_ascii=False)
    return lines.replace("\n", f"\n{indent}")


def _replaced(text: str, node: Any, value: Any) -> str:
    begin, end = _span(node)
    return text[:begin] + _written(value, text, _indent(text, begin)) + text[end:]


def _inserted(text: str, node: Any, inside: Sequence[Any], name: str, value: Any) -> str:
    """Return ``text`` with one more value at the end of an object or list."""
    begin, end = _span(node)
    outer = _indent(text, begin)
    inner = _indent(text, _span(inside[0])[0]) if inside and "\n" in text[begin:end] else outer + _step(text)
    written = f"\n{inner}{name}{_written(value, text, inner)}"
    if inside:
        last = _span(inside[-1])[1]
        return f"{text[:last]},{written}{text[last:]}"
    return f"{text[: end - 1].rstrip()}{written}\n{outer}{text[end - 1 :]}"


def _cut(text: str, node: Any, index: int) -> str:
    """Return ``text`` without the value number ``index`` of an object or list, with its comma."""
    begins = [_span(one)[0] for one in (node.keys if _is(node, "JSONObject") else node.values)]
    ends = [_span(one)[1] for one in node.values]
    if index and _has_comment(between := text[ends[index - 1] : begins[index]]):
        return text[: ends[index - 1]] + _joined(between, text[ends[index] :])
    if index:
        return text[: ends[index - 1]] + text[ends[index] :]
    if len(ends) > 1:
        return text[: begins[0]] + text[begins[1] :]
    begin, end = _span(node)
    rest = text[ends[0] : end - 1].lstrip().removeprefix(",")
    before = text[begin + 1 : begins[0]]
    if not (before + rest).strip():
        return text[: begin + 1] + text[end - 1 :]
    head = before.rstrip()
    line_end = "\n" if _COMMENT.search(head.rpartition("\n")[2] + "\n") and not rest.startswith("\n") else ""
    return text[: begin + 1] + head + line_end + rest + text[end - 1 :]


_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)


def _has_comment(text: str) -> bool:
    return _COMMENT.search(text) is not None


def _joined(between: str, rest: str) -> str:
    """Return the comments before a value that was cut, and what follows it, with the one comma that is left.

    ``between`` begins behind the value before, and holds its comma; so may ``rest``.
    """
    if rest.lstrip().startswith(","):  # this one is left out: the other stands before the comments
        rest = rest.replace(",", "", 1)
    else:
        comma = re.match(rf"(?:\s|{_COMMENT.pattern})*?,", between, re.S)
        if comma is not None:
            between = between[: comma.end() - 1] + between[comma.end() :]
    head = between.rstrip()
    ends_its_line = "//" in head.rpartition("\n")[2] and not rest.lstrip(" \t\r").startswith("\n")
    return f"{head}\n{rest}" if ends_its_line else head + rest


def _nested(path: Sequence[str], value: Any) -> Any:
    for name in reversed(path):
        value = {name: value}
    return value
