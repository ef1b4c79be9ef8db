"""A client whose server is not there, is somebody else's, or whose answer is lost on the way."""

from __future__ import annotations

import re
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from ipaddress import ip_address
from pathlib import Path
from socketserver import BaseRequestHandler, ThreadingTCPServer
from typing import Any
from urllib.parse import urlsplit

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

import semmem
from tests.serving import serving


def test_a_server_that_is_not_there_is_one_sentence() -> None:
    with semmem.connect("http://127.0.0.1:1") as mem:
        for call in (lambda: mem.stats(), lambda: mem.remember_many([{"text": "x"}]), lambda: list(mem.export())):
            with pytest.raises(semmem.StoreUnavailable, match=r"No server answers at http://.*; start it with"):
                call()
    with pytest.raises(semmem.StoreClosed):
        mem.stats()
    with pytest.raises(semmem.StoreClosed):
        mem.remember_many([{"text": "x"}])


def test_somebody_elses_server_is_told_as_what_it_is() -> None:
    class Other(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if "stats" in self.path else 502)
            self.end_headers()
            self.wfile.write(b"<html>")

        def log_message(self, *_: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Other) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            with semmem.connect(f"http://127.0.0.1:{server.server_port}") as mem:
                with pytest.raises(semmem.StoreError, match="status 200, and not as semmem does"):
                    mem.stats()
                with pytest.raises(semmem.StoreError, match="status 502"):
                    mem.get("x")
        finally:
            server.shutdown()
            thread.join()


class Nobody(BaseHTTPRequestHandler):
    """Answers every request with status 501."""

    def log_message(self, *_: Any) -> None:
        pass


class Quiet(HTTPServer):
    """A server that says nothing of clients that go away in the middle of a handshake."""

    def handle_error(self, *_: Any) -> None:
        pass


