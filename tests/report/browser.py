"""Headless Chromium as the tests drive it: through the DevTools protocol, over one WebSocket.

Real keys and clicks, everything the page logs, every request it makes. One browser serves all tests of a process; each page is a tab.
"""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from websockets.sync.client import ClientConnection, connect

CHROMIUM = shutil.which("chromium")
# A browser that starts on a busy machine of two cores; an answer of a page that draws a thousand nodes there.
START_S = 60.0
ANSWER_S = 30.0
# Nothing but the file may be asked for; what the browser itself wants (updates, safe browsing) is off.
FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-port=0", "--no-first-run", "--disable-extensions",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--metrics-recording-only", "--hide-scrollbars", "--mute-audio",
)
KEYS = {
    "Tab": 9, "Enter": 13, "Escape": 27, " ": 32, "End": 35, "Home": 36, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Backspace": 8,
}


class PageError(AssertionError):
    """A script of the page, or of the test in it, raised."""


class Tab:
    """One page. ``requests`` are the addresses it asked for besides its own; ``complaints`` are its errors, warnings and violations."""

    def __init__(self, socket: ClientConnection, size: tuple[int, int]) -> None:
        self._socket = socket
        self._number = 0
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self._loaded = False
        for domain in ("Page", "Runtime", "Log", "Network", "Accessibility"):
            self.send(f"{domain}.enable")
        self.resize(*size)

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        self._number += 1
        number = self._number
        self._socket.send(json.dumps({"id": number, "method": method, "params": params}))
        while True:
            said = self._receive(ANSWER_S)
            if said.get("id") == number:
                if "error" in said:
                    raise PageError(f"{method}: {said['error']}")
                return dict(said["result"])

    def _receive(self, seconds: float) -> dict[str, Any]:
        said = json.loads(self._socket.recv(timeout=seconds))
        self._note(str(said.get("method", "")), said.get("params", {}))
        return dict(said)

    def _note(self, method: str, params: dict[str, Any]) -> None:
        if method == "Network.requestWillBeSent" and params.get("type") != "Document":
            self.requests.append(params["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(params["exceptionDetails"].get("exception", {}).get("description") or params["exceptionDetails"]["text"])
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.complaints.append(" ".join(str(part.get("value", part.get("description"))) for part in params["args"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.complaints.append(params["entry"]["text"])
        elif method == "Page.loadEventFired":
            self._loaded = True

    def resize(self, width: int, height: int, touch: bool = False) -> None:
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=touch)

    def prefer(self, **features: str) -> None:
        """CSS media features: color_scheme="dark", reduced_motion="reduce"."""
        self.send("Emulation.setEmulatedMedia", features=[{"name": f"prefers-{name.replace('_', '-')}", "value": value} for name, value in features.items()])

    def load(self, path: Path, address: str = "") -> None:
        """Until the browser says that the file is loaded."""
        self._loaded = False
        self.send("Page.navigate", url=path.resolve().as_uri() + address)
        while not self._loaded:
            self._receive(ANSWER_S)

    def open(self, path: Path, address: str = "") -> float:
        """Load the file; seconds until everything on it is drawn."""
        started = time.monotonic()
        self.load(path, address)
        self.run("new Promise(done => requestAnimationFrame(() => setTimeout(done)))")
        return time.monotonic() - started

    def run(self, script: str) -> Any:
        """The value of an expression, awaited. The page's own policy does not bind what the debugger runs."""
        answer = self.send("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise PageError(json.dumps(answer["exceptionDetails"])[:2000])
        return answer["result"].get("value")

    def text(self, selector: str) -> str:
        """What a person sees of it; "" where it is not there or hidden."""
        return str(self.run(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''"))

    def click(self, selector: str) -> None:
        """A real click in its middle; it must be there and not covered."""
        place = self.run(
            f"(() => {{ const found = document.querySelector({json.dumps(selector)}); if (!found) return null; found.scrollIntoView({{block: 'center', behavior: 'instant'}});"
            "const box = found.getBoundingClientRect(), x = box.x + box.width / 2, y = box.y + box.height / 2;"
            "const top = document.elementFromPoint(x, y); return found.contains(top) || top?.contains(found) ? [x, y] : null; })()"
        )
        assert place, f"{selector} cannot be clicked"
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, x=place[0], y=place[1], button="none" if kind == "mouseMoved" else "left", clickCount=0 if kind == "mouseMoved" else 1)

    def key(self, name: str, times: int = 1, shift: bool = False) -> None:
        text = {"Enter": "\r", " ": " "}.get(name)
        for _ in range(times):
            same: dict[str, Any] = {"key": name, "code": "Space" if name == " " else name, "windowsVirtualKeyCode": KEYS[name], "modifiers": 8 if shift else 0}
            self.send("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", **same, **({"text": text} if text else {}))
            self.send("Input.dispatchKeyEvent", type="keyUp", **same)

    def type(self, text: str) -> None:
        self.send("Input.insertText", text=text)

    def wait(self, script: str, seconds: float = 20.0) -> None:
        """Until the expression is true."""
        end = time.monotonic() + seconds
        while not self.run(script):
            assert time.monotonic() < end, f"never became true: {script}"
            time.sleep(0.02)

    def picture(self, path: Path, whole: bool = True) -> None:
        answer = self.send("Page.captureScreenshot", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(answer["data"]))

    def spoken(self) -> list[tuple[str, str]]:
        """(role, name) of everything that a screen reader finds, in its order."""
        found = self.send("Accessibility.getFullAXTree")["nodes"]
        return [(str(one.get("role", {}).get("value")), str(one.get("name", {}).get("value", ""))) for one in found if not one.get("ignored")]


class Browser:
    """A running Chromium with a profile of its own."""

    def __init__(self, profile: Path) -> None:
        assert CHROMIUM, "chromium is not installed: apt-get install chromium"
        self._process = subprocess.Popen([CHROMIUM, *FLAGS, f"--user-data-dir={profile}", "about:blank"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self._port = self._read_port(profile / "DevToolsActivePort")

    def _read_port(self, path: Path) -> int:
        end = time.monotonic() + START_S
        while time.monotonic() < end and self._process.poll() is None:
            words = path.read_text().split() if path.exists() else []
            if len(words) > 1:
                self._address = f"ws://127.0.0.1:{words[0]}{words[1]}"
                return int(words[0])
            time.sleep(0.05)
        self.stop()
        raise PageError("chromium did not start")

    @contextmanager
    def tab(self, width: int = 1280, height: int = 900) -> Iterator[Tab]:
        with connect(self._address, max_size=None) as control:
            control.send(json.dumps({"id": 1, "method": "Target.createTarget", "params": {"url": "about:blank"}}))
            while True:
                said = json.loads(control.recv(timeout=ANSWER_S))
                if said.get("id") == 1:
                    break
            target = said["result"]["targetId"]
            with connect(f"ws://127.0.0.1:{self._port}/devtools/page/{target}", max_size=None) as socket:
                yield Tab(socket, (width, height))
            control.send(json.dumps({"id": 2, "method": "Target.closeTarget", "params": {"targetId": target}}))
            control.recv(timeout=ANSWER_S)

    def stop(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
