"""A client of OpenAI or Anthropic that has a memory: it recalls into the prompt and remembers the turns.

    client = semmem.wrap(OpenAI(), namespace="ana")

Every call of the client's API goes through its method ``post``, and so does a stream, whatever helper makes it. A copy
of the client gets a ``post`` that changes the body on the way out and reads the reply on the way back; nothing else of
it changes, and chunks of a stream are passed on as they come.
"""

from __future__ import annotations

import asyncio
import warnings
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from concurrent.futures import Future
from contextvars import copy_context
from dataclasses import dataclass
from secrets import token_hex
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, TypeVar

from semmem.importers.transcript import Question, Turn, fields_of, joined, storable
from semmem.interfaces.arguments import check_memory, check_namespace
from semmem.interfaces.wire import sentence
from semmem.model.errors import InvalidInput, StoreUnavailable
from semmem.model.filters import string
from semmem.model.imported_items import RowError, plain_text
from semmem.read.context import check_budget
from semmem.write.screening import redacted

if TYPE_CHECKING:
    from semmem.client.memory import Semmem

__all__ = ["wrap"]

C = TypeVar("C")
T = TypeVar("T")

_OWN_TURNS = 1_000
"""Turns of the conversation itself that no recall brings back, because the program sends them anyway."""

_PATIENCE = 10.0
"""Seconds that a call waits for the memory, before it and after it; a model that is loaded first takes some."""


@dataclass(frozen=True, slots=True)
class _Api:
    """An API for chats: where the messages of a request stand, the type of a part of text, and where replies have text.

    ``reply`` returns the text of a whole reply, ``piece`` that of a chunk; None where it has none.
    """

    messages: str
    part: str
    reply: Callable[[Any], str | None]
    piece: Callable[[Any], str | None]


def _joined_parts(parts: Any, type: str) -> str:
    return "".join(part.text for part in parts or () if getattr(part, "type", None) == type)


_APIS: Mapping[str, _Api] = {
    "/chat/completions": _Api(
        "messages",
        "text",
        reply=lambda reply: reply.choices[0].message.content,
        piece=lambda chunk: chunk.choices[0].delta.content if chunk.choices else None,
    ),
    "/responses": _Api(
        "input",
        "input_text",
        reply=lambda reply: "".join(
            _joined_parts(getattr(one, "content", None), "output_text") for one in reply.output
        ),
        piece=lambda event: event.delta if event.type == "response.output_text.delta" else None,
    ),
    "/v1/messages": _Api(
        "messages",
        "text",
        reply=lambda reply: _joined_parts(reply.content, "text"),
        piece=lambda event: getattr(event.delta, "text", None) if event.type == "content_block_delta" else None,
    ),
}
"""The APIs by the path of a call; calls of other paths pass."""


def wrap(
    client: C,
    *,
    memory: Semmem | None = None,
    namespace: str = "default",
    session: str | None = None,
    token_budget: int = 1_000,
    remember: bool = True,
    **settings: Any,
) -> C:
    """Return a copy of a client of OpenAI or Anthropic that recalls before each call and remembers after it.

    A call of ``chat.completions``, ``responses`` or ``messages`` gets the memories of ``namespace`` that answer the
    last message of the user, as a block before that message, within ``token_budget``. When the reply is whole, the
    message and the reply are stored as turns of ``session`` (by default a new one), without the credentials in them;
    ``remember=False`` stores none. The client may be for asyncio, and the reply a stream.

    ``memory`` is an open Semmem, else the store of ``settings`` is opened, as ``semmem.connect`` takes them, and the
    client's ``close`` closes it. If the memory fails, the call goes on without it, and the first time a warning says
    why. Raises InvalidInput for a client of another kind.
    """
    import semmem

    is_async = _is_async(client)
    if memory is not None:
        check_memory(memory)
        if settings:
            raise InvalidInput(f"An open memory has its settings already; leave {next(iter(settings))} out.")
    check_namespace(namespace)
    check_budget("token_budget", token_budget)
    session = f"chat-{token_hex(4)}" if session is None else string("session", session)
    opened = semmem.connect(**settings) if memory is None else memory
    chat = _Chat(opened, namespace, session, token_budget, remember)
    wrapped: C = _attached(client, chat, is_async, close=memory is None)
    return wrapped


