"""mem0's ``Memory`` over semmem: its verbs, its arguments and the shapes of its results.

    from semmem.interfaces.mem0 import Memory        # was: from mem0 import Memory

Who a memory belongs to (``user_id``, ``agent_id``, ``run_id``) is kept in its metadata, a run in its session as well,
as the importer of mem0's exports does. The shapes are those of mem0 2.x (https://docs.mem0.ai/open-source/overview).
"""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import wraps
from itertools import islice
from time import monotonic
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar
from urllib.parse import urlsplit
from uuid import uuid4

from semmem.client.pages import every_memory
from semmem.extractors.facts import Facts, NoFacts
from semmem.interfaces.arguments import check_memory, check_namespace
from semmem.interfaces.mem0_shapes import (
    OWNERS,
    added,
    change,
    day,
    is_shown,
    lacking,
    mapping,
    narrowed,
    row,
    speaker,
    time,
    turn_of,
    with_times,
)
from semmem.model.errors import Conflict, InvalidInput, NotFound
from semmem.model.metadata_filters import check_conditions, joined
from semmem.model.types import Memory as Stored
from semmem.model.types import source_type_of

if TYPE_CHECKING:
    from types import TracebackType

    from semmem.client.memory import Semmem
    from semmem.model.types import Hit

__all__ = ["AsyncMemory", "AsyncMemoryClient", "Extract", "Facts", "Memory", "MemoryClient", "MemoryMissing"]

P = ParamSpec("P")
T = TypeVar("T")
Verb = Callable[Concatenate["Memory", P], T]

Extract = Callable[[Sequence[Mapping[str, Any]]], Sequence[str]]
"""What finds in the messages of a chat the texts to remember, such as Facts or a function of yours."""

REPLY_SHARE = 0.75
"""The share of its score that a reply of an assistant keeps in a search; messages of users keep all (adr/0071)."""

_MEM0_CONFIG = frozenset(
    (
        "vector_store", "llm", "embedder", "graph_store", "history_db_path", "reranker", "version",
        "custom_instructions", "custom_prompt", "custom_fact_extraction_prompt", "custom_update_memory_prompt",
    )
)  # fmt: skip
"""The keys of mem0's own config, of 1.x and 2.x."""

_MOST = 1_000
_PATIENCE_S = 10.0
_LEFT: Any = object()


class MemoryMissing(NotFound, ValueError):
    """There is no memory of that id; mem0 raises a ValueError."""


