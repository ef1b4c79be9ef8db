"""mem0's verbs over semmem: their arguments, the shapes of their results, and whose memories they find."""

from __future__ import annotations

import asyncio
import json
import threading
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import semmem
from semmem.importers import reader
from semmem.interfaces.http.keys import Keys
from semmem.interfaces.http.server import Server
from semmem.interfaces.mem0 import AsyncMemory, AsyncMemoryClient, Facts, Memory, MemoryClient, MemoryMissing
from tests.docs.pages import blocks
from tests.interfaces.test_wrap import Server as ChatServer

TALK = [
    {"role": "system", "content": "You are a ferry."},
    {"role": "user", "content": "I live in Porto.", "name": "ada"},
    {"role": "assistant", "content": [{"type": "text", "text": "The ferry to Porto leaves at nine."}]},
    {"role": "user", "content": ""},
    {"content": "nobody says this"},
]


@pytest.fixture
def m() -> Iterator[Memory]:
    with Memory(url="sqlite::memory:") as opened:
        yield opened


def texts(found: dict[str, Any]) -> list[str]:
    return [row["memory"] for row in found["results"]]


def test_messages_are_stored_one_by_one_and_found_by_their_owner(m: Memory) -> None:
    owners = {"user_id": "u1", "agent_id": "a1", "run_id": "r1"}
    with pytest.warns(UserWarning, match="^Message 5 has no 'role' and is left out, as mem0 does"):
        added = m.add(TALK, **owners, metadata={"topic": "travel", "user_id": "x"}, infer=False)
    assert [(row["memory"], row["event"], row["actor_id"], row["role"]) for row in added["results"]] == [
        ("I live in Porto.", "ADD", "ada", "user"),
        ("The ferry to Porto leaves at nine.", "ADD", None, "assistant"),
    ]
    m.add("I live in Lisbon.", user_id="u2", infer=False)
    one = m.get(added["results"][0]["id"])
    assert one is not None
    times = [datetime.fromisoformat(one.pop(name)) for name in ("created_at", "updated_at")]
    assert all(at.tzinfo is not None for at in times)
    assert one == {
        "id": added["results"][0]["id"], "memory": "I live in Porto.", "hash": one["hash"],
        "metadata": {"topic": "travel"}, "score": None, "user_id": "u1", "agent_id": "a1", "run_id": "r1",
        "actor_id": "ada", "role": "user",
    }  # fmt: skip
    assert len(one["hash"]) == 32
    assert m.get("none") is None
    for owner in ({"user_id": "u1"}, {"agent_id": "a1"}, {"run_id": "r1"}, {"user_id": "u1", "run_id": "r1"}):
        assert sorted(texts(m.get_all(filters=owner))) == ["I live in Porto.", "The ferry to Porto leaves at nine."]
        assert texts(m.search("where do I live?", filters=owner))[0] == "I live in Porto."
    assert texts(m.get_all(user_id="u2", limit=5)) == texts(m.search("live", user_id=" u2 ")) == ["I live in Lisbon."]
    assert m.get_all(filters={"user_id": "u1", "run_id": "r2"}) == {"results": []}
    hit = m.search("ferry", filters={"user_id": "u1", "role": "assistant"}, explain=True)["results"][0]
    assert hit["memory"] == "The ferry to Porto leaves at nine."
    assert sum(hit["score_details"].values()) == pytest.approx(hit["score"])
    assert m.search("ferry", filters={"user_id": "u1"}, threshold=1.0) == {"results": []}
    assert len(m.get_all(filters={"user_id": "u1"}, top_k=1)["results"]) == 1


def test_operators_of_mem0_narrow_a_search_and_a_list(m: Memory) -> None:
    for n in range(40):
        m.add(f"Crate {n} is on the ferry.", user_id="u", metadata={"n": n, "odd": n % 2 == 1}, infer=False)
    few = m.search("crate ferry", filters={"user_id": "u", "n": {"gte": 37}, "odd": True}, top_k=5)
    assert sorted(texts(few)) == ["Crate 37 is on the ferry.", "Crate 39 is on the ferry."]
    listed = m.get_all(filters={"user_id": "u", "OR": [{"n": 3}, {"n": {"in": [5, 7]}}]})
    assert texts(listed) == [f"Crate {n} is on the ferry." for n in (7, 5, 3)]
    assert len(m.get_all(filters={"user_id": "*", "NOT": [{"odd": True}]}, top_k=100)["results"]) == 20


