"""streamkernel update: what it prints, and that no row is lost or counted twice, whatever ends it."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from forks import Forks

from streamkernel import Nystroem, append_rows, ingest, open_table
from streamkernel.cli.main import main
from streamkernel.following import update_saved as updating_saved
from streamkernel.models import RidgeModel

pytestmark = pytest.mark.usefixtures("bare_pages")

THREADS = ("--scheduler", "threads")
KEYS = {
    "model", "store", "rows_folded", "rows_seen_before", "rows", "residual_of_fit", "residual_of_new", "stale", "grown",
    "basis_size", "trace", "residual_trace", "relative_residual_trace", "alpha", "solver", "gcv", "effective_df",
    "saturated", "sweeps", "resumed_sweeps", "seconds", "digest",
}  # fmt: skip


@pytest.fixture
def own(model: Path, tmp_path: Path) -> Path:
    """A copy of the model, which was fitted to rows 0 to 5000 of 6000."""
    return Path(shutil.copytree(model, tmp_path / "m"))


@pytest.fixture(scope="session")
def updated(model: Path, store: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Digest of the model with all rows."""
    path = shutil.copytree(model, tmp_path_factory.mktemp("updated") / "m")
    assert main(["update", str(path), str(store), *THREADS, "--quiet"]) == 0
    return RidgeModel.load(path).digest


def test_update_folds_in_what_is_new_and_says_so(cli: Callable, store: Path, own: Path, updated: str) -> None:
    result = cli("update", own, store, *THREADS, "--json").result
    assert result.keys() == KEYS | {f"validation_{name}" for name in ("rmse", "rmse_se", "rows")}
    told = (result["rows_folded"], result["rows_seen_before"], result["rows"], result["sweeps"], result["stale"])
    assert told == (1000, 5000, 6000, 1, False)
    new = RidgeModel.load(own)
    assert result["digest"] == new.digest == updated
    assert result["alpha"] == new.config["alpha"]
    assert 0.5 < result["residual_of_new"] / result["residual_of_fit"] < 2.0
    assert [path.name for path in own.parent.iterdir()] == ["m"]
    again = cli("update", own, store, *THREADS, "--json").result
    assert (again["rows_folded"], again["rows_seen_before"], again["digest"]) == (0, 6000, updated)
    assert "nothing to update" in cli("update", own, store).out
    told = cli("info", own, "--json").result
    assert (told["rows_seen"], told["inputs_seen"], told["updates"], told["rows"]) == (6000, 1, 1, 5000)
    assert cli("info", own).out.count("rows seen") == 1


def test_ranges_and_an_appended_store(cli: Callable, own: Path, store: Path, tmp_path: Path) -> None:
    source = tmp_path / "store"
    shutil.copytree(store, source)
    assert cli("update", own, source, "--rows", "4000:5500", *THREADS, "--json").result["rows_folded"] == 500
    block = open_table(store).read(0, 300)
    names = [*(f"x{j}" for j in range(6)), "target"]
    (tmp_path / "more.csv").write_text(
        "\n".join(
            [",".join(names), *(",".join(map(repr, row)) for row in np.column_stack([block.X, block.Y]).tolist())]
        )
    )
    told = cli("ingest", tmp_path / "more.csv", source, "--append", "--json").result
    assert told["rows"] == 6300
    result = cli("update", own, source, "--rows", "5000:", *THREADS, "--json").result
    assert (result["rows_folded"], result["rows_seen_before"], result["rows"]) == (800, 500, 6300)
    assert cli("evaluate", own, source, *THREADS, "--json").result["rows"] == 6300
    assert cli("report", own, tmp_path / "r.html").status == 0


@pytest.mark.slow
def test_alpha_and_a_local_cluster(cli: Callable, store: Path, own: Path, updated: str) -> None:
    before = RidgeModel.load(own).config["alpha"]
    copy = shutil.copytree(own, own.with_name("copy"))
    assert cli("update", own, store, "--workers", 1, "--json").result["digest"] == updated, (
        "a cluster gives the bits of threads"
    )
    assert cli("update", copy, store, "--alpha", "keep", *THREADS, "--json").result["alpha"] == before


def test_a_stale_basis_is_warned_of_and_grows(cli: Callable, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 3))
    X[1000:] += 3.0
    y = np.sin(X[:, 0])
    ingest(open_table(X[:1000], y[:1000]), tmp_path / "s", chunk_rows=256)
    assert cli("fit", tmp_path / "s", tmp_path / "m", "--basis", 40, *THREADS).status == 0
    append_rows(open_table(X[1000:], y[1000:]), tmp_path / "s")
    ran = cli("update", tmp_path / "m", tmp_path / "s", "--grow", 10, *THREADS, "--json")
    assert "warning: the basis is stale" in ran.err
    assert "10 functions were added to it" in ran.err
    result = ran.result
    assert (result["grown"], result["basis_size"], result["stale"], result["rows"]) == (10, 50, False, 2000)
    assert cli("evaluate", tmp_path / "m", tmp_path / "s", *THREADS, "--json").result["r2"] > 0.5
    assert cli("report", tmp_path / "m", tmp_path / "r.html").status == 0