class Memory:
    """mem0's ``Memory``, kept in one namespace of a store; a context manager that closes what it opened.

    ``memory`` is an open Semmem, else the store of ``settings`` is opened, as ``semmem.connect`` takes them.
    ``extract`` finds what is to be remembered of a chat; without it ``add`` stores the messages as they are, and says
    so once. What a ``config`` says of mem0's own stores and models (``vector_store``, ``llm``, ``embedder`` …) is not
    used, and a warning says so; ``namespace`` (else ``mem0``), ``url`` and any other key are settings as here, and an
    argument wins. Raises InvalidInput for a key that is neither.
    """

    def __init__(
        self,
        config: Any = None,
        *,
        memory: Semmem | None = None,
        namespace: str | None = None,
        extract: Extract | None = None,
        **settings: Any,
    ) -> None:
        import semmem

        if isinstance(config, str | bytes | int | float | list | tuple | set):
            raise InvalidInput(f"config must be a mapping, such as {{'url': 'sqlite:notes.db'}}, not {config!r:.100}.")
        if extract is not None and not callable(extract):
            raise InvalidInput(f"extract must be a function from messages to texts, not {type(extract).__name__}.")
        if callable(getattr(config, "remember", None)):
            raise InvalidInput("An open memory is given by its name: Memory(memory=mem).")
        settings = {**_settings(config), **settings}
        configured = settings.pop("namespace", "mem0")
        if memory is not None:
            check_memory(memory)
        check_namespace(configured if namespace is None else namespace)
        if memory is not None and settings:
            raise InvalidInput(f"An open memory has its settings already; leave {next(iter(settings))} out.")
        self.memory = semmem.connect(**settings) if memory is None else memory
        self.namespace = configured if namespace is None else namespace
        self.extract = extract
        self._opened = memory is None
        self._warned = False

    @classmethod
    def from_config(cls, config_dict: Mapping[str, Any], **settings: Any) -> Memory:
        """Open a memory; see Memory for what becomes of a config."""
        return cls(config_dict, **settings)

    # ------------------------------------------------------------------ the verbs

    def add(
        self,
        messages: str | Mapping[str, Any] | Sequence[Mapping[str, Any]],
        *,
        user_id: Any = None,
        agent_id: Any = None,
        run_id: Any = None,
        metadata: Mapping[str, Any] | None = None,
        timestamp: Any = None,
        expiration_date: Any = None,
        infer: bool = True,
        memory_type: str | None = None,
        prompt: str | None = None,
    ) -> dict[str, Any]:
        """Store messages, one memory each, or with ``infer`` what ``extract`` finds in them.

        Messages of the system, and those without text, are left out; of one without a role or a content a warning says
        so. ``prompt`` is passed on to nobody. Raises InvalidInput.
        """
        if timestamp is not None or memory_type is not None:
            raise InvalidInput(f"{'memory_type' if timestamp is None else 'timestamp'} is not supported; leave it out.")
        owners = _owners(user_id, agent_id, run_id)
        if not owners:
            raise InvalidInput("At least one of 'user_id', 'agent_id', or 'run_id' must be provided.")
        if isinstance(messages, str | Mapping):
            messages = [{"role": "user", "content": messages} if isinstance(messages, str) else messages]
        elif not isinstance(messages, list | tuple):
            raise InvalidInput(f"messages must be a string, a mapping or a list of mappings, not {messages!r:.100}.")
        turns = [turn for turn in map(turn_of, messages) if turn is not None]
        for number, message in enumerate(messages, 1):
            if (missing := lacking(message)) is not None:
                warnings.warn(f"Message {number} has no {missing} and is left out, as mem0 does.", stacklevel=2)
        shared = {name: value for name, value in mapping("metadata", metadata).items() if name not in OWNERS} | owners
        if expiration_date is not None:
            shared["expiration_date"] = day(expiration_date)
        rows = [_of_turn(turn, shared) for turn in turns]
        if infer and self.extract is None:
            self._warn()
        elif infer and self.extract is not None:
            try:
                texts = self.extract([dict(turn) for turn in turns])
            except NoFacts as error:
                warnings.warn(f"{error}; the messages are stored as they are.", stacklevel=2)
            else:
                if not isinstance(texts, list | tuple):
                    raise InvalidInput(f"extract must return a list of texts, not {type(texts).__name__}.")
                rows = [{"text": text, "metadata": shared} for text in texts]
        items = [self._item(one) for one in rows]
        if items:
            self.memory.remember_many(items, namespace=self.namespace, batch_size=len(items))
        return {"results": [added(item) for item in items]}

    def search(
        self,
        query: str,
        *,
        top_k: int | None = None,
        limit: int | None = None,
        filters: Mapping[str, Any] | None = None,
        threshold: float | None = None,
        rerank: bool = False,
        explain: bool = False,
        show_expired: bool = False,
        user_id: Any = None,
        agent_id: Any = None,
        run_id: Any = None,
    ) -> dict[str, Any]:
        """Return the memories that answer a question, best first, with their fused ``score``.

        What an assistant said counts less than what a user said: its score is cut to a share (``REPLY_SHARE``), because
        a reply often repeats the words of a question without its answer.

        ``filters`` name at least one owner, or ``user_id`` … do, as in mem0 1.x (``limit`` is ``top_k`` of that time);
        they may hold mem0's operators. ``threshold`` is the confidence, from 0 to 1, below which nothing is returned: a
        fused score does not compare across questions. ``rerank`` changes nothing: choose a recipe that has a reranker.
        With ``explain`` a result has ``score_details``, its components.
        """
        most, conditions = self._limit_and_conditions(top_k, limit, filters, _owners(user_id, agent_id, run_id))
        if isinstance(threshold, bool) or not (
            isinstance(threshold, int | float | None) and 0 <= (threshold or 0) <= 1
        ):
            raise InvalidInput(f"threshold must be a number from 0 to 1, not {threshold!r:.100}.")
        fetched = min(_MOST, max(2 * most, 20))
        while True:
            hits = self.memory.recall(
                query.strip() if isinstance(query, str) else query,
                namespace=self.namespace,
                limit=fetched,
                filters=narrowed(conditions),
                min_confidence=threshold or 0.0,
            )
            shown_hits = [hit for hit in hits if is_shown(hit.memory, conditions, show_expired)]
            if len(shown_hits) >= most or len(hits) < fetched or fetched == _MOST:
                break
            fetched = min(_MOST, 2 * fetched)
        scored = sorted(((hit, *_by_role(hit)) for hit in shown_hits), key=lambda one: -one[1])[:most]
        rows = [(row(hit.memory, score=score), parts) for hit, score, parts in scored]
        return {"results": [{**row, "score_details": parts} if explain else row for row, parts in rows]}

    def get(self, memory_id: str) -> dict[str, Any] | None:
        """Return one memory, None where there is none of that id."""
        try:
            return row(self.memory.get(str(memory_id), namespace=self.namespace), score=None)
        except NotFound:
            return None

    def get_all(
        self,
        *,
        filters: Mapping[str, Any] | None = None,
        top_k: int | None = None,
        limit: int | None = None,
        show_expired: bool = False,
        user_id: Any = None,
        agent_id: Any = None,
        run_id: Any = None,
    ) -> dict[str, Any]:
        """Return the memories of an owner, newest first; see search for the arguments."""
        most, conditions = self._limit_and_conditions(top_k, limit, filters, _owners(user_id, agent_id, run_id))
        every = every_memory(self.memory, namespace=self.namespace, filters=narrowed(conditions), limit=200)
        shown = (row(one) for one in every if is_shown(one, conditions, show_expired))
        return {"results": list(islice(shown, most))}

    def update(
        self,
        memory_id: str,
        text: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        expiration_date: Any = _LEFT,
        data: str | None = None,
    ) -> dict[str, str]:
        """Change the text of a memory, and of its metadata what is given; whose it is stays.

        ``data`` is mem0's former name of ``text``. Raises MemoryMissing, InvalidInput.
        """
        if (text := data if text is None else text) is None and metadata is None and expiration_date is _LEFT:
            raise InvalidInput("At least one of text, metadata, or expiration_date must be provided.")
        fixed = (*OWNERS, "actor_id")
        changes = {name: value for name, value in mapping("metadata", metadata).items() if name not in fixed}
        if expiration_date is not _LEFT:
            changes["expiration_date"] = None if expiration_date is None else day(expiration_date)
        new_text: dict[str, Any] = {} if text is None else {"text": text}
        end = monotonic() + _PATIENCE_S
        while True:
            stored = self._stored(memory_id)
            whole: dict[str, Any] = {}
            if changes:
                whole = {"metadata": {**stored.metadata, **changes}, "expected_version": stored.tag}
            try:
                self.memory.update(stored.id, namespace=self.namespace, **new_text, **whole)
                break
            except Conflict:  # somebody else changed it since it was read, and that is kept
                if not whole or monotonic() > end:
                    raise
        return {"message": "Memory updated successfully!"}

    def delete(self, memory_id: str) -> dict[str, str]:
        """Delete one memory. Raises MemoryMissing."""
        self.memory.forget(self._stored(memory_id).id, namespace=self.namespace)
        return {"message": "Memory deleted successfully!"}

    def delete_all(self, user_id: Any = None, agent_id: Any = None, run_id: Any = None) -> dict[str, str]:
        """Delete every memory of an owner."""
        owners = _owners(user_id, agent_id, run_id)
        if not owners:
            raise InvalidInput(
                "At least one filter is required to delete all memories; to delete those of everybody, use reset()."
            )
        self.memory.forget(namespace=self.namespace, filters=narrowed(owners))
        return {"message": "Memories deleted successfully!"}

    def history(self, memory_id: str) -> list[dict[str, Any]]:
        """Return the changes of a memory, the oldest first; none where nothing is kept of it."""
        try:
            versions = self.memory.history(str(memory_id), namespace=self.namespace)
        except NotFound:
            return []
        texts = [None, *(version.memory.text for version in versions)]
        rows = [change(before, version.memory) for before, version in zip(texts, versions, strict=False)]
        if (forgotten_at := versions[-1].forgotten_at) is not None:
            last = {"id": f"{rows[-1]['id']}-deleted", "old_memory": texts[-1], "new_memory": None, "event": "DELETE"}
            rows.append({**rows[-1], **last, "updated_at": time(forgotten_at), "is_deleted": True})
        return rows

    def reset(self) -> None:
        """Delete every memory of everybody: the whole namespace."""
        self.memory.forget(namespace=self.namespace, everything=True)

    def chat(self, query: str) -> str:
        """Raise NotImplementedError, as mem0's does: neither calls a model for an answer."""
        raise NotImplementedError("chat answers nothing, as in mem0: give the results of search to a model of yours.")

    def close(self) -> None:
        """Close the store, if it was opened here."""
        if self._opened:
            self.memory.close()

    def __enter__(self) -> Memory:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    # ------------------------------------------------------------------ how

    def _warn(self) -> None:
        if not self._warned:
            self._warned = True
            warnings.warn(
                "semmem stores the messages as they are: no LLM looks for facts in them; give Memory(extract=…) a "
                "function that does, or infer=False.",
                stacklevel=3,
            )

    def _item(self, one: Mapping[str, Any]) -> dict[str, Any]:
        metadata = one["metadata"]
        author = next((metadata[name] for name in ("actor_id", "user_id", "agent_id") if metadata.get(name)), None)
        return {**one, "id": str(uuid4()), "author": author, "session": metadata.get("run_id")}

    def _stored(self, memory_id: Any) -> Stored:
        try:
            return self.memory.get(str(memory_id), namespace=self.namespace)
        except NotFound:
            raise MemoryMissing(f"Memory with id {memory_id} not found; nothing was changed.") from None

    def _limit_and_conditions(
        self, top_k: Any, limit: Any, filters: Mapping[str, Any] | None, owners: Mapping[str, str]
    ) -> tuple[int, dict[str, Any]]:
        """Return how many are wanted, and the conditions. Raises InvalidInput for conditions without an owner."""
        most = next((one for one in (top_k, limit) if one is not None), 20)
        if isinstance(most, bool) or not isinstance(most, int) or not 0 <= most <= _MOST:
            raise InvalidInput(f"top_k must be a whole number from 0 to {_MOST}, not {most!r}.")
        conditions = {**mapping("filters", filters), **owners}
        try:
            check_conditions(conditions)
            conditions = _with_names(joined(conditions))
        except RecursionError:
            raise InvalidInput("The filters are nested too deeply; flatten them.") from None
        if not _names_owner(conditions):
            raise InvalidInput(
                "filters must contain at least one of: user_id, agent_id, run_id. Example: filters={'user_id': 'u1'}"
            )
        return most, conditions


