"""JSON that somebody sent, read strictly."""

from __future__ import annotations

import json
from typing import Any

from semmem.model.errors import InvalidInput

__all__ = ["parsed"]


def parsed(body: bytes) -> Any:
    """Return what JSON says. Raises InvalidInput for what is none."""
    try:
        return json.loads(body, parse_constant=_no_number)
    except RecursionError:
        raise InvalidInput("The JSON is nested too deeply to be read; flatten it.") from None
    except ValueError as error:
        reason = getattr(error, "msg", None) or "it is not UTF-8, or holds a number that JSON does not know"
        raise InvalidInput(f"The JSON cannot be read: {reason}.") from None


def _no_number(name: str) -> Any:
    raise ValueError(name)
