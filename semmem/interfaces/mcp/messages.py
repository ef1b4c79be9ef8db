"""Messages that MCP cannot take, told in one sentence: what is wrong with them, and what to do."""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import mcp_types as types
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from semmem.interfaces.json_body import parsed
from semmem.interfaces.mcp.schemas import Schema
from semmem.model.errors import InvalidInput

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

__all__ = ["Fault", "in_own_words", "read_message", "shown", "wrong_type"]

_log = logging.getLogger(__name__)

_UNREADABLE = "The JSON is nested too deeply, or holds half a surrogate pair or too long a number; correct it."
_INNER = "The server failed at this; its log says why."
_MOST_SHOWN = 80

_TYPES: Mapping[str, tuple[str, tuple[type, ...]]] = {
    "string": ("a string", (str,)),
    "integer": ("a whole number", (int,)),
    "number": ("a number", (int, float)),
    "boolean": ("true or false", (bool,)),
    "array": ("a list", (list,)),
    "object": ("an object", (dict,)),
}
"""The types of a JSON Schema: how a sentence names them, and what Python reads them as."""

_KINDS: Mapping[str, str] = {
    "string_type": "string", "int_type": "integer", "float_type": "number", "bool_type": "boolean",
    "list_type": "array", "dict_type": "object", "dict_attributes_type": "object", "model_type": "object",
    "model_attributes_type": "object", "mapping_type": "object",
}  # fmt: skip
"""The types that pydantic's errors want."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with a message: the code and the sentence of its error, and its id where it has one."""

    id: str | int | None
    code: int
    message: str

    def as_error(self) -> types.JSONRPCError:
        """Return the answer to the message."""
        return types.JSONRPCError(
            jsonrpc="2.0", id=self.id, error=types.ErrorData(code=self.code, message=self.message)
        )


def read_message(message: str | bytes) -> types.JSONRPCMessage | Fault:
    """Return a request, a notification or an answer, or what is wrong with it."""
    try:
        read = types.jsonrpc_message_adapter.validate_json(message, by_name=False)
    except ValidationError:
        read = None
    if read is not None and not isinstance(read, types.JSONRPCNotification):
        return read
    try:
        value = parsed(message if isinstance(message, bytes) else message.encode("utf-8", "surrogatepass"))
    except InvalidInput as error:
        return Fault(None, types.PARSE_ERROR, error.message)
    if isinstance(value, list):
        return Fault(None, types.INVALID_REQUEST, "Batches are not taken; send each message by itself.")
    if not isinstance(value, dict):
        return Fault(None, types.INVALID_REQUEST, f"A message is a JSON object, not {shown(value)}.")
    if read is not None and "id" not in value:
        return read  # with an id that is none, the library takes a request for a notification and answers nothing
    own = value.get("id")
    id = own if isinstance(own, str | int) and not isinstance(own, bool) else None
    return Fault(id, types.INVALID_REQUEST, _wrong_member(value))


def _wrong_member(message: Mapping[str, Any]) -> str:
    """Say which member of a JSON-RPC message is wrong."""
    if message.get("jsonrpc") != "2.0":
        return f'jsonrpc must be "2.0", not {shown(message.get("jsonrpc"))}.'
    if "method" not in message and not {"result", "error"} & set(message):
        return "The message has no method; name the one that is called."
    if "id" in message and (isinstance(message["id"], bool) or not isinstance(message["id"], str | int)):
        return f"id must be a string or a whole number, not {shown(message['id'])}."
    if "method" in message and not isinstance(message["method"], str):
        return f"method must be a string, not {shown(message['method'])}."
    if not isinstance(message.get("params", {}), dict):
        return f"params must be an object, not {shown(message['params'])}."
    return _UNREADABLE if "method" in message else "An answer has an id, and a result that is an object, or an error."


async def in_own_words(ctx: ServerRequestContext[Any], call_next: Callable[..., Awaitable[Any]]) -> Any:
    """Answer a request, and tell what it is refused for in a sentence of ours: the library's name no argument."""
    try:
        return await call_next(ctx)
    except ValidationError as error:
        raise MCPError(code=types.INVALID_PARAMS, message=_sentence(ctx.method, error)) from None
    except MCPError as error:
        if error.code == types.METHOD_NOT_FOUND:
            sentence = f"There is no method {shown(ctx.method)} here; tools/list names what can be called."
            raise MCPError(code=error.code, message=sentence, data=error.data) from None
        if error.code == types.INVALID_PARAMS and error.data == "":
            sentence = f"{ctx.method} comes before the session is open; send initialize first."
            raise MCPError(code=error.code, message=sentence) from None
        raise
    except Exception as error:  # noqa: BLE001  # its words may say what nobody outside should read
        _log.error("A request failed.", exc_info=error)
        raise MCPError(code=types.INTERNAL_ERROR, message=_INNER) from None


def _sentence(method: str, error: ValidationError) -> str:
    """Return the first of pydantic's errors on the params of a request as a sentence."""
    first = error.errors(include_url=False, include_context=False)[0]
    names = [part for part in first["loc"] if isinstance(part, int) or not part[:1].isupper()]
    path = _path(names[1:] if names[:1] == ["params"] else names) or "params"
    if first["type"] == "missing":
        return f"{method} needs {path}."
    if (kind := _KINDS.get(first["type"])) is not None:
        return f"{path} of {method} must be {_TYPES[kind][0]}, not {shown(first['input'])}."
    return f"{path} of {method} cannot be {shown(first['input'])}; see the schema of the protocol."


def _path(names: Sequence[str | int]) -> str:
    text = ""
    for name in names:
        text += f"[{name}]" if isinstance(name, int) else f".{name}" if text else name
    return text


def wrong_type(path: str, value: Any, schema: Schema) -> str | None:
    """Say in a sentence where a value is of another type than its JSON Schema wants; None where it is not."""
    choices = schema.get("anyOf", [schema])
    if not any(_is_of(value, one) for one in choices):
        return f"{path} must be {' or '.join(map(_named, choices))}, not {shown(value)}."
    if "anyOf" in schema:
        return min((wrong_type(path, value, one) for one in choices if _is_of(value, one)), key=bool)
    if isinstance(value, list):
        parts = [(f"{path}[{index}]", one, schema.get("items", {})) for index, one in enumerate(value)]
    elif isinstance(value, dict):
        known = schema.get("properties", {})
        parts = [(f"{path}.{name}", one, known[name]) for name, one in value.items() if name in known]
    else:
        return None
    return next((wrong for part in parts if (wrong := wrong_type(*part)) is not None), None)


def _is_of(value: Any, schema: Schema) -> bool:
    kind = schema.get("type")
    if not isinstance(kind, str):
        return True
    return isinstance(value, _TYPES[kind][1]) and (not isinstance(value, bool) or kind == "boolean")


def _named(schema: Schema) -> str:
    """Return what a schema wants, in words: a list with what it is of, a number with its bounds."""
    kind = schema["type"]
    items = schema.get("items", {}).get("type")
    if kind == "array" and items in ("string", "object", "number"):
        return f"a list of {items}s"
    low, high = schema.get("minimum"), schema.get("maximum")
    return _TYPES[kind][0] + (f" from {low} to {high}" if low is not None and high is not None else "")


def shown(value: Any) -> str:
    """Return a value as JSON, cut where it is long."""
    text = json.dumps(value, default=str)
    return text if len(text) <= _MOST_SHOWN else f"{text[: _MOST_SHOWN - 1]}…"
