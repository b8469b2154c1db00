"""Followers that are killed while rows are appended, and what is left of these rows."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any

import data_sets
import numpy as np
from updates import fit, plain_sums

from streamkernel import ingest, open_table
from streamkernel.models import RidgeModel
from streamkernel.solvers import RidgeSystem

__all__ = ["Appender", "Counted", "Followers", "counted", "killed_again_and_again"]

M, FITTED = 12_000, 500
ROWS = data_sets.friedman(M, 5, seed=2)

# One process loads the libraries, and forks a command for every line that it reads: a start takes no two seconds then.
_FORKS = """
import os, sys
import numpy as np
from streamkernel.cli import main
from streamkernel.cli.commands import follow
from streamkernel.models import RidgeModel
from streamkernel.kernels import Gaussian
rows = np.zeros((1, 1))
Gaussian(1.0).prepare(rows).block(rows)
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        log = os.open(line.split("\\t")[0], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(log, 1), os.dup2(log, 2)
        status = main(line.rstrip("\\n").split("\\t")[1:])
        sys.stdout.flush(), sys.stderr.flush()
        os._exit(status)
    print(child, flush=True)
    _, status = os.waitpid(child, 0)
    print(os.waitstatus_to_exitcode(status), flush=True)
"""

_APPENDER = """
import sys, time, random
import numpy as np
from streamkernel import append_rows, open_table
store, rows, seed, at, most, pause = sys.argv[1], np.load(sys.argv[2]), *map(float, sys.argv[3:])
chance, at = random.Random(int(seed)), int(at)
print("ready", flush=True)
while at < len(rows["y"]):
    last = min(at + chance.randint(1, int(most)), len(rows["y"]))
    append_rows(open_table(rows["X"][at:last], rows["y"][at:last]), store)
    at = last
    time.sleep(chance.uniform(0.0, 2 * pause))
"""


class Followers:
    """``streamkernel follow``, started as often as it is killed; one at a time."""

    def __init__(self, log: Path) -> None:
        self.log = log
        self._forks = subprocess.Popen(
            [sys.executable, "-c", _FORKS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.process = 0

    def start(self, *arguments: object) -> None:
        assert self._forks.stdin is not None
        self._forks.stdin.write("\t".join(map(str, [self.log, "follow", *arguments])) + "\n")
        self._forks.stdin.flush()
        self.process = self._number()

    def kill(self) -> int:
        """Kill it; how it ended, which may have been before."""
        os.kill(self.process, signal.SIGKILL)
        return self.ended()

    def ended(self) -> int:
        """Wait for it."""
        return self._number()

    def _number(self) -> int:
        assert self._forks.stdout is not None
        return int(self._forks.stdout.readline())

    def __enter__(self) -> Followers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None and self.process:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.process, signal.SIGKILL)
        self._forks.communicate()


class Appender:
    """A process that appends batches of 1 to `most` rows at random times."""

    def __init__(self, store: Path, rows: Path, *, seed: int, most: int, pause: float) -> None:
        command = [sys.executable, "-c", _APPENDER, store, rows, seed, FITTED, most, pause]
        self.process = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.process.stdout.readline()

    def stop(self) -> None:
        """At any moment, be it in the middle of an append."""
        self.process.kill()
        self.process.communicate()


@dataclass(frozen=True)
class Counted:
    """What became of the rows of a store.

    Attributes
    ----------
    kills, in_work : how often a follower was killed, and how often of these at work on a fold.
    folds : that were done.
    rows, lost, doubled : of the store; of these not in the model, and in it more than once.
    difference : largest of a coefficient from those of a refit, as a share of the largest coefficient.
    """

    kills: int
    in_work: int
    folds: int
    rows: int
    lost: int
    doubled: int
    difference: float


def counted(store: Path, model: Path, kills: int, in_work: int) -> Counted:
    """The model held against the plain sums over all rows of the store."""
    new = RidgeModel.load(model)
    block = open_table(store).read(0, open_table(store).n_rows)
    assert block.Y is not None
    rows = len(block.Y)
    np.testing.assert_array_equal(block.X, ROWS.X[:rows])
    seen = np.zeros(rows, dtype=int)
    for entry in new.config["seen"]:
        for first, last in entry["rows"]:
            seen[first:last] += 1
    expected = plain_sums(new, block.X, block.Y)
    sums = replace(new.sums, **expected, count=rows)
    scale = np.asarray(new.config["target_scale"]) ** 2
    solution = RidgeSystem(new.basis, sums, intercept=True, scale=scale).solve(new.config["alpha"])
    for name, values in expected.items():
        # A row more or less is a share of 1 / rows.
        assert np.abs(new.arrays[f"sum_{name}"] - values).max() <= 1e-11 * max(np.abs(values).max(), np.sqrt(rows))
    found = new.arrays["dual_coef"]
    return Counted(
        kills=kills,
        in_work=in_work,
        folds=new.config["updates"]["times"],
        rows=rows,
        lost=int((seen == 0).sum()),
        doubled=max(int((seen > 1).sum()), new.config["totals"]["rows"] - rows),
        difference=float(np.abs(found - solution.coefficients).max() / np.abs(solution.coefficients).max()),
    )


def at_work(update: Path, process: int) -> bool:
    """Whether this process left an update behind."""
    try:
        return (update / "lock").read_text().split()[0] == str(process)
    except (FileNotFoundError, ValueError):
        return False


def killed_again_and_again(folder: Path, kills: int, *, seed: int, longest: float, pause: float) -> Counted:
    """Follow a store that an appender fills, killed so often after up to `longest` seconds; then to the last row."""
    chance, store, model = random.Random(seed), folder / "store", folder / "model"
    folder.mkdir()
    ingest(open_table(ROWS.X[:FITTED], ROWS.y[:FITTED]), store, dtype="float64", chunk_rows=128)
    fit(open_table(store), n_components=60).save(model)
    np.savez(folder / "rows.npz", X=ROWS.X, y=ROWS.y)
    options: list[Any] = [store, model, "--scheduler", "threads", "--interval", "0.02", "--stale", "1e9", "--quiet"]
    in_work = 0
    with Followers(folder / "log") as followers:
        appender = Appender(store, folder / "rows.npz", seed=seed, most=40, pause=pause)
        try:
            for _ in range(kills):
                followers.start(*options)
                time.sleep(chance.uniform(0.0, longest))
                assert followers.kill() == -signal.SIGKILL, (folder / "log").read_text()
                in_work += at_work(folder / ".model.update", followers.process)
        finally:
            appender.stop()
        followers.start(*options, "--once")
        assert followers.ended() == 0, (folder / "log").read_text()
    left = {path.name for path in folder.iterdir() if not path.name.startswith((".store.", ".model."))}
    assert left == {"store", "model", "rows.npz", "log"}
    assert not (folder / ".model.follow").exists()
    assert not (folder / ".model.update").exists()
    result = counted(store, model, kills, in_work)
    shutil.rmtree(folder)
    return result
