"""A client that opens another project in the same session: what it stores from then on is of that project."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interfaces.mcp.clients import ask, in_memory
from tests.model.test_project import repository

pytestmark = pytest.mark.anyio


@pytest.mark.filterwarnings(
    "ignore:The roots capability is deprecated"
)  # roots: the protocol's next version does without
async def test_after_a_client_says_that_its_roots_have_changed_it_is_asked_for_them_again(
    tmp_path: Path, url: str
) -> None:
    mine, other = (
        repository(tmp_path / name, {"origin": f"https://example.org/ada/{name}"}).as_uri()
        for name in ("mine", "other")
    )
    roots = [mine]
    async with in_memory(url, mode="legacy", roots=roots) as client:
        stored = await ask(client, "memory_remember", text="The build needs make.")
        assert stored["memory"]["namespace"] == "example.org/ada/mine"
        roots[:] = [other]
        stored = await ask(client, "memory_remember", text="The build needs ninja.")
        assert stored["memory"]["namespace"] == "example.org/ada/mine"  # nothing was said of another root
        await client.send_roots_list_changed()
        stored = await ask(client, "memory_remember", text="The build needs bazel.")
        assert stored["memory"]["namespace"] == "example.org/ada/other"
