"""What a tool is: a row of a table, with schemas and the function that answers; and how a call is answered."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

from semmem.interfaces import wire
from semmem.interfaces.mcp.brief import brief
from semmem.interfaces.mcp.messages import shown, wrong_type
from semmem.interfaces.mcp.schemas import Schema
from semmem.model.errors import InvalidInput, NotFound, SemmemError
from semmem.model.field_kinds import Switch
from semmem.model.memory_fields import FIELDS
from semmem.model.serialization import plain
from semmem.model.types import MASK, MASK_OF_TOOLS
from semmem.write.screening import noting

if TYPE_CHECKING:
    from semmem.client.memory import Semmem
    from semmem.interfaces.scope import Agent, Scope
    from semmem.model.types import Memory

__all__ = ["Answer", "Call", "Run", "Tool", "answer_call", "answer_error", "as_values", "indented", "text_of", "uri_of"]

T = TypeVar("T")

_log = logging.getLogger(__name__)

_INNER = "The memory failed at this; the log of its server says why."
"""What is said of an error that is none of semmem: its own words may say what nobody outside should read."""

_ABSENT: tuple[Any, ...] = (None, "", [], {}, ())
_SWITCHES = [name for name, row in FIELDS.items() if isinstance(row.kind, Switch)]


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a tool: the open store, the arguments as they came, whose scope it has and who makes it."""

    memory: Semmem
    arguments: Mapping[str, Any]
    scope: Scope
    agent: Agent

    def arguments_named(self, *names: str) -> dict[str, Any]:
        """Return the arguments of these names that were given, with what they are."""
        return {name: self.arguments[name] for name in names if name in self.arguments}

    def present(self, *names: str) -> dict[str, Any]:
        """Return the arguments of these names that were given and are not null."""
        return {name: value for name, value in self.arguments_named(*names).items() if value is not None}

    @property
    def least(self) -> dict[str, Any]:
        """The argument by which hits of low confidence are withheld: that of the call, else that of the settings."""
        given = self.arguments.get("min_confidence")
        return {"min_confidence": self.memory.settings.agent_min_confidence if given is None else given}

    @property
    def revealing(self) -> dict[str, Any]:
        """The argument by which texts of sensitive memories are shown, where the server may show them."""
        return {"reveal": True} if self.scope.reveal else {}

    @property
    def namespace(self) -> Any:
        """The namespace that was named, else that of the scope."""
        named = self.arguments.get("namespace")
        return self.scope.namespace if named is None else named

    @property
    def namespaces(self) -> Any:
        """The namespaces that were named, else all of the scope."""
        named = self.arguments.get("namespace")
        return self.scope.namespaces if named is None else named

    def found(self, id: Any) -> Memory:
        """Return the memory ``id`` of the namespace that was named, or of the first of the scope that has it.

        Raises NotFound, which says where it was looked for, and InvalidInput for an id that is no string.
        """
        named = self.arguments.get("namespace")
        if named is not None or len(self.scope.namespaces) == 1:
            return self.memory.get(id, namespace=self.namespace)
        for namespace in self.scope.namespaces:
            try:
                return self.memory.get(id, namespace=namespace)
            except NotFound:
                continue
        looked = " or ".join(repr(name) for name in self.scope.namespaces)
        raise NotFound(
            f"There is no memory {id!r} in namespace {looked}; memory_recall gives ids, and `namespace` says where to "
            "look for one of another namespace."
        )

    def reached(self, id: Any, act: Callable[[Any, Any], T]) -> T:
        """Return what ``act`` makes of an id and its namespace, also where the memory was forgotten.

        Of several namespaces it is the first that has the memory, else the first in which ``act`` finds what is kept of
        it. Raises NotFound, as ``found`` does.
        """
        if self.arguments.get("namespace") is not None or len(self.scope.namespaces) == 1:
            return act(id, self.namespace)
        try:
            found = self.found(id)
        except NotFound:
            for namespace in self.scope.namespaces:
                with suppress(NotFound):
                    return act(id, namespace)
            raise
        return act(found.id, found.namespace)


