"""A real browser for tests: headless Chromium, driven by its own protocol (CDP) with true clicks and keys."""

import base64
import json
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from websockets.sync.client import ClientConnection, connect

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
FLAGS = [
    "--headless",
    "--hide-scrollbars",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-sync",
    "--disable-background-networking",
    "--disable-component-update",
    "--remote-debugging-port=0",
]
WITHIN_S = 60
KEYS = {"Tab": 9, "Enter": 13, "Escape": 27, "ArrowRight": 39, "ArrowLeft": 37, "End": 35}


@contextmanager
def open_browser(profile: Path) -> Iterator["Browser"]:
    """Start Chromium with a new profile; yield a page of it; end it."""
    assert CHROMIUM
    command = [CHROMIUM, f"--user-data-dir={profile}", *FLAGS, "about:blank"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        told = wait_until(lambda: (profile / "DevToolsActivePort").exists() and (profile / "DevToolsActivePort"))
        port = wait_until(lambda: told.read_text().split("\n")[0])
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json") as listed:
            target = next(one for one in json.load(listed) if one["type"] == "page")
        with connect(target["webSocketDebuggerUrl"], max_size=None, compression=None) as socket:
            yield Browser(socket)
    finally:
        process.terminate()
        process.wait()


def wait_until(question: Any) -> Any:
    """Ask until the answer is true; return it."""
    end = time.monotonic() + WITHIN_S
    while time.monotonic() < end:
        if answer := question():
            return answer
        time.sleep(0.02)
    raise AssertionError("it did not come to pass")


class Browser:
    """One page."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.sent = 0
        self.complaints: list[str] = []
        for domain in ("Page", "Runtime", "Log", "Accessibility"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Send one command; return its result. What the page complains of meanwhile is kept."""
        self.sent += 1
        self.socket.send(json.dumps({"id": self.sent, "method": method, "params": params}))
        while True:
            answer = json.loads(self.socket.recv(timeout=WITHIN_S))
            if answer.get("method") == "Runtime.exceptionThrown":
                self.complaints.append(str(answer["params"]["exceptionDetails"]))
            if answer.get("method") == "Log.entryAdded" and answer["params"]["entry"]["level"] == "error":
                self.complaints.append(answer["params"]["entry"]["text"])
            if answer.get("id") == self.sent:
                assert "error" not in answer, answer
                found: dict[str, Any] = answer["result"]
                return found

    def js(self, expression: str) -> Any:
        """Evaluate an expression in the page, awaited; return its value."""
        got = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in got, got
        return got["result"].get("value")

    def open(self, url: str) -> None:
        """Load a page, and wait until it is there."""
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=url)
        self.until("document.readyState === 'complete' && location.href !== 'about:blank'")

    def until(self, condition: str) -> None:
        """Wait until an expression is true."""
        wait_until(lambda: self.js(f"Boolean({condition})"))

    def text(self, selector: str = "body") -> str:
        """Return what can be read there."""
        return str(self.js(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''"))

    def reads(self, *texts: str, selector: str = "body") -> None:
        """Wait until these texts can be read there."""
        for text in texts:
            self.until(f"document.querySelector({json.dumps(selector)})?.innerText.includes({json.dumps(text)})")

    def click(self, selector: str, text: str = "") -> None:
        """Click with the mouse on the first element of a selector that can be used and holds a text."""
        find = (
            f"[...document.querySelectorAll({json.dumps(selector)})]"
            ".find((one) => one.checkVisibility() && !one.closest('[inert]')"
            f" && one.innerText.includes({json.dumps(text)}))"
        )
        self.until(find)
        x, y = self.js(
            f"(() => {{ const one = {find}; one.scrollIntoView({{ block: 'center' }});"
            "const box = one.getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def press(self, key: str) -> None:
        """Press a key."""
        code = {"key": key, "code": key, "windowsVirtualKeyCode": KEYS[key]}
        self.call("Input.dispatchKeyEvent", type="keyDown", **code, **({"text": "\r"} if key == "Enter" else {}))
        self.call("Input.dispatchKeyEvent", type="keyUp", **code)

    def type(self, text: str) -> None:
        """Type a text where the focus is."""
        self.call("Input.insertText", text=text)

    def tab_to(self, what: str) -> None:
        """Press Tab until the focused element has this name for assistive technology."""
        for _ in range(60):
            self.press("Tab")
            if self.js("document.activeElement.ariaLabel ?? document.activeElement.innerText.trim()") == what:
                return
        raise AssertionError(f"Tab does not lead to {what!r}")

    def look(self, *, scheme: str = "light", languages: str = "en-US", width: int = 1100, height: int = 800) -> None:
        """Become another person's browser: colours, languages, size."""
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.call("Emulation.setUserAgentOverride", userAgent="test", acceptLanguage=languages)
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def screenshot(self, path: Path) -> bytes:
        """Take a picture of the whole page."""
        picture = base64.b64decode(self.call("Page.captureScreenshot", captureBeyondViewport=True)["data"])
        path.write_bytes(picture)
        return picture

    def unnamed(self) -> list[str]:
        """Return the roles of what can be used and has no name for assistive technology."""
        nodes = self.call("Accessibility.getFullAXTree")["nodes"]
        roles = {"button", "textbox", "searchbox", "combobox", "tab", "tabpanel", "tablist", "meter", "dialog"}
        named = [(n["role"]["value"], n.get("name", {}).get("value")) for n in nodes if not n.get("ignored")]
        return [role for role, name in named if role in roles and not name]
