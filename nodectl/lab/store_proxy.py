"""Stands before an object store and spoils its answers. Run as a program: ADDRESS PORT UPSTREAM_PORT corrupt|throttle.

Self-contained: it is started by its path with `python -I`. Requests go through byte for byte, so their signatures hold.
"""

from __future__ import annotations

import http.client
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

CORRUPT, THROTTLE = "corrupt", "throttle"
# S3's words for "too many requests": clients back off and try again.
SLOW_DOWN = b'<?xml version="1.0" encoding="UTF-8"?><Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>'
# As long as the slowest client waits for one answer; a store that is frozen behind us must not hold a thread for ever.
UPSTREAM_S = 60.0
PIECE = 1 << 16
# Headers that hold for one connection only.
OF_THE_LINE = frozenset(["connection", "keep-alive", "transfer-encoding", "te", "trailer", "upgrade", "proxy-authorization", "proxy-authenticate"])


def is_object(method: str, path: str) -> bool:
    """Whether the answer's body is an object's content: /bucket/key without a question about the bucket."""
    where, _, question = path.partition("?")
    return method == "GET" and where.strip("/").count("/") >= 1 and "list-type" not in question and "uploads" not in question


def spoiled(piece: bytes) -> bytes:
    """The piece with its last byte changed: what a bad memory cell in a gateway does, and no length or code shows it."""
    return piece[:-1] + bytes([piece[-1] ^ 0x20]) if piece else piece


class Handler(BaseHTTPRequestHandler):
    """One connection of a client."""

    protocol_version = "HTTP/1.1"
    upstream: ClassVar[tuple[str, int]] = ("127.0.0.1", 9001)
    spoils: ClassVar[str] = CORRUPT

    def pass_on(self) -> None:
        if self.spoils == THROTTLE and self.headers.get("Authorization"):
            self.body()
            self.answer(503, "Slow Down", [("Content-Type", "application/xml")], SLOW_DOWN)
            return
        upstream = http.client.HTTPConnection(*self.upstream, timeout=UPSTREAM_S)
        try:
            self.forward(upstream)
        except OSError as error:
            self.answer(502, "Bad Gateway", [], str(error).encode())
        finally:
            upstream.close()

    def body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def forward(self, upstream: http.client.HTTPConnection) -> None:
        upstream.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            if name.lower() not in OF_THE_LINE:
                upstream.putheader(name, value)
        upstream.endheaders(self.body() or None)
        found = upstream.getresponse()
        content = b"".join(self.content(found))
        self.answer(found.status, found.reason, [(n, v) for n, v in found.getheaders() if n.lower() not in OF_THE_LINE | {"content-length"}], content, found)

    def content(self, found: http.client.HTTPResponse) -> Iterator[bytes]:
        wrong = self.spoils == CORRUPT and found.status in (200, 206) and is_object(self.command, self.path)
        while piece := found.read(PIECE):
            yield spoiled(piece) if wrong else piece

    def answer(self, status: int, reason: str, headers: list[tuple[str, str]], content: bytes, found: http.client.HTTPResponse | None = None) -> None:
        self.send_response_only(status, reason)
        for name, value in headers:
            self.send_header(name, value)
        # The answer to HEAD tells the length of what it does not bring.
        length = found.getheader("Content-Length", "0") if found is not None and self.command == "HEAD" else str(len(content))
        self.send_header("Content-Length", length)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: request lines name objects and keys."""

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = pass_on  # noqa: N815 (names that http.server looks for)


def main(address: str, port: str, behind: str, spoils: str) -> None:
    Handler.upstream = (address, int(behind))
    Handler.spoils = spoils
    server = ThreadingHTTPServer((address, int(port)), Handler)
    server.daemon_threads = True
    server.serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
