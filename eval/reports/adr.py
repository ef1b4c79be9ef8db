"""Decision records that carry evidence: front matter names the result, the comparison and the metric, and is checked.

    evidence_result: eval/results/locomo3-ablate.json
    evidence_comparison: graph in default
    evidence_group: headline
    evidence_metric: R@10
    evidence_shows: helps +0.072 [+0.040, +0.105]
    evidence_command: python -m eval ablate --leg graph --data locomo3

``problems`` says where a record and its evidence, or a record and the index, disagree.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from datetime import date
from itertools import takewhile
from pathlib import Path
from typing import Any

from eval.datasets import DatasetError
from eval.experiments.evidence.provenance import clean
from eval.reports import tables
from eval.statistics.verdict import REFUSED, interval, kind_of
from semmem.model.reports import counted

__all__ = ["INDEX", "draft", "front_matter", "index", "keep", "problems", "rounded", "shows"]

INDEX = "README.md"
_KEYS = ("result", "comparison", "group", "metric", "shows", "command")
_STATUSES = ("proposed", "accepted", "superseded", "rejected", "deprecated")


def keep(folder: Path, name: str, results: Path) -> Path:
    """Copy the aggregates of a result folder to ``results``, numbers to six digits. Raises DatasetError."""
    if not (folder / "result.json").is_file():
        raise DatasetError(f"{folder} holds no result.json; pass a result folder.")
    if not re.fullmatch(r"[\w.-]+", name):
        raise DatasetError(f"{name!r} is no name for a file; use letters, digits, '_', '.' and '-'.")
    result = json.loads((folder / "result.json").read_bytes())
    commit = result.get("environment", {}).get("commit")
    if not clean(commit):
        raise DatasetError(
            f"{folder} was measured with {'files that differ from their commit' if commit else 'no known commit'}, so "
            "it cannot be made again; commit what has changed, and measure it anew."
        )
    path = results / f"{name.removesuffix('.json')}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(rounded(result), ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")
    return path


def rounded(value: Any) -> Any:
    """Return a result with its numbers to six digits."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {key: rounded(of) for key, of in value.items()}
    return [rounded(of) for of in value] if isinstance(value, list) else value


def front_matter(text: str) -> dict[str, str]:
    """Return the flat ``key: value`` lines between the first two ``---``; quotes around a value are dropped."""
    match = re.match(r"---\n(.*?)\n---\n", text, re.DOTALL)
    lines = match[1].splitlines() if match else []
    return {
        key.strip(): value.strip().strip("\"'")
        for line in lines
        for key, colon, value in [line.partition(":")]
        if colon
    }


def shows(comparison: Mapping[str, Any]) -> str:
    """Return what a comparison shows in the one form that a record must repeat; a refused one has no number."""
    if kind_of(comparison) in REFUSED:
        return kind_of(comparison)
    paired = comparison["paired"]
    return f"{kind_of(comparison)} {paired['delta']:+.3f}{interval(paired)}"


def draft(folder: Path, slug: str, result_path: str, root: Path, *, comparison: str | None = None, today: date) -> Path:
    """Write the next numbered record from a kept result and return its path.

    The headline of the result's first metric is taken. Raises DatasetError when there is no such comparison.
    """
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", slug):
        raise DatasetError(f"The slug {slug!r} must be words in lower case joined by hyphens.")
    result = _result(root, result_path)
    names = [c["name"] for c in result["comparisons"]]
    row = _find(result, comparison or (names[0] if names else ""), "headline", result["metrics"][0])
    if row is None:
        raise DatasetError(f"{result_path} has no comparison {comparison!r}; it has {', '.join(dict.fromkeys(names))}.")
    numbers = [int(p.name[:4]) for p in folder.glob("[0-9][0-9][0-9][0-9]-*.md")]
    path = folder / f"{max(numbers, default=0) + 1:04d}-{slug}.md"
    where = f"On {result['corpus']['name']} ({counted(result['corpus']['headline'], 'question')})"
    lines = [
        "---",
        "status: proposed",
        f"date: {today.isoformat()}",
        f"evidence_result: {result_path}",
        f"evidence_comparison: {row['name']}",
        f"evidence_group: {row['group']}",
        f"evidence_metric: {row['metric']}",
        f"evidence_shows: {shows(row)}",
        f"evidence_command: {result.get('line') or 'python -m eval ' + result['command']}",
        "---",
        f"# {slug.replace('-', ' ').capitalize()}",
        "",
        "## Context",
        "",
        "## Decision",
        "",
        "## The number",
        "",
        f"{where}, {row['metric']}, {row['name']}: {shows(row)}.",
        "",
        "## Consequences",
        "",
    ]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def index(folder: Path) -> str:
    """Return the index of the records: number, title, status."""
    rows = ["# Decisions", "", "| record | status |", "|---|---|"]
    for path in sorted(folder.glob("[0-9][0-9][0-9][0-9]-*.md")):
        text = path.read_text(encoding="utf-8")
        title = next((line[2:] for line in text.splitlines() if line.startswith("# ")), path.stem)
        rows.append(f"| [{path.name[:4]} {title}]({path.name}) | {front_matter(text).get('status', '')} |")
    return "\n".join(rows) + "\n"


