"""Read files as rows and memories, with the line number in every error, and the checks that all formats share."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from eval.datasets.corpus import Corpus, DatasetError, Query
from semmem.importers import BadRow, reader
from semmem.model.errors import InvalidInput, MissingExtra
from semmem.model.imported_items import Item
from semmem.write.items import drafted

__all__ = ["LEFT_OUT", "Source", "build", "first_item", "first_row", "text_of"]

LEFT_OUT = "rows that semmem import leaves out"


class Source:
    """Reads the files of one data set and keeps the running sha256 of their bytes."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._hash = hashlib.sha256()
        self._hashed_paths: set[Path] = set()

    @property
    def sha256(self) -> str:
        """sha256 over the bytes of all files read so far, in the order read."""
        return self._hash.hexdigest()

    def _read(self, path: Path) -> str:
        if not path.is_file():
            raise DatasetError(f"There is no file {path}; put it there or pass another path.")
        data = self._bytes(path)
        try:
            return data.decode("utf-8-sig")
        except UnicodeDecodeError as e:
            line = data[: e.start].count(b"\n") + 1
            raise DatasetError(f"{path} line {line} is not UTF-8; save the file as UTF-8.") from None

    def _bytes(self, path: Path) -> bytes:
        data = path.read_bytes()
        if path not in self._hashed_paths:
            self._hash.update(data)
            self._hashed_paths.add(path)
        return data

    def path(self, name: str) -> Path:
        """Return the path of a file, or of a folder of notes, that another reader reads; its bytes are counted here."""
        path = self.root / name
        if not path.exists():
            raise DatasetError(f"There is no file {path}; put it there or pass another path.")
        for file in sorted(path.rglob("*.md")) if path.is_dir() else [path]:
            if file.is_file():
                self._bytes(file)
        return path

    def imported(
        self, format: str, name: str, namespace: str | Callable[[Item], str], notes: Counter[str] | None = None
    ) -> list[tuple[str, dict[str, Any]]]:
        """Return (where, memory) of all that ``semmem import FORMAT`` stores of a file; where is "file line n".

        A row that it leaves out is counted in ``notes``. Without these it raises DatasetError.
        """
        path = self.path(name)
        try:
            items = reader(format)(path, reject=self.rejecting(path, notes))
            return [self.memory(path, item, namespace) for item in items]
        except (InvalidInput, MissingExtra) as error:
            raise DatasetError(error.message) from None

    def rejecting(self, path: Path, notes: Counter[str] | None = None) -> Callable[[BadRow], None]:
        """Return the function that an importer calls with a rejected row of ``path``: it counts the row in ``notes``.

        Without ``notes`` it raises DatasetError.
        """

        def reject(row: BadRow) -> None:
            if notes is None:
                raise DatasetError(f"{path} {row.where}: {row.reason}")
            notes[LEFT_OUT] += 1

        return reject

    def memory(self, path: Path, item: Item, namespace: str | Callable[[Item], str]) -> tuple[str, dict[str, Any]]:
        """Return (where, memory) of an importer's item, in its own namespace or else in ``namespace``.

        It is checked as ``remember`` checks it. Raises DatasetError.
        """
        where = f"{path} {item.where}"
        space = str(item.get("namespace") or (namespace if isinstance(namespace, str) else namespace(item)))
        memory = {**item, "namespace": space}
        try:
            draft = drafted(0, memory, space)
        except InvalidInput as error:
            raise DatasetError(f"{where}: {error.message}") from None
        if "id" not in item:
            raise DatasetError(f"{where} has no id; questions name their memories by it.")
        if "created_at" in item:
            memory["created_at"] = draft.memory.created_at
        return where, memory

    def rows(self, name: str, required: Sequence[str] = ()) -> list[tuple[str, dict[str, Any]]]:
        """Return (where, row) of every non-empty line of a JSONL file; where is "file line n"."""
        path = self.root / name
        out = []
        # split("\n") and not splitlines(): a JSON string may hold U+2028 as it stands.
        for number, line in enumerate(self._read(path).split("\n"), start=1):
            if not line.strip():
                continue
            where = f"{path} line {number}"
            try:
                row = json.loads(line)
            except json.JSONDecodeError as e:
                raise DatasetError(f"{where} is not JSON: {e.msg} at column {e.colno}.") from None
            out.append((where, _object(row, where, required)))
        return out

    def items(self, name: str, required: Sequence[str] = ()) -> list[tuple[str, dict[str, Any]]]:
        """Return (where, item) of a JSON file that is one list of objects; where is "file item n"."""
        path = self.root / name
        try:
            data = json.loads(self._read(path))
        except json.JSONDecodeError as e:
            raise DatasetError(f"{path} line {e.lineno} is not JSON: {e.msg} at column {e.colno}.") from None
        if not isinstance(data, list):
            raise DatasetError(f"{path} must be a list of objects, not {type(data).__name__}.")
        out = []
        for number, item in enumerate(data, start=1):
            where = f"{path} item {number}"
            out.append((where, _object(item, where, required)))
        return out

    def table(self, name: str) -> Iterator[tuple[str, list[str]]]:
        """Yield (where, cells) of every non-empty line of a tab-separated file."""
        path = self.root / name
        for number, line in enumerate(self._read(path).split("\n"), start=1):
            if line.strip():
                yield f"{path} line {number}", line.rstrip("\r").split("\t")


