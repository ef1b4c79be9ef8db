"""The rules as an object: their version says for which language what they derive has changed."""

from __future__ import annotations

import pytest

from semmem.extractors import Rules
from semmem.model.errors import InvalidInput


def test_the_version_is_one_more_for_a_language_that_has_got_function_words() -> None:
    assert [Rules(name).version for name in ("english", "german", "dutch")] == ["3", "4", "3"]


def test_rules_for_a_language_that_there_is_not_are_refused_before_the_first_memory() -> None:
    with pytest.raises(InvalidInput, match="klingon"):
        Rules("klingon")