def test_operators_of_mem0_and_keys_of_their_names_may_stand_in_what_is_nested(m: Memory) -> None:
    m.add("Ana has tea.", user_id="u", metadata={"cup": {"like": "tea", "size": 2}, "by": {"like": "a"}}, infer=False)
    for nested, there in (
        ({"cup": {"size": {"gt": 1}}}, 1), ({"cup": {"size": {"gt": 2}}}, 0), ({"cup": {"size": "*"}}, 1),
        ({"cup": {"like": {"icontains": "TE"}}}, 1), ({"by": {"like": "a"}}, 1), ({"by": {"like": "b"}}, 0),
    ):  # fmt: skip
        assert len(m.get_all(filters={"user_id": "u", **nested})["results"]) == there
        assert len(m.search("tea", filters={"user_id": "u", **nested})["results"]) == there


def test_what_is_changed_and_deleted_is_told_and_its_history_kept(m: Memory) -> None:
    (row,) = m.add("I live in Porto.", user_id="u", metadata={"a": 1}, infer=False)["results"]
    assert m.update(row["id"], text="I live in Faro.") == {"message": "Memory updated successfully!"}
    assert m.update(row["id"], metadata={"b": 2, "user_id": "thief"}) == {"message": "Memory updated successfully!"}
    m.update(row["id"], data="I live in Braga.")
    one = m.get(row["id"])
    assert one is not None
    assert (one["memory"], one["metadata"], one["user_id"]) == ("I live in Braga.", {"a": 1, "b": 2}, "u")
    changes = m.history(row["id"])
    assert [(one["old_memory"], one["new_memory"], one["event"]) for one in changes] == [
        (None, "I live in Porto.", "ADD"),
        ("I live in Porto.", "I live in Faro.", "UPDATE"),
        ("I live in Faro.", "I live in Faro.", "UPDATE"),
        ("I live in Faro.", "I live in Braga.", "UPDATE"),
    ]
    assert set(changes[0]) == {
        "id", "memory_id", "old_memory", "new_memory", "event", "created_at", "updated_at", "is_deleted", "actor_id",
        "role",
    }  # fmt: skip
    assert (changes[0]["updated_at"], changes[0]["role"], changes[0]["is_deleted"]) == (None, "user", False)
    assert m.delete(row["id"]) == {"message": "Memory deleted successfully!"}
    assert m.get(row["id"]) is None
    assert m.history("never") == []
    with pytest.raises(ValueError, match=f"Memory with id {row['id']} not found"):
        m.delete(row["id"])
    with pytest.raises(MemoryMissing):
        m.update(row["id"], text="x")
    for user in ("u", "v"):
        m.add("One.", user_id=user, run_id="r", infer=False)
    assert m.delete_all(user_id="u", run_id="r") == {"message": "Memories deleted successfully!"}
    assert (texts(m.get_all(user_id="u")), texts(m.get_all(user_id="v"))) == ([], ["One."])
    m.reset()
    m.reset()
    assert m.get_all(user_id="v") == {"results": []}


def test_without_an_extractor_messages_are_stored_as_they_are_and_said_so_once(m: Memory) -> None:
    with pytest.warns(UserWarning, match="semmem stores the messages as they are"):
        (row,) = m.add("I live in Porto.", user_id="u")["results"]
    assert (row["memory"], row["role"]) == ("I live in Porto.", "user")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        m.add({"role": "user", "content": "And in Faro."}, user_id="u")
    assert len(m.get_all(user_id="u")["results"]) == 2


def test_an_extractor_says_what_is_remembered() -> None:
    asked: list[Any] = []

    def extract(messages: Any) -> list[str]:
        asked.extend(messages)
        return ["Lives in Porto."]

    with semmem.connect("sqlite::memory:", embedder="none") as mem:
        m = Memory(memory=mem, namespace="chat", extract=extract)
        (row,) = m.add(TALK[:-1], user_id="u1")["results"]
        assert row == {"id": row["id"], "memory": "Lives in Porto.", "event": "ADD"}
        assert [turn["role"] for turn in asked] == ["user", "assistant"]
        m.close()  # the store is somebody else's
        assert mem.get(row["id"], namespace="chat").author == "u1"


