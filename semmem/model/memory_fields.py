"""The table of a memory's fields, and that of the filters of a call. Pure.

A field is one line of ``Place`` or ``Fields``, a filter one line of ``FilterValues``: its name, its Python type for
editors and type checkers, the values that it takes, and its meaning. These lines are read by the checks of
``remember``, the schemas of HTTP and MCP, the options of the command line, the headers of CSV, exports, the statements
and encoders of both stores, and a table of the documentation. A new field is one line here, one of ``Memory`` (the type
of what is stored), and a migration; a new filter is one line here and one of ``Filters``.
"""

import dataclasses
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Annotated, Any, Literal, TypedDict, TypeVar, get_type_hints

from semmem.model.field_kinds import (
    Choice,
    Duration,
    Json,
    Kind,
    Schema,
    Share,
    Switch,
    Tags,
    Text,
    Time,
    Vector,
    Whole,
)
from semmem.model.types import SOURCE_TYPES, Memory, SourceType

__all__ = [
    "DEFAULTS",
    "FIELDS",
    "FILTERS",
    "LONGEST_NAME",
    "STORED",
    "Field",
    "Fields",
    "Filter",
    "FilterValues",
    "Item",
    "naming_fields",
]

F = TypeVar("F", bound=Callable[..., Any])

LONGEST_NAME = 200
"""The most characters in the name of an author, or of who changes, forgets, links or judges."""


@dataclass(frozen=True)
class Field:
    """A field that a caller may give: its values and its ``meaning`` in one sentence.

    Other words for it, where they differ: ``agents`` in a tool of MCP, where each token costs, ``option`` in ``semmem
    remember`` and ``change`` in ``semmem update``. A field that is ``stored`` has a column of its name in the tables
    ``memory`` and ``history``, so that versions keep it.
    """

    kind: Kind
    meaning: str
    agents: str = ""
    option: str = ""
    change: str = ""
    stored: bool = True

    def words(self, reader: Literal["agents", "option", "change"]) -> str:
        """Return the meaning in the words for a reader."""
        return getattr(self, reader) or (self.option if reader == "change" else "") or self.meaning


# fmt: off

class Place(TypedDict, total=False):
    """The text of a memory, and its place: the names by which it is found again."""

    text: Annotated[str, Field(Text(10_000_000, needed=True), "The text, as an agent may get it back.")]
    namespace: Annotated[str | None, Field(Text(200, needed=True), "The namespace.")]
    id: Annotated[str | None, Field(Text(1_000, needed=True), "The id of a memory.")]


class Fields(TypedDict, total=False):
    """The other fields that ``remember`` takes."""

    title: Annotated[str | None, Field(
        Text(2_000), "What the memory is about.",
        agents="Its subject: a name, a topic.",
        change="What it is about; '' removes it.")]
    author: Annotated[str | None, Field(
        Text(LONGEST_NAME), "Who said or wrote it; never part of the text.",
        change="Who said or wrote it.")]
    session: Annotated[str | None, Field(
        Text(1_000), "A label by which a recall can be narrowed.",
        agents="A label to filter by, such as a conversation.")]
    position: Annotated[int | None, Field(Whole(), "Its place in the session.")]
    source: Annotated[str | None, Field(
        Text(4_000), "Where it comes from: a path, an address.",
        agents="A path or an address it comes from.")]
    tags: Annotated[Sequence[str] | None, Field(
        Tags(), "Tags; in an update they replace all tags.",
        agents="Words to filter by.",
        option="A tag; give it again for more.",
        change="A tag; replaces all tags it has; repeatable.")]
    metadata: Annotated[Mapping[str, Any] | None, Field(
        Json(), "JSON of your own; in an update it replaces all metadata.",
        agents="Any JSON values.",
        option="JSON, such as '{\"ticket\": 7}'.",
        change="JSON; replaces all metadata it has.")]
    importance: Annotated[float | None, Field(
        Share(), "From 0 to 1.",
        agents="From 0 to 1; default 0.5.")]
    created_at: Annotated[datetime | date | str | None, Field(
        Time(), "When it was said or written, in ISO 8601.",
        option="ISO 8601, such as 2026-03-01T09:00+01:00.")]
    vector: Annotated[Any, Field(
        Vector(), "A unit vector of your own model.",
        option="Its vector as a JSON list; default: the embedder computes it.",
        change="Its new vector as a JSON list.",
        stored=False)]
    sensitive: Annotated[bool, Field(
        Switch(), "Keep its text out of every index; in an export, include such memories.",
        agents="Hide the text and index nothing of it; for good.",
        option="Keep its text out of every index; give the text as - to hide it too.",
        change="Take its text out of every index, or index it.")]
    valid_from: Annotated[datetime | date | str | None, Field(
        Time(), "Start of its validity; default: when it was written.",
        agents="Start of its validity (ISO 8601); default: now.",
        option="Start of its validity (ISO 8601); default: when it was written.")]
    valid_to: Annotated[datetime | date | str | None, Field(
        Time(), "End of its validity; later it ranks below valid memories.",
        agents="End of its validity (ISO 8601); later it ranks lower.")]
    expires_at: Annotated[datetime | date | str | None, Field(
        Time(), "When it expires; then no verb returns it.",
        agents="When it expires (ISO 8601); then nothing returns it.",
        option="When it expires (ISO 8601); then no verb returns it.")]
    ttl: Annotated[timedelta | float | str | None, Field(
        Duration(), "Time until it expires: seconds, or such as 30d, 12h, 45m.",
        agents="Time until it is gone: 30d, 12h, 45m.",
        option="Time until it expires, such as 30d, 12h or 45m.",
        stored=False)]
    pinned: Annotated[bool, Field(
        Switch(), "Whether it is always in the context of an agent.",
        agents="Always show it to agents.",
        option="Always include it in the context of an agent.")]
    source_type: Annotated[SourceType | None, Field(
        Choice(SOURCE_TYPES), "Who it comes from.",
        agents="Whose words: the person's, yours (agent, the default), a tool's or page's, a file's.",
        option="Who it comes from: user, agent, tool or imported.",
        change="Who it comes from: user, agent, tool or imported; '' takes it away.")]

