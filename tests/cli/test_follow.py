"""streamkernel follow: what it prints, how it ends, and that no row is lost or doubled, whatever kills it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from followers import killed_again_and_again

from streamkernel import append_rows, ingest, open_table
from streamkernel.cli.main import main
from streamkernel.models import RidgeModel

THREADS = ("--scheduler", "threads")
FOLD = {
    "event", "rows_folded", "rows", "seconds", "residual_of_fit", "residual_of_new", "stale", "grown", "basis_size",
    "resumed_sweeps", "digest",
}  # fmt: skip
END = {"event", "folds", "rows_folded", "rows", "retries", "seconds", "ended", "digest"}


@pytest.fixture(scope="session")
def followed(store: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of 5000 rows, and a model of these."""
    folder, block = tmp_path_factory.mktemp("followed"), open_table(store).read(0, 5000)
    assert block.Y is not None
    ingest(open_table(block.X, block.Y[:, 0]), folder / "s", dtype="keep", chunk_rows=1024)
    fit = ["fit", str(folder / "s"), str(folder / "m"), "--basis", "60", "--kernel", "gaussian", *THREADS, "--quiet"]
    assert main(fit) == 0
    return folder


@pytest.fixture
def own(followed: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(followed, tmp_path / "own"))


@pytest.fixture
def more(store: Path) -> Callable[[Path, int, int], None]:
    """Append these rows."""

    def append(folder: Path, first: int, last: int) -> None:
        block = open_table(store).read(first, last)
        assert block.Y is not None
        append_rows(open_table(block.X, block.Y[:, 0]), folder / "s")

    return append


def test_a_line_for_each_fold(cli: Callable, own: Path, more: Callable) -> None:
    more(own, 5000, 5600)
    ran = cli("follow", own / "s", own / "m", "--once", "--json", *THREADS)
    assert ran.status == 0, ran.err
    fold, end = map(json.loads, ran.out.splitlines())
    assert (fold.keys(), end.keys()) == (FOLD, END)
    digest = RidgeModel.load(own / "m").digest
    assert (fold["event"], fold["rows_folded"], fold["rows"], fold["digest"]) == ("fold", 600, 5600, digest)
    assert 0.5 < fold["residual_of_new"] / fold["residual_of_fit"] < 2.0
    assert (end["event"], end["folds"], end["rows"], end["ended"], end["digest"]) == ("end", 1, 5600, "once", digest)
    more(own, 5600, 6000)
    ran = cli("follow", own / "s", own / "m", "--until-rows", 6000, *THREADS, "--quiet")
    first, last = ran.out.splitlines()
    assert "+400 rows, 6,000 in all, in " in first
    assert "the basis leaves " in first
    assert last[20:].startswith("--until-rows reached: 1 folds of 400 rows in ")
    assert cli("update", own / "m", own / "s", "--json").result["rows_folded"] == 0
    assert sorted(path.name for path in own.iterdir()) == ["m", "s"]


@pytest.mark.slow
def test_a_local_cluster_gives_the_bits_of_threads(cli: Callable, own: Path, more: Callable) -> None:
    shutil.copytree(own / "m", own / "n")
    more(own, 5000, 6000)
    one = cli("follow", own / "s", own / "m", "--once", "--json", "--workers", 1).out.splitlines()[-1]
    two = cli("follow", own / "s", own / "n", "--once", "--json", *THREADS).out.splitlines()[-1]
    assert json.loads(one)["digest"] == json.loads(two)["digest"]


def test_stale_rows_are_warned_of(cli: Callable, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 3))
    X[1000:] += 3.0
    y = np.sin(X[:, 0])
    ingest(open_table(X[:1000], y[:1000]), tmp_path / "s", chunk_rows=256)
    assert cli("fit", tmp_path / "s", tmp_path / "m", "--basis", 40, *THREADS).status == 0
    shutil.copytree(tmp_path / "m", tmp_path / "n")
    append_rows(open_table(X[1000:], y[1000:]), tmp_path / "s")
    ran = cli("follow", tmp_path / "s", tmp_path / "m", "--once", *THREADS)
    assert "warning: the basis is stale" in ran.err
    assert "(stale)" in ran.out
    ran = cli("follow", tmp_path / "s", tmp_path / "n", "--once", "--grow", 10, *THREADS)
    assert "10 functions more, 50 in all" in ran.out


def test_what_cannot_be_followed(cli: Callable, own: Path, store: Path) -> None:
    for arguments, words in (
        ((own / "s", own / "none"), "nothing at"),
        ((own / "none", own / "m"), "there is no store at"),
        ((own / "m", own / "m"), "not a table"),
        ((own / "s", own / "s"), "is not a saved model"),
        ((own / "s", own / "m", "--scheduler", "nowhere"), "--scheduler must be"),
    ):
        assert words in cli("follow", *THREADS, *arguments).error
    for wrong in (("--interval", "0"), ("--until-rows", "x"), ("--grow", "-1")):
        assert cli("follow", own / "s", own / "m", *wrong).status == 2
    ingest(open_table(store).slice(2000, 6000), own / "other", dtype="keep", chunk_rows=1024)
    assert "it is another one" in cli("follow", own / "other", own / "m", *THREADS).error
    assert sorted(path.name for path in own.iterdir()) == ["m", "other", "s"]


