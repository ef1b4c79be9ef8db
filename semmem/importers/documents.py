"""A folder of PDF, HTML and Office files: each becomes a note, as Markdown.

markitdown converts them on this machine; only its converters for these formats are used, so nothing is sent or fetched.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from semmem.importers import BadRow, Reject, refuse
from semmem.importers.markdown import vault_name, walked
from semmem.importers.note import heading
from semmem.model.errors import InvalidInput, MissingExtra
from semmem.model.imported_items import Item, item

__all__ = ["FORMER", "SUFFIXES", "read"]

SUFFIXES = (".pdf", ".html", ".htm", ".docx", ".pptx", ".xlsx", ".epub")
FORMER = (".doc", ".ppt", ".xls", ".odt", ".rtf")
"""Formats of documents that are named as what cannot be read; other files are passed over."""

_LARGEST = 100_000_000
_ESCAPED = re.compile(r"\\([_*])")
"""Signs that Markdown escapes; in a memory, names and credentials stand as they were written."""


def read(path: Path, *, reject: Reject | None = None) -> Iterator[Item]:
    """Yield one item per document of a folder, ordered by path; its id is the folder's name and its path in it.

    The time is that of the file, the title that of the document, else its first heading, else the file's name. Hidden
    folders are passed over, and so are links that lead outside. A document that cannot be read, or has no text, such as
    a scan, goes to ``reject``; without ``reject`` it raises BadItem. Raises MissingExtra without markitdown, and
    InvalidInput where there is no document.
    """
    report = reject or refuse
    found = sorted(walked(path, (*SUFFIXES, *FORMER), report))
    if not found:
        raise InvalidInput(f"There is no document in {path}: neither it nor a folder in it has {', '.join(SUFFIXES)}.")
    for name, file in found:
        id = f"{vault_name(path)}/{name}"
        try:
            title, text = _converted(file)
            changed = datetime.fromtimestamp(file.stat().st_mtime // 1, UTC)
        except _Unreadable as error:
            report(BadRow(name, str(error), id))
            continue
        except OSError as error:
            report(BadRow(name, f"it cannot be read: {error.strerror}.", id))
            continue
        yield item(
            name,
            text=text,
            id=id,
            title=title or heading(text) or file.stem,
            source=name,
            created_at=changed,
            metadata={"format": file.suffix.lower()[1:]},
        )


class _Unreadable(Exception):
    """The reason why a document has no text for us."""


def _converted(file: Path) -> tuple[str | None, str]:
    """Return the title and the text of a document as Markdown. Raises _Unreadable."""
    if file.suffix.lower() in FORMER:
        raise _Unreadable(f"{file.suffix} is not read; save it as one of {', '.join(SUFFIXES)}.")
    if not file.is_file():  # of a pipe, reading would not end
        raise _Unreadable("it is not a regular file.")
    if os.path.getsize(file) > _LARGEST:
        raise _Unreadable(f"it has more than {_LARGEST // 1_000_000} MB; it is no note.")
    try:
        made = _converter().convert_local(file)
    except MissingExtra:
        raise
    except Exception as error:  # noqa: BLE001  # a damaged file makes each of its libraries fail in its own way
        raise _Unreadable(f"it cannot be converted: {_reason(error)}.") from None
    text = _ESCAPED.sub(r"\1", made.markdown).strip()
    if not text:
        raise _Unreadable("it has no text that can be read; it may be a scan.")
    return (made.title or "").strip() or None, text


def _reason(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    last = lines[-1] if lines else type(error).__name__
    return last.rpartition(" with message: ")[2].removeprefix("- ").rstrip(".?!")[:200]


@cache
def _converter() -> Any:
    """Return the converter; without its libraries for a format, the document says so."""
    try:
        from markitdown import MarkItDown, converters
    except ImportError:
        raise MissingExtra(
            "The package markitdown is not installed; install it with: pip install 'semmem[documents]'"
        ) from None
    logging.getLogger("pdfminer").setLevel(logging.ERROR)  # it tells every oddity of a font
    converter = MarkItDown(enable_builtins=False, enable_plugins=False)  # of the built-in ones, some ask the network
    for kind in ("Pdf", "Html", "Docx", "Pptx", "Xlsx", "Epub"):
        converter.register_converter(getattr(converters, f"{kind}Converter")())
    return converter
