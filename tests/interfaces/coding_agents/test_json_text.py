"""Edits of a client's JSON as text: what is asked for is in it, and everything else is there to the letter."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semmem.interfaces.coding_agents.json_text import append, parsed, put, removed, without
from semmem.model.errors import InvalidInput

ENTRY = {"command": "/opt/semmem", "args": ["mcp"]}
PATH = ("mcpServers", "semmem")

COMMENTED = """{
  // my servers
  "mcpServers": {
    "other": {"command": "x", "args": ["a",  "b"]}, // keep me
  },
  "n": 1e5, /* and me */
  "é": "\\u00e9"
}
"""

FILES = [
    COMMENTED,
    '{"a": 1}',
    '{\n\t"mcpServers": {\n\t\t"z": {}\n\t}\n}\n',
    '{"mcpServers": {"z": [1, 2]}, "mcpServers2": null}',
    '{\n    "a": [\n        {}\n    ]\n}',
    '\ufeff{"a": 1}'.lstrip("\ufeff"),
]


@pytest.mark.parametrize("text", FILES)
def test_what_is_put_in_can_be_taken_out_to_the_letter(text: str) -> None:
    with_it = put(text, PATH, ENTRY)
    assert parsed(with_it)["mcpServers"]["semmem"] == ENTRY
    assert put(with_it, PATH, ENTRY) == with_it
    assert removed(with_it, PATH) == text


@pytest.mark.parametrize("text", FILES)
def test_what_is_appended_to_a_list_can_be_taken_out_to_the_letter(text: str) -> None:
    with_it = append(text, ("hooks", "Stop"), {"ours": True})
    assert parsed(with_it)["hooks"]["Stop"] == [{"ours": True}]
    assert without(with_it, ("hooks", "Stop"), lambda one: one.get("ours")) == text


def test_a_comment_beside_an_edit_stays() -> None:
    changed = put(COMMENTED, PATH, ENTRY)
    for comment in ("// my servers", "// keep me", "/* and me */"):
        assert comment in changed
    assert '"n": 1e5' in changed
    assert '["a",  "b"]' in changed


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ('{"z": 1, // mine\n "ours": 2\n}', '{"z": 1 // mine\n}'),
        ('{"z": 1 // mine\n, "ours": 2}', '{"z": 1 // mine\n}'),
        ('{"z": 1, /* a, b */ "ours": 2}', '{"z": 1 /* a, b */}'),
        ('{"z": 1 /* a, b */, "ours": 2}', '{"z": 1 /* a, b */}'),
        ('{"z": 1, // mine\n "ours": 2, "y": 3}', '{"z": 1, // mine\n "y": 3}'),
        ('{"z": 1, // mine\n "ours": 2, // hers\n "y": 3}', '{"z": 1, // mine\n // hers\n "y": 3}'),
        ('{"z": 1, // mine\n "ours": 2,\n}', '{"z": 1, // mine\n}'),
    ],
)
def test_a_comment_before_what_is_taken_out_stays(text: str, left: str) -> None:
    assert removed(text, ("ours",)) == left
    assert parsed(left) == {name: value for name, value in parsed(text).items() if name != "ours"}


def test_the_indentation_of_the_file_is_used() -> None:
    changed = put('{\n\t"mcpServers": {\n\t\t"z": {}\n\t}\n}\n', PATH, {"command": "c"})
    assert '\n\t\t"semmem": {\n\t\t\t"command": "c"\n\t\t}\n\t}\n}\n' in changed


def test_what_others_have_in_the_list_stays() -> None:
    text = '{"hooks": {"Stop": [{"a": 1}, {"ours": 1}, {"b": 2}]}}'
    assert without(text, ("hooks", "Stop"), lambda one: "ours" in one) == '{"hooks": {"Stop": [{"a": 1}, {"b": 2}]}}'
    first = '{"hooks": {"Stop": [{"ours": 1}, {"b": 2}]}}'
    assert without(first, ("hooks", "Stop"), lambda one: "ours" in one) == '{"hooks": {"Stop": [{"b": 2}]}}'


@pytest.mark.parametrize("text", ["", "  \n", "{}", "{\n}\n"])
def test_an_empty_file_gets_an_object(text: str) -> None:
    changed = put(text, PATH, ENTRY)
    assert json.loads(changed) == {"mcpServers": {"semmem": ENTRY}}
    assert parsed(removed(changed, PATH)) == {}
    assert json.loads(append(text, ("hooks", "Stop"), 1)) == {"hooks": {"Stop": [1]}}


@pytest.mark.parametrize("text", ["{", '{"a": tru}', "[1", '{"a": 1} x', "\x00"])
def test_what_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="it is not JSON"):
        put(text, PATH, ENTRY)


def test_the_place_of_the_first_error_in_a_file_is_told() -> None:
    for text in ('{"a": 1,\n "b" 2}', '{"a": 1,\n "b" 2, "c": [}'):
        with pytest.raises(InvalidInput, match=r"^it is not JSON \(line 2 column 6\); correct it first$"):
            put(text, PATH, ENTRY)


@pytest.mark.parametrize("text", ["[]", '"x"', '{"mcpServers": 3}', '{"mcpServers": [1]}'])
def test_an_object_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="not an object"):
        put(text, PATH, ENTRY)


def test_a_list_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"hooks\.Stop is not a list"):
        append('{"hooks": {"Stop": {}}}', ("hooks", "Stop"), 1)


names = st.text(st.characters(codec="utf-8", exclude_categories=("Cs",)), max_size=5)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-1000, 1000) | names,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=40)
@given(st.dictionaries(names, values, max_size=4), st.sampled_from([None, 2, "\t"]), values)
def test_any_file_keeps_its_values(content: dict[str, Any], indent: Any, value: Any) -> None:
    content.pop("mcpServers", None)
    text = json.dumps(content, indent=indent, ensure_ascii=False)
    changed = put(text, PATH, value)
    assert parsed(changed) == {**content, "mcpServers": {"semmem": value}}
    assert parsed(removed(changed, PATH)) == content