def _is_async(client: Any) -> bool:
    """Return whether a client is for asyncio. Raises InvalidInput for what is no client of the two packages."""
    kinds = {f"{base.__module__.partition('.')[0]}.{base.__name__}" for base in type(client).__mro__}
    if isinstance(client, type):
        raise InvalidInput(f"wrap takes an open client, such as {client.__name__}(), not the class.")
    if hasattr(client, "_semmem_chat"):
        raise InvalidInput("This client has a memory already; wrap the one that it was made from.")
    if kinds & {"openai.SyncAPIClient", "anthropic.SyncAPIClient"}:
        return False
    if kinds & {"openai.AsyncAPIClient", "anthropic.AsyncAPIClient"}:
        return True
    raise InvalidInput(
        f"wrap takes a client of the packages openai or anthropic, not {type(client).__name__}; for another, put "
        "mem.context(question) into the prompt and give the messages to mem.remember_messages."
    )


def _attached(client: Any, chat: _Chat, is_async: bool, *, close: bool) -> Any:
    """Return a copy of ``client`` whose calls go through ``chat``; its own copies do too."""
    wrapped = client.copy()
    post, end, copy = wrapped.post, wrapped.close, wrapped.copy

    def called(path: str, *args: Any, **kwargs: Any) -> Any:
        call = chat.begin(path, kwargs)
        return call.heard(post(path, *args, **kwargs))

    async def called_async(path: str, *args: Any, **kwargs: Any) -> Any:
        call = await asyncio.to_thread(chat.begin, path, kwargs)
        return await call.heard_async(await post(path, *args, **kwargs))

    def closed() -> None:
        end()
        if close:
            chat.memory.close()

    async def closed_async() -> None:
        await end()
        if close:
            await asyncio.to_thread(chat.memory.close)

    def copied(**options: Any) -> Any:
        return _attached(copy(**options), chat, is_async, close=close)

    wrapped.post = called_async if is_async else called
    wrapped.close = closed_async if is_async else closed
    wrapped.copy = wrapped.with_options = copied
    wrapped._semmem_chat = chat
    return wrapped


class _Chat:
    """The memory of one wrapped client."""

    def __init__(self, memory: Semmem, namespace: str, session: str, token_budget: int, remember: bool) -> None:
        self.memory = memory
        self._namespace = namespace
        self._session = session
        self._budget = token_budget
        self._remember = remember
        self._own: deque[str] = deque(maxlen=_OWN_TURNS)
        self._question: Question | None = None
        self._position: int | None = None
        self._warned = False
        self._late: Thread | None = None
        self._keeping = Lock()  # replies to calls side by side come on several threads

    def begin(self, path: str, arguments: dict[str, Any]) -> _Call:
        """Put what is recalled into the body of a call; return what hears its reply."""
        api = _APIS.get(path.partition("?")[0])
        body = arguments.get("body")
        if api is None or not isinstance(body, Mapping):
            return _Call(self, None, None)
        asked = self._quietly(lambda: _asked(body.get(api.messages)), None)
        if asked is None:
            return _Call(self, api, None)
        index, question, is_new = asked
        block = self._quietly(lambda: self._block(question), "")
        if block:
            messages = _with_block(body[api.messages], index, block, api.part)
            arguments["body"] = {**body, api.messages: messages}
        return _Call(self, api, question if is_new else None)

    def _block(self, question: str) -> str:
        least = self.memory.settings.agent_min_confidence
        found = self.memory.context(
            question.replace('"', " "),
            namespace=self._namespace,
            token_budget=self._budget,
            exclude=[*self._own],
            min_confidence=least,
        )
        return found.text

    def keep(self, question: str | None, reply: str | None) -> None:
        """Store a message of the user and the reply to it, as turns."""
        if self._remember:
            with self._keeping:
                self._quietly(lambda: self._keep(question, reply), None)

    def _keep(self, question: str | None, reply: str | None) -> None:
        if self._position is None:
            newest = self.memory.list(namespace=self._namespace, filters={"sessions": [self._session]}, limit=1_000)
            self._position = max((one.position or 0 for one in newest), default=0)
        said = []
        for author, text in (("user", question), ("assistant", reply)):
            if text is not None and text.strip():
                self._position += 1
                words = self._without_credentials(storable(text))
                said.append(Turn(author, words, self._position, None, token_hex(8), self._session))
        turns, self._question = joined(said, self._question)
        items = [fields_of(turn, self._session, "semmem.wrap") for turn in turns]
        self._own += [item["id"] for item in items]
        if items:
            self.memory.remember_many(items, namespace=self._namespace)

    def _without_credentials(self, text: str) -> str:
        """Return a text as a hook stores it: without credentials, unless the setting says otherwise."""
        return redacted(text)[0] if self.memory.settings.source("credentials") == "default" else text

    def _quietly(self, call: Callable[[], T], otherwise: T) -> T:
        """Return what ``call`` returns, or ``otherwise`` where it fails, of which the first time a warning says why."""
        try:
            return self._in_time(call)
        except Exception as error:  # noqa: BLE001  # a call of a model goes on, whatever it is
            if not self._warned:
                self._warned = True
                warnings.warn(
                    f"The memory of this client failed, and calls go on without it: {sentence(error)}", stacklevel=2
                )
            return otherwise

    def _in_time(self, call: Callable[[], T]) -> T:
        """Return what ``call`` returns. Raises StoreUnavailable where it, or an earlier one, takes too long."""
        silent = StoreUnavailable(f"It has not answered within {_PATIENCE:g} seconds.")
        if self._late is not None and self._late.is_alive():
            raise silent
        done: Future[T] = Future()

        def work() -> None:
            try:
                done.set_result(call())
            except BaseException as error:  # noqa: BLE001  # raised where it is waited for
                done.set_exception(error)

        thread = Thread(target=copy_context().run, args=(work,), name="semmem.wrap", daemon=True)
        thread.start()
        thread.join(_PATIENCE)
        if not done.done():
            self._late = thread
            raise silent
        return done.result()