def _on_a_thread(verb: Verb[P, T]) -> Callable[Concatenate[AsyncMemory, P], Coroutine[Any, Any, T]]:
    """Return a verb of Memory for asyncio, with the same arguments, answer and errors."""

    @wraps(verb)
    async def run(self: AsyncMemory, /, *args: P.args, **options: P.kwargs) -> T:
        return await asyncio.to_thread(verb, self._memory, *args, **options)

    return run


class AsyncMemory:
    """mem0's ``AsyncMemory``: the verbs of ``Memory``, each run on a thread, with the same arguments and errors."""

    def __init__(self, config: Any = None, **options: Any) -> None:
        self._memory: Memory = Memory(config, **options)

    @classmethod
    async def from_config(cls, config: Any, **options: Any) -> AsyncMemory:
        """Open a memory; see Memory."""
        return cls(config, **options)

    add = _on_a_thread(Memory.add)
    search = _on_a_thread(Memory.search)
    get = _on_a_thread(Memory.get)
    get_all = _on_a_thread(Memory.get_all)
    update = _on_a_thread(Memory.update)
    delete = _on_a_thread(Memory.delete)
    delete_all = _on_a_thread(Memory.delete_all)
    history = _on_a_thread(Memory.history)
    reset = _on_a_thread(Memory.reset)
    chat = _on_a_thread(Memory.chat)
    close = _on_a_thread(Memory.close)

    async def __aenter__(self) -> AsyncMemory:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class MemoryClient(Memory):
    """mem0's ``MemoryClient``: the verbs of ``Memory``, asked of a server of semmem (``semmem serve``).

    ``host`` is its URL and ``api_key`` a key of it; without them those of the settings. ``org_id`` and ``project_id``
    of mem0's service are not used. Raises InvalidInput for a host that is no server of semmem.
    """

    def __init__(
        self,
        api_key: str | None = None,
        host: str | None = None,
        org_id: str | None = None,
        project_id: str | None = None,
        **options: Any,
    ) -> None:
        from semmem.config import Settings

        host = Settings.load().url if host is None else host
        if not isinstance(host, str) or not host.startswith(("http://", "https://")):
            raise InvalidInput(
                "MemoryClient asks a server of semmem; give host='http://…' (semmem serve), or import Memory."
            )
        if (urlsplit(host).hostname or "").endswith("mem0.ai"):
            raise InvalidInput("host is mem0's hosted service; give the URL of a server of semmem (semmem serve).")
        if api_key is not None:
            options["key"] = api_key
        super().__init__(url=host, **options)


