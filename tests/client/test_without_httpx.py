"""A client of a server in a Python without the package that speaks HTTP."""

from __future__ import annotations

import sys

import pytest

import semmem
from semmem.model.errors import MissingExtra


def test_it_is_told_which_extra_brings_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(MissingExtra, match=r"httpx is not installed; install it with: pip install 'semmem\[http\]'"):
        semmem.connect("http://127.0.0.1:9")