def test_what_cannot_be_updated(cli: Callable, store: Path, own: Path, tmp_path: Path) -> None:
    X = np.random.default_rng(0).standard_normal((300, 6))
    Nystroem(5).fit(X).save(tmp_path / "nystroem")
    ingest(open_table(X), tmp_path / "bare")
    ingest(open_table(X[:, :4], X[:, 0]), tmp_path / "narrow")
    before = RidgeModel.load(own).digest
    for arguments, words in (
        ((tmp_path / "nowhere", store), "nothing at"),
        ((tmp_path / "nystroem", store), "is a Nystroem transformer"),
        ((store, store), "is not a saved model"),
        ((own, tmp_path / "nowhere"), "there is no store at"),
        ((own, tmp_path / "bare"), "the table has no targets"),
        ((own, tmp_path / "narrow"), "4 features, the model was fitted on 6"),
        ((own, store, "--rows", "0:9000"), "are not within"),
        ((own, store, "--memory", "1kB"), "projected memory"),
        ((own, tmp_path / "narrow", "--alpha", "-1"), "alpha must be"),
    ):
        assert words in cli("update", *arguments, *THREADS).error
    assert cli("update", own, store, "--grow", "-1").status == 2
    assert RidgeModel.load(own).digest == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bare", "m", "narrow", "nystroem"]
    changed = open_table(store).read(0, 6000)
    ingest(open_table(changed.X, np.where(np.arange(6000) == 2, 0.0, changed.Y[:, 0])), tmp_path / "c", chunk_rows=1024)
    error = cli("update", own, tmp_path / "c", *THREADS).error
    assert "rows 0:1024 of the table are not what they were" in error
    assert "--as-new" in error


def test_options_that_mean_nothing_when_appending(cli: Callable, store: Path, friedman_csv: Path) -> None:
    for option in (("--dtype", "float64"), ("--shuffle",), ("--overwrite",), ("--chunk-rows", "64")):
        assert (
            f"{option[0]} means nothing with --append" in cli("ingest", friedman_csv, store, "--append", *option).error
        )


# --- killed, and at once ------------------------------------------------------------------------------------------

# The process kills itself before or after a function is called; then nothing is cleaned up.
_KILLED = """
import os, signal, sys
from importlib import import_module
module, owner, name, when, *arguments = sys.argv[1:]
place = import_module(module)
place = getattr(place, owner) if owner else place
function = getattr(place, name)
def killing(*given, **options):
    if when == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    function(*given, **options)
    os.kill(os.getpid(), signal.SIGKILL)
setattr(place, name, killing)
from streamkernel.cli import main
main(arguments)
"""


_QUICK = ("model replaced",)


@pytest.mark.parametrize(
    ("moment", "done", "resumed"),
    [
        pytest.param(*case, id=name, marks=[] if name in _QUICK else pytest.mark.slow)
        for name, case in {
            "in a sweep": (("streamkernel.cli.progress", "SweepBar", "advance", "after"), False, 0),
            "after the sweep": (("streamkernel.store", "Checkpoints", "save", "after"), False, 1),
            "saving a checkpoint": (("streamkernel.store.bundle", "", "write_group", "before"), False, 0),
            "publishing one": (("streamkernel.outputs.partial", "", "publish_folder", "before"), False, 0),
            "model replaced": (("streamkernel.outputs.partial", "", "remove_former", "before"), True, 0),
            "model saved": (("streamkernel.store", "Checkpoints", "discard", "before"), True, 0),
        }.items()
    ],
)
def test_killed_at_any_moment(
    forks: Forks, cli: Callable, store: Path, own: Path, updated: str, moment: tuple, done: bool, resumed: int
) -> None:
    """The old model is there, or the new one, whole; the same command then ends with the new one, each row once."""
    before = RidgeModel.load(own).digest
    ended = forks.run(_KILLED, *moment, "update", own, store, *THREADS, "--quiet")
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    assert RidgeModel.load(own).digest == (updated if done else before)
    result = cli("update", own, store, *THREADS, "--json").result
    assert (result["rows_folded"], result["rows_seen_before"]) == ((0, 6000) if done else (1000, 5000))
    assert (result["digest"], result["rows"], result["resumed_sweeps"]) == (updated, 6000, resumed)
    assert RidgeModel.load(own).digest == updated
    assert [path.name for path in own.parent.iterdir()] == ["m"]


