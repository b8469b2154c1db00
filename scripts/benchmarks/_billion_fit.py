"""Fits of `billion`, each a command in a process of its own: watched, killed where that is asked, and resumed.

All that a fit has come to is in its folder, so that a run of the benchmark that is interrupted goes on with the fit at
which it was, from the sweeps that were finished::

    FOLDER/NAME.log       a line of JSON for each event: started, swept, killed (as asked), stopped
                          (with the benchmark), ended
    FOLDER/NAME.json      the result, once there is one
    FOLDER/NAME.zarr      the model; beside it the checkpoints of the fit
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from streamkernel.models import RidgeModel

_LOOK = 0.1  # seconds
_ENDS = ("killed", "stopped", "ended")  # of a life; the first two lose the sweep at work


@dataclass(frozen=True)
class Fit:
    """A fit of n functions to the first rows of a table.

    Parameters
    ----------
    name : of its files.
    store : the table; the rows behind those of the fit are held out.
    rows, held_out, n : numbers.
    memory : limit, as the command takes it.
    kill_after : seconds of the final sweep after which it is killed, once; None for never.
    """

    folder: Path
    name: str
    store: str
    rows: int
    held_out: int
    n: int
    memory: str
    kill_after: float | None = None

    @property
    def model(self) -> Path:
        return self.folder / f"{self.name}.zarr"

    @property
    def events(self) -> list[dict[str, Any]]:
        """The log."""
        log = self.folder / f"{self.name}.log"
        return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []

    def result(self) -> dict[str, Any]:
        """What the fit came to; it is made, or gone on with, where there is no result yet."""
        found = self.folder / f"{self.name}.json"
        if not found.exists():
            while self._life() is None:
                pass
            scores = self._command("evaluate", str(self.model), self.store, "--rows", self._held_out)
            run = RidgeModel.load(self.model).config["run"]
            lives = [event for event in self.events if event["event"] in _ENDS]
            result = {
                "rows": self.rows,
                "rmse": json.loads(scores)["rmse"],
                "planned": run["planned_memory_bytes"],
                "peak": max(event["peak"] for event in lives),
                "lives": len([event for event in self.events if event["event"] == "started"]),
                "seconds": self._seconds(),
                "lost": self._lost(),
                "final": self.swept()["final_sweep"],
            }
            found.write_text(json.dumps(result))
        loaded: dict[str, Any] = json.loads(found.read_text())
        return loaded

    @property
    def _held_out(self) -> str:
        return f"{self.rows}:{self.rows + self.held_out}"

    def _command(self, *arguments: str) -> str:
        command = [sys.executable, "-m", "streamkernel", *arguments, "--scheduler", "threads", "--quiet", "--json"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(done.stderr)
        return done.stdout

    def _life(self) -> int | None:
        """Run the fit until it ends, or is killed: None then."""
        command = [
            sys.executable, "-m", "streamkernel", "fit", self.store, str(self.model), "--rows", f"0:{self.rows}",
            "--basis", str(self.n), "--memory", self.memory, "--scheduler", "threads", "--resume", "--overwrite",
            "--quiet", "--json",
        ]  # fmt: skip
        run, began = self.model.with_name(f".{self.model.name}.run"), time.time()
        swept = _steps(run)
        self._say("started", done=sorted(swept))
        with (self.folder / f"{self.name}.out").open("wb") as out:
            process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)
            peak, since, kill = 0, began, self.kill_after
            if any(event["event"] == "killed" for event in self.events):
                kill = None
            try:
                while process.poll() is None:
                    peak = max(peak, _peak(process.pid))
                    for step in sorted(_steps(run) - swept):
                        self._say("swept", step=step, seconds=time.time() - since)
                        swept.add(step)
                        since = time.time()
                    # The states of the steps before the last sweep are there: what runs is the search, then that sweep.
                    if kill is not None and len(swept) == 2 and time.time() - since > kill:
                        process.kill()
                        process.wait()
                        self._say("killed", peak=peak, seconds=time.time() - began, since=time.time() - since)
                        return None
                    time.sleep(_LOOK)
            finally:
                if process.poll() is None:
                    process.kill()
                    process.wait()
                    self._say("stopped", peak=peak, seconds=time.time() - began, since=time.time() - since)
        if process.returncode:
            raise RuntimeError((self.folder / f"{self.name}.out").read_text())
        run_record = RidgeModel.load(self.model).config["run"]
        peak = max(peak, run_record["peak_memory_bytes"])
        last = run_record["sweeps"][-1]
        self._say("ended", peak=peak, seconds=time.time() - began, step="final_sweep", final=last["seconds"])
        return 0

    def _say(self, event: str, **fields: Any) -> None:
        with (self.folder / f"{self.name}.log").open("a") as log:
            log.write(json.dumps({"time": time.time(), "event": event, **fields}) + "\n")

    def swept(self) -> dict[str, float]:
        """Seconds of each sweep that counted."""
        found = {event["step"]: event["seconds"] for event in self.events if event["event"] == "swept"}
        ended = [event for event in self.events if event["event"] == "ended"]
        return {name.partition("-")[2]: seconds for name, seconds in found.items()} | (
            {"final_sweep": ended[-1]["final"]} if ended else {}
        )

    def _seconds(self) -> float:
        """Seconds in all lives, without what the kill has lost."""
        lives = [event["seconds"] for event in self.events if event["event"] in _ENDS]
        return float(sum(lives)) - self._lost()

    def _lost(self) -> float:
        return float(sum(event["since"] for event in self.events if event["event"] in _ENDS[:2]))


def _steps(run: Path) -> set[str]:
    """Names of the sweeps whose states are saved."""
    return {path.name for path in run.glob("[0-9]*-*") if (path / "COMPLETE").exists()} if run.is_dir() else set()


def _peak(pid: int) -> int:
    """Most bytes that a process ever had resident; 0 where it has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    except OSError:
        return 0
    found = [line for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(found[0].split()[1]) * 1024 if found else 0
