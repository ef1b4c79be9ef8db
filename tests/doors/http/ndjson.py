"""Hooks of schemathesis: how a stream of items is written, and when a request that fits the schema may be refused."""

from __future__ import annotations

import json
import os
import re
from typing import Any

import schemathesis
from schemathesis.generation import GenerationMode

BEYOND_A_SCHEMA = (
    r"There is no leg named ",  # legs are registered while it runs
    r"That Idempotency-Key was used for another request",
    r"This cursor is not one that list returned|That is no cursor of changes",
    r"vector must be a flat list of finite numbers that are not all 0|vector has \d+|is \d+ numbers",
    r"Give recipe or namespace, not both",  # of two parameters in a URL
    r"Line \d+ is not JSON|must be a mapping, not|is not an item",  # the lines of a body
    r"has no argument '?\"?(batch_size|on_error)",  # of the other body of this path
    r"has that name already|This recall did not look into namespace",
    r"A memory cannot be linked to itself|is in useful and in not_useful",
    r"contains a NUL character",  # deep in an object
    r"The text is empty",  # of characters that are not shown, which no pattern of JSON schema can name
    r"Pass owned, filters that say which memories belong to the source",
    r"There is no search setting '|has no setting|must be .*, not |There is no reranker|must be a mapping from",
    r"of a recipe must be a table|The recipe cannot be used",  # these two: the values in a recipe
    r"Say what to (change|forget)|A tag cannot be empty|namespace is in the URL and in the body",
    r"^The filter metadata knows no operators such as",  # deep in an object
    r"is in the past, so the memory would never be seen|Give expires_at or ttl, not both",
    r"^valid_from .* must be before valid_to",  # of two fields
    r"If-Match is the ETag of one version",  # schemathesis sends 0 for it
    r"is an empty list, which nothing matches|Message \d+ must be|needs the leg that is to find it",
    r"A SQLite store keeps no|is for stores on PostgreSQL",
)
"""What a request that fits the description may be refused for: OpenAPI has no words for it."""


@schemathesis.serializer("application/x-ndjson")
def lines(ctx: Any, value: Any) -> bytes:
    """Return a body: its lines are made up by schemathesis, most of them no item."""
    return str(value).encode("utf-8", "replace")


@schemathesis.check
def refused_for_what_no_schema_says(ctx: Any, response: Any, case: Any) -> None:
    """Fail for a request that fits the description and is refused for what the description could have said."""
    if response.status_code not in (400, 415, 422) or case.meta.generation.mode is not GenerationMode.POSITIVE:
        return
    detail = json.loads(response.content)["detail"]
    if os.environ.get("SEMMEM_REFUSALS"):
        with open(os.environ["SEMMEM_REFUSALS"], "a", encoding="utf-8") as file:
            file.write(json.dumps([case.operation.label, detail]) + "\n")
    assert any(re.search(reason, detail) for reason in BEYOND_A_SCHEMA), detail
