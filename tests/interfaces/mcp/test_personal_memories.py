"""A memory of the personal namespace is found by its id from a project, and changed where it is."""

from __future__ import annotations

import pytest

import semmem
from tests.interfaces.mcp.clients import ask, in_memory, refusal

pytestmark = pytest.mark.anyio


async def test_from_a_project_a_personal_memory_is_updated_and_forgotten_in_its_own_namespace(url: str) -> None:
    async with in_memory(url, named="project") as client:
        await ask(client, "memory_remember", id="drink", text="Ada drinks tea.", namespace="personal")
        changed = (await ask(client, "memory_update", id="drink", text="Ada drinks coffee."))["memory"]
        assert (changed["namespace"], changed["version"]) == ("personal", 2)
        gone = await ask(client, "memory_forget", id="drink")
        assert (gone["forgotten"], gone["namespace"]) == (1, "personal")
    with semmem.connect(url, embedder="none") as mem:
        assert [one.name for one in mem.namespaces()] == []


async def test_of_two_memories_with_one_id_that_of_the_project_is_meant(url: str) -> None:
    async with in_memory(url, named="project") as client:
        for namespace in ("personal", "project"):
            await ask(client, "memory_remember", id="drink", text="Ada drinks tea.", namespace=namespace)
        assert (await ask(client, "memory_forget", id="drink"))["namespace"] == "project"
        assert (await ask(client, "memory_forget", id="drink"))["namespace"] == "personal"


async def test_what_was_forgotten_softly_is_forgotten_for_good_from_a_project(url: str) -> None:
    async with in_memory(url, named="project") as client:
        for namespace in ("personal", "project"):
            await ask(client, "memory_remember", id="drink", text="Ada drinks tea.", namespace=namespace)
            await ask(client, "memory_forget", id="drink", namespace=namespace)
        counted = await ask(client, "memory_forget", id="drink", hard=True, dry_run=True)
        assert (counted["forgotten"], counted["namespace"]) == (1, "project")
        for namespace in ("project", "personal"):
            gone = await ask(client, "memory_forget", id="drink", hard=True)
            assert (gone["forgotten"], gone["namespace"]) == (1, namespace)
        error = await refusal(client, "memory_forget", id="drink", hard=True)
        assert error["message"].startswith("There is no memory 'drink' in namespace 'project' or 'personal'; ")
        await ask(client, "memory_remember", id="food", text="Ada eats rice.")
        await ask(client, "memory_forget", id="food")
        assert (await ask(client, "memory_forget", id="food", namespace="project", hard=True))["forgotten"] == 1
    with semmem.connect(url, embedder="none") as mem:
        assert [mem.forgotten(namespace=name) for name in ("personal", "project")] == [[], []]


async def test_the_history_of_a_personal_memory_is_told_from_a_project_also_of_one_that_was_forgotten(url: str) -> None:
    async with in_memory(url, named="project") as client:
        await ask(client, "memory_remember", id="drink", text="Ada drinks tea.", namespace="personal")
        await ask(client, "memory_update", id="drink", text="Ada drinks coffee.")
        await ask(client, "memory_remember", id="drink", text="The machine is broken.", namespace="project")
        await ask(client, "memory_forget", id="drink", namespace="project")

        async def told() -> list[str]:
            return [one["memory"]["text"] for one in (await ask(client, "memory_history", id="drink"))["versions"]]

        assert await told() == ["Ada drinks tea.", "Ada drinks coffee."]  # as memory_get finds it
        await ask(client, "memory_forget", id="drink")
        assert await told() == ["The machine is broken."]
        await ask(client, "memory_forget", id="drink", hard=True)
        assert await told() == ["Ada drinks tea.", "Ada drinks coffee."]
        error = await refusal(client, "memory_history", id="nowhere")
        assert error["message"].startswith("There is no memory 'nowhere' in namespace 'project' or 'personal'; ")