def test_what_has_expired_is_hidden(m: Memory) -> None:
    yesterday, tomorrow = ((datetime.now(UTC) + timedelta(days=n)).date() for n in (-1, 1))
    m.add("The old key.", user_id="u", expiration_date=yesterday.isoformat(), infer=False)
    m.add("The new key.", user_id="u", expiration_date=tomorrow, infer=False)
    assert texts(m.get_all(user_id="u")) == texts(m.search("key", user_id="u")) == ["The new key."]
    assert len(m.get_all(user_id="u", show_expired=True)["results"]) == 2
    (row,) = m.get_all(user_id="u")["results"]
    assert row["expiration_date"] == tomorrow.isoformat()
    m.update(row["id"], expiration_date=date(2020, 1, 1))
    assert texts(m.search("key", user_id="u")) == []
    m.update(row["id"], expiration_date=None)
    assert texts(m.search("key", user_id="u")) == ["The new key."]


def test_an_export_of_mem0_that_was_imported_is_found_by_its_owner(m: Memory, tmp_path: Path) -> None:
    row = {"id": "m1", "memory": "Lives in Porto.", "user_id": "u1", "run_id": "r1", "metadata": {"a": 1}}
    file = tmp_path / "mem0.json"
    file.write_text(json.dumps({"results": [row]}), encoding="utf-8")
    m.memory.import_items(reader("mem0")(file), namespace=m.namespace)
    (found,) = m.search("Porto", filters={"user_id": "u1", "run_id": "r1"})["results"]
    assert {name: found[name] for name in row} == row


@pytest.mark.parametrize(
    ("verb", "arguments", "sentence"),
    [
        ("add", {"messages": "x"}, "At least one of 'user_id'"),
        ("add", {"messages": "x", "user_id": "a b"}, "user_id must be a name without white space"),
        ("add", {"messages": 3, "user_id": "u"}, "messages must be a string"),
        ("add", {"messages": "x", "user_id": "u", "memory_type": "procedural_memory"}, "memory_type is not supported"),
        ("add", {"messages": "x", "user_id": "u", "timestamp": 3}, "timestamp is not supported"),
        ("add", {"messages": "x", "user_id": "u", "expiration_date": "soon"}, "expiration_date must be a date"),
        ("search", {"query": "x"}, "filters must contain at least one of: user_id"),
        ("search", {"query": " ", "user_id": "u"}, "The query is empty"),
        ("search", {"query": "x", "user_id": "u", "top_k": -1}, "top_k must be a whole number"),
        ("search", {"query": "x", "user_id": "u", "threshold": 2}, "threshold must be a number from 0 to 1, not 2"),
        (
            "search",
            {"query": "x", "user_id": "u", "threshold": "0.5"},
            "threshold must be a number from 0 to 1, not '0.5'",
        ),
        (
            "search",
            {"query": "x", "filters": {"user_id": ["u"]}},
            r"user_id must be a name without white space, not \['u'\]",
        ),
        ("search", {"query": "x", "filters": {"user_id": "u", "n": {"in": 3}}}, "in takes a list, not 3"),
        (
            "search",
            {"query": "x", "filters": {"user_id": "u", "NOT": [5]}},
            r"NOT takes a list of conditions, not \[5\]",
        ),
        (
            "search",
            {"query": "x", "filters": {"user_id": "u", 5: 1}},
            "A filter has the key 5; the keys of metadata are",
        ),
        ("add", {"messages": [None], "user_id": "u"}, "A message must be a mapping, such as .*, not None"),
        ("get_all", {"filters": {"topic": "x"}}, "filters must contain at least one of: user_id"),
        ("get_all", {"filters": {"user_id": "u", "OR": 3}}, "OR takes a list"),
        ("get_all", {"filters": {"user_id": "u", "created_at": {"gt": "May"}}}, "created_at must be an ISO 8601 time"),
        ("update", {"memory_id": "x"}, "At least one of text"),
        ("delete_all", {}, "At least one filter is required"),
        (
            "add",
            {"messages": ["I live in Porto."], "user_id": "u"},
            "A message must be a mapping, such as {'role': 'user', 'content': '…'}, not 'I live in Porto.'",
        ),
        ("add", {"messages": "x", "user_id": "u", "metadata": "work"}, "metadata must be a mapping, not 'work'"),
        ("search", {"query": "x", "user_id": "u", "filters": "work"}, "filters must be a mapping, not 'work'"),
    ],
)
def test_what_cannot_be_used_is_a_value_error_as_in_mem0(
    m: Memory, verb: str, arguments: dict[str, Any], sentence: str
) -> None:
    m.add("Here.", user_id="u", infer=False)
    with pytest.raises(ValueError, match=sentence):
        getattr(m, verb)(**arguments)
    assert texts(m.get_all(user_id="u")) == ["Here."]


