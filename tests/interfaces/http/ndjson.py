"""Hooks of schemathesis: how a stream of items is written, and when a request that fits the schema may be refused."""

from __future__ import annotations

import json
import os
import re
from typing import Any

import schemathesis
from schemathesis.generation import GenerationMode

BEYOND_A_SCHEMA = (
    r"^There is no leg named ",  # legs are registered while it runs
    r"^A cross-encoder is chosen by the settings of the server",
    r"^A SQLite store keeps no|is for stores on PostgreSQL",
    r"^That Idempotency-Key was used for another request",
    r"^This cursor is not one that (list|audit) returned|^That is no cursor of changes",
    r"^Namespace .* holds \d+ memories and parts, more than the \d+ that are drawn at once",
    r"^Line \d+ ",  # of a body
    r"has no argument '?\"?(batch_size|on_error)",  # of the other body of this path
    r"^vector has \d+ numbers|is \d+ numbers",  # the model has a number of its own
    # of two arguments
    r"^Give recipe or namespace, not both|^namespace is in the URL and in the body",
    r"are one concept already; nothing was changed",
    r"has that name already|^This recall did not search namespace",
    r"^A memory cannot be linked to itself|is in useful and in not_useful",
    r"^Pass owned, filters that say which memories belong to the source",
    r"^valid_from .* must be before valid_to|^limit and offset together must be at most",
    r"^A recipe needs at least one leg|^Each leg of the reserve needs a place|must name every regime",
    r"^The leg .* has a weight but no rank constant",
    r"^(regime_weights|regime_reserve|rerank_regimes) has a (regime|leg) ",
    r"position must be a whole number of at most 63 bits",  # of a later message: the first position and its number
    # of a text
    r"contains a NUL character|^The filter metadata knows no operators such as",  # deep in an object
    r"^The text is empty",  # of characters that are not shown, which no pattern of JSON schema can name
    r"is in the past, so the memory would never be seen",
    r"^If-Match is the ETag of one version",  # schemathesis sends 0 for it
)
"""What a request that fits the description may be refused for: OpenAPI has no words for it."""


@schemathesis.serializer("application/x-ndjson")
def lines(ctx: Any, value: Any) -> bytes:
    """Return a body: its lines are made up by schemathesis, most of them no item."""
    return str(value).encode("utf-8", "replace")


@schemathesis.check
def no_server_error(ctx: Any, response: Any, case: Any) -> None:
    """Fail for a status of 500 and more, but for the one of a namespace whose limit the requests before have set."""
    if response.status_code >= 500:
        assert json.loads(response.content)["class"] == "NamespaceFull", response.content


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
