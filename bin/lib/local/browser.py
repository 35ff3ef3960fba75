"""Chromium without a window, driven by its own protocol: enough to open, look, type and click."""

from __future__ import annotations

import base64
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import httpx
from websockets.sync.client import ClientConnection, connect

from twinstream.errors import EnvironmentMissing

QUIET = (
    "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update",
)  # fmt: skip
"""No window, and no calls to anybody but the pages that are opened."""

_MIDDLE = """one => {
    if (!one || one.disabled) return null;
    one.scrollIntoView({block: "center", behavior: "instant"});
    const {left, top, width, height} = one.getBoundingClientRect(), x = left + width / 2, y = top + height / 2;
    return one.contains(document.elementFromPoint(x, y)) ? {x, y} : null;
}"""


class Browser:
    """One tab."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._last = 0
        self.errors: list[str] = []
        """What the pages complained about: scripts that broke, and what the policy refused."""
        for domain in ("Page", "Runtime", "Log"):
            self.send(f"{domain}.enable")

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        self._last += 1
        self._socket.send(json.dumps({"id": self._last, "method": method, "params": params}))
        while True:
            found = json.loads(self._socket.recv(timeout=60))
            if found.get("id") == self._last:
                assert "error" not in found, found
                return dict(found["result"])
            self._note(found)

    def _note(self, event: dict[str, Any]) -> None:
        params = event.get("params", {})
        if event.get("method") == "Runtime.exceptionThrown":
            self.errors.append(str(params["exceptionDetails"].get("exception", params["exceptionDetails"])))
        if event.get("method") == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.errors.append(f"{params['entry']['text']} {params['entry'].get('url', '')}")

    def look(self, width: int = 1280, height: int = 900, theme: str = "light") -> None:
        """The size of the window and the theme of the system."""
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])

    def cookie(self, name: str, value: str, url: str) -> None:
        self.send("Network.setCookie", name=name, value=value, url=url, httpOnly=True)

    def sign_in(self, address: str, password: str) -> None:
        """As Airflow's user admin."""
        login = {"username": "admin", "password": password}
        token = httpx.post(f"{address}/auth/token", json=login, timeout=30).json()["access_token"]
        self.cookie("_token", token, address)

    def open(self, url: str) -> None:
        self.evaluate("window.left = true")
        self.send("Page.navigate", url=url)
        self.wait("!window.left && document.readyState === 'complete'")

    def evaluate(self, script: str) -> Any:
        """The value of a script; promises are waited for."""
        found = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def wait(self, script: str, seconds: float = 30.0) -> Any:
        """Waits until the script gives something true."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                found = self.evaluate(script)
            except AssertionError:
                found = None
            if found:
                return found
            if time.monotonic() > deadline:
                raise EnvironmentMissing(
                    f"A page did not come to what was waited for: {script}. It shows: {self._shown()}",
                    next_step="Open it in a browser and look.",
                )
            time.sleep(0.1)

    def _shown(self) -> str:
        """The text of the page, or of its frame, with what is in front first."""
        page = "(document.querySelector('iframe')?.contentDocument ?? document)"
        texts = f"['dialog, [role=dialog]', 'main', 'body'].flatMap(each => [...{page}.querySelectorAll(each)])"
        return str(self.evaluate(f"{page}.location + ' ' + {texts}.map(one => one.innerText).join(' | ')"))[:2000]

    def press(self, selector: str, text: str = "", seconds: float = 30.0) -> None:
        """Clicks with the mouse the first thing with exactly this text (none: any), once nothing else covers it."""
        all_of_them = f"[...document.querySelectorAll({json.dumps(selector)})]"
        found = f"{all_of_them}.find(one => [one.textContent.trim(), ''].includes({json.dumps(text)}))"
        at = None
        while at != (at := self.wait(f"({_MIDDLE})({found})", seconds)):
            time.sleep(0.1)  # what still moves would not be hit
        for kind in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, button="left", clickCount=1, **at)

    def type(self, text: str) -> None:
        """Types into what has the focus."""
        self.send("Input.insertText", text=text)

    def screenshot(self, file: Path, whole: bool = True) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        found = self.send("Page.captureScreenshot", captureBeyondViewport=whole)
        file.write_bytes(base64.b64decode(found["data"]))


class Frame:
    """The pages as Airflow shows them: in a frame of its own."""

    def __init__(self, tab: Browser) -> None:
        self._tab = tab

    def wait(self, script: str, seconds: float = 30.0) -> Any:
        inside = "const frame = window.document.querySelector('iframe'), document = frame.contentDocument"
        return self._tab.wait(f"(() => {{ {inside}; return {script}; }})()", seconds)

    def click(self, selector: str, text: str = "", seconds: float = 30.0) -> None:
        """Clicks the first thing with this text, as soon as it is there."""
        all_of_them = f"[...document.querySelectorAll({json.dumps(selector)})]"
        found = f"{all_of_them}.find(e => e.textContent.includes({json.dumps(text)}))"
        self.wait(f"(one => one && !one.disabled && (one.click(), true))({found})", seconds)

    def says(self, text: str, selector: str = "main", seconds: float = 30.0) -> None:
        looked = f"document.querySelector({json.dumps(selector)}).textContent.replace(/[\\u00a0\\u202f]/g, ' ')"
        self.wait(f"{looked}.includes({json.dumps(text)})", seconds)


@contextmanager
def browser(folder: Path) -> Iterator[Browser]:
    """A Chromium of its own, with its files in `folder`; gone when the block ends."""
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        raise EnvironmentMissing("Chromium is missing.", next_step="Install the package chromium.")
    process = subprocess.Popen(
        [program, *QUIET, "--remote-debugging-port=0", f"--user-data-dir={folder / 'chromium'}", "about:blank"],
        stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    try:
        port = _port(folder / "chromium" / "DevToolsActivePort")
        with urlopen(f"http://127.0.0.1:{port}/json") as answer:
            tab = next(one for one in json.load(answer) if one["type"] == "page")
        # While nobody asks anything, a page goes on telling: what it tells may pile up, and an answer to a ping that
        # waits behind it is no reason to hang up.
        address = tab["webSocketDebuggerUrl"]
        with connect(address, max_size=None, max_queue=None, ping_interval=None) as socket:
            yield Browser(socket)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(20)
        with suppress(ProcessLookupError):  # helpers that are slow to follow would still write to the folder
            os.killpg(process.pid, signal.SIGKILL)


def _port(file: Path) -> int:
    deadline = time.monotonic() + 30
    while not (file.exists() and file.read_text().strip()):
        if time.monotonic() > deadline:
            raise EnvironmentMissing("Chromium did not start.", next_step="Start it by hand to see why.")
        time.sleep(0.1)
    return int(file.read_text().splitlines()[0])