def _object(row: object, where: str, required: Sequence[str]) -> dict[str, Any]:
    if not isinstance(row, dict):
        raise DatasetError(f"{where} must be an object, not {type(row).__name__}.")
    for key in required:
        if key not in row:
            raise DatasetError(f"{where} has no {key!r}; every row needs {', '.join(required)}.")
    return row


def first_row(path: Path) -> Mapping[str, Any]:
    """Return the first JSONL row of ``path``, empty when there is none that can be read."""
    try:
        with path.open(encoding="utf-8-sig") as lines:
            row = json.loads(next((line for line in lines if line.strip()), "{}"))
    except (OSError, ValueError):
        return {}
    return row if isinstance(row, dict) else {}


def first_item(path: Path) -> Mapping[str, Any]:
    """Return the first item of a JSON file that is a list of objects, empty when there is none that can be read."""
    if path.suffix != ".json" or not path.is_file():
        return {}
    try:
        items = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        return {}
    return items[0] if isinstance(items, list) and items and isinstance(items[0], dict) else {}


def text_of(value: object, where: str, key: str) -> str:
    """Return a non-empty string, or say where it was missing."""
    if not isinstance(value, str) or not value.strip():
        raise DatasetError(f"{where} has an empty {key!r}; give it text.")
    return value


def build(
    name: str,
    format: str,
    memories: Iterable[tuple[str, Mapping[str, Any]]],
    queries: Iterable[tuple[str, Query]],
    source: Source,
    notes: Mapping[str, int] | None = None,
) -> Corpus:
    """Return the Corpus after the checks every format shares.

    Ids are unique per namespace, question ids are unique, and a gold id that no memory has is dropped and
    counted, not an error: published sets have them. A question whose every gold id is dropped is skipped too.
    """
    counts = Counter(notes or {})
    memories_by_key: dict[tuple[str, str], Mapping[str, Any]] = {}
    for where, memory in memories:
        key = (memory["namespace"], memory["id"])
        if key in memories_by_key:
            raise DatasetError(f"{where} repeats the id {memory['id']!r}; ids are unique within a namespace.")
        memories_by_key[key] = memory
    newest: dict[str, datetime] = {}
    for memory in memories_by_key.values():
        if (at := memory.get("created_at")) is not None:
            newest[memory["namespace"]] = max(at, newest.get(memory["namespace"], at))
    queries_by_id: dict[str, Query] = {}
    lost: list[tuple[str, Query]] = []
    for where, query in queries:
        if query.id in queries_by_id:
            raise DatasetError(f"{where} repeats the question id {query.id!r}; question ids are unique.")
        gold = tuple(
            dict.fromkeys(g for g in query.gold if g in query.any_of or (query.namespace, g) in memories_by_key)
        )
        counts["gold ids that do not exist"] += len(set(query.gold)) - len(gold)
        if query.gold and not gold:
            counts["questions without any gold that exists"] += 1
            lost.append((where, query))
            continue
        now = query.now or newest.get(query.namespace)
        queries_by_id[query.id] = dataclasses.replace(query, gold=gold, now=now)
    if not memories_by_key:
        raise DatasetError(f"{source.root} holds no memories; add rows to it.")
    if lost and not queries_by_id:
        where, query = lost[0]
        raise DatasetError(
            f"No question names a memory that is there: {where} asks for {query.gold[0]!r} in namespace "
            f"{query.namespace!r}; correct gold_ids or namespace."
        )
    if not queries_by_id:
        raise DatasetError(f"{source.root} holds no questions that can be scored; add rows to it.")
    return Corpus(
        name=name,
        memories=tuple(memories_by_key.values()),
        queries=tuple(queries_by_id.values()),
        notes={k: n for k, n in counts.items() if n},
        sha256=source.sha256,
        format=format,
    )
