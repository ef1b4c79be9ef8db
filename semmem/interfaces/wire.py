"""Map errors to exit codes, HTTP statuses and MCP codes: one table for every door.

The table maps an error class to the exit code of the command line, the status of HTTP, and the code of an MCP error;
a class that is not in it answers as its nearest parent does.
"""

from __future__ import annotations

from typing import NamedTuple

from semmem.model import errors

__all__ = ["ERRORS", "EXIT_INTERRUPTED", "EXIT_REACH", "Answer", "answer", "is_foreseen", "sentence"]

EXIT_REACH = 3
"""Exit code when a leg falls short of the reach that was required."""

EXIT_INTERRUPTED = 130
"""Exit code after Ctrl-C: 128 + SIGINT, as shells have it."""


class Answer(NamedTuple):
    """The codes of one class of error at each interface."""

    exit_code: int
    http_status: int
    mcp_code: int


ERRORS: dict[type[BaseException], Answer] = {
    errors.SemmemError: Answer(1, 500, -32603),
    errors.InvalidInput: Answer(2, 422, -32602),
    errors.NotFound: Answer(4, 404, -32002),
    errors.Conflict: Answer(5, 409, -32009),
    errors.EmbedderMismatch: Answer(6, 409, -32010),
    errors.EmbedderUnavailable: Answer(7, 503, -32011),
    errors.MissingExtra: Answer(7, 501, -32011),
    errors.StoreError: Answer(8, 503, -32012),
    errors.LegFailed: Answer(9, 503, -32013),
    errors.LocalOnly: Answer(2, 501, -32601),
    errors.AccessDenied: Answer(10, 403, -32014),
    errors.KeyRequired: Answer(10, 401, -32014),
    errors.LimitExceeded: Answer(10, 429, -32015),
    errors.NamespaceFull: Answer(10, 507, -32016),
}


def answer(error: BaseException) -> Answer:
    """Return the codes of ``error``: those of its class, of its nearest parent in the table, or of SemmemError."""
    for kind in type(error).__mro__:
        if kind in ERRORS:
            return ERRORS[kind]
    return ERRORS[errors.SemmemError]


def is_foreseen(error: BaseException) -> bool:
    """Return whether the sentence of ``error`` says all that a person needs."""
    return isinstance(error, errors.SemmemError) or (isinstance(error, OSError) and bool(error.filename))


def sentence(error: BaseException) -> str:
    """Return ``error`` as one line for a person, of a length that a person reads, whatever names stand in it."""
    if isinstance(error, OSError) and error.filename:
        text = f"{error.filename}: {error.strerror}."
    elif isinstance(error, errors.SemmemError):
        text = str(error)
    else:
        text = f"{type(error).__name__}: {str(error) or 'no reason given'}"
    return " ".join(str(errors.SemmemError(text)).split())
