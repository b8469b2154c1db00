"""Fit many tables one after another, and go on where it was stopped.

python scripts/batch/fit_many.py STORES... --out FOLDER [options of streamkernel fit]

Writes FOLDER/NAME.model for every table NAME.zarr, and a line of JSON for each to stdout and to FOLDER/fits.jsonl.
Started again with the same arguments it skips what is there and resumes the fit that was interrupted, at its last
finished sweep. A table that cannot be fitted does not stop the others; the exit status is 1 then.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

_OWN = ("--overwrite", "--resume", "--json")


def name_of(store: str) -> str:
    """The table's name, of a path or a URL."""
    return store.rstrip("/").rpartition("/")[2].removesuffix(".zarr")


class Log:
    """A line of JSON for each table; a line that a kill cut off stays alone on its line."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a+b")
        if self._file.tell():
            self._file.seek(-1, os.SEEK_END)
            if self._file.read(1) != b"\n":
                self._file.write(b"\n")

    def write(self, line: dict[str, Any]) -> None:
        text = json.dumps(line)
        print(text, flush=True)
        self._file.write(text.encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())


def _end_with_parent() -> None:
    # A driver that is killed leaves no fit behind that would hold the run's lock; Linux tells the child.
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGTERM)


class Driver:
    """Runs `streamkernel` for each table, as a process of its own: what crashes it does not end the batch."""

    def __init__(self, options: list[str]) -> None:
        self.options = options
        self.stopped: int | None = None
        self._running: subprocess.Popen[str] | None = None
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)

    def _stop(self, number: int, frame: Any) -> None:
        self.stopped = number
        if self._running is not None:
            self._running.send_signal(signal.SIGTERM)

    def _call(self, *arguments: str) -> tuple[int, str, str]:
        command = [sys.executable, "-m", "streamkernel", *arguments]
        with subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,  # a Ctrl-C is ours to pass on, once
            preexec_fn=_end_with_parent,
        ) as self._running:
            if self.stopped is not None:
                self._running.send_signal(signal.SIGTERM)
            out, err = self._running.communicate()
        return self._running.returncode, out, err

    def fit(self, store: str, model: Path) -> dict[str, Any]:
        """What became of one table."""
        line: dict[str, Any] = {"store": store, "model": str(model)}
        began = time.time()
        if os.path.lexists(model):
            status, out, err = self._call("info", str(model), "--json", "--quiet")
            if self.stopped is not None:
                return {**line, "status": "interrupted"}
            if status == 0 and "estimator" in json.loads(out):
                return {**line, "status": "skipped"}
            return {**line, "status": "failed", "error": last_line(err) or f"{model} exists and is not a model"}
        status, out, err = self._call("fit", store, str(model), *self.options, "--resume", "--json", "--quiet")
        if status == 0:
            return {**line, "status": "fitted", "began": began, **json.loads(out)}
        if self.stopped is not None:
            return {**line, "status": "interrupted"}
        return {**line, "status": "failed", "error": last_line(err) or f"ended with status {status}"}


def last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].removeprefix("error: ") if lines else ""


def split(arguments: list[str]) -> tuple[list[str], Path, list[str]]:
    """Tables, the folder, and what is for `streamkernel fit`: all behind ``--out FOLDER``."""
    if "--out" not in arguments:
        raise ValueError("--out FOLDER is needed, behind the tables")
    at = arguments.index("--out")
    stores, behind = arguments[:at], arguments[at + 1 :]
    odd = next((word for word in stores if word.startswith("-")), None)
    if odd is not None:
        raise ValueError(f"{odd}: options of the fit come behind --out FOLDER")
    if not stores or not behind or behind[0].startswith("-"):
        raise ValueError("name tables, and the folder of their models behind --out")
    if "://" in behind[0]:
        raise ValueError(f"{behind[0]}: the models' folder must be a local one; tables may be URLs")
    own = next((word for word in behind[1:] if word in _OWN), None)
    if own is not None:
        raise ValueError(f"{own} is said by this script itself")
    twice = [name for name, count in Counter(map(name_of, stores)).items() if count > 1]
    if twice:
        raise ValueError(f"two tables are called {twice[0]}; their models would be one")
    return stores, Path(behind[0]), behind[1:]


def main() -> int:
    if {"-h", "--help"} & set(sys.argv[1:]):
        print(__doc__.strip())
        return 0
    try:
        stores, out, options = split(sys.argv[1:])
    except ValueError as error:
        print(f"error: {error} (--help)", file=sys.stderr)
        return 2
    out.mkdir(parents=True, exist_ok=True)

    driver, log, counts = Driver(options), Log(out / "fits.jsonl"), Counter[str]()
    for store in stores:
        line = driver.fit(store, out / f"{name_of(store)}.model")
        log.write(line)
        counts[line["status"]] += 1
        if driver.stopped is not None:
            break
    told = ", ".join(f"{counts[status]} {status}" for status in ("fitted", "skipped", "failed", "interrupted"))
    print(f"{len(stores)} tables: {told}", file=sys.stderr)
    if driver.stopped is not None:
        return 128 + driver.stopped
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