@pytest.mark.slow
def test_killed_while_the_model_is_written(forks: Forks, cli: Callable, store: Path, own: Path, updated: str) -> None:
    """The second bundle that is written is the model; the first is the checkpoint."""
    before = RidgeModel.load(own).digest
    counted = _KILLED.replace('if when == "before":', "left.append(1)\n    if len(left) == 2:").replace(
        "    os.kill(os.getpid(), signal.SIGKILL)\nsetattr", "left = []\nsetattr"
    )
    moment = ("streamkernel.outputs.partial", "", "publish_folder", "-")
    ended = forks.run(counted, *moment, "update", own, store, *THREADS)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    assert RidgeModel.load(own).digest == before
    result = cli("update", own, store, *THREADS, "--json").result
    assert (result["digest"], result["resumed_sweeps"]) == (updated, 1)
    assert [path.name for path in own.parent.iterdir()] == ["m"]


@pytest.mark.slow
def test_what_another_update_left_is_of_no_use_to_this_one(
    forks: Forks, cli: Callable, store: Path, own: Path, updated: str
) -> None:
    moment = ("streamkernel.store", "Checkpoints", "save", "after")
    ended = forks.run(_KILLED, *moment, "update", own, store, "--rows", "5000:5100", *THREADS)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    assert (own.parent / ".m.update").is_dir()
    # And of one that was killed while it cleared up.
    shutil.copytree(own.parent / ".m.update", own.parent / "..m.update.0123abcd.partial")
    result = cli("update", own, store, *THREADS, "--json").result
    assert (result["digest"], result["resumed_sweeps"]) == (updated, 0)
    assert [path.name for path in own.parent.iterdir()] == ["m"]


@pytest.mark.slow
def test_two_at_once_lose_no_rows(store: Path, own: Path, tmp_path: Path) -> None:
    """Two processes with rows of their own, over and over: each is refused while the other is at work, none is lost."""
    stores = []
    for name, low in (("one", 5000), ("two", 5500)):
        block = open_table(store).read(low, low + 500)
        ingest(open_table(block.X, block.Y[:, 0]), tmp_path / name, chunk_rows=512)
        stores.append(tmp_path / name)
    script = (
        "import sys; from streamkernel.cli import main\n"
        "while (status := main(sys.argv[1:])) == 1: pass\n"
        "sys.exit(status)"
    )
    running = [
        subprocess.Popen(
            [sys.executable, "-c", script, "update", str(own), str(path), *THREADS, "--quiet"],
            stderr=subprocess.PIPE,
            text=True,
        )
        for path in stores
    ]
    errors = [process.communicate(timeout=60)[1] for process in running]
    assert [process.returncode for process in running] == [0, 0], errors
    assert all("is being driven by" in line for text in errors for line in text.splitlines())
    config = RidgeModel.load(own).config
    assert config["totals"]["rows"] == 6000
    assert [entry["rows"] for entry in config["seen"]] == [[[0, 5000]], [[0, 500]], [[0, 500]]]
    assert config["updates"]["times"] == 2


def test_the_second_is_refused_while_the_first_is_at_work(
    cli: Callable, store: Path, own: Path, updated: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_work, go_on = threading.Event(), threading.Event()
    work = updating_saved.update_model

    def waiting(*arguments: object, **options: object) -> object:
        at_work.set()
        assert go_on.wait(30)
        return work(*arguments, **options)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(updating_saved, "update_model", waiting)
        first = threading.Thread(target=lambda: main(["update", str(own), str(store), *THREADS, "--quiet"]))
        first.start()
        assert at_work.wait(30)
        patched.undo()
        before = RidgeModel.load(own).digest
        told = f"is being driven by process {os.getpid()} on {socket.gethostname()}; wait for it"
        assert told in cli("update", own, store, *THREADS).error
        assert RidgeModel.load(own).digest == before
        go_on.set()
        first.join()
    assert RidgeModel.load(own).digest == updated


def test_a_model_replaced_meanwhile_is_left_alone(
    cli: Callable, store: Path, own: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a fit that overwrites, which takes no part in the lock."""
    work = updating_saved.update_model

    def replacing(*arguments: object, **options: object) -> object:
        done = work(*arguments, **options)  # type: ignore[arg-type]
        other = RidgeModel.load(model)
        RidgeModel.from_config({**other.config, "seen": []}, other.arrays).save(own, overwrite=True)
        return done

    monkeypatch.setattr(updating_saved, "update_model", replacing)
    assert "was replaced by another process" in cli("update", own, store, *THREADS).error
    assert RidgeModel.load(own).config["seen"] == []
    assert [path.name for path in own.parent.iterdir()] == ["m"]