# fmt: on


class Item(Place, Fields, total=False):
    """One item of ``remember_many`` and ``import_items``: the arguments of ``remember``."""


@dataclass(frozen=True)
class Filter:
    """A filter: how it compares which field, and its ``meaning`` in one sentence.

    A memory matches if the field is ``any`` of some values, has ``all`` of them, ``contains`` an object, lies ``from``
    or ``before`` a time, or ``is`` a truth value. ``agents`` and ``option`` are as those of a Field.
    """

    how: Literal["any", "all", "contains", "from", "before", "is"]
    field: str
    meaning: str
    agents: str
    option: str = ""

    @property
    def kind(self) -> Kind:
        """The values of one entry: of the field, or of a tag."""
        return Text(200) if self.how == "all" else FIELDS[self.field].kind

    @property
    def several(self) -> bool:
        """Whether the filter takes a list."""
        return self.how in ("any", "all")

    @property
    def schema(self) -> Schema:
        """The values of the filter as JSON Schema."""
        return {"type": "array", "items": self.kind.schema, "minItems": 1} if self.several else self.kind.schema

    @property
    def outline(self) -> Schema:
        """The same for a model that calls a tool."""
        return {"type": "array", "items": self.kind.outline} if self.several else {"type": self.kind.outline["type"]}


# fmt: off

class FilterValues(TypedDict, total=False):
    """Filters of a recall, list, forget or export; semmem.Filters says what each one means."""

    sessions: Annotated[str | Sequence[str] | None, Filter(
        "any", "session", "Only these sessions, any of them.", "any of", "Only this session; repeatable.")]
    authors: Annotated[str | Sequence[str] | None, Filter(
        "any", "author", "Only by these authors, any of them.", "any of", "Only this author; repeatable.")]
    tags: Annotated[str | Sequence[str] | None, Filter(
        "all", "tags", "Only with all of these tags.", "all of", "Only with this tag; repeatable: all of them.")]
    metadata: Annotated[Mapping[str, Any] | None, Filter(
        "contains", "metadata", "Only if the metadata contain this JSON object.", "contains")]
    created_after: Annotated[datetime | date | str | None, Filter(
        "from", "created_at", "Only from this time on.", "ISO 8601", "Only from this time on (ISO 8601).")]
    created_before: Annotated[datetime | date | str | None, Filter(
        "before", "created_at", "Only before this time.", "ISO 8601", "Only before this time (ISO 8601).")]
    titles: Annotated[str | Sequence[str] | None, Filter(
        "any", "title", "Only with exactly one of these titles.", "exactly one of",
        "Only with exactly this title; repeatable.")]
    sensitive: Annotated[bool | None, Filter(
        "is", "sensitive", "Only sensitive memories, or with false only the others.", "",
        "Only sensitive memories.")]
    source_types: Annotated[SourceType | Sequence[SourceType] | None, Filter(
        "any", "source_type", "Only from one of these types of source.", "any of",
        "Only from a user, agent, tool or imported file; repeatable.")]

# fmt: on


def _rows(table: Any) -> dict[str, Any]:
    return {name: hint.__metadata__[0] for name, hint in get_type_hints(table, include_extras=True).items()}


FIELDS: Mapping[str, Field] = {**_rows(Place), **_rows(Fields)}
"""The fields that a caller may give, by name: the arguments of ``remember``, in their order."""

FILTERS: Mapping[str, Filter] = _rows(FilterValues)
"""The filters of a call by name."""

STORED: Mapping[str, Field] = {n: one for n, one in FIELDS.items() if one.stored and n not in ("namespace", "id")}
"""The fields that have a column, besides the names of a memory, in the order of the columns."""

_OF_A_MEMORY = {one.name: one.default for one in dataclasses.fields(Memory)}

DEFAULTS: Mapping[str, Any] = {
    name: None if (default := _OF_A_MEMORY.get(name)) is dataclasses.MISSING else default for name in _rows(Fields)
}
"""The values of the fields that a call leaves out."""


def naming_fields(function: F) -> F:
    """Let the signature of a function name each of its ``**fields``, with its type and its default."""
    signature = inspect.signature(function)
    own = [one for one in signature.parameters.values() if one.kind is not one.VAR_KEYWORD]
    keyword = inspect.Parameter.KEYWORD_ONLY
    hints = get_type_hints(Fields)
    each = [inspect.Parameter(n, keyword, default=d, annotation=hints[n]) for n, d in DEFAULTS.items()]
    function.__signature__ = signature.replace(parameters=[*own, *each])  # type: ignore[attr-defined]
    return function
