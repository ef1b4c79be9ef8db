"""A git repository as notes: the message of each commit, and the records of decisions that its files hold.

A commit is identified by its hash and a decision by its path, both within the repository, which its first commit
identifies; so every clone gives the same ids. ``git`` itself is asked.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from semmem.importers import BadRow, Reject, moment, refuse
from semmem.importers.note import heading, split
from semmem.model.errors import InvalidInput
from semmem.model.imported_items import Item, RowError, item

__all__ = ["read", "repository"]

_DECISION = re.compile(
    r"(?:\A|/)(?:adrs?|decisions?|decision-records|rfcs?)/(?!(?:readme|index|template)\.md\Z)[^/]+\.md\Z", re.I
)
"""The path of a record of a decision; such records lie in a folder of one of these names."""

_TRAILER = re.compile(r"(?:[A-Z][\w-]*-by|Change-Id|[A-Z][a-z]+-[A-Z][\w-]*|Cc|Fixes|Closes|Refs|See-also): \S")
_LOG = ("log", "--no-merges", "--no-show-signature", "-z", "--encoding=UTF-8", "--format=%H%x00%an%x00%aI%x00%B")


def read(path: Path, *, reject: Reject | None = None) -> Iterator[Item]:
    """Yield one item per commit that is no merge, newest first, then one per record of a decision.

    A commit has its author, its time and its message without trailers such as Signed-off-by; a record has the author
    and the time of the commit that added it. Tags are ``commit`` and ``decision``. What has no text goes to ``reject``;
    without ``reject`` it raises BadItem. Raises InvalidInput where ``path`` is no repository.
    """
    report = reject or refuse
    own = {"repository": repository(path)}
    yield from _commits(path, own, report)
    yield from _decisions(path, own, report)


def repository(path: Path) -> str:
    """Return what identifies a repository: the hash of its first commit. Raises InvalidInput where there is none."""
    roots = _git(path, "log", "--no-show-signature", "--max-parents=0", "--format=%H").split()
    return roots[-1].decode()[:12]


def _commits(path: Path, own: dict[str, str], report: Reject) -> Iterator[Item]:
    fields = _text(_git(path, *_LOG, "HEAD")).split("\x00")
    for start in range(0, len(fields) - 3, 4):
        name, author, when, message = fields[start : start + 4]
        where = f"commit {name[:12]}"
        text = _without_trailers(message)
        if not text:
            report(BadRow(where, "it has no message."))
            continue
        yield item(
            where,
            text=text,
            id=f"git:{name}",
            author=author.strip() or None,
            created_at=_time(when),
            source=name[:12],
            tags=["commit"],
            metadata=dict(own),
        )


def _time(when: str) -> datetime | None:
    """Return the time of a commit; None for one that is no time, which git stores too."""
    try:
        return moment(when)
    except RowError:
        return None


def _without_trailers(message: str) -> str:
    """Return a message without the last paragraph, where that has only trailers and is not the only one."""
    paragraphs = message.strip().split("\n\n")
    while len(paragraphs) > 1 and all(map(_TRAILER.match, paragraphs[-1].splitlines())):
        paragraphs.pop()
    return "\n\n".join(paragraphs).strip()


def _decisions(path: Path, own: dict[str, str], report: Reject) -> Iterator[Item]:
    names = _text(_git(path, "ls-tree", "-r", "-z", "--name-only", "--full-tree", "HEAD")).split("\x00")
    for name in filter(_DECISION.search, names):
        raw = _git(path, "show", f"HEAD:{name}")
        id = f"git:{own['repository']}:{name}"
        try:
            _, body = split(raw.decode("utf-8-sig").replace("\r\n", "\n"))
        except UnicodeDecodeError as error:
            report(BadRow(name, f"it is not UTF-8 (byte {error.start}).", id))
            continue
        if not body.strip():
            report(BadRow(name, "the record is empty."))
            continue
        which = ("--diff-filter=A", "--format=%an%x00%aI", "HEAD", "--", f":(top,literal){name}")
        added = _text(_git(path, "log", *which))
        author, _, when = (added.strip().splitlines() or ["\x00"])[-1].partition("\x00")
        yield item(
            name,
            text=body.strip(),
            id=id,
            title=heading(body),
            author=author or None,
            created_at=_time(when),
            source=name,
            tags=["decision"],
            metadata=dict(own),
        )


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def _git(path: Path, *words: str) -> bytes:
    """Return what git prints. Raises InvalidInput with git's own reason."""
    command = ["git", "-c", "core.quotePath=false", "-C", str(path), *words]
    try:
        done = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, check=False)
    except FileNotFoundError:
        raise InvalidInput("git is not installed, and import git asks it; install git.") from None
    if done.returncode:
        reason = " ".join(_text(done.stderr).split()).removeprefix("fatal: ")
        raise InvalidInput(f"{path} is no git repository with a commit: {reason[:300]}")
    return done.stdout
