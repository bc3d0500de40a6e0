"""A real Chromium, driven over its debugging pipe: no port, no further package."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO

NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next((found for name in NAMES if (found := shutil.which(name))), None)
"""The browser; None where none is installed."""
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars",
    "--remote-debugging-pipe",
)  # fmt: skip
PHONE, DESKTOP = (360, 740), (1280, 900)


class Tab:
    """One page of the browser, with everything that it said: events, errors, dialogs."""

    def __init__(self, orders: BinaryIO, answers: BinaryIO) -> None:
        self._orders = orders
        self._answers = answers
        self._number = 0
        self._session = ""
        self._buffer = b""
        self.events: list[dict[str, Any]] = []
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def send(self, method: str, **parameters: Any) -> Any:
        """Call a method of the DevTools protocol and return its result."""
        self._number += 1
        order = {"id": self._number, "method": method, "params": parameters}
        order |= {"sessionId": self._session} if self._session else {}
        self._orders.write(json.dumps(order).encode() + b"\0")
        self._orders.flush()
        while (answer := self._read()).get("id") != self._number:
            self._note(answer)
        assert "error" not in answer, answer["error"]
        return answer["result"]

    def wait(self, event: str) -> dict[str, Any]:
        """Return the parameters of the next event of this kind."""
        while True:
            answer = self._read()
            self._note(answer)
            if answer.get("method") == event:
                return dict(answer["params"])

    def open(self, address: str, size: tuple[int, int] = DESKTOP, dark: bool = False) -> None:
        """Load a page at a size in CSS pixels, in the light or dark scheme."""
        width, height = size
        self.send(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=size == PHONE
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", features=[scheme])
        self.send("Page.navigate", url="about:blank")
        self.wait("Page.loadEventFired")
        self.send("Page.navigate", url=address)
        self.wait("Page.loadEventFired")

    def run(self, script: str) -> Any:
        """Return the value of a JavaScript expression in the page; a promise is awaited."""
        answer = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def press(self, key: str) -> None:
        """Press a key."""
        for kind in ("keyDown", "keyUp"):
            self.send("Input.dispatchKeyEvent", type=kind, key=key, text=key if len(key) == 1 else "")

    def picture(self, file: Path, whole: bool = False) -> None:
        """Save a screenshot."""
        shot = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        file.write_bytes(base64.b64decode(shot["data"]))

    def said(self, *methods: str) -> list[dict[str, Any]]:
        """Return the parameters of all events of some kinds until now."""
        self.run("0")
        return [event["params"] for event in self.events if event.get("method") in methods]

    @property
    def faults(self) -> list[dict[str, Any]]:
        """Dialogs, exceptions, refusals of the content security policy, and requests beyond the file system."""
        asked = self.said("Network.requestWillBeSent")
        outside = [each for each in asked if not each["request"]["url"].startswith(("file:", "about:", "data:"))]
        return [*self.said("Page.javascriptDialogOpening", "Runtime.exceptionThrown", "Log.entryAdded"), *outside]

    def _note(self, answer: dict[str, Any]) -> None:
        if "method" in answer:
            self.events.append(answer)
        if answer.get("method") == "Page.javascriptDialogOpening":  # a dialog would block the page for ever
            self._number += 1
            order = {"id": self._number, "method": "Page.handleJavaScriptDialog", "params": {"accept": False}}
            self._orders.write(json.dumps(order | {"sessionId": self._session}).encode() + b"\0")
            self._orders.flush()

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            part = os.read(self._answers.fileno(), 1 << 20)
            assert part, "the browser ended"
            self._buffer += part
        line, self._buffer = self._buffer.split(b"\0", 1)
        return dict(json.loads(line))


@contextmanager
def open_browser() -> Iterator[Tab]:
    """Yield a tab of a browser that ends with the block."""
    assert CHROMIUM is not None, f"install one of {', '.join(NAMES)}"
    (orders_out, orders_in), (answers_out, answers_in) = os.pipe(), os.pipe()
    with TemporaryDirectory(ignore_cleanup_errors=True) as profile:  # the browser may still write
        # Chromium reads orders from descriptor 3 and answers on 4; a shell puts the pipes there.
        command = f'exec "$@" 3<&{orders_out} 4>&{answers_in}'
        browser = subprocess.Popen(
            ["/bin/bash", "-c", command, "bash", CHROMIUM, *FLAGS, f"--user-data-dir={profile}"],
            pass_fds=(orders_out, answers_in), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(orders_out)
        os.close(answers_in)
        try:
            with os.fdopen(orders_in, "wb") as orders, os.fdopen(answers_out, "rb") as answers:
                yield Tab(orders, answers)
        finally:
            browser.kill()
            browser.wait()