class AsyncMemoryClient(AsyncMemory):
    """mem0's ``AsyncMemoryClient``: ``MemoryClient`` for asyncio."""

    def __init__(self, api_key: str | None = None, host: str | None = None, **options: Any) -> None:
        self._memory = MemoryClient(api_key, host, **options)


def _of_turn(turn: Mapping[str, Any], shared: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message as a row."""
    kind = source_type_of(turn["role"])
    return {"text": turn["content"], "source_type": kind, "metadata": {**shared, **speaker(turn)}}


def _by_role(hit: Hit) -> tuple[float, dict[str, float]]:
    """Return the score and the components of a hit; a reply of an assistant has the component ``role`` besides."""
    parts = dict(hit.components)
    if hit.memory.metadata.get("role") != "assistant":
        return hit.score, parts
    return hit.score * REPLY_SHARE, {**parts, "role": hit.score * (REPLY_SHARE - 1)}


def _settings(config: Any) -> dict[str, Any]:
    """Return what a config says of semmem; warn of what it says of mem0 alone. Raises InvalidInput."""
    values = dict(config) if isinstance(config, Mapping) else {}
    if config is not None and (not values or not values.keys().isdisjoint(_MEM0_CONFIG)):
        named = ", ".join(sorted(values.keys() & _MEM0_CONFIG))
        warnings.warn(
            f"The config of mem0{f' ({named})' if named else ''} is not used: semmem has a store, a model "
            "and settings of its own; see `semmem settings`.",
            stacklevel=3,
        )
    return {str(name): value for name, value in values.items() if name not in _MEM0_CONFIG}


def _owners(user_id: Any, agent_id: Any, run_id: Any) -> dict[str, str]:
    """Return whose memories are meant, by the names that were given."""
    pairs = zip(OWNERS, (user_id, agent_id, run_id), strict=True)
    return {name: _owner(value, name) for name, value in pairs if value is not None}


def _names_owner(conditions: Mapping[str, Any]) -> bool:
    """Return whether conditions say whose memories are meant, in a part of an AND or each alternative of an OR."""
    either = conditions.get("OR") or []
    return (
        any(name in conditions for name in OWNERS)
        or any(_names_owner(joined(one)) for one in conditions.get("AND", []))
        or (bool(either) and all(_names_owner(joined(one)) for one in either))
    )


def _with_names(conditions: Mapping[str, Any]) -> dict[str, Any]:
    """Return conditions with owners and times as they are stored, in each part of an AND, an OR and a NOT too."""
    own = {name: _owner(conditions[name], name) for name in OWNERS if _is_name(conditions.get(name))}
    each = {
        sign: [_with_names(joined(one)) for one in conditions[sign]]
        for sign in ("AND", "OR", "NOT")
        if sign in conditions
    }
    return {**with_times(conditions), **own, **each}


def _is_name(value: Any) -> bool:
    return value is not None and value != "*" and not isinstance(value, Mapping)


def _owner(value: Any, name: str) -> str:
    text = str(value).strip()
    if not text or len(text.split()) > 1 or isinstance(value, list | tuple | set | Mapping | bool):
        raise InvalidInput(f"{name} must be a name without white space, not {value!r}.")
    return text