def test_a_config_of_mem0_is_not_used_and_said_so() -> None:
    with pytest.warns(UserWarning, match=r"The config of mem0 \(llm\) is not used"):
        Memory.from_config({"llm": {"provider": "openai"}}, url="sqlite::memory:").close()
    with (
        semmem.connect("sqlite::memory:", embedder="none") as mem,
        pytest.raises(semmem.InvalidInput, match="An open memory has its settings already; leave url out"),
    ):
        Memory(memory=mem, url="sqlite::memory:")


def test_an_open_memory_in_the_place_of_a_config_is_refused_and_opens_no_other_store() -> None:
    with semmem.connect("sqlite::memory:", embedder="none") as mem:
        with pytest.raises(semmem.InvalidInput, match=r"^An open memory is given by its name: Memory\(memory=mem\)\.$"):
            Memory(mem)
        assert Memory(memory=mem).memory is mem


def test_a_config_opens_the_store_that_it_names_and_refuses_what_nobody_knows(tmp_path: Path) -> None:
    url = f"sqlite:{tmp_path}/notes.db"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with Memory.from_config({"url": url, "namespace": "team"}) as m:
            m.add("Here.", user_id="u", infer=False)
    with semmem.connect(url) as mem:
        assert [one.text for one in mem.list(namespace="team")] == ["Here."]
        with pytest.raises(semmem.InvalidInput, match="An open memory has its settings already; leave url out"):
            Memory.from_config({"url": url}, memory=mem)
    with pytest.raises(semmem.InvalidInput, match="There is no setting 'uri'; choose one of url, "):
        Memory.from_config({"uri": url})


def test_ten_who_change_the_metadata_of_one_memory_at_once_lose_nothing(tmp_path: Path) -> None:
    with Memory(url=f"sqlite:{tmp_path / 'notes.db'}") as m:
        id = m.add("The key is red.", user_id="alice", infer=False)["results"][0]["id"]
        with ThreadPoolExecutor(10) as threads:
            list(threads.map(lambda number: m.update(id, metadata={f"n{number}": number}), range(10)))
        assert m.get(id)["metadata"] == {f"n{number}": number for number in range(10)}  # type: ignore[index]


def test_an_argument_wins_over_a_config(tmp_path: Path) -> None:
    config = {"namespace": "team", "url": f"sqlite:{tmp_path / 'notes.db'}"}
    with Memory(config, namespace="mine") as mine, Memory(config) as team:
        assert (mine.namespace, team.namespace) == ("mine", "team")


@pytest.mark.parametrize("config", ["sqlite:notes.db", 5, ["x"], True])
def test_a_config_that_is_none_opens_nothing(config: Any) -> None:
    with pytest.raises(
        semmem.InvalidInput, match=r"^config must be a mapping, such as {'url': 'sqlite:notes.db'}, not "
    ):
        Memory(config)


