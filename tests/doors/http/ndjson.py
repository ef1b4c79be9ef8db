"""How schemathesis writes a stream of items: loaded by it as its hooks."""

from __future__ import annotations

from typing import Any

import schemathesis


@schemathesis.serializer("application/x-ndjson")
def lines(ctx: Any, value: Any) -> bytes:
    """Return a body: its lines are made up by schemathesis, most of them no item."""
    return str(value).encode("utf-8", "replace")
