"""The filters of recall, list and forget as options, and what they mean."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Annotated, Any

import typer

__all__ = ["After", "Authors", "Before", "Metadata", "Sessions", "Tags", "filters", "moment", "pairs"]

Sessions = Annotated[list[str] | None, typer.Option("--sessions", "--session", help="Only this session; repeatable.")]
Authors = Annotated[list[str] | None, typer.Option("--authors", "--author", help="Only this author; repeatable.")]
Tags = Annotated[list[str] | None, typer.Option("--tags", "--tag", help="Only with this tag; repeatable: all of them.")]
Metadata = Annotated[str | None, typer.Option("--metadata", help="Only where metadata contains this JSON object.")]
After = Annotated[str | None, typer.Option("--created-after", help="Only from this time on (ISO 8601).")]
Before = Annotated[str | None, typer.Option("--created-before", help="Only before this time (ISO 8601).")]


def filters(
    sessions: list[str] | None,
    authors: list[str] | None,
    tags: list[str] | None,
    metadata: str | None,
    created_after: str | None,
    created_before: str | None,
) -> dict[str, Any] | None:
    """Return the filters that were given as one mapping, None when there are none."""
    given = {
        "sessions": sessions or None,
        "authors": authors or None,
        "tags": tags or None,
        "metadata": pairs(metadata) or None,
        "created_after": moment(created_after, "--created-after"),
        "created_before": moment(created_before, "--created-before"),
    }
    return {key: value for key, value in given.items() if value is not None} or None


def moment(text: str | None, option: str) -> datetime | None:
    """Return an ISO 8601 time; one without a zone is taken as UTC."""
    from datetime import UTC

    from semmem.errors import InvalidInput

    if text is None:
        return None
    try:
        when = datetime.fromisoformat(text)
    except ValueError as error:
        raise InvalidInput(f"{option} must be a time in ISO 8601, such as 2026-03-01T09:00, not {text!r}.") from error
    return when if when.tzinfo else when.replace(tzinfo=UTC)


def pairs(text: str | None) -> dict[str, Any] | None:
    """Return the JSON object in ``text``."""
    from semmem.errors import InvalidInput

    if text is None:
        return None
    try:
        value = json.loads(text)
    except RecursionError:
        raise InvalidInput("--metadata is nested too deeply to be read; flatten it.") from None
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise InvalidInput(f"--metadata must be a JSON object, such as '{{\"ticket\": 7}}', not {text!r}.")
    return value