def problems(folder: Path, root: Path, commands: Collection[str]) -> list[str]:
    """Return a sentence for each place where a record disagrees with its evidence, its command or the index."""
    out = []
    for path in sorted(folder.glob("[0-9][0-9][0-9][0-9]-*.md")):
        text = path.read_text(encoding="utf-8")
        head = front_matter(text)
        if head.get("status", "").split(" ")[0] not in _STATUSES:
            out.append(f"{path.name} has the status {head.get('status')!r}; use one of {', '.join(_STATUSES)}.")
        out += [f"{path.name} {problem}" for problem in _of_tables(text, root)]
        if any(key.startswith("evidence_") for key in head):
            out += [f"{path.name} {problem}" for problem in _against_evidence(head, text, root, commands)]
    index_file = folder / INDEX
    if index_file.is_file() and index_file.read_text(encoding="utf-8") != index(folder):
        out.append(f"{INDEX} is not the index of the records; write it again with `python -m eval adr --index`.")
    return out


_OTHER = "of another origin"
_DECIMAL = re.compile(r"\d?\.\d")


def _of_tables(text: str, root: Path) -> list[str]:
    """Return what is wrong with a record's tables: not what its results say, or numbers from nobody knows where."""
    out = []
    try:
        if tables.stale(text, root / "eval" / "results"):
            out.append("has a table that is not what its results say; see `python -m eval tables`.")
    except DatasetError as error:
        out.append(f"has a table that cannot be made: {error}")
    lines = [line.lstrip() for line in text.splitlines()]
    for i, line in enumerate(lines):
        begins = line.startswith("|") and (i == 0 or not lines[i - 1].startswith("|"))
        if not begins or lines[i - 1] == "-->":
            continue
        rows = list(takewhile(lambda row: row.startswith("|"), lines[i:]))
        before = " ".join(lines[max(0, i - 6) : i])
        if any(_DECIMAL.search(row) for row in rows) and _OTHER not in before:
            out.append(
                f"has a table with numbers of no committed result, and does not say that they are {_OTHER}: {line}"
            )
    return out


def _against_evidence(head: Mapping[str, str], text: str, root: Path, commands: Collection[str]) -> Sequence[str]:
    if absent := [f"evidence_{key}" for key in _KEYS if f"evidence_{key}" not in head]:
        return [f"has evidence without {', '.join(absent)}."]
    try:
        result = _result(root, head["evidence_result"])
    except DatasetError as error:
        return [f"names evidence that cannot be read: {error}"]
    out = []
    row = _find(result, head["evidence_comparison"], head["evidence_group"], head["evidence_metric"])
    if row is None:
        out.append(f"names a comparison that {head['evidence_result']} does not have.")
    elif shows(row) != head["evidence_shows"]:
        out.append(f"says {head['evidence_shows']!r} where its result says {shows(row)!r}.")
    body = text.split("\n---\n", 1)[-1]
    if head["evidence_shows"] not in body:
        out.append(f"does not say {head['evidence_shows']!r} in its text.")
    if result.get("line", head["evidence_command"]) != head["evidence_command"]:
        out.append(f"names the command {head['evidence_command']!r}, and its result was made by {result['line']!r}.")
    words = head["evidence_command"].split()
    if words[:3] != ["python", "-m", "eval"] or len(words) < 4 or words[3] not in commands:
        out.append(f"names the command {head['evidence_command']!r}, which does not exist.")
    return out


def _result(root: Path, path: str) -> dict[str, Any]:
    try:
        result: dict[str, Any] = json.loads((root / path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DatasetError(f"There is no result {path}; keep one with `python -m eval keep`.") from None
    except ValueError:
        raise DatasetError(f"{path} is not JSON; keep the result again.") from None
    return result


def _find(result: Mapping[str, Any], name: str, group: str, metric: str) -> dict[str, Any] | None:
    key = (name, group, metric)
    return next((c for c in result["comparisons"] if (c["name"], c["group"], c["metric"]) == key), None)