@dataclass(frozen=True, slots=True)
class _Call:
    """One call of an API: it hears the reply to ``question``, None where the message was heard before."""

    chat: _Chat
    api: _Api | None
    question: str | None

    def heard(self, reply: Any) -> Any:
        """Return a reply as it is; a stream is heard while it is read."""
        if self.api is None:
            return reply
        if hasattr(reply, "_iterator"):
            reply._iterator = self._chunks(reply._iterator, self.api)
        else:
            self.chat.keep(self.question, self._text(self.api.reply, reply))
        return reply

    async def heard_async(self, reply: Any) -> Any:
        """Return a reply as it is; a stream is heard while it is read."""
        if self.api is None:
            return reply
        if hasattr(reply, "_iterator"):
            reply._iterator = self._chunks_async(reply._iterator, self.api)
        else:
            await asyncio.to_thread(self.chat.keep, self.question, self._text(self.api.reply, reply))
        return reply

    def _chunks(self, chunks: Iterator[Any], api: _Api) -> Iterator[Any]:
        pieces = []
        for chunk in chunks:
            pieces.append(self._text(api.piece, chunk))
            yield chunk
        self.chat.keep(self.question, "".join(filter(None, pieces)))

    async def _chunks_async(self, chunks: AsyncIterator[Any], api: _Api) -> AsyncIterator[Any]:
        pieces = []
        async for chunk in chunks:
            pieces.append(self._text(api.piece, chunk))
            yield chunk
        await asyncio.to_thread(self.chat.keep, self.question, "".join(filter(None, pieces)))

    @staticmethod
    def _text(of: Callable[[Any], str | None], reply: Any) -> str | None:
        """Return the text of a reply or a chunk, None of one of another form, such as a raw response."""
        try:
            return of(reply)
        except (AttributeError, LookupError, TypeError):
            return None


def _asked(messages: Any) -> tuple[int, str, bool] | None:
    """Return the place of the last message of the user that has text, its text, and whether it is the last of all."""
    if isinstance(messages, str):
        return (0, messages, True) if messages.strip() else None
    for index in reversed(range(len(messages or ()))):
        message = messages[index]
        if isinstance(message, Mapping) and message.get("role") == "user":
            try:
                return index, plain_text(message.get("content")), index == len(messages) - 1
            except RowError:
                continue
    return None


def _with_block(messages: Any, index: int, block: str, part: str) -> Any:
    """Return the messages with ``block`` before the text of the one at ``index``."""
    if isinstance(messages, str):
        return f"{block}\n{messages}"
    content = messages[index]["content"]
    whole = f"{block}\n{content}" if isinstance(content, str) else [{"type": part, "text": block}, *content]
    return [*messages[:index], {**messages[index], "content": whole}, *messages[index + 1 :]]
