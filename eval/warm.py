"""Tests in forks of one process that has imported semmem already, for changes of its SQL: python -m eval.warm.

Each line of the input is a JSON list of pytest's arguments; the answer is a line with the id of the process that runs
them, and one with its exit code. To import everything and to start PostgreSQL takes several times as long as a few
tests. SQL is text that modules look up by name whenever they need it, so a fork reads that text anew and nothing else.
All forks use the server of the folder that SEMMEM_TEST_SERVER names, one after the other.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import sys
from contextlib import suppress

import pytest

from semmem.stores import sql_files

_READ = sql_files.statements
_BACKENDS = ("postgres", "sqlite")
_HELD = {backend: dict(_READ(backend)) for backend in _BACKENDS}
"""The statements that every module holds which is imported from here on."""


def import_all() -> None:
    """Import the modules of semmem but those of a former address, without those whose extra is not installed."""
    sql_files.statements = _HELD.__getitem__  # type: ignore[assignment]
    import semmem

    for found in pkgutil.walk_packages(semmem.__path__, "semmem."):
        if not found.name.endswith("__main__") and not found.name.startswith("semmem.doors"):
            with suppress(ImportError):
                importlib.import_module(found.name)


def _run(arguments: list[str]) -> int:
    """Run tests with the SQL as it is in the files now."""
    os.setsid()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nowhere, number)
    _READ.cache_clear()
    for backend in _BACKENDS:
        _HELD[backend].clear()
        _HELD[backend].update(_READ(backend))
    # plain: a module that pytest would rewrite for its messages is imported already
    return int(pytest.main(["--assert=plain", *arguments]))


def main() -> None:
    """Answer the lines of the input."""
    import_all()
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            code = 4  # as pytest itself where a conftest.py cannot be imported
            try:
                code = _run(json.loads(line))
            finally:
                os._exit(code)
        print(child, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    main()
