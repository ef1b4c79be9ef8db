"""Runs of `python -m eval` that the owner of the page has named: their list, and the files that the page reads."""

from __future__ import annotations

from pathlib import Path

from fastapi import FastAPI, Request
from starlette.exceptions import HTTPException
from starlette.responses import FileResponse

from semmem.doors.http.guard import KEY
from semmem.doors.http.keys import Key
from semmem.doors.http.schemas import PROBLEMS
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
        folders = [one for one in (self._folder, *self._folder.iterdir()) if (one / FILES[0]).is_file()]
        folders.sort(key=lambda one: (one / FILES[0]).stat().st_mtime, reverse=True)
        return {one.resolve().name: one for one in folders}


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
        path = folder and next((at for at in (folder / file, folder / "private" / file) if at.is_file()), None)
        if path is None:
            raise HTTPException(404)
        return FileResponse(path, headers={"cache-control": "no-store", "x-content-type-options": "nosniff"})
