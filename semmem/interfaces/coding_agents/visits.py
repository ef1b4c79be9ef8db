"""Which session a clone or worktree saw last, so that the next one there begins with it and knows what came since."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from semmem.files import keep_state, state, state_file
from semmem.model.errors import InvalidInput

__all__ = ["Visit", "last_visit", "note_visit"]


@dataclass(frozen=True, slots=True)
class Visit:
    """The session whose turns were stored last in a folder, and the time of the last one, in ISO 8601."""

    session: str
    at: str


def last_visit(store: str, namespace: str, folder: Path) -> Visit | None:
    """Return the last session of a clone in a store's namespace; None where none is known."""
    with suppress(InvalidInput, TypeError, ValueError, KeyError):
        values = state(_place(store, namespace, folder))
        at = str(values["at"])
        if datetime.fromisoformat(at).tzinfo is not None:
            return Visit(str(values["session"]), at)
    return None


def note_visit(store: str, namespace: str, folder: Path, visit: Visit) -> None:
    """Note the last session of a clone; where that cannot be written, the next one begins with the newest of all."""
    with suppress(OSError, InvalidInput):
        keep_state(_place(store, namespace, folder), {"session": visit.session, "at": visit.at})


def _place(store: str, namespace: str, folder: Path) -> Path:
    name = f"{store}\n{namespace}\n{folder}".encode(errors="surrogatepass")
    return state_file("visits", name).with_suffix(".json")
