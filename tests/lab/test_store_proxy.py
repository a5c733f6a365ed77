"""The proxy that spoils a store's answers, before a small server of the test's own: what is spoiled, what is not, and that nobody can see it by length."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from nodectl.lab import store_proxy

CONTENT = bytes(range(256)) * 700


class Store(BaseHTTPRequestHandler):
    """Says what it was asked, as headers."""

    protocol_version = "HTTP/1.1"

    def reply(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        missing = self.path.startswith("/bucket/missing")
        content = b"<Error/>" if missing else CONTENT if self.command in ("GET", "HEAD") else body
        self.send_response_only(404 if missing else 200)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("X-Host", self.headers.get("Host", ""))
        self.send_header("X-Auth", self.headers.get("Authorization", ""))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        return None

    do_GET = do_PUT = do_HEAD = do_DELETE = reply


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join(10)
        server.server_close()


@pytest.fixture(scope="module")
def store() -> Iterator[int]:
    with serving(Store) as port:
        yield port


@contextmanager
def proxy(upstream: int, spoils: str) -> Iterator[int]:
    handler = type("Spoiling", (store_proxy.Handler,), {"upstream": ("127.0.0.1", upstream), "spoils": spoils})
    with serving(handler) as port:
        yield port


def ask(port: int, method: str, path: str, body: bytes | None = None, signed: bool = True) -> tuple[int, bytes, http.client.HTTPMessage]:
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        line.request(method, path, body, {"Host": "store:9000", **({"Authorization": "AWS4 x"} if signed else {})})
        answer = line.getresponse()
        return answer.status, answer.read(), answer.headers
    finally:
        line.close()


def test_an_objects_bytes_are_spoiled_and_its_length_is_kept(store: int) -> None:
    with proxy(store, store_proxy.CORRUPT) as port:
        status, content, headers = ask(port, "GET", "/bucket/weights.bin")
    assert (status, len(content), headers["Content-Length"]) == (200, len(CONTENT), str(len(CONTENT)))
    assert content != CONTENT
    assert sum(one != other for one, other in zip(content, CONTENT, strict=True)) == 3  # one byte of each piece of 64 KiB


def test_requests_go_through_as_they_are_so_signatures_hold(store: int) -> None:
    with proxy(store, store_proxy.CORRUPT) as port:
        status, content, headers = ask(port, "PUT", "/bucket/new", b"written")
    assert (status, content, headers["X-Host"], headers["X-Auth"]) == (200, b"written", "store:9000", "AWS4 x")


@pytest.mark.parametrize("path", ["/bucket?list-type=2&prefix=", "/", "/bucket/", "/bucket/missing"])
def test_listings_and_errors_are_left_alone(store: int, path: str) -> None:
    with proxy(store, store_proxy.CORRUPT) as port:
        assert ask(port, "GET", path)[1] in (CONTENT, b"<Error/>")


def test_head_tells_the_objects_length_without_a_body(store: int) -> None:
    with proxy(store, store_proxy.CORRUPT) as port:
        status, content, headers = ask(port, "HEAD", "/bucket/weights.bin")
    assert (status, content, headers["Content-Length"]) == (200, b"", str(len(CONTENT)))


def test_a_throttled_store_answers_every_signed_request_with_slow_down(store: int) -> None:
    with proxy(store, store_proxy.THROTTLE) as port:
        assert ask(port, "GET", "/bucket/weights.bin")[:2] == (503, store_proxy.SLOW_DOWN)
        assert ask(port, "PUT", "/bucket/new", b"x" * 100_000)[0] == 503
        assert ask(port, "GET", "/", signed=False)[0] == 200  # whoever only looks whether it is up


def test_a_store_that_is_gone_is_a_bad_gateway() -> None:
    with proxy(1, store_proxy.CORRUPT) as port:
        assert ask(port, "GET", "/bucket/weights.bin")[0] == 502


@pytest.mark.parametrize(("method", "path", "meaning"), [
    ("GET", "/bucket/key", True), ("GET", "/bucket/deep/key?x-id=GetObject", True), ("GET", "/bucket", False), ("GET", "/bucket/?list-type=2", False), ("GET", "/bucket/key?uploads", False),
    ("PUT", "/bucket/key", False), ("HEAD", "/bucket/key", False),
])
def test_what_is_an_object(method: str, path: str, meaning: bool) -> None:
    assert store_proxy.is_object(method, path) is meaning


def test_spoiling_nothing_is_nothing() -> None:
    assert store_proxy.spoiled(b"") == b""
    assert store_proxy.spoiled(b"a") != b"a"