# --- as a process -----------------------------------------------------------------------------------------------------


class Running:
    """A follower in a process of its own."""

    def __init__(self, folder: Path, *options: str) -> None:
        command = [sys.executable, "-m", "streamkernel", "follow", str(folder / "s"), str(folder / "m"), *options]
        former = signal.signal(signal.SIGINT, signal.SIG_DFL)  # what ran the tests, such as nohup, may ignore it
        try:
            self.process = subprocess.Popen(
                [*command, *THREADS, "--interval", "0.05"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            )
        finally:
            signal.signal(signal.SIGINT, former)

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def waiting(self) -> str:
        assert self.process.stderr is not None
        return self.process.stderr.readline()


@pytest.fixture
def running(own: Path, more: Callable) -> Iterator[Running]:
    """One that has folded in 100 rows."""
    more(own, 5000, 5100)
    found = Running(own, "--json", "--quiet")
    assert json.loads(found.line())["rows"] == 5100
    yield found
    if found.process.poll() is None:
        found.process.kill()
    found.process.communicate()


@pytest.mark.parametrize("word", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)])
def test_a_signal_ends_it_with_a_summary(own: Path, running: Running, more: Callable, word: signal.Signals) -> None:
    more(own, 5100, 5300)
    fold = json.loads(running.line())
    assert (fold["rows_folded"], fold["rows"]) == (200, 5300)
    running.process.send_signal(word)
    out, err = running.process.communicate(timeout=60)
    assert (running.process.returncode, err) == (0, "")
    assert json.loads(out)["ended"] == "stopped"
    assert json.loads(out)["rows"] == RidgeModel.load(own / "m").config["totals"]["rows"]
    assert sorted(path.name for path in own.iterdir()) == ["m", "s"]


@pytest.mark.slow
def test_a_second_follower_an_update_by_hand_and_a_store_that_is_away(
    cli: Callable, own: Path, running: Running, more: Callable
) -> None:
    error = cli("follow", own / "s", own / "m", "--once", *THREADS).error
    assert f"is being followed by process {running.process.pid} on " in error
    (own / "s").rename(own / "away")
    assert running.waiting().startswith("waiting: the next try is in 0.25 s: there is no store at ")
    # What is appended meanwhile is folded in by hand; the follower finds that nothing is left to do.
    shutil.copytree(own / "away", own / "copy")
    (own / "away").rename(own / "s")
    lines = iter(running.waiting, "waiting is over\n")
    assert all("no store at" in line for line in lines)
    more(own, 5100, 5200)
    assert json.loads(running.line())["rows"] == 5200
    running.process.send_signal(signal.SIGSTOP)
    more(own, 5200, 5300)
    assert main(["update", str(own / "m"), str(own / "s"), *THREADS, "--quiet"]) == 0
    more(own, 5300, 5400)
    running.process.send_signal(signal.SIGCONT)
    fold = json.loads(running.line())
    assert (fold["rows_folded"], fold["rows"]) == (100, 5400)
    running.process.terminate()
    assert running.process.wait(60) == 0


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_store_that_may_not_be_read_for_a_time(own: Path, running: Running, more: Callable) -> None:
    (own / "s").chmod(0)
    assert "may not be read by this user" in running.waiting()
    (own / "s").chmod(0o755)
    more(own, 5100, 5200)
    assert json.loads(running.line())["rows"] == 5200


@pytest.mark.slow
def test_killed_while_rows_are_appended(tmp_path: Path) -> None:
    found = killed_again_and_again(tmp_path / "f", 3, seed=1, longest=1.5, pause=0.1)
    print(found)
    assert (found.kills, found.lost, found.doubled) == (3, 0, 0)
    assert found.difference < 1e-9
    assert found.rows > 200


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_killed_50_times_while_rows_are_appended(tmp_path: Path) -> None:
    found = killed_again_and_again(tmp_path / "f", 50, seed=0, longest=2.5, pause=0.1)
    print(
        f"{found.kills} kills ({found.in_work} at work), {found.folds} folds, {found.rows} rows: {found.lost} lost, "
        f"{found.doubled} doubled; coefficients within {found.difference:.1e}"
    )
    assert (found.kills, found.lost, found.doubled) == (50, 0, 0)
    assert found.difference < 1e-9
    assert found.in_work > 0
    assert found.folds > 0  # how many depends on how fast the machine is between two kills
