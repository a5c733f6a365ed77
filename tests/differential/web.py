"""Runs on a lab host: the web server that the cases of get_url, uri and unarchive ask. Files of the cases, and answers of every kind."""

from __future__ import annotations

import base64
import json
import sys
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

PORT = 8971
PASSWORD = "Basic " + base64.b64encode(b"me:secret").decode()


class Answers(SimpleHTTPRequestHandler):
    """/status/N, /redirect/N, /json, /text, /short, /auth, /header/NAME, /named/NAME, /echo; anything else is a file."""

    def do_GET(self) -> None:
        kind, _, rest = self.path.strip("/").partition("/")
        answer = getattr(self, f"say_{kind}", None)
        if answer is None:
            super().do_GET()
        else:
            answer(rest)

    do_HEAD = do_GET

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        if self.path.startswith("/redirect"):
            self.say_redirect(self.path.rpartition("/")[2])
            return
        told = {"method": self.command, "type": self.headers.get("Content-Type"), "body": body}
        self.say(200, json.dumps(told), "application/json")

    do_PUT = do_POST

    def say(self, status: int, text: str, kind: str = "text/plain; charset=utf-8", **headers: str) -> None:
        body = text.encode()
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def say_status(self, rest: str) -> None:
        self.say(int(rest), f"this is {rest}\n")

    def say_redirect(self, rest: str) -> None:
        self.say(int(rest), "", Location="/text")

    def say_json(self, _rest: str) -> None:
        self.say(200, '{"a": [1, "ü"]}', "application/json")

    def say_text(self, _rest: str) -> None:
        self.say(200, "Grüße\n", Last_Modified="Wed, 01 Jan 2020 00:00:00 GMT")

    def say_short(self, _rest: str) -> None:
        self.say(200, "half", Content_Length="100")

    def say_auth(self, _rest: str) -> None:
        if self.headers.get("Authorization") == PASSWORD:
            self.say(200, "let in\n")
        else:
            self.say(401, "who are you?\n", WWW_Authenticate='Basic realm="twins"')

    def say_header(self, rest: str) -> None:
        self.say(200, f"{rest}: {self.headers.get(rest)}\n")

    def say_named(self, rest: str) -> None:
        self.say(200, "named\n", Content_Disposition=f'attachment; filename="{rest}"')

    def log_message(self, format: str, *args: object) -> None:
        """Silent."""


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", PORT), lambda *args: Answers(*args, directory=sys.argv[1])).serve_forever()
