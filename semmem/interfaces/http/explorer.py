"""The routes of the page: its files, and the session of the browser that shows it.

The page is HTML, a style and ES modules under ``static``, sent as they are. It asks the documented API and nothing
else, and its security policy lets a browser load nothing from elsewhere and run no script but these files.
"""

from __future__ import annotations

import os
from functools import cache
from hashlib import sha256
from importlib.resources import files

from fastapi import FastAPI, Request
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, RedirectResponse, Response

from semmem import __version__
from semmem.interfaces.http.documents import LINKS
from semmem.interfaces.http.guard import KEY
from semmem.interfaces.http.keys import Key
from semmem.interfaces.http.peer import user_of
from semmem.interfaces.http.schemas import PROBLEMS
from semmem.interfaces.http.sessions import Sessions
from semmem.model.looks import LOOKS, OTHERS

__all__ = ["POLICY", "add_pages"]

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""The Content-Security-Policy of the page."""

_HEADERS = {
    "content-security-policy": POLICY,
    "cross-origin-opener-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cache-control": "no-cache",
}
_MEDIA = {"css": "text/css", "html": "text/html", "js": "text/javascript", "svg": "image/svg+xml"}


def add_pages(app: FastAPI, sessions: Sessions | None) -> None:
    """Add the page at ``/``, its files under ``/page/``, and the session of a browser where there are ``sessions``."""

    @app.get("/", include_in_schema=False)
    async def root(request: Request, token: str = "") -> Response:
        if "text/html" not in request.headers.get("accept", ""):
            return JSONResponse({"name": "semmem", "version": __version__, "links": LINKS}, headers={"vary": "Accept"})
        if token:
            cookie = None if sessions is None or _is_others(request) else sessions.accept(token)
            return RedirectResponse("/", 303, {} if cookie is None else {"set-cookie": cookie})
        return _file("index.html", request)

    @app.get("/page/{name:path}", include_in_schema=False)
    async def file(request: Request, name: str) -> Response:
        return _file(name, request)

    @app.get("/session", summary="What the key or the session of this request may do.", responses=PROBLEMS)
    async def show(request: Request) -> dict[str, object]:
        return _allowed(request.scope[KEY])

    if sessions is None:
        return

    @app.post(
        "/session",
        summary="Begin a session: the answer sets a cookie that stands for the key of the request.",
        responses=PROBLEMS,
    )
    async def begin(request: Request) -> Response:
        key: Key | None = request.scope[KEY]
        headers = {} if key is None else {"set-cookie": sessions.begin(key)}
        return JSONResponse(_allowed(key), headers=headers)

    @app.delete("/session", status_code=204, summary="End the session of this request.", responses=PROBLEMS)
    async def end(request: Request) -> Response:
        return Response(status_code=204, headers={"set-cookie": sessions.end(request.headers.get("cookie"))})


def _is_others(request: Request) -> bool:
    """Return whether another user of this machine asks: everybody can read a link among the arguments of a browser."""
    client, server = request.scope["client"], request.scope["server"]
    user = user_of(tuple(client), tuple(server)) if client and server else None
    return user is not None and user != os.getuid()


def _allowed(key: Key | None) -> dict[str, object]:
    if key is None:
        return {"name": None, "right": "admin", "namespaces": None}
    return {
        "name": key.name,
        "right": key.right,
        "namespaces": None if key.namespaces is None else list(key.namespaces),
    }


def _file(name: str, request: Request) -> Response:
    found = _contents().get(name)
    if found is None:
        raise HTTPException(404)
    content, tag = found
    headers = {**_HEADERS, "etag": tag, "vary": "Accept"}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(content, media_type=_MEDIA[name.rpartition(".")[2]], headers=headers)


@cache
def _contents() -> dict[str, tuple[bytes, str]]:
    """Return the files of the page by their path under ``static``, each with its entity tag; read once a process.

    The style has the colours of the legs at its end: one file less before the first paint.
    """
    static = files("semmem.interfaces.explorer") / "static"
    folders = [("", static), ("vendor/", static / "vendor")]
    named = {
        f"{before}{file.name}": file.read_bytes()
        for before, folder in folders
        for file in folder.iterdir()
        if file.name.rpartition(".")[2] in _MEDIA
    }
    named["style.css"] += _colours().encode()
    return {name: (content, f'"{sha256(content).hexdigest()[:16]}"') for name, content in named.items()}


def _colours() -> str:
    """Return the colours of the parts of a score as a style: a variable and a class for each."""
    looks = {**LOOKS, **{f"other{number}": look for number, look in enumerate(OTHERS)}}
    light = "".join(f"--part-{name}: {look.light}; " for name, look in looks.items())
    dark = "".join(f"--part-{name}: {look.dark}; " for name, look in looks.items())
    classes = "".join(f".leg.{name} {{ background: var(--part-{name}); }}\n" for name in looks)
    return f":root {{ {light}}}\n@media (prefers-color-scheme: dark) {{ :root {{ {dark}}} }}\n{classes}"