Run = Callable[[Call], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Tool:
    """One row of the table: what is told of a tool, and the function that answers a call of it.

    ``arguments`` are properties of a JSON Schema; those that are ``seldom`` given are listed only where every tool is.
    ``reads``, ``destroys`` and ``repeatable`` become the annotations. ``keeps`` names the fields of a memory that a
    brief answer gives, else all that are not as usual. ``bare``: its answer has a shape of its own, that of ``result``,
    and no verbose form; ``sometimes`` names the parts that it may lack. ``text`` gives the text of such an answer, or
    of a brief one, where that is not the JSON of it.
    """

    name: str
    title: str
    description: str
    run: Run
    arguments: Mapping[str, Schema] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    seldom: tuple[str, ...] = ()
    keeps: tuple[str, ...] = ()
    result: Mapping[str, Schema] = field(default_factory=dict)
    sometimes: tuple[str, ...] = ()
    reads: bool = True
    destroys: bool = False
    repeatable: bool = True
    bare: bool = False
    text: Callable[[dict[str, Any]], str] | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What a tool answered: values for programs, the same as text for models, and the scope for ``_meta``."""

    text: str
    values: dict[str, Any] | None
    meta: dict[str, Any] = field(default_factory=dict)
    failed: bool = False


def answer_call(tool: Tool, call: Callable[[], Call], arguments: Mapping[str, Any]) -> Answer:
    """Run ``tool``; what goes wrong is an answer too, with the class, the code and a sentence that says what to do.

    ``call`` opens the store, so it is made after the names of the arguments were checked.
    """
    try:
        _check(tool, arguments)
        verbose = arguments.get("verbose") or False
        if not isinstance(verbose, bool):
            raise InvalidInput(f"verbose must be true or false, not {shown(verbose)}.")
        current = call()
        with noting() as warnings:
            values = plain(tool.run(current))
        if warnings and not tool.bare:
            values = {**values, "warnings": warnings}
        who = {"scope": current.scope.as_dict(), "agent": current.agent.as_dict()}
        if not (verbose or tool.bare):
            values = brief(values, current, tool.keeps)
    except Exception as error:  # noqa: BLE001  # a tool that fails says so to the model, whatever it is
        if isinstance(error, InvalidInput) and (sentence := _misfit(tool, arguments)):
            error = InvalidInput(sentence)
        return answer_error(error, plainly=tool.bare and tool.text is not None)
    if verbose:
        return Answer(_json({**values, **who}), {**values, **who}, who)
    if tool.text is None:
        return Answer(_json(values), values, who)
    return Answer(tool.text(values), values if tool.bare else None, who)


def answer_error(error: BaseException, *, plainly: bool = False) -> Answer:
    """Return an error as a tool's answer: as JSON, or ``plainly`` as its sentence."""
    if isinstance(error, SemmemError):
        sentence = " ".join(str(error).split())
    else:
        _log.error("A tool failed.", exc_info=error)
        sentence = _INNER
    if plainly:
        return Answer(sentence, None, failed=True)
    kind = type(error).__name__ if isinstance(error, SemmemError) else SemmemError.__name__
    details = {"class": kind, "code": wire.answer(error).mcp_code, "message": sentence}
    return Answer(_json({"error": details}), None, failed=True)


def _check(tool: Tool, arguments: Mapping[str, Any]) -> None:
    """Raise InvalidInput for an argument that the tool does not take, or one that it needs and has not got."""
    takes = ", ".join(tool.arguments) or "none"
    for name in arguments:
        if name not in tool.arguments and (name != "verbose" or tool.bare):
            raise InvalidInput(f"{tool.name} has no argument {name!r}; it takes {takes}.")
    for name in tool.required:
        if arguments.get(name) is None:
            raise InvalidInput(f"{tool.name} needs {name}; it takes {takes}.")


def _misfit(tool: Tool, arguments: Mapping[str, Any]) -> str | None:
    """Say which argument does not fit the schema of the tool, in the words of JSON: the facade's are Python's."""
    given = {name: value for name, value in arguments.items() if value is not None and name in tool.arguments}
    wrong = (wrong_type(name, value, tool.arguments[name]) for name, value in given.items())
    sentence = next((one for one in wrong if one is not None), None)
    return sentence if sentence is None or tool.reads else f"{sentence[:-1]}; nothing was changed."


def as_values(memory: Memory) -> dict[str, Any]:
    """Return a memory as the tools show it: without fields that have no value, and with its resource."""
    values = plain(memory.as_dict()) | {"text": text_of(memory)}
    values.pop("parent_id", None)
    for name in (*_SWITCHES, "access_count"):
        if not values[name]:
            del values[name]
    return {**{name: value for name, value in values.items() if value not in _ABSENT}, "uri": uri_of(memory)}


def text_of(memory: Memory) -> str:
    """Return the text of ``memory`` as a tool shows it; for one that is hidden, how a person lets an agent see it."""
    return MASK_OF_TOOLS if memory.sensitive and memory.text == MASK else memory.text


def uri_of(memory: Memory) -> str:
    """Return the URI of the resource of ``memory``."""
    return f"semmem://memory/{quote(memory.namespace, safe='')}/{quote(memory.id, safe='')}"


def indented(value: Any) -> str:
    """Return a value as JSON on several lines."""
    return json.dumps(value, indent=2, ensure_ascii=False)


def _json(values: Any) -> str:
    return json.dumps(values, ensure_ascii=False, separators=(",", ":"))