@pytest.mark.parametrize("made", ["x", None, 5])
def test_an_extractor_that_returns_no_list_is_refused_and_nothing_is_stored(made: Any) -> None:
    with Memory(url="sqlite::memory:", extract=lambda _: made) as m:
        with pytest.raises(
            semmem.InvalidInput, match=f"^extract must return a list of texts, not {type(made).__name__}"
        ):
            m.add("I live in Porto.", user_id="u")
        assert m.get_all(user_id="u") == {"results": []}
    with pytest.raises(semmem.InvalidInput, match=r"^extract must be a function from messages to texts, not int"):
        Memory(url="sqlite::memory:", extract=5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ({"role": "user"}, "'content'"),
        ({"role": "user", "content": None}, "'content'"),
        ({"role": "user", "content": 5}, "text, but the content 5,"),
    ],
)
def test_a_message_that_says_nothing_readable_is_left_out_with_a_warning(
    m: Memory, message: dict[str, Any], said: str
) -> None:
    with pytest.warns(UserWarning, match=f"^Message 2 has no {said} and is left out, as mem0 does"):
        added = m.add([{"role": "user", "content": "Here."}, message], user_id="u", infer=False)
    assert texts(added) == ["Here."]
    calls = {"role": "assistant", "content": None, "tool_calls": [{"id": "c1"}]}
    assert m.add([calls], user_id="u", infer=False) == {"results": []}


def test_an_owner_may_stand_in_an_and_or_in_every_branch_of_an_or(m: Memory) -> None:
    memory = m
    memory.add("Alice plays the concertina.", user_id="alice", metadata={"kind": "music"}, infer=False)
    memory.add("Bo plays the fiddle.", user_id="bo", metadata={"kind": "music"}, infer=False)
    memory.add("Alice owns a crane.", user_id="alice", metadata={"kind": "thing"}, infer=False)

    def found(filters: dict[str, Any]) -> set[str]:
        return {one["memory"] for one in memory.search("who plays?", filters=filters)["results"]}

    assert found({"AND": [{"user_id": "alice"}, {"kind": "music"}]}) == {"Alice plays the concertina."}
    assert found({"AND": [{"user_id": "alice"}, {"AND": [{"kind": "music"}]}]}) == {"Alice plays the concertina."}
    either = {"OR": [{"user_id": "alice"}, {"user_id": "bo"}]}
    assert found({"AND": [either, {"kind": "music"}]}) == {"Alice plays the concertina.", "Bo plays the fiddle."}
    assert found({"AND": [{"user_id": "alice"}, {"user_id": "bo"}]}) == set()
    nested = {"OR": [{"AND": [{"user_id": "alice"}, {"kind": "music"}]}, {"user_id": "bo"}]}
    assert found(nested) == {"Alice plays the concertina.", "Bo plays the fiddle."}
    memory.add("Seven plays the flute.", user_id=7, infer=False)
    assert found({"OR": [{"user_id": 7}, {"AND": [{"user_id": " bo "}]}]}) == {
        "Seven plays the flute.",
        "Bo plays the fiddle.",
    }
    assert found({"user_id": "*", "NOT": [{"user_id": 7}, {"user_id": "alice"}]}) == {"Bo plays the fiddle."}
    with pytest.raises(semmem.InvalidInput, match="user_id must be a name without white space, not 'a b'"):
        found({"OR": [{"user_id": "a b"}, {"user_id": "bo"}]})
    deep: dict[str, Any] = {"user_id": "alice"}
    for _ in range(5_000):
        deep = {"AND": [deep]}
    with pytest.raises(semmem.InvalidInput, match="nested too deeply; flatten them"):
        found(deep)
    with pytest.raises(semmem.InvalidInput, match="filters must contain at least one of: user_id"):
        found({"OR": [{"user_id": "alice"}, {"kind": "music"}]})


def test_a_role_in_the_filters_searches_only_what_users_said(m: Memory) -> None:
    m.add(
        [
            {"role": "user", "content": "On weekends I climb and paint birds."},
            {"role": "assistant", "content": "What does one do on weekends? Nice things!"},
        ],
        user_id="alice",
        infer=False,
    )
    asked = "What does Alice do on weekends?"
    both = [one["role"] for one in m.search(asked, filters={"user_id": "alice"})["results"]]
    assert both == ["user", "assistant"]  # though the reply repeats the words of the question
    users = [one["role"] for one in m.search(asked, filters={"user_id": "alice", "role": "user"})["results"]]
    assert users == ["user"]


