"""Headless Chromium, driven through ChromeDriver's own HTTP interface."""

from __future__ import annotations

import base64
import re
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import httpx

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")

browser = next(filter(None, map(shutil.which, BROWSERS)), None)
driver = shutil.which("chromedriver")
missing = None if browser and driver else "no browser to look with (chromium and chromedriver are wanted)"

ARGUMENTS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage", "--hide-scrollbars",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
]  # fmt: skip
_ELEMENT = "element-6066-11e4-a52e-4f735466cecf"


class Browser:
    """One window. Scripts run in the page; what its console was told is kept."""

    def __init__(self, folder: Path, width: int = 1280, height: int = 1000, *, dark: bool = False) -> None:
        assert driver is not None
        self._driver = subprocess.Popen([driver, "--port=0"], stdout=subprocess.PIPE, text=True)
        assert self._driver.stdout is not None
        port = None
        while port is None:
            line = self._driver.stdout.readline()
            assert line, "chromedriver did not start"
            port = re.search(r"started successfully on port (\d+)", line)
        self._client = httpx.Client(base_url=f"http://127.0.0.1:{port[1]}", timeout=60, trust_env=False)
        arguments = [*ARGUMENTS, f"--user-data-dir={folder / 'profile'}", f"--window-size={width},{height}"]
        if dark:
            arguments.append("--blink-settings=preferredColorScheme=0")
        capabilities = {
            "goog:chromeOptions": {"args": arguments, "binary": browser},
            "goog:loggingPrefs": {"browser": "ALL"},
        }
        made = self._post("/session", {"capabilities": {"alwaysMatch": capabilities}})
        self._session = f"/session/{made['sessionId']}"

    def _post(self, path: str, body: dict[str, Any]) -> Any:
        answer = self._client.post(path, json=body).json()["value"]
        assert not (isinstance(answer, dict) and "error" in answer), answer
        return answer

    def open(self, url: str) -> None:
        self._post(f"{self._session}/url", {"url": url})

    def run(self, script: str, *arguments: Any) -> Any:
        return self._post(f"{self._session}/execute/sync", {"script": script, "args": list(arguments)})

    def wait_for(self, script: str, seconds: float = 15.0) -> Any:
        """What a script returns as soon as that is true."""
        until = time.monotonic() + seconds
        while not (found := self.run(f"return {script}")):
            assert time.monotonic() < until, f"never: {script}\n{self.run('return document.body.innerText')}"
            time.sleep(0.05)
        return found

    def click(self, selector: str) -> None:
        element = self._post(f"{self._session}/element", {"using": "css selector", "value": selector})[_ELEMENT]
        self._post(f"{self._session}/element/{element}/click", {})

    def keys(self, selector: str, text: str) -> None:
        """Type into an element."""
        element = self._post(f"{self._session}/element", {"using": "css selector", "value": selector})[_ELEMENT]
        self._post(f"{self._session}/element/{element}/value", {"text": text})

    def picture(self, path: Path) -> bytes:
        png = base64.b64decode(self._client.get(f"{self._session}/screenshot").json()["value"])
        path.write_bytes(png)
        return png

    def complaints(self) -> list[str]:
        """Warnings and errors of the console since this was last asked."""
        told = self._post(f"{self._session}/se/log", {"type": "browser"})
        return [entry["message"] for entry in told if entry["level"] in ("SEVERE", "WARNING")]

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *error: object) -> None:
        try:
            self._client.delete(self._session)
        finally:
            self._client.close()
            self._driver.terminate()
            # Closes the pipe too.
            self._driver.communicate(timeout=10)
