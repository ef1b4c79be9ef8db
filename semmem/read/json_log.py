"""Write semmem's log as JSON: one line for each verb, and every other log record of semmem.

No line holds a text, a question or the message of an error.
"""

from __future__ import annotations

import json
import logging
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

__all__ = ["JsonLines", "JsonLog"]


class JsonLines(logging.Formatter):
    """Format a log record as one line of JSON; of an error only its class and where it was raised."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one line of JSON."""
        fields: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _message(record),
            **getattr(record, "semmem", {}),
        }
        if record.exc_info and record.exc_info[0] is not None:
            fields["error"] = record.exc_info[0].__name__
            frames = traceback.extract_tb(record.exc_info[2])
            fields["where"] = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames[-10:]]
        return json.dumps(fields, ensure_ascii=False)


def _message(record: logging.LogRecord) -> str:
    """Return the message with its arguments, of an error only its class: what an error says may hold a text."""
    arguments = record.args if isinstance(record.args, tuple) else ()
    try:
        return str(record.msg) % tuple(
            type(one).__name__ if isinstance(one, BaseException) else one for one in arguments
        )
    except (TypeError, ValueError):
        return str(record.msg)


class JsonLog:
    """Write one line of JSON for each verb to standard error; the calls come from semmem.read.tracing."""

    def __init__(self) -> None:
        self._handler = logging.StreamHandler(sys.stderr)
        self._handler.setFormatter(JsonLines())
        self._logger = logging.getLogger("semmem")
        self._logger.addHandler(self._handler)
        self._level = self._logger.level
        self._logger.setLevel(logging.INFO)

    def close(self) -> None:
        """Remove the handler from the log."""
        self._logger.removeHandler(self._handler)
        self._logger.setLevel(self._level)

    @contextmanager
    def verb(self, call: Any) -> Iterator[None]:
        """Write a line when the verb ends."""
        try:
            yield
        finally:
            fields = {"verb": call.name, **call.facts, "seconds": round(call.seconds, 6)}
            if call.legs:
                fields["legs"] = {
                    name: {"seconds": round(leg.seconds, 6), **leg.facts, **({"error": leg.error} if leg.error else {})}
                    for name, leg in tuple(call.legs.items())
                }
            if call.steps:
                fields["steps"] = {name: round(seconds, 6) for name, seconds in tuple(call.steps.items())}
            if call.error is not None:
                fields["error"] = call.error
            level = logging.WARNING if call.error is not None else logging.INFO
            self._logger.getChild("verbs").log(level, call.name, extra={"semmem": fields})

    @contextmanager
    def leg(self, call: Any) -> Iterator[None]:
        """Write nothing: the line of the verb includes its legs."""
        yield

    @contextmanager
    def step(self, call: Any) -> Iterator[None]:
        """Write nothing: the line of the verb includes its steps."""
        yield