def test_the_asynchronous_memory_has_the_verbs_of_the_other_one() -> None:
    async def use() -> list[str]:
        async with AsyncMemory(url="sqlite::memory:") as memory:
            (added,) = (await memory.add("Alice plays.", user_id="alice", infer=False))["results"]
            await memory.update(added["id"], "Alice sings.")
            assert [one["event"] for one in await memory.history(added["id"])] == ["ADD", "UPDATE"]
            assert (await memory.get(added["id"]) or {})["memory"] == "Alice sings."
            found = (await memory.search("Alice", filters={"user_id": "alice"}))["results"]
            await memory.delete(added["id"])
            assert (await memory.get_all(filters={"user_id": "alice"}))["results"] == []
            await memory.delete_all(user_id="alice")
            await memory.reset()
            with pytest.raises(NotImplementedError, match="give the results of search to a model of yours"):
                await memory.chat("Who sings?")
            return [one["memory"] for one in found]

    assert asyncio.run(use()) == ["Alice sings."]
    verbs = {name for name in vars(Memory) if not name.startswith("_")}
    assert verbs == {name for name in vars(AsyncMemory) if not name.startswith("_")}


def test_what_a_user_said_outranks_a_reply_and_the_components_still_sum_to_the_score(m: Memory) -> None:
    m.add(
        [
            {"role": "user", "content": "The boat lies in Bergen."},
            {"role": "assistant", "content": "The boat lies in Kiel."},
        ],
        user_id="alice",
        infer=False,
    )
    user, reply = m.search("where the boat lies", filters={"user_id": "alice"}, explain=True)["results"]
    assert (user["role"], reply["role"]) == ("user", "assistant")
    assert sum(reply["score_details"].values()) == pytest.approx(reply["score"])
    assert reply["score_details"]["role"] == pytest.approx(-reply["score"] / 3)  # three quarters are left
    assert "role" not in user["score_details"]


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({"AND": [{"user_id": "ada"}, {"topic": "boat"}]}, ["a1"]),
        ({"AND": [{"AND": [{"user_id": " ada"}, {"OR": [{"topic": "boat"}, {"topic": "tea"}]}]}]}, ["a1", "a2"]),
        ({"AND": [{"OR": [{"topic": "boat"}]}, {"OR": [{"user_id": "ada"}, {"user_id": " bob "}]}]}, ["a1", "b1"]),
        ({"OR": [{"AND": [{"user_id": "ada"}, {"NOT": [{"topic": "tea"}]}]}, {"user_id": "bob"}]}, ["a1", "b1"]),
        ({"AND": [{"user_id": {"in": ["ada", "bob"]}}, {"NOT": [{"AND": [{"topic": "tea"}]}]}]}, ["a1", "b1"]),
        ({"AND": [{"user_id": "ada"}, {"created_at": {"gte": "2024-07-01", "lt": "2999-12-31"}}]}, ["a1", "a2"]),
        ({"AND": [{"user_id": "ada"}, {"updated_at": {"lte": "2024-07-31T00:00:00Z"}}]}, []),
        ({"user_id": "ada", "OR": [{"created_at": {"gt": "2999-01-01T00:00:00+02:00"}}, {"topic": "tea"}]}, ["a2"]),
        ({"user_id": "ada", "metadata": {"topic": "boat"}}, ["a1"]),
    ],
)
def test_filters_may_be_nested(m: Memory, filters: dict[str, Any], found: list[str]) -> None:
    for text, user, topic in (("a1", "ada", "boat"), ("a2", "ada", "tea"), ("b1", "bob", "boat")):
        m.add(text, user_id=user, metadata={"topic": topic}, infer=False)
    assert sorted(texts(m.get_all(filters=filters))) == found


@pytest.fixture
def host(tmp_path: Path) -> Iterator[str]:
    """The URL of a server of semmem."""
    with semmem.connect("sqlite::memory:") as mem:
        server = Server(mem, port=0, keys=Keys(tmp_path / "keys.json"))
        thread = threading.Thread(target=server.run)
        thread.start()
        try:
            yield server.url
        finally:
            server.stop()
            thread.join()


