"""Runs of `python -m eval` that the owner of the page has named: their list, and the files that the page reads."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from fastapi import FastAPI, Request
from starlette.exceptions import HTTPException
from starlette.responses import FileResponse

from semmem.interfaces.http.guard import KEY
from semmem.interfaces.http.keys import Key
from semmem.interfaces.http.schemas import PROBLEMS
from semmem.model.errors import InvalidInput

__all__ = ["FILES", "Runs", "add_runs"]

FILES = ("result.json", "per-question.jsonl", "questions.jsonl")
"""The files of a run that are sent; the last two are in its folder ``private``."""


class Runs:
    """The runs in a folder: it, and each folder in it, with a result.json. Raises InvalidInput for none."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        if not folder.is_dir():
            raise InvalidInput(f"There is no folder {folder}; give one of a run of python -m eval, or one of several.")
        if not self.find():
            raise InvalidInput(f"No run is in {folder}: neither it nor a folder in it has a result.json.")

    def find(self) -> dict[str, Path]:
        """Return the folders of the runs by name, the newest first."""
        found: list[tuple[float, str, Path]] = []
        for one in (self._folder, *_inside(self._folder)):
            with suppress(OSError, UnicodeEncodeError):  # unreadable, gone by now, or a name of odd bytes
                folder = one.resolve()
                folder.name.encode()
                if file := _file(folder, FILES[0]):
                    found.append((file.stat().st_mtime, folder.name, folder))
        return {name: folder for _, name, folder in sorted(found, reverse=True)}


def _inside(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def _file(folder: Path, name: str) -> Path | None:
    """Return the file of a run; None where there is none, or only a link to one outside the run."""
    every = (path.resolve() for path in (folder / name, folder / "private" / name) if path.is_file())
    return next((path for path in every if path.is_relative_to(folder)), None)


def add_runs(app: FastAPI, runs: Runs | None) -> None:
    """Add the routes of the runs. Without ``runs``, or the right admin in every namespace, the list is empty."""

    def found(request: Request) -> dict[str, Path]:
        key: Key | None = request.scope[KEY]
        may = key is None or (key.right == "admin" and key.namespaces is None)
        return runs.find() if runs is not None and may else {}

    @app.get("/runs", summary="The runs of python -m eval that semmem explore was given.", responses=PROBLEMS)
    def names(request: Request) -> dict[str, list[str]]:
        return {"runs": list(found(request))}

    @app.get(
        "/runs/{name}/{file}",
        summary=f"A file of a run: {', '.join(FILES)}.",
        responses=PROBLEMS,
        response_class=FileResponse,
    )
    def file(request: Request, name: str, file: str) -> FileResponse:
        folder = found(request).get(name) if file in FILES else None
        path = folder and _file(folder, file)
        if path is None:
            raise HTTPException(404)
        return FileResponse(path, headers={"cache-control": "no-store", "x-content-type-options": "nosniff"})
