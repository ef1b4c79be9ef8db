"""The other names of a memory's subject: what its metadata calls it is as good as a title, nearly."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from semmem.concepts.rules import extract, with_other_names
from semmem.embedders import Known, vector_key
from semmem.embedders.hashing import Hashing
from semmem.model.exchange import Kind
from semmem.model.types import Memory
from semmem.text.passages import embedded_text, other_names
from semmem.text.tokens import key


def names(found: Any) -> dict[str, tuple[float, float]]:
    rows = zip(found.names, found.kinds, found.mentions, found.subjects, strict=True)
    return {name: (mention, subject) for name, kind, mention, subject in rows if kind == Kind.NAME}


def test_another_name_is_a_subject_of_a_little_less_weight_than_the_title() -> None:
    found = extract("It logs.", "Kestrel")
    assert names(found) == {"Kestrel": (1.0, 1.0)}
    more = with_other_names(found, ["KL-7", "Old Bird (model)", "Norr, the Logger"])
    # a title counts 1, without its brackets .9, before its comma .6; another name never more than .9
    assert names(more) == {
        "Kestrel": (1.0, 1.0),
        "KL-7": (1.0, 0.9),
        "Old Bird (model)": (1.0, 0.9),
        "Old Bird": (0.0, 0.9),
        "Norr, the Logger": (1.0, 0.9),
        "Norr": (0.0, 0.6),
    }
    assert more.keys == tuple(sorted(more.keys))
    assert (more.length, more.relationships) == (found.length, found.relationships)
    assert key(Kind.NAME, ("kl", "7")) in more.keys


def test_a_name_that_is_the_title_as_well_loses_nothing() -> None:
    found = extract("It logs.", "Kestrel")
    assert with_other_names(found, ["kestrel"]) == found
    assert with_other_names(found, []) is found


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({}, ()),
        ({"aliases": "KL-7"}, ("KL-7",)),
        ({"aliases": ["KL-7", "", 7, None, " ", "KL-7", "Bird", "x" * 201]}, ("KL-7", "Bird")),
        ({"aliases": {"a": 1}}, ()),
        ({"aliases": [str(i) for i in range(60)]}, tuple(str(i) for i in range(50))),
    ],
)
def test_only_strings_that_may_be_names_are_read(metadata: dict[str, Any], expected: tuple[str, ...]) -> None:
    assert other_names(metadata) == expected


def test_other_names_are_embedded_behind_the_text_as_tags_are() -> None:
    memory = Memory("a", "n", "It logs.", title="Kestrel", tags=("site",), metadata={"aliases": ["KL-7"]})
    assert embedded_text(memory) == "Kestrel. It logs. [site, KL-7]"


def test_a_known_vector_is_not_made_again_and_one_that_does_not_fit_is() -> None:
    real = Hashing()
    one = np.zeros(real.dimensions, dtype="<f4")
    one[3] = 1
    short = np.ones(3, dtype="<f4")
    known = Known(
        real,
        {
            (real.fingerprint, vector_key("a")): one.tobytes(),
            (real.fingerprint, vector_key("b")): short.tobytes(),
            ("another", vector_key("c")): one.tobytes(),
        },
    )
    found = known.embed(["c", "a", "b"])
    assert found[1].tolist() == one.tolist()
    assert np.array_equal(found[[0, 2]], real.embed(["c", "b"]))
    assert (known.name, known.dimensions, known.fingerprint) == (real.name, real.dimensions, real.fingerprint)
    assert np.array_equal(known.embed(["x"]), real.embed(["x"]))