def test_the_client_of_the_service_asks_a_server_of_semmem(host: str) -> None:
    with MemoryClient(host=host, org_id="o", project_id="p") as client:
        (added,) = client.add([{"role": "user", "content": "I live in Porto."}], user_id="ada", infer=False)["results"]
        assert texts(client.search("Porto", filters={"user_id": "ada"})) == ["I live in Porto."]
        client.update(added["id"], text="I live in Lisbon.")
        assert [one["event"] for one in client.history(added["id"])] == ["ADD", "UPDATE"]
        assert texts(client.get_all(filters={"user_id": "ada"})) == ["I live in Lisbon."]

    async def use() -> list[str]:
        async with AsyncMemoryClient(host=host) as other:
            return texts(await other.get_all(filters={"user_id": "ada"}))

    assert asyncio.run(use()) == ["I live in Lisbon."]


@pytest.mark.parametrize(
    ("host", "sentence"),
    [
        (None, r"MemoryClient asks a server of semmem; give host='http://…' \(semmem serve\), or import Memory"),
        ("https://api.mem0.ai", "host is mem0's hosted service; give the URL of a server of semmem"),
    ],
)
def test_a_client_without_a_server_is_refused_in_one_sentence(
    host: str | None, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEMMEM_URL", "sqlite::memory:")
    with pytest.raises(semmem.InvalidInput, match=sentence):
        MemoryClient("k", host)


@pytest.fixture
def model() -> Iterator[ChatServer]:
    """A server that speaks OpenAI's API."""
    with ChatServer() as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        yield running
        running.shutdown()
        thread.join()


TOLD = [
    {"role": "user", "content": "I moved from Porto to Lisbon."},
    {"role": "assistant", "content": "Then you need a tram map."},
]


def test_facts_that_a_model_finds_are_stored_and_their_cost_is_counted(model: ChatServer) -> None:
    model.words = ['{"facts": ["Ada lives in Lisbon.", " ", 7, "Ada lives in Lisbon.", "Ada lived in Porto."]}']
    facts = Facts(f"{model.url}/v1", "m", key="k")
    with Memory(url="sqlite::memory:", extract=facts) as memory:
        added = memory.add(TOLD, user_id="ada")["results"]
        assert [one["memory"] for one in added] == ["Ada lives in Lisbon.", "Ada lived in Porto."]
        assert texts(memory.get_all(filters={"user_id": "ada"})) == ["Ada lived in Porto.", "Ada lives in Lisbon."]
    (asked,) = model.received
    assert asked["messages"][1]["content"] == (
        "user: I moved from Porto to Lisbon.\nassistant: Then you need a tram map."
    )
    assert facts.usage == {"requests": 1, "prompt_tokens": 9, "completion_tokens": 3}


@pytest.mark.parametrize(
    ("words", "status", "reason"),
    [(["I know none."], 200, "not the JSON that was asked for"), ([""], 400, "status 400")],
)
def test_messages_are_stored_as_they_are_where_the_model_fails(
    model: ChatServer, words: list[str], status: int, reason: str
) -> None:
    model.words, model.status = words, status
    with Memory(url="sqlite::memory:", extract=Facts(f"{model.url}/v1", "m", backoff_s=0.0)) as memory:
        with pytest.warns(UserWarning, match=f"The model m gave no facts: {reason}; the messages are stored as they"):
            added = memory.add(TOLD, user_id="ada")["results"]
        assert [one["memory"] for one in added] == [one["content"] for one in TOLD]


def test_the_lines_of_the_page_ask_a_model(model: ChatServer, capsys: pytest.CaptureFixture[str]) -> None:
    model.words = ['{"facts": ["Ada lives in Lisbon."]}']
    (code,) = [block.code for block in blocks("docs/mem0.md", "python") if "http://" in block.code]
    used: dict[str, Any] = {}
    exec(compile(code.replace("http://localhost:11434", model.url), "docs/mem0.md", "exec"), used)
    used["memory"].close()
    assert capsys.readouterr().out == "{'requests': 1, 'prompt_tokens': 9, 'completion_tokens': 3}\n"


def test_facts_need_a_model() -> None:
    with pytest.raises(semmem.InvalidInput, match="Facts needs the name of a model"):
        Facts("http://localhost:1/v1", " ")
    with pytest.raises(semmem.InvalidInput, match="llm_url must begin with http"):
        Facts("localhost", "m")
