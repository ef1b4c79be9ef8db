"""The cursor of a page, as text that callers hand back to a store."""

from __future__ import annotations

import base64
import json
from datetime import datetime

from semmem.model.errors import InvalidInput
from semmem.model.types import Memory

__all__ = ["cursor_after", "read_cursor"]


def cursor_after(memory: Memory) -> str:
    """Return the cursor of the page that begins after ``memory``."""
    at = memory.created_at.isoformat() if memory.created_at else ""
    return base64.urlsafe_b64encode(json.dumps([at, memory.id]).encode()).decode()


def read_cursor(cursor: str) -> tuple[datetime, str]:
    """Return time and id of the last memory of the page before. Raises InvalidInput for what list did not return."""
    try:
        at, id = json.loads(base64.urlsafe_b64decode(cursor.encode()))
        return datetime.fromisoformat(at), str(id)
    except (ValueError, TypeError) as error:
        raise InvalidInput("This cursor is not one that list returned; start again without a cursor.") from error
