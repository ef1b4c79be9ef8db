"""Why something failed, in one line for a message."""

from __future__ import annotations

from semmem.model.errors import SemmemError

__all__ = ["reason"]


def reason(error: BaseException, longest: int = 500) -> str:
    """Return why something failed, on one line: the message of an error of ours, type and text of any other."""
    if isinstance(error, SemmemError):
        message = error.message
    else:
        message = type(error).__name__
        try:
            message += f": {error}"
        except Exception:  # noqa: BLE001  # __str__ of another's class
            message += ", whose text cannot be read"
    return " ".join(message.split())[:longest]
