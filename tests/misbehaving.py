"""A server on this machine that answers as its script says, in every wrong way."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

__all__ = ["Behaviour", "Handler", "Server", "closes", "hangs", "raw", "serving", "status", "trickles"]

Behaviour = Callable[["Handler"], None]


class Handler(BaseHTTPRequestHandler):
    """Does what the next behaviour of the server's script says; the last one again and again."""

    protocol_version = "HTTP/1.1"
    server: Server

    def do_POST(self) -> None:
        self.asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.received.append((self.path, dict(self.headers), self.asked))
        behave = self.server.script.pop(0) if len(self.server.script) > 1 else self.server.script[0]
        behave(self)
        self.close_connection = True

    def reply(self, body: bytes, status: int = 200, *, declared: int | None = None, **headers: str) -> None:
        self.send_response(status)
        headers.setdefault("Content_Type", "application/json")
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body) if declared is None else declared))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


class Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, good: Behaviour) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.script: list[Behaviour] = [good]
        self.received: list[tuple[str, dict[str, str], Any]] = []
        self.over = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hung up is part of the test."""


def status(code: int, **headers: str) -> Behaviour:
    return lambda h: h.reply(b'{"error": {"message": "no"}}', code, **headers)


def raw(content: bytes, **options: Any) -> Behaviour:
    return lambda h: h.reply(content, **options)


def hangs(handler: Handler) -> None:
    handler.server.over.wait(60)


def trickles(handler: Handler) -> None:
    """Send a byte every now and then, so that no single read takes long."""
    handler.send_response(200)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", "1000000")
    handler.end_headers()
    for _ in range(1_200):
        handler.wfile.write(b" ")
        if handler.server.over.wait(0.05):
            return


def closes(handler: Handler) -> None:
    handler.connection.close()


@contextmanager
def serving(good: Behaviour) -> Iterator[Server]:
    """Serve ``good`` answers until the script is changed."""
    with Server(good) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield server
        server.over.set()
        server.shutdown()
        thread.join()
