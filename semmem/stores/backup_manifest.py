"""Read the manifest of a backup, which is not trusted: its size is limited and its form is checked."""

from __future__ import annotations

import zipfile
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["LONGEST", "MANIFEST", "Manifest", "members", "read"]

MANIFEST = "manifest.json"
"""The member that describes the others; it is written last."""
LONGEST = 1 << 25
"""The most bytes of a manifest."""
_MOST_TABLES = 1_000
_STORED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_Count = Annotated[int, Field(ge=0, lt=1 << 63)]
_Number = Annotated[int, Field(ge=1, lt=1 << 31)]
_Name = Annotated[str, Field(min_length=1, max_length=200)]
_Hash = Annotated[str, Field(pattern=r"\A[0-9a-f]{64}\z")]


class _Checked(BaseModel):
    """A JSON object with exactly these types: a number is not read from a string."""

    model_config = ConfigDict(strict=True, frozen=True)


class _Heading(_Checked):
    format: _Number
    number: _Number = Field(alias="schema")


class _Table(_Checked):
    columns: list[_Name] = Field(min_length=1, max_length=_MOST_TABLES)
    rows: _Count
    sha256: _Hash


class _Namespace(_Checked):
    memories: _Count
    parts: _Count
    vectors: _Count
    content: _Name
    vector: _Name
    graph: _Name


class Manifest(_Heading):
    """The manifest of a backup whose format and schema this semmem knows."""

    memories: _Count
    tables: dict[_Name, _Table] = Field(max_length=_MOST_TABLES)
    namespaces: dict[str, _Namespace]
    indexed: bool


def members(archive: zipfile.ZipFile, size: int) -> set[str]:
    """Return the names of the members of an archive of ``size`` bytes.

    Raises ValueError where two members have the same name or share bytes, or where one is not packed as in a backup.
    """
    infos = archive.infolist()
    names = {member.filename for member in infos}
    if len(names) != len(infos) or len(infos) > _MOST_TABLES + 2 or sum(m.compress_size for m in infos) > size:
        raise ValueError("members that no backup has")
    if any(member.compress_type not in _STORED or member.flag_bits & 1 for member in infos):
        raise ValueError("members packed in another way")
    return names


def read(archive: zipfile.ZipFile) -> tuple[int, int, Any]:
    """Return (format, schema, function that returns the whole manifest). Raises ValueError for a wrong form."""
    with archive.open(MANIFEST) as member:
        raw = member.read(LONGEST + 1)
    if len(raw) > LONGEST:
        raise ValueError("the manifest is too long")
    heading = _Heading.model_validate_json(raw)
    return heading.format, heading.number, lambda: Manifest.model_validate_json(raw)