@contextmanager
def behind_tls(certificate: Path, *, address: str = "127.0.0.1", wants_another: bool = False) -> Iterator[str]:
    """Yield the URL of a server with a certificate of its own for an address, which is written into a file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "harbour")])
    now = datetime.now(UTC)
    of = x509.SubjectAlternativeName([x509.IPAddress(ip_address(address))])
    made = x509.CertificateBuilder(name, name, key.public_key(), 7, now - timedelta(days=1), now + timedelta(days=1))
    own = made.add_extension(of, critical=False).sign(key, hashes.SHA256())
    no_secret = serialization.NoEncryption()
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, no_secret)
    certificate.write_bytes(own.public_bytes(serialization.Encoding.PEM))
    both = certificate.with_suffix(".both")
    both.write_bytes(private + certificate.read_bytes())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(both)
    if wants_another:
        context.verify_mode = ssl.CERT_REQUIRED
        context.maximum_version = ssl.TLSVersion.TLSv1_2  # which tells the client before it sends anything
    with quiet(context) as port:
        yield f"https://127.0.0.1:{port}"


@contextmanager
def quiet(context: ssl.SSLContext | None) -> Iterator[int]:
    """Yield the port of a server that answers nobody, in the TLS of ``context`` or in none."""
    with Quiet(("127.0.0.1", 0), Nobody) as server:
        if context is not None:
            server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


def refused(url: str) -> str:
    """Return what a client is told that cannot reach its server."""
    with semmem.connect(url) as mem, pytest.raises(semmem.StoreUnavailable) as error:
        mem.stats()
    return str(error.value)


def test_a_certificate_that_is_not_accepted_is_told_and_can_be_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "harbour.pem"
    with behind_tls(file) as url:
        assert refused(url) == (
            f"The certificate of {url} is not accepted (self-signed certificate); if it is yours, let SSL_CERT_FILE "
            "name the file of the authority that signed it."
        )
        monkeypatch.setenv("SSL_CERT_FILE", str(file))
        with semmem.connect(url) as mem, pytest.raises(semmem.StoreError, match="status 501, and not as semmem does"):
            mem.stats()
        (tmp_path / "empty.pem").write_text("no certificate")
        for name in ("empty.pem", "absent.pem"):
            monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / name))
            with pytest.raises(semmem.InvalidInput, match=rf"{name}', in which no certificate can be read\.$"):
                semmem.connect(url)


def test_a_certificate_for_another_address_has_to_be_put_right_by_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "harbour.pem"
    with behind_tls(file, address="127.0.0.2") as url:
        monkeypatch.setenv("SSL_CERT_FILE", str(file))
        assert refused(url) == (
            f"The certificate of {url} is not accepted (IP address mismatch, certificate is not valid for "
            "'127.0.0.1'); it has to be put right there."
        )


def test_a_server_whose_tls_refuses_a_client_is_not_told_to_be_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "harbour.pem"
    with behind_tls(file, wants_another=True) as url:
        monkeypatch.setenv("SSL_CERT_FILE", str(file))
        told = refused(url)
    assert told.startswith(f"No TLS connection with {url} comes about (")
    assert told.endswith("); look at the server, or the proxy before it.")
    assert "http://" not in told


def test_https_to_a_server_without_tls_is_told_to_write_http() -> None:
    with quiet(None) as port:
        url = f"https://127.0.0.1:{port}"
        assert refused(url) == (
            f"What answers at {url} speaks no TLS; `semmem serve` does not by itself, so write http:// in the URL."
        )


@contextmanager
def cutting(url: str, answers: int) -> Iterator[str]:
    """Yield the URL of a way to a server on which the first answers are lost, after the work was done."""
    place = urlsplit(url)
    left = [answers]

    class Way(BaseRequestHandler):
        def handle(self) -> None:
            if asked := self.request_whole():
                with socket.create_connection((place.hostname, place.port), timeout=60) as server:
                    server.sendall(re.sub(rb"(?i)connection: keep-alive", b"Connection: close", asked))
                    answer = b"".join(iter(lambda: server.recv(1 << 16), b""))
                if left[0] > 0:
                    left[0] -= 1
                    return
                self.request.sendall(answer)

        def request_whole(self) -> bytes:
            self.request.settimeout(60)
            asked = b""
            while b"\r\n\r\n" not in asked:
                if not (piece := self.request.recv(1 << 16)):
                    return b""
                asked += piece
            head, _, body = asked.partition(b"\r\n\r\n")
            length = re.search(rb"content-length: (\d+)", head.lower())
            while length is not None and len(body) < int(length[1]):
                body += self.request.recv(1 << 16)
            return head + b"\r\n\r\n" + body

    class Ways(ThreadingTCPServer):
        daemon_threads = True

    with Ways(("127.0.0.1", 0), Way) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


def test_a_memory_whose_answer_is_lost_on_the_way_is_stored_once() -> None:
    with semmem.connect("sqlite::memory:", embedder="none") as local, serving(local) as url:
        with cutting(url, 1) as way, semmem.connect(way) as remote:
            made = remote.remember("The key is red.")
            assert (local.get(made.id), local.stats().memories) == (made, 1)
        with cutting(url, 1) as way, semmem.connect(way) as remote:
            assert remote.get(made.id) == made
        with cutting(url, 1) as way, semmem.connect(way) as remote:
            assert remote.forget(made.id) == 1  # sent again by itself, it gets the first answer
        assert local.stats().memories == 0


def test_a_question_whose_answer_is_lost_once_is_asked_again_and_one_lost_twice_is_not_answered() -> None:
    with semmem.connect("sqlite::memory:", embedder="none") as local, serving(local) as url:
        local.remember("The key is red.", id="key")
        with cutting(url, 1) as way, semmem.connect(way) as remote:
            assert [hit.id for hit in remote.recall("key")] == ["key"]  # a POST that only reads
        with cutting(url, 2) as way, semmem.connect(way) as remote, pytest.raises(semmem.StoreUnavailable):
            remote.recall("key")
